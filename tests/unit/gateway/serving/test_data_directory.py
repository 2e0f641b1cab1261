"""The data directory of a start: what it refuses, warns of, and takes away again."""

import errno
import stat
from pathlib import Path

import pytest

from gateway.serving.data_directory import DataDirectory
from gateway.settings.errors import ConfigError
from store.errors import StoreError


def made(
    path: Path, *, has_store: bool = False, is_free: bool = True, must_exist: bool = False
) -> DataDirectory:
    """Return the directory, made as a store makes it."""
    directory = DataDirectory(path)

    def make(below: str) -> None:
        try:
            (path / below).mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make it: {error.strerror}") from error

    directory.make(make, has_store=has_store, is_free=is_free, must_exist=must_exist)
    return directory


def test_files_of_another_program_are_no_place_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("mine")

    with pytest.raises(ConfigError, match="holds other files and is no store"):
        made(tmp_path, is_free=False)

    assert [each.name for each in tmp_path.iterdir()] == ["letters"]


def test_a_store_that_must_exist_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "data"

    with pytest.raises(ConfigError, match=r"there is no store, and store\.must_exist asks for one"):
        made(path, must_exist=True)

    assert not path.exists()
    assert not made(tmp_path, has_store=True, must_exist=True).is_new


def test_a_path_that_can_be_no_directory_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"cannot keep data in .*/file/data: Not a directory"):
        made(tmp_path / "file" / "data")


def test_what_keeps_it_from_being_made_now_is_the_store_s_error(tmp_path: Path) -> None:
    def make(_: str) -> None:
        raise StoreError("no space is left") from OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StoreError, match="no space is left"):
        DataDirectory(tmp_path / "data").make(make, has_store=False, is_free=True, must_exist=False)


def test_a_directory_in_which_no_file_can_be_made_is_a_wrong_setting() -> None:
    """Not even root makes one in /proc."""
    with pytest.raises(ConfigError, match="cannot keep data in /proc: "):
        made(Path("/proc"), has_store=True)


@pytest.mark.parametrize(("mode", "warnings"), [(0o777, 1), (0o702, 1), (0o770, 0), (0o700, 0)])
def test_a_directory_into_which_any_user_may_put_files_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warnings: int
) -> None:
    tmp_path.chmod(mode)

    made(tmp_path)

    assert caplog.text.count(f"directory={tmp_path} mode={mode:o}") == warnings
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode


def remove(path: Path) -> None:
    """Remove the store that was left."""
    (path / "store").unlink()


def test_a_start_that_failed_takes_away_what_it_has_made_and_no_more(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for path in (there, tmp_path / "new"):
        directory = made(path)
        (path / "store").touch()

        directory.unmake(remove)

    assert list(tmp_path.iterdir()) == [there]
    assert list(there.iterdir()) == []


def test_a_store_that_has_been_served_or_was_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "store").touch()
    served = made(tmp_path)
    served.keep()
    for directory in (served, made(tmp_path, has_store=True)):
        directory.unmake(remove)

    assert (tmp_path / "store").exists()


def test_what_cannot_be_taken_away_is_warned_of_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data"
    directory = made(path)
    (path / "store").touch()
    (path / "of another program").touch()

    directory.unmake(remove)

    assert "what this start made is not all removed error=" in caplog.text
    assert [each.name for each in path.iterdir()] == ["of another program"]

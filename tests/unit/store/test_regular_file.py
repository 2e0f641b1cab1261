import errno
import os
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from store.regular_file import open_regular


def listening(path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as one:
        one.bind(str(path))


def is_open(path: Path) -> bool:
    """Return whether this process has a descriptor of a file."""
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # another one was closed meanwhile
            if each.readlink() == path:
                return True
    return False


ODD: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "directory": Path.mkdir,
    "socket": listening,
    "link": lambda path: path.symlink_to(__file__),
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link to itself": lambda path: path.symlink_to(path),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT])
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.timeout(10)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str, flags: int) -> None:
    ODD[kind](tmp_path / "7")

    with pytest.raises(OSError, match=r".") as raised:
        open_regular(str(tmp_path / "7"), flags)

    assert not is_open(tmp_path / "7")
    assert [each.name for each in tmp_path.iterdir()] == ["7"], "nothing was made"
    if kind.startswith("link"):
        assert raised.value.errno == errno.ELOOP
        assert str(raised.value.strerror).startswith("7 is a link")


def test_a_regular_file_is_opened_behind_folders_that_are_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "data").symlink_to("real")
    made = open_regular(str(tmp_path / "data" / "7"), os.O_RDWR | os.O_CREAT)
    os.write(made, b"x")
    os.close(made)
    again = open_regular(str(tmp_path / "real" / "7"))
    assert os.read(again, 9) == b"x"
    assert not os.get_inheritable(again)
    os.close(again)


def test_what_is_missing_and_what_is_closed_by_its_mode_is_told_as_the_system_tells_it(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "7"))
    with pytest.raises(NotADirectoryError):
        open_regular("/dev/null/7")

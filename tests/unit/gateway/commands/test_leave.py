"""`hutch leave`."""

from pathlib import Path

import pytest

from gateway import cli
from store.files import DirectoryFiles
from store.replica.local_copy import MEMBER, Place, place_in
from store.replica.message import Link


def member_in(directory: Path) -> DirectoryFiles:
    """Make a directory that of a member."""
    files = DirectoryFiles(directory)
    file = files.open(MEMBER, create=True)
    file.write_at(Place(bytes(16), Link(7, 3, bytes(16)), 9).pack(), 0)
    file.close()
    return files


def test_a_member_becomes_a_plain_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = member_in(tmp_path)
    assert cli.main(["leave", "--data", str(tmp_path)]) == 0
    assert "up to message 7 of the log" in capsys.readouterr().out
    assert place_in(files) is None
    assert cli.main(["leave", "--data", str(tmp_path)]) == 1
    assert "is not the data directory of a member" in capsys.readouterr().err


def test_a_member_that_runs_does_not_leave(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = member_in(tmp_path)
    lock = files.lock("lock")
    assert cli.main(["leave", "--data", str(tmp_path)]) == 1
    assert "is in use by process" in capsys.readouterr().err
    lock.close()
    assert place_in(files) is not None


def test_a_directory_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["leave", "--data", str(tmp_path / "nowhere")]) == 1
    assert "there is no directory" in capsys.readouterr().err


def test_a_damaged_note_of_the_member_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / MEMBER).write_text("no json")
    assert cli.main(["leave", "--data", str(tmp_path)]) == 1
    assert "the file member of the data directory is damaged" in capsys.readouterr().err


def test_repair_of_a_member_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    member_in(tmp_path)
    assert cli.main(["store", "check", "--data", str(tmp_path), "--repair"]) == 2
    assert "member of a cluster" in capsys.readouterr().err

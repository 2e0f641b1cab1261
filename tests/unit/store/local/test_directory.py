"""A store is told from every other directory, whatever has happened to it."""

import os
from pathlib import Path

import pytest

from store.errors import OtherFormat
from store.local.directory import Found, has_data, look_into, remove_store, was_damaged
from store.local.recovery.checkpoint_file import FORMAT_NUMBER


def filled(directory: Path, *names: str) -> Path:
    """Make files, and directories where a name ends in a slash."""
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(b"x")
    return directory


@pytest.mark.parametrize(
    "names",
    [
        ("checkpoint", "lock", "reserve", "journal/1", "data/1"),
        ("checkpoint", "journal/", "data/", "lost+found/", "notes.txt"),
        ("journal/1", "data/1", "notes.txt"),
        ("journal/1", "lock"),
        ("data/7",),
    ],
)
def test_a_store_is_known_also_without_some_of_its_files_and_beside_others(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    assert look_into(filled(tmp_path, *names)) is Found.STORE


@pytest.mark.parametrize("number", [FORMAT_NUMBER - 1, FORMAT_NUMBER + 1])
def test_a_store_of_another_format_is_told(tmp_path: Path, number: int) -> None:
    (filled(tmp_path, "checkpoint") / "checkpoint").write_bytes(b"hutchcp" + bytes((number,)))

    with pytest.raises(OtherFormat, match=f"has format {number}: made by an unreleased Hutch"):
        look_into(tmp_path)


@pytest.mark.parametrize(
    "names",
    [(), ("lost+found/",), ("lock", "journal/", "data/"), ("lock", "checkpoint.new", "admin.sock")],
)
def test_an_empty_directory_and_a_start_that_was_cut_off_hold_nothing(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    assert look_into(filled(tmp_path, *names)) is Found.NOTHING
    assert look_into(tmp_path / "missing") is Found.NOTHING


@pytest.mark.parametrize(
    "names",
    [
        ("passwd",),
        ("lock", "notes.txt"),
        ("data/1", "notes.txt"),
        ("data/table.csv",),
        ("data/1/", "journal/"),
        ("journal/", "data/", "notes.txt"),
        ("checkpoint/offsets/0",),
    ],
)
def test_files_that_are_no_store_are_told(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert look_into(filled(tmp_path, *names)) is Found.OTHER


@pytest.mark.timeout(10)
def test_a_checkpoint_that_is_a_link_is_not_followed_and_a_fifo_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "checkpoint").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="checkpoint is a link"):
        look_into(tmp_path / "linked")
    (tmp_path / "waiting").mkdir()
    os.mkfifo(tmp_path / "waiting" / "checkpoint")
    assert look_into(tmp_path / "waiting") is Found.OTHER


def test_a_store_is_removed_and_what_lies_beside_it_stays(tmp_path: Path) -> None:
    filled(tmp_path, "checkpoint", "lock", "journal/1", "data/1", "lost+found/", "notes.txt")
    assert has_data(tmp_path)

    remove_store(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == {"lost+found", "notes.txt"}
    assert not has_data(tmp_path)


def test_a_store_that_was_damaged_is_known_by_what_was_set_aside(tmp_path: Path) -> None:
    assert not was_damaged(filled(tmp_path / "sound", "checkpoint"))
    assert was_damaged(filled(tmp_path / "harmed", "checkpoint", "set-aside/1/data-1"))

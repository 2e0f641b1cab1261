"""A store that is opened to be looked at or mended, by a command and without an event loop."""

import os
import shutil
from pathlib import Path

import pytest

from store.api import TableEntry
from store.errors import DiskFull, OtherFormat, StoreError
from store.files import DirectoryFiles
from store.local.recovery.checkpoint_file import BEGINNING_BYTES, FORMAT_NUMBER
from store.local.store_check import NotChecked, open_to_check
from tests.unit.store.local.opened import opened
from tests.unit.store.local.test_overlay import state_of

LONG = bytes(range(256)) * 4
KEYS = [b"key %d" % number for number in range(20)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A store with a segment, and with a table whose values are not all kept in memory."""
    directory = tmp_path / "data"
    rig = opened(DirectoryFiles(directory))
    rig.create("segment", b"some bytes")
    rig.do(rig.store.create_table, "table")
    for key in KEYS:
        rig.do(rig.store.update_table, "table", [TableEntry(key, key + LONG)])
    rig.close()
    return directory


def file_with(directory: Path, content: bytes) -> Path:
    (path,) = [each for each in (directory / "data").iterdir() if content in each.read_bytes()]
    return path


def flip(path: Path, content: bytes, place: int = 0) -> None:
    """Change a bit of the first byte behind `place` bytes of some content."""
    stored = bytearray(path.read_bytes())
    stored[stored.index(content) + place] ^= 1
    path.write_bytes(stored)


def set_format(directory: Path, number: int) -> None:
    """Give a store another number of the stored form."""
    with (directory / "checkpoint").open("r+b") as file:
        file.seek(BEGINNING_BYTES - 1)
        file.write(bytes((number,)))


def test_a_sound_store_has_no_damage_and_stays_as_it_is(directory: Path) -> None:
    before = state_of(directory)

    checked = open_to_check(directory, repairs=False)
    segment, table = checked.segments()
    entries = list(checked.entries_of("table"))
    checked.close()

    assert checked.damage == []
    assert (segment.name, segment.start, segment.length) == ("segment", 0, 10)
    assert (segment.is_table, segment.is_damaged, segment.sealed) == (False, False, False)
    path, place = segment.place_of(5)
    assert (directory / path).read_bytes()[place:10] == b"bytes"
    assert table.is_table
    assert {entry.key: entry.value for entry in entries} == {key: key + LONG for key in KEYS}
    assert state_of(directory) == before


def test_a_damaged_table_is_found_and_written_anew_with_all_other_entries(directory: Path) -> None:
    path = file_with(directory, KEYS[7])
    damaged = path.read_bytes()
    flip(path, KEYS[7] + LONG, len(KEYS[7]) + 300)
    damaged, before = path.read_bytes(), state_of(directory)
    with_damage = open_to_check(directory, repairs=False)
    versions = {entry.key: entry.version for entry in with_damage.entries_of("table")}
    found = with_damage.damage
    with_damage.close()
    assert state_of(directory) == before
    (damage,) = found
    assert (damage.segment, damage.file) == ("table", f"data/{path.name}")
    assert damage.position is not None
    assert damaged.index(KEYS[7] + LONG[:9]) - 100 < damage.position < damaged.index(KEYS[8])

    mending = open_to_check(directory, repairs=True)
    kept = mending.rewrite_table("table")
    aside = mending.kept_in
    mending.close()

    assert kept == len(KEYS) - 1
    assert damaged in [each.read_bytes() for each in (directory / aside).iterdir()]
    checked = open_to_check(directory, repairs=False)
    entries = {entry.key: entry for entry in checked.entries_of("table")}
    assert checked.damage == []
    assert not any(shape.is_damaged for shape in checked.segments())
    assert {key: entry.value for key, entry in entries.items()} == {
        key: key + LONG for key in KEYS if key != KEYS[7]
    }
    assert {key: entry.version for key, entry in entries.items()} == versions
    checked.close()


def test_a_table_that_cannot_be_written_anew_stays_damaged_and_the_reason_is_told(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(file_with(directory, KEYS[7]), KEYS[7] + LONG, len(KEYS[7]) + 300)
    checked = open_to_check(directory, repairs=True)
    writing = checked.store.writing
    full = DiskFull("no space is left")
    monkeypatch.setattr(writing, "write", lambda *arguments: arguments[2](full))

    with pytest.raises(DiskFull, match="no space is left"):
        checked.rewrite_table("table")
    with pytest.raises(StoreError):  # a command tells it and goes on
        checked.rewrite_table("table")

    monkeypatch.undo()
    assert checked.rewrite_table("table") == len(KEYS) - 1
    checked.close()


def test_what_is_missing_of_a_segment_is_told(directory: Path) -> None:
    os.truncate(file_with(directory, b"some bytes"), 4)

    checked = open_to_check(directory, repairs=False)
    checked.close()

    assert {damage.segment for damage in checked.damage} == {"segment"}
    assert any(damage.file.startswith("data/") for damage in checked.damage)


def test_a_directory_without_a_store_is_not_checked(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no store")

    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(NotChecked, match="no store"):
            open_to_check(directory, repairs=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_store_that_a_server_has_is_not_checked(directory: Path) -> None:
    rig = opened(DirectoryFiles(directory))

    with pytest.raises(NotChecked, match="in use by process"):
        open_to_check(directory, repairs=False)

    rig.close()


@pytest.mark.parametrize("number", [FORMAT_NUMBER - 1, FORMAT_NUMBER + 1])
@pytest.mark.parametrize("repairs", [False, True])
def test_a_store_of_another_format_is_not_opened(
    directory: Path, number: int, *, repairs: bool
) -> None:
    set_format(directory, number)
    before = state_of(directory)

    with pytest.raises(OtherFormat, match=f"has format {number}: made by an unreleased Hutch"):
        open_to_check(directory, repairs=repairs)

    assert state_of(directory) == before


def test_a_damaged_checkpoint_is_an_error_of_the_store_and_gives_the_lock_back(
    directory: Path,
) -> None:
    copy = directory.with_name("copy")
    shutil.copytree(directory, copy)
    with (directory / "checkpoint").open("r+b") as file:
        file.seek(40)
        file.write(b"\xff\xff\xff")

    for _ in range(2):
        with pytest.raises(StoreError, match="checkpoint is damaged"):
            open_to_check(directory, repairs=False)

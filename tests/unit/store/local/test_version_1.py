"""What is read of version 1: table entries, and which of its frames were on the disk."""

import struct

import pytest

from store.api import ENTRY_BYTES_MAX, KEY_BYTES_MAX
from store.errors import CorruptSegment
from store.local.journal_files import JOURNAL_DIRECTORY, path_of
from store.local.records import FILE_MAGIC, Create, Frame, Record
from store.local.version_1 import entries_of, remove_unfinished, was_synced
from tests.simulation.disk import Disk
from tests.unit.store.local.test_taking_over import ENTRY, entry

AT = 1_000
ENTRIES = entry(b"a", b"first") + entry(b"b", None, 7) + entry(b"c", b"")


def found(data: bytes) -> list[tuple[int, int, bytes, bytes | None, int]]:
    return [
        (each.position, each.size, each.key, each.value, each.version)
        for each in entries_of(data, AT)
    ]


def test_entries_are_read_with_their_places_and_versions() -> None:
    first, second = len(entry(b"a", b"first")), len(entry(b"b", None))

    assert found(ENTRIES) == [
        (AT, first, b"a", b"first", AT),
        (AT + first, second, b"b", None, 7),
        (AT + first + second, len(entry(b"c", b"")), b"c", b"", AT + first + second),
    ]


@pytest.mark.parametrize("size", range(len(ENTRIES)))
def test_an_entry_that_is_cut_off_ends_what_is_read(size: int) -> None:
    whole = found(ENTRIES)
    ends = [position + length - AT for position, length, *_ in whole]

    assert found(ENTRIES[:size]) == whole[: sum(end <= size for end in ends)]


@pytest.mark.parametrize(
    "head",
    [
        ENTRY.pack(2, 1, 1, -1),
        ENTRY.pack(0, 1, 1, -1),
        ENTRY.pack(1, 0, 1, -1),
        ENTRY.pack(1, KEY_BYTES_MAX + 1, 1, -1),
        ENTRY.pack(1, 1, -2, -1),
        ENTRY.pack(1, 1, ENTRY_BYTES_MAX + 1, -1),
    ],
)
def test_what_is_no_entry_is_damage_at_its_position(head: bytes) -> None:
    data = entry(b"a", b"b") + head + bytes(100)
    position = AT + len(entry(b"a", b"b"))

    with pytest.raises(CorruptSegment, match=f"no table entry at position {position}$"):
        found(data)


@pytest.mark.parametrize("size", [1, KEY_BYTES_MAX])
def test_keys_of_any_legal_size_are_read(size: int) -> None:
    assert [key for _, _, key, *_ in found(entry(bytes(size), b"v"))] == [bytes(size)]


def frame(at_ms: int, *, durable: bool) -> Frame:
    records: list[Record] = [Create(segment=1, name="a", key_length=None, durable=durable)]
    return Frame(1, at_ms, 10, records)


@pytest.mark.parametrize(
    ("frames", "is_synced"),
    [
        ([], False),
        ([frame(1, durable=True)], False),
        ([frame(1, durable=True), frame(1, durable=False)], False),
        ([frame(1, durable=False), frame(2, durable=False)], False),
        ([frame(1, durable=True), frame(2, durable=False)], True),
        ([frame(1, durable=False), frame(2, durable=True)], False),
        ([frame(1, durable=False), frame(2, durable=True), frame(3, durable=False)], True),
        ([frame(1, durable=True), frame(1, durable=False), frame(2, durable=False)], True),
    ],
)
def test_a_later_round_behind_a_durable_one_shows_that_it_was_synced(
    frames: list[Frame], *, is_synced: bool
) -> None:
    assert was_synced(iter(frames)) == is_synced


def test_only_journal_files_of_the_later_version_are_removed() -> None:
    disk = Disk()
    disk.make_directory(JOURNAL_DIRECTORY)
    contents = {1: b"hutchjn1", 2: FILE_MAGIC + bytes(100), 3: b"", 4: struct.pack("<Q", 0)}
    for number, data in contents.items():
        disk.open(path_of(number), create=True).write_at(data, 0)

    remove_unfinished(disk)

    assert sorted(disk.names(JOURNAL_DIRECTORY)) == ["1", "3", "4"]

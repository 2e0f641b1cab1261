"""A closed store of version 1, made by hand, is opened by this version."""

import itertools
import logging
import struct
from collections.abc import Iterable
from typing import Final

import pytest
from xxhash import xxh3_64_intdigest

from store.api import ABSENT, NOT_EXISTS, TAKEN_OVER, TableEntry
from store.errors import DiskFull, KeyVersionMismatch, SegmentFailed
from store.local import taking_over
from store.local.checkpoint_file import (
    MAGIC,
    MAGIC_1,
    SegmentImage,
    bytes_of_segment,
    head_of_checkpoint,
)
from store.local.records import FILE_MAGIC
from tests.conformance.harness import FILLER
from tests.golden.crashed import crashed, image_of
from tests.simulation.disk import Create, Disk, Failure, Image, Step, Sync, Write
from tests.unit.store.local.opened import KIB, Opened, opened

ENTRY: Final = struct.Struct("<Biiq")
HEAD: Final = struct.Struct("<QQQQQQII")
CLOSED: Final = 1
TABLE: Final = "users"
STREAM: Final = "stream/orders"

Entries = Iterable[tuple[bytes, bytes | None, int | None]]


def entry(key: bytes, value: bytes | None, version: int | None = None) -> bytes:
    """Encode an entry of version 1."""
    size = -1 if value is None else len(value)
    head = ENTRY.pack(1, len(key), size, -1 if version is None else version)
    return head + key + (value or b"")


def version_1(others: dict[str, bytes] | None = None, **files: bytes | list[bytes]) -> Disk:
    """Make the disk of a store of version 1.

    Args:
        others: Further files in its directory.
        files: Bytes of plain segments, and lists of the bytes of each file of a table.
    """
    numbers = itertools.count(1)
    held: dict[str, bytes] = {}
    segments = []
    for number, (name, content) in enumerate(files.items(), 1):
        extents, length = [], 0
        for data in content if isinstance(content, list) else [content] if content else []:
            file = next(numbers)
            held[f"data/{file}"] = data
            extents.append((length, file))
            length += len(data)
        image = SegmentImage(
            number,
            name,
            key_length=0 if isinstance(content, list) else None,
            sealed=False,
            corrupt=False,
            start=0,
            length=length,
            modified_at_ms=1,
            attributes={FILLER.bytes: 7},
            extents=extents,
        )
        segments.append(bytes_of_segment(image))
    head = HEAD.pack(1 << 33, 0, 0, 5, len(segments) + 1, next(numbers), CLOSED, len(segments))
    body = b"".join((head, *segments))
    held["checkpoint"] = MAGIC_1 + struct.pack("<Q", xxh3_64_intdigest(body)) + body
    return Disk(image_of(held | {"journal/1": bytes(KIB)} | (others or {})))


def content(disk: Disk, path: str) -> bytes:
    image = disk.image()
    return image.contents[image.names[path]]


def entries(rig: Opened, table: str = TABLE) -> dict[bytes, tuple[bytes, int]]:
    page = rig.do(rig.store.iterate_table, table, count=10_000)
    return {each.key: (each.value, each.version) for each in page.entries}


def without_lock(image: Image) -> dict[str, bytes]:
    return {path: image.contents[inode] for path, inode in image.names.items() if path != "lock"}


LONG: Final = b"long" * 100
TWO_FILES: Final = [
    entry(b"a", b"old") + entry(b"b", b"2") + entry(b"gone", b"x"),
    entry(b"c", LONG, 3) + entry(b"a", b"new") + entry(b"gone", None),
]
FIRST: Final = len(TWO_FILES[0])
LENGTH: Final = sum(map(len, TWO_FILES))
A_AT: Final = FIRST + len(entry(b"c", LONG))
KEPT: Final = {
    b"b": (b"2", len(entry(b"a", b"old"))),
    b"c": (LONG, 3),
    b"a": (b"new", A_AT),
}


def test_a_store_of_version_1_is_one_of_version_2_after_its_first_opening(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = version_1(users=TWO_FILES, stream=b"chunks")
    with caplog.at_level(logging.INFO):
        rig = opened(disk)
    assert "store was taken over from version 1 of its format segments=2 tables=1" in caplog.text
    assert rig.store.opened_clean
    assert entries(rig) == KEPT
    assert rig.content("stream") == b"chunks"
    assert rig.do(rig.store.get_attribute, "stream", FILLER) == 7
    rig.close()
    assert content(disk, "checkpoint")[:8] == MAGIC
    caplog.clear()
    with caplog.at_level(logging.INFO):
        rig = opened(disk)
    assert "taken over" not in caplog.text
    assert entries(rig) == KEPT
    rig.close()


def test_only_files_of_version_2_are_left() -> None:
    disk = version_1(users=TWO_FILES, stream=b"chunks")
    opened(disk).close()
    assert sorted(disk.names("data")) == ["3", "4"]
    assert all(
        content(disk, f"journal/{name}")[:8] == b"hutchjn2" for name in disk.names("journal")
    )


def test_updates_on_condition_of_an_old_version_go_on() -> None:
    rig = opened(version_1(users=TWO_FILES))
    updates = [TableEntry(key, b"next", version) for key, (_, version) in KEPT.items()]
    versions = rig.do(rig.store.update_table, TABLE, updates)
    assert min(versions) > LENGTH
    for stale in updates:
        rig.refused(KeyVersionMismatch, rig.store.update_table, TABLE, [stale])
    rig.do(rig.store.update_table, TABLE, [TableEntry(b"gone", b"again", NOT_EXISTS)])
    expected = {
        update.key: (b"next", version) for update, version in zip(updates, versions, strict=True)
    }
    assert entries(rig).items() >= expected.items()
    rig.reopen()
    assert entries(rig).items() >= expected.items()
    rig.close()


@pytest.mark.parametrize("files", [[], [entry(b"a", b"1") + entry(b"a", None)]])
def test_a_table_without_live_entries_takes_new_ones(files: list[bytes]) -> None:
    rig = opened(version_1(users=files))
    assert entries(rig) == {}
    (version,) = rig.do(rig.store.update_table, TABLE, [TableEntry(b"a", b"2")])
    assert version >= sum(map(len, files))
    rig.reopen()
    assert entries(rig) == {b"a": (b"2", version)}
    rig.close()


def test_segments_tell_how_long_they_were_when_they_were_taken_over() -> None:
    rig = opened(version_1(users=TWO_FILES, stream=b"chunks", empty=b""))
    rig.fill("stream", b" of version 2")
    rig.reopen()
    noted = [
        rig.do(rig.store.get_attribute, name, TAKEN_OVER) for name in ("stream", "empty", TABLE)
    ]
    assert noted == [len(b"chunks"), ABSENT, ABSENT]
    assert rig.content("stream") == b"chunks of version 2"
    rig.close()


def test_a_long_table_is_written_in_slices_and_files_of_the_usual_size(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(taking_over, "SLICE_BYTES", 4 * KIB)
    monkeypatch.setattr(taking_over, "SAY_AGAIN_S", 0.0)
    stored = [entry(b"key %d" % number, bytes([number]) * 500) for number in range(100)]
    disk = version_1(users=[b"".join(stored)])
    with caplog.at_level(logging.INFO):
        rig = opened(disk, data_file_bytes=16 * KIB)
    assert len(entries(rig)) == 100
    rig.close()
    written = [step for step in disk.record if isinstance(step, Write)]
    assert max(len(step.data) for step in written if b"key " in step.data) < 5 * KIB
    sizes = [len(content(disk, f"data/{name}")) for name in disk.names("data")]
    assert len(sizes) > 3
    assert max(sizes) <= 16 * KIB
    size = sum(map(len, stored))
    assert f"store is being taken over from version 1 of its format bytes={size} of={size}" in (
        caplog.text
    )


def test_old_bytes_that_are_no_entries_are_found_and_set_aside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    damaged = b"\x09" + TWO_FILES[1][1:]
    disk = version_1(users=[TWO_FILES[0], damaged], roles=TWO_FILES)
    rig = opened(disk)
    assert "segment=users" in caplog.text
    assert "segment=roles" not in caplog.text
    for _ in range(2):
        assert rig.do(rig.store.info, TABLE).is_damaged
        assert not rig.do(rig.store.info, "roles").is_damaged
        assert set(entries(rig)) == {b"a", b"b", b"gone"}
        rig.reopen()
    rig.close()
    assert {TWO_FILES[0], damaged} <= set(aside(disk))


def aside(disk: Disk) -> list[bytes]:
    return [content(disk, path) for path in disk.image().names if path.startswith("set-aside/")]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_file_without_an_owner_is_kept_where_there_is_damage(*, is_damaged: bool) -> None:
    disk = version_1({"data/9": b"of somebody"}, stream=b"chunks")
    if is_damaged:
        disk.remove("data/1")
    opened(disk).close()
    assert (b"of somebody" in aside(disk)) is is_damaged
    assert "9" not in disk.names("data")


def test_a_missing_file_is_damage_of_its_table(caplog: pytest.LogCaptureFixture) -> None:
    disk = version_1(users=TWO_FILES)
    disk.remove("data/2")
    rig = opened(disk)
    assert "segment=users" in caplog.text
    assert rig.do(rig.store.info, TABLE).is_damaged
    assert set(entries(rig)) == {b"a", b"b", b"gone"}
    rig.close()


def opened_or_none(disk: Disk) -> Opened | None:
    """Open a store if there is room for it to be taken over."""
    try:
        return opened(disk)
    except DiskFull as error:
        words = "there is no room to take the store over from version 1 of its format"
        if not str(error).startswith(words):
            raise
        return None


def test_without_room_nothing_is_changed() -> None:
    disk = version_1({"reserve": bytes(32 * KIB)}, users=TWO_FILES, stream=b"chunks")
    before = without_lock(disk.image())
    disk.capacity = disk.used()
    refused = 0
    while (rig := opened_or_none(disk)) is None:
        refused += 1
        assert without_lock(disk.image()) == before
        disk.remove("lock")
        disk.capacity += 512
    assert refused > 3
    assert entries(rig) == KEPT
    rig.close(may_fail=True)


def test_what_a_take_over_has_left_that_was_cut_off_goes() -> None:
    left = {"journal/9": FILE_MAGIC + bytes(KIB), "data/3": b"of a table", "data/4": b"of another"}
    disk = version_1(left, users=TWO_FILES)
    disk.failures = [Failure(syncs, after=1)]
    with pytest.raises(SegmentFailed):
        opened(disk)
    assert sorted(disk.names("journal")) == ["1"]
    assert content(disk, "data/3") != b"of a table"
    assert "4" not in disk.names("data")
    disk.remove("lock")
    rig = opened(disk)
    assert entries(rig) == KEPT
    rig.close()


def makes_data_file(step: Step) -> bool:
    return isinstance(step, Create) and step.path == "data/4"


def syncs(step: Step) -> bool:
    return isinstance(step, Sync)


@pytest.mark.parametrize("failing", [makes_data_file, syncs])
def test_a_disk_that_fails_leaves_the_store_in_version_1(failing: object) -> None:
    disk = version_1(users=TWO_FILES, stream=b"chunks")
    disk.failures = [Failure(failing)]  # type: ignore[arg-type] # one of the two above
    with pytest.raises(SegmentFailed):
        opened(disk)
    assert content(disk, "checkpoint")[:8] == MAGIC_1
    rig = opened(Disk(disk.image()))
    assert entries(rig) == KEPT
    rig.close()


def test_damage_of_a_journal_of_version_1_is_found_and_set_aside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    image = next(each.image for each in crashed() if each.name == "01-disk-kill")
    place = head_of_checkpoint(image.contents[image.names["checkpoint"]]).place
    inode = image.names[f"journal/{place.file}"]
    journal = bytearray(image.contents[inode])
    journal[place.position + 8] ^= 1
    disk = Disk(Image(image.directories, image.names, image.contents | {inode: bytes(journal)}))
    opened(disk).close()
    assert "journal is damaged" in caplog.text
    aside = [content(disk, each) for each in disk.image().names if each.startswith("set-aside/")]
    assert bytes(journal) in aside
    assert content(disk, "checkpoint").startswith(MAGIC)

"""Readers: many reads of one segment, from memory, from files, and checked on a thread."""

import contextlib
import os
import threading
from uuid import UUID

import pytest

from store.api import APPEND_BYTES_MAX, CHECKS_KEPT, READ_BYTES_MAX, FileRegion, Reader
from store.errors import (
    CorruptSegment,
    IsATable,
    NoSuchSegment,
    SegmentTruncated,
    StoreError,
)
from tests.conformance.harness import Rig
from tests.conformance.implementations import needs_files, on_any_memory
from tests.conformance.promise import promise

WRITER = UUID(int=1)


def _bytes_of(region: FileRegion | None) -> bytes:
    assert region is not None
    data = os.pread(region.fileno, region.size, region.position)
    assert len(data) == region.size
    return data


def _take(region: FileRegion | None) -> bytes:
    data = _bytes_of(region)
    assert region is not None
    region.release()
    return data


@promise("SegmentStore.open_reader", NoSuchSegment, IsATable)
def test_there_is_no_reader_of_nothing_and_of_a_table(rig: Rig) -> None:
    rig.refused(NoSuchSegment, rig.store.open_reader, "none")
    rig.do(rig.store.create_table, "t")
    rig.refused(IsATable, rig.store.open_reader, "t")


@promise("SegmentStore.open_reader")
@promise("Reader.start")
@promise("Reader.length")
def test_a_reader_follows_start_and_length(rig: Rig) -> None:
    reader = rig.reader(rig.create("a", b"abc"))
    assert (reader.start, reader.length) == (0, 3)
    rig.fill("a", b"def")
    rig.do(rig.store.truncate_segment, "a", 2)
    assert (reader.start, reader.length) == (2, 6)
    rig.do(rig.store.seal_segment, "a")
    assert (reader.start, reader.length) == (2, 6)


@promise("Reader.length")
def test_the_length_is_never_behind_an_acknowledgement(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    reader = rig.reader("a")
    seen: list[int] = []
    for number in range(50):
        session.append(b"x" * 10, number, done=lambda _: seen.append(reader.length))
    rig.loop.run_until(lambda: len(seen) == 50)
    assert all(length >= 10 * (count + 1) for count, length in enumerate(seen))
    assert rig.do(rig.store.info, "a").length == 500


def _piece(reader: Reader, position: int, size: int) -> bytes | None:
    data = reader.read_cached(position, size)
    assert data is None or len(data) <= size
    return data


@promise("Reader.read_cached")
def test_cached_bytes_are_the_right_bytes(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    reader = rig.reader("a")
    whole = b"".join(b"%07d" % number for number in range(20_000))
    for number, first in enumerate(range(0, len(whole), 9_973)):
        rig.do(session.append, whole[first : first + 9_973], number)
    hits = 0
    for position in range(0, len(whole), 3_001):
        data = _piece(reader, position, 2_000)
        if data:
            hits += 1
            assert whole[position : position + len(data)] == data
    assert hits  # all of this was written a moment ago: it is in memory, or nothing ever is


@promise("Reader.read_cached")
def test_what_is_not_committed_cannot_be_read(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"abc"), WRITER)
    reader = rig.reader("a")
    assert not _piece(reader, 3, 10)
    rig.do(session.append, b"def", 1)
    assert not _piece(reader, 6, 10)
    assert not _piece(reader, 100, 10)
    data = _piece(reader, 0, 10)
    assert data is None or b"abcdef".startswith(data)


@promise("Reader.is_cached")
def test_what_was_just_written_is_likely_in_memory(rig: Rig) -> None:
    reader = rig.reader(rig.create("a", b"abc" * 100))
    assert reader.is_cached(0, 300) is True
    assert reader.is_cached(100, 200) is True


@promise("Reader.region")
@needs_files
def test_a_region_is_a_place_in_a_file_with_the_bytes(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    reader = rig.reader("a")
    pieces = [bytes([65 + number % 26]) * (1 + number * 997 % 20_000) for number in range(60)]
    for number, piece in enumerate(pieces):
        rig.do(session.append, piece, number)
    whole = b"".join(pieces)
    position = 0
    while position < len(whole):
        region = reader.region(position, 7_000)
        assert region is not None
        assert 1 <= region.size <= 7_000
        assert _take(region) == whole[position : position + region.size]
        position += region.size
    assert position == len(whole)


@promise("Reader.region")
@needs_files
def test_an_append_never_lies_in_two_files(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    pieces = [bytes([number % 256]) * (1 + number * 7_919 % 40_000) for number in range(80)]
    pieces += [b"large" * 50_000, b"after"]
    pending = [rig.start(session.append, piece, n) for n, piece in enumerate(pieces)]
    rig.wait(*pending)
    for _ in range(2):
        reader = rig.reader("a")
        for piece, each in zip(pieces, pending, strict=True):
            assert _take(reader.region(each.value.position, each.value.size)) == piece
        rig.reopen()


@promise("Reader.region")
def test_there_is_no_region_where_nothing_committed_is(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"abcdef"), WRITER)
    reader = rig.reader("a")
    assert reader.region(6, 10) is None
    assert reader.region(99, 1) is None
    region = reader.region(4, 10)
    assert region is None or _take(region) == b"ef"
    rig.do(rig.store.truncate_segment, "a", 6)
    assert reader.region(5, 1) is None
    rig.do(session.append, b"ghi", 1)
    region = reader.region(6, 10)
    assert region is None or _take(region) == b"ghi"


@promise("Reader.region")
@promise("SegmentStore.truncate_segment")
@needs_files
@pytest.mark.parametrize("event", ["truncate", "delete", "merge"])
def test_a_region_that_is_held_keeps_its_bytes(rig: Rig, event: str) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    pieces = [bytes([65 + number]) * 30_000 for number in range(8)]
    for number, piece in enumerate(pieces):
        rig.do(session.append, piece, number)
    reader = rig.reader("a")
    held = [reader.region(30_000 * number, 30_000) for number in range(8)]
    if event == "truncate":
        rig.do(rig.store.truncate_segment, "a", 240_000)
    elif event == "delete":
        rig.do(rig.store.delete_segment, "a")
    else:
        rig.create("target", b"t")
        rig.do(rig.store.merge_segments, "target", "a")
    # Much is written afterwards, into files that may be used again.
    other = rig.writer(rig.create("other"), WRITER)
    rig.wait(*(rig.start(other.append, b"#" * 30_000, number) for number in range(40)))
    assert [_bytes_of(region) for region in held] == pieces
    for region in held:
        assert region is not None
        region.release()


@promise("Reader.check", NoSuchSegment)
@promise("Reader.region", NoSuchSegment)
@promise("Reader.read_cached")
def test_a_reader_of_a_deleted_segment_finds_nothing(rig: Rig) -> None:
    reader = rig.reader(rig.create("a", b"abc"))
    rig.do(rig.store.delete_segment, "a")
    rig.create("a", b"another")
    assert reader.region(0, 3) is None
    rig.refused(NoSuchSegment, reader.check, 0, 3, len)
    with contextlib.suppress(NoSuchSegment):
        assert reader.read_cached(0, 3) is None
    with contextlib.suppress(NoSuchSegment):
        assert not reader.is_cached(0, 3)


@promise("Reader.check")
def test_check_looks_at_the_bytes_on_another_thread(rig: Rig) -> None:
    reader = rig.reader(rig.create("a", b"0123456789"))
    threads: list[int] = []

    def look(view: memoryview) -> bytes:
        threads.append(threading.get_ident())
        return bytes(view)

    assert rig.do(reader.check, 2, 5, look) == b"23456"
    assert threads[0] != threading.get_ident()


@promise("Reader.check")
def test_check_sees_less_where_the_committed_bytes_end(rig: Rig) -> None:
    reader = rig.reader(rig.create("a", b"0123456789"))
    assert rig.do(reader.check, 7, 100, bytes) == b"789"


@promise("Reader.check")
def test_check_takes_as_much_as_one_append(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    data = (os.urandom(1_000_003) * (APPEND_BYTES_MAX // 1_000_003 + 1))[:APPEND_BYTES_MAX]
    assert len(data) > READ_BYTES_MAX
    rig.do(session.append, data, 1)
    assert rig.do(rig.reader("a").check, 0, APPEND_BYTES_MAX, bytes) == data


@promise("Reader.check")
def test_check_reports_the_store_error_that_look_raises(rig: Rig) -> None:
    reader = rig.reader(rig.create("a", b"0123456789"))

    def look(_: memoryview) -> None:
        raise CorruptSegment("the checksum of a chunk does not match")

    rig.refused(CorruptSegment, reader.check, 0, 10, look)
    assert rig.do(reader.check, 0, 10, len) == 10


@promise("Reader.check")
@promise("Reader.is_cached")
def test_what_was_checked_is_likely_in_memory(rig: Rig) -> None:
    rig.create("a", b"0123456789" * 1_000)
    rig.reopen()
    reader = rig.reader("a")
    rig.do(reader.check, 0, 10_000, len)
    assert reader.is_cached(0, 10_000)
    assert reader.read_cached(0, 10_000) == b"0123456789" * 1_000


def _all_cached(reader: Reader, position: int, size: int) -> bytes:
    """Read without a disk, in pieces, up to the first byte that is not there."""
    data = b""
    while len(data) < size and (more := _piece(reader, position + len(data), size - len(data))):
        data += more
    return data


@promise("Reader.check")
@promise("Reader.read_cached")
@on_any_memory
@pytest.mark.parametrize(("position", "size"), [(0, 300_000), (0, 1), (70_001, 60_000)])
def test_what_was_checked_is_given_at_least_once(rig: Rig, position: int, size: int) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    data = os.urandom(300_000)
    for number, first in enumerate(range(0, len(data), 30_000)):
        rig.do(session.append, data[first : first + 30_000], number)
    rig.reopen()
    reader = rig.reader("a")
    rig.do(reader.check, position, size, len)
    assert _all_cached(reader, position, size) == data[position : position + size]


@promise("Reader.check")
@on_any_memory
def test_the_largest_that_can_be_checked_is_given_at_least_once(rig: Rig) -> None:
    data = os.urandom(APPEND_BYTES_MAX)
    rig.do(rig.writer(rig.create("a"), WRITER).append, data, 1)
    rig.reopen()
    reader = rig.reader("a")
    rig.do(reader.check, 0, len(data), len)
    assert _all_cached(reader, 0, len(data)) == data


@promise("Reader.check")
@on_any_memory
def test_so_many_checks_at_once_are_given_at_least_once_each(rig: Rig) -> None:
    names = [rig.create(f"s{number}", bytes([number]) * 100) for number in range(8)]
    rig.reopen()
    readers = [rig.reader(name) for name in names]
    size = 100 * len(readers) // CHECKS_KEPT + 1
    for first in range(0, 100, size):
        rig.wait(*(rig.start(reader.check, first, size, len) for reader in readers))
    for number, reader in enumerate(readers):
        assert _all_cached(reader, 0, 100) == bytes([number]) * 100


@promise("Reader.check")
def test_many_checks_may_be_under_way_at_once(rig: Rig) -> None:
    rig.create("a", bytes(range(256)) * 16)
    rig.reopen()
    reader = rig.reader("a")
    checks = [rig.start(reader.check, position, 16, bytes) for position in range(0, 4_096, 16)]
    rig.wait(*checks)
    assert b"".join(each.value for each in checks) == bytes(range(256)) * 16


@promise("Reader.check")
def test_check_before_the_start_says_so(rig: Rig) -> None:
    reader = rig.reader(rig.create("a", b"0123456789"))
    rig.do(rig.store.truncate_segment, "a", 5)
    error = rig.refused(SegmentTruncated, reader.check, 0, 10, len)
    assert error.start == 5
    assert rig.do(reader.check, 5, 10, bytes) == b"56789"


def test_a_reader_never_reads_bytes_of_before_the_start(rig: Rig) -> None:
    reader = rig.reader(rig.create("a", b"0123456789"))
    rig.do(rig.store.truncate_segment, "a", 5)
    try:
        assert not reader.read_cached(0, 10)
    except StoreError as error:
        assert isinstance(error, SegmentTruncated)  # noqa: PT017 - either answer is right

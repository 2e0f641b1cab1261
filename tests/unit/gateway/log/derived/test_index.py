import zlib
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.log.derived.index import ENTRY_BYTES, NO_END, SPAN_BYTES, ChunkIndex, are_sound

SEED = zlib.crc32(b"the name")


def index_of(*entries: tuple[int, int, int], verified: bool = True) -> ChunkIndex:
    """An index with entries (offset, timestamp, position) that are far enough apart."""
    index = ChunkIndex()
    for offset, timestamp_ms, position in entries:
        index.offer(offset, timestamp_ms, position, verified=verified)
    assert len(index) == len(entries)
    return index


def spans(count: int, *, verified: bool = True) -> ChunkIndex:
    """An index of so many spans; span n begins at n × SPAN_BYTES with offset 10 n."""
    return index_of(*((10 * n, 100 * n, n * SPAN_BYTES) for n in range(count)), verified=verified)


def entries_of(index: ChunkIndex) -> list[tuple[int, int, int]]:
    return list(zip(index.offsets, index.timestamps_ms, index.positions, strict=True))


@given(st.lists(st.integers(57, 3 * SPAN_BYTES), max_size=30))
def test_an_entry_is_made_for_the_first_chunk_and_then_once_a_span(sizes: list[int]) -> None:
    index = ChunkIndex()
    position = 0
    expected: list[int] = []
    for number, size in enumerate(sizes):
        index.offer(number, number, position)
        if not expected or position - expected[-1] >= SPAN_BYTES:
            expected.append(position)
        position += size

    assert list(index.positions) == expected


def test_an_offset_is_sought_from_the_last_entry_at_or_before_it() -> None:
    index = spans(3)

    found = {
        offset: index.position_before_offset(offset) for offset in (0, 9, 10, 11, 20, 2**64 - 1)
    }

    assert found == {
        0: 0,
        9: 0,
        10: SPAN_BYTES,
        11: SPAN_BYTES,
        20: 2 * SPAN_BYTES,
        2**64 - 1: 2 * SPAN_BYTES,
    }


def test_an_offset_before_the_first_entry_is_sought_from_the_first() -> None:
    assert index_of((50, 0, 7)).position_before_offset(3) == 7


def test_a_timestamp_is_sought_from_the_last_entry_that_is_older() -> None:
    index = spans(3)

    found = {ms: index.position_before_timestamp(ms) for ms in (-(2**63), 0, 100, 101, 200, 201)}

    assert found == {
        -(2**63): 0,
        0: 0,
        100: 0,
        101: SPAN_BYTES,
        200: SPAN_BYTES,
        201: 2 * SPAN_BYTES,
    }


def test_of_equal_timestamps_the_first_is_found() -> None:
    index = index_of(*((n, 5, n * SPAN_BYTES) for n in range(4)))

    assert index.position_before_timestamp(5) == 0
    assert index.position_before_timestamp(6) == 3 * SPAN_BYTES


def test_an_empty_index_knows_no_position() -> None:
    assert ChunkIndex().position_before_offset(0) is None
    assert ChunkIndex().position_before_timestamp(0) is None


@given(st.integers(1, 8), st.integers(-1, 9 * SPAN_BYTES))
def test_giving_up_the_front_keeps_the_span_that_holds_the_start(count: int, start: int) -> None:
    index = spans(count)
    before = entries_of(index)

    index.drop_before(start)

    first = max(bisect_right([entry[2] for entry in before], start) - 1, 0)
    assert entries_of(index) == before[first:]


def test_what_this_process_wrote_needs_no_check() -> None:
    assert spans(3).verified_end(5) == NO_END


def test_bytes_are_verified_up_to_the_next_span_that_is_not() -> None:
    index = spans(4, verified=False)

    assert index.verified_end(0) == 0
    index.verify(0, 2 * SPAN_BYTES)
    assert index.verified_end(0) == 2 * SPAN_BYTES
    assert index.verified_end(SPAN_BYTES + 5) == 2 * SPAN_BYTES
    assert index.verified_end(2 * SPAN_BYTES) == 2 * SPAN_BYTES


@pytest.mark.parametrize("first", [0, 1, SPAN_BYTES])
@pytest.mark.parametrize("end", [SPAN_BYTES - 1, SPAN_BYTES, 2 * SPAN_BYTES - 1, 2 * SPAN_BYTES])
def test_only_spans_that_were_checked_as_a_whole_are_verified(first: int, end: int) -> None:
    index = spans(4, verified=False)

    index.verify(first, end)

    for n in range(3):
        is_checked = first <= n * SPAN_BYTES and (n + 1) * SPAN_BYTES <= end
        assert (index.verified_end(n * SPAN_BYTES) > n * SPAN_BYTES) == is_checked


def test_the_span_that_ends_in_what_needs_no_check_is_verified_with_its_front() -> None:
    index = spans(3, verified=False)
    index.offer(30, 300, 3 * SPAN_BYTES, verified=True)
    end = 2 * SPAN_BYTES + 5

    index.verify(SPAN_BYTES, end)
    assert index.verified_end(SPAN_BYTES) == 2 * SPAN_BYTES
    index.verify(2 * SPAN_BYTES + 1, end, is_rest_trusted=True)
    assert index.verified_end(2 * SPAN_BYTES) == 2 * SPAN_BYTES, "its first byte was not checked"
    index.verify(2 * SPAN_BYTES, end, is_rest_trusted=True)

    assert index.verified_end(SPAN_BYTES) == NO_END
    assert index.verified_end(0) == 0


@pytest.mark.parametrize(
    ("position", "size", "end"),
    [
        (0, 10, SPAN_BYTES),
        (0, SPAN_BYTES, SPAN_BYTES),
        (0, 2 * SPAN_BYTES - 1, SPAN_BYTES),
        (0, 2 * SPAN_BYTES, 2 * SPAN_BYTES),
        (77, SPAN_BYTES, SPAN_BYTES),
        (0, 99 * SPAN_BYTES, 3 * SPAN_BYTES),
        (3 * SPAN_BYTES, 10, NO_END),
    ],
)
def test_as_many_whole_spans_are_checked_as_fit_but_at_least_one(
    position: int, size: int, end: int
) -> None:
    assert spans(4).span_end(position, size) == end


# Stored and restored


def test_a_stored_entry_is_offset_timestamp_position_and_checksum() -> None:
    packed, saved_to = index_of((2**64 - 1, -2, 7)).pack_after(0, 100, SEED)

    entry = bytes.fromhex("ffffffffffffffff fffffffffffffffe 0000000000000007")
    assert packed == entry + zlib.crc32(b"the name" + entry).to_bytes(4)
    assert saved_to == 100


def test_entries_are_stored_once_and_only_those_that_a_snapshot_covers() -> None:
    index = spans(5)

    first, saved_to = index.pack_after(0, 2 * SPAN_BYTES, SEED)
    second, _ = index.pack_after(saved_to, 4 * SPAN_BYTES + 1, SEED)

    restored = ChunkIndex()
    assert restored.restore(first + second, start=0, length=NO_END)
    assert entries_of(restored) == entries_of(index)
    assert len(first) == 2 * ENTRY_BYTES == 2 * 28


@pytest.mark.parametrize("entry", [0, 1])
def test_no_byte_of_a_stored_entry_changes_without_notice(entry: int) -> None:
    packed, _ = spans(2).pack_after(0, NO_END, SEED)

    assert are_sound(packed, SEED)
    assert not are_sound(packed, SEED + 1)
    for place in range(entry * ENTRY_BYTES, (entry + 1) * ENTRY_BYTES):
        damaged = bytearray(packed)
        damaged[place] ^= 0x10
        assert not are_sound(bytes(damaged), SEED)


def test_restored_entries_are_not_verified() -> None:
    packed, _ = spans(3).pack_after(0, NO_END, SEED)
    restored = ChunkIndex()
    restored.restore(packed, start=0, length=NO_END)

    assert restored.verified_end(0) == 0


def test_entries_outside_of_the_segment_are_not_restored() -> None:
    packed, _ = spans(6).pack_after(0, NO_END, SEED)
    restored = ChunkIndex()

    assert restored.restore(packed, start=SPAN_BYTES, length=4 * SPAN_BYTES)

    assert list(restored.positions) == [SPAN_BYTES, 2 * SPAN_BYTES, 3 * SPAN_BYTES]


def test_entries_that_were_stored_twice_are_restored_once() -> None:
    packed, _ = spans(4).pack_after(0, NO_END, SEED)
    restored = ChunkIndex()

    assert restored.restore(packed[: 2 * ENTRY_BYTES] + packed, start=0, length=NO_END)

    assert entries_of(restored) == entries_of(spans(4))


def test_half_an_entry_at_the_end_is_nothing() -> None:
    packed, _ = spans(2).pack_after(0, NO_END, SEED)
    restored = ChunkIndex()

    assert restored.restore(packed[:-1], start=0, length=NO_END)

    assert len(restored) == 1


@pytest.mark.parametrize(
    "second", [(0, 0, SPAN_BYTES), (5, -1, SPAN_BYTES)], ids=["offset", "timestamp"]
)
def test_entries_that_go_back_make_no_sense(second: tuple[int, int, int]) -> None:
    packed, _ = index_of((0, 0, 0), second).pack_after(0, NO_END, SEED)

    assert not ChunkIndex().restore(packed, start=0, length=NO_END)

from itertools import pairwise

import pytest

from gateway.log.derived.filters import FILTER_BYTES_MAX, FINGERPRINTS_MAX, pack_filters
from gateway.log.open_chunk import (
    TRAILER_BYTES_MAX,
    ChunkBuffers,
    OpenChunk,
    confirm_all,
)
from hutch.formats.chunk import DATA_POSITION, ENTRIES_MAX
from tests.unit.gateway.log.log_rig import chunks_in, encode

FRAME = 1 << 20
CHUNK = FRAME - 13
"""What fills a frame with the head of a Deliver."""
SMALL = 100
LARGE = 100_000


def open_chunk(expected: int = SMALL, *, chunk_bytes_max: int = CHUNK) -> OpenChunk:
    return OpenChunk(ChunkBuffers(chunk_bytes_max), expected)


def fill(chunk: OpenChunk, *entries: bytes) -> None:
    for entry in entries:
        data = encode(entry)
        chunk.buffer[chunk.written : chunk.written + len(data)] = data
        chunk.took(chunk.written + len(data), 1, 1)


def finished(chunk: OpenChunk) -> bytes:
    return bytes(chunk.finish(chunk_id=7, epoch=3, timestamp_ms=1234, seal_seed=7))


def test_a_finished_chunk_is_one_event_that_says_what_is_in_it() -> None:
    chunk = open_chunk()
    fill(chunk, b"one", b"", b"three")

    ((found, rest),) = chunks_in(finished(chunk))

    assert found.records() == [b"one", b"", b"three"]
    assert (found.chunk_id, found.epoch, found.timestamp_ms, found.kind) == (7, 3, 1234, 0)
    assert (found.entry_count, found.record_count, found.trailer_size) == (3, 3, 0)
    assert rest == b""


def test_a_trailer_holds_the_last_id_of_each_named_publisher() -> None:
    chunk = open_chunk()
    fill(chunk, b"x")
    chunk.note_sequence(b"p", 1)
    chunk.note_sequence(b"q", 2**64 - 1)
    chunk.note_sequence(b"p", 9)

    ((found, rest),) = chunks_in(finished(chunk))

    assert rest == b"\0\1p" + (9).to_bytes(8) + b"\0\1q" + b"\xff" * 8
    assert found.trailer_size == len(rest)


def test_filter_values_follow_the_trailer_and_are_not_counted_in_it() -> None:
    chunk = open_chunk()
    fill(chunk, b"x")
    chunk.note_sequence(b"p", 1)
    chunk.filters = {b"pear", b""}

    ((found, rest),) = chunks_in(finished(chunk))

    assert found.trailer_size == 11
    assert rest[11:] == pack_filters({b"", b"pear"})


def test_filter_values_that_take_much_memory_are_kept_as_hashes() -> None:
    chunk = open_chunk()
    fill(chunk, b"x")
    values = {bytes([number]) * 4094 for number in range(17)}
    chunk.filters = {b"", *values}

    chunk.bound_filters(FILTER_BYTES_MAX + 1)

    assert chunk.filters == {b""}
    ((_, rest),) = chunks_in(finished(chunk))
    assert rest == pack_filters({b"", *values})


@pytest.mark.parametrize("free", range(24))
def test_a_small_chunk_filled_to_its_end_still_gets_its_trailer(free: int) -> None:
    chunk = open_chunk()
    body = bytes(chunk.capacity - chunk.written - 4 - free)
    fill(chunk, body)
    chunk.note_sequence(b"reference", 5)

    ((found, rest),) = chunks_in(finished(chunk))

    assert found.records() == [body]
    assert rest == b"\0\x09reference" + (5).to_bytes(8)


def test_a_large_chunk_filled_to_its_end_still_gets_the_largest_trailer_and_filter_values() -> None:
    chunk = open_chunk(2 * FRAME)
    body = bytes(FRAME - 17)  # the largest entry that fits a Publish frame, too large for a chunk
    fill(chunk, body)
    number = 0
    while not chunk.is_full or chunk.sequence_bytes < TRAILER_BYTES_MAX:
        chunk.note_sequence(b"%0255d" % number, number)
        number += 1
    chunk.filters = {b"%d" % value for value in range(FINGERPRINTS_MAX)}

    ((found, rest),) = chunks_in(finished(chunk))

    assert found.records() == [body]
    assert found.trailer_size == number * 265
    filters = pack_filters(chunk.filters)
    assert FILTER_BYTES_MAX * 0.9 < len(filters) <= FILTER_BYTES_MAX
    assert rest[number * 265 :] == filters


def test_header_and_data_of_a_full_chunk_fill_a_deliver_of_the_largest_frame_exactly() -> None:
    chunk = open_chunk(2 * FRAME)
    fill(chunk, bytes(chunk.capacity - DATA_POSITION - 4))
    assert chunk.is_full

    event = finished(chunk)

    assert len(event) - 8 - 4 == CHUNK


@pytest.mark.parametrize("chunk_bytes_max", [4096, 16 * 1024, 20_000])
def test_a_small_chunk_is_bounded_by_a_small_maximum_too(chunk_bytes_max: int) -> None:
    chunk = open_chunk(chunk_bytes_max=chunk_bytes_max)

    fill(chunk, bytes(chunk.capacity - DATA_POSITION - 4))

    assert len(finished(chunk)) - 8 - 4 <= chunk_bytes_max


def test_a_chunk_that_grows_keeps_what_it_holds() -> None:
    chunk = open_chunk()
    fill(chunk, b"before")

    assert chunk.grow()
    fill(chunk, b"after")

    ((found, _),) = chunks_in(finished(chunk))
    assert found.records() == [b"before", b"after"]


def test_a_chunk_is_full_with_65535_entries() -> None:
    chunk = open_chunk()

    chunk.took(chunk.written, ENTRIES_MAX - 1, ENTRIES_MAX - 1)
    assert not chunk.is_full

    chunk.took(chunk.written, 1, 1)
    assert chunk.is_full


def test_buffers_are_used_again_and_not_hoarded() -> None:
    buffers = ChunkBuffers(CHUNK)
    first = OpenChunk(buffers, LARGE)
    buffer = first.buffer

    first.release()

    assert OpenChunk(buffers, LARGE).buffer is buffer
    for size in (SMALL, LARGE, FRAME):
        for each in [OpenChunk(buffers, size) for _ in range(100 if size == FRAME else 3_000)]:
            each.release()
    assert sum(len(each) for kept in buffers._kept for each in kept) < 40 << 20


def test_confirms_of_a_sink_are_gathered_in_order_and_sinks_come_in_the_order_of_their_first() -> (
    None
):
    calls: list[tuple[str, bytes]] = []

    class Caller:
        def __init__(self, name: str) -> None:
            self.name = name

        def confirm(self, publishing_ids: bytes) -> None:
            calls.append((self.name, publishing_ids))

        def lost(self) -> None:
            raise AssertionError

    one, other = Caller("one"), Caller("other")

    confirm_all([])
    confirm_all([(one, b"1")])
    confirm_all([(one, b"2"), (other, b"3"), (one, b"4"), (other, b"5")])

    assert calls == [("one", b"1"), ("one", b"24"), ("other", b"35")]


def test_a_sink_that_cannot_take_its_confirms_keeps_them_from_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    confirmed: list[bytes] = []

    class Broken:
        def confirm(self, publishing_ids: bytes) -> None:
            raise RuntimeError(publishing_ids.decode())

        def lost(self) -> None:
            raise AssertionError

    class Whole(Broken):
        def confirm(self, publishing_ids: bytes) -> None:
            confirmed.append(publishing_ids)

    confirm_all([(Broken(), b"1")])
    confirm_all([(Broken(), b"2"), (Whole(), b"3")])

    assert confirmed == [b"3"]
    assert len(caplog.records) == 2


def test_a_chunk_begins_in_a_buffer_for_what_is_expected_and_moves_on_by_steps() -> None:
    buffers = ChunkBuffers(CHUNK)
    assert len(OpenChunk(buffers, 10 * FRAME).buffer) > FRAME
    chunk = OpenChunk(buffers, SMALL)
    fill(chunk, b"kept")
    sizes = [len(chunk.buffer)]
    assert sizes[0] < 10_000

    while chunk.grow():
        sizes.append(len(chunk.buffer))
        assert chunk.capacity == min(sizes[-1], buffers.chunk_end_max)

    assert sizes[-1] > FRAME
    assert all(size <= 8 * before for before, size in pairwise(sizes))
    assert chunk.buffer[chunk.written - 4 : chunk.written] == b"kept"

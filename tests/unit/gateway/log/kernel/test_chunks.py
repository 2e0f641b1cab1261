"""Each rule of the chunk kernel by an example, compiled and interpreted."""

import threading
from dataclasses import replace
from types import ModuleType

import pytest

from tests.chunks import SubBatch
from tests.property.gateway import chunk_model
from tests.property.gateway.chunk_model import (
    BAD_CRC,
    MALFORMED,
    NEEDS_BYTES,
    NOT_JOINABLE,
    SEED,
    Stored,
)
from tests.property.gateway.kernel_builds import BUILDS, load
from tests.unit.gateway.log.log_rig import encode

LARGE = 1 << 20


@pytest.fixture(params=BUILDS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load("gateway.log.kernel.chunks", request.param)


def stored(*bodies: bytes | SubBatch, chunk_id: int = 0) -> Stored:
    records = sum(each.record_count if isinstance(each, SubBatch) else 1 for each in bodies)
    return Stored(b"".join(map(encode, bodies)), len(bodies), records, chunk_id, 5, seed=SEED)


def join(
    kernel: ModuleType, *chunks: Stored, capacity: int = LARGE
) -> tuple[int, int, list[bytes]]:
    """Join; gives the reason, how many chunks, and the records."""
    source = b"".join(each.event() for each in chunks)
    target = bytearray(LARGE)
    reason, position, written, count, records = kernel.join_chunks(
        source, len(source), target, capacity, SEED
    )
    assert position == sum(len(each.event()) for each in chunks[:count])
    assert target[:written] == b"".join(each.data for each in chunks[:count])
    found = []
    place = 0
    while place < written:
        size = int.from_bytes(target[place : place + 4])
        found.append(bytes(target[place + 4 : place + 4 + size]))
        place += 4 + size
    assert len(found) == records
    return reason, count, found


ONE, TWO, THREE = stored(b"one"), stored(b"two", b"2", chunk_id=1), stored(b"three", chunk_id=3)
RUN = ONE.event() + TWO.event() + THREE.event()
ENDS = [0, len(ONE.event()), len(ONE.event() + TWO.event()), len(RUN)]


# Walking


def test_a_walk_says_of_each_chunk_what_its_header_says(kernel: ModuleType) -> None:
    chunk = Stored(b"data", 1, 7, 2**64 - 1, -3, epoch=2**63, trailer=b"trail", rest=b"filters")

    reason, position, chunks = kernel.walk_chunks(chunk.event(), 0, len(chunk.event()))

    size = 56 + 4 + 5 + 7
    assert (reason, position) == (NEEDS_BYTES, size)
    assert chunks == [(0, size, 2**64 - 1, 7, -3, 2**63, 4, 5)]


@pytest.mark.parametrize("end", range(len(RUN) + 1))
def test_a_walk_stops_before_the_chunk_that_is_not_all_there(kernel: ModuleType, end: int) -> None:
    reason, position, chunks = kernel.walk_chunks(RUN[:end], 0, end)

    assert reason == NEEDS_BYTES
    assert position == max(each for each in ENDS if each <= end)
    assert len(chunks) == ENDS.index(position)


@pytest.mark.parametrize(
    "chunk",
    [
        replace(TWO, zero=1),
        replace(TWO, magic=0x51),
        replace(TWO, magic=0),
        replace(TWO, event_bytes=47),
        replace(TWO, data_bytes=len(TWO.data) + 5),
        replace(TWO, data_bytes=2**32 - 1),
        replace(TWO, trailer=b"abc", event_bytes=48 + len(TWO.data) + 2),
    ],
)
def test_what_cannot_be_a_chunk_is_malformed_whoever_looks(
    kernel: ModuleType, chunk: Stored
) -> None:
    source = ONE.event() + chunk.event() + bytes(100)

    assert kernel.walk_chunks(source, 0, len(source))[:2] == (MALFORMED, ENDS[1])
    assert kernel.verify_chunks(source, 0, len(source)) == (MALFORMED, ENDS[1])
    assert join(kernel, ONE, chunk, stored(bytes(200)))[:2] == (MALFORMED, 1)


def test_a_walk_begins_in_the_middle_and_looks_at_nothing_past_its_limit(
    kernel: ModuleType,
) -> None:
    reason, position, chunks = kernel.walk_chunks(RUN + b"\xff" * 100, ENDS[1], ENDS[3])

    assert (reason, position) == (NEEDS_BYTES, ENDS[3])
    assert [place for place, *_ in chunks] == ENDS[1:3]


# Checking


@pytest.mark.parametrize("place", range(len(TWO.data)))
def test_damage_to_any_byte_of_the_data_is_found(kernel: ModuleType, place: int) -> None:
    source = bytearray(RUN)
    source[ENDS[1] + 56 + place] ^= 0x10

    found = kernel.verify_chunks(source, 0, len(source))

    assert found == (BAD_CRC, ENDS[1])


@pytest.mark.parametrize("bit", range(32))
def test_damage_to_any_bit_of_the_checksum_is_found(kernel: ModuleType, bit: int) -> None:
    source = bytearray(RUN)
    source[40 + bit // 8] ^= 1 << bit % 8

    assert kernel.verify_chunks(source, 0, len(source)) == (BAD_CRC, 0)


def test_good_chunks_are_verified_to_the_end_of_the_last_whole_one(kernel: ModuleType) -> None:
    assert kernel.verify_chunks(RUN, 0, len(RUN)) == (NEEDS_BYTES, ENDS[3])
    assert kernel.verify_chunks(RUN, 0, len(RUN) - 1) == (NEEDS_BYTES, ENDS[2])
    assert kernel.verify_chunks(b"", 0, 0) == (NEEDS_BYTES, 0)


def test_verifying_lets_other_threads_run() -> None:
    kernel = load("gateway.log.kernel.chunks", "compiled")
    source = stored(bytes(64 << 20)).event()
    is_over = threading.Event()
    turns = [0]

    def count() -> None:
        while not is_over.is_set():
            turns[0] += 1

    def counted() -> int:
        before = turns[0]
        assert kernel.verify_chunks(source, 0, len(source)) == (NEEDS_BYTES, len(source))
        return turns[0] - before

    thread = threading.Thread(target=count)
    thread.start()
    # With the lock held the other thread gets no turn at all: one call is one C function. Without
    # it the thread still needs a processor, which a busy machine does not give it each time.
    try:
        found = any(counted() > 1 for _ in range(100))
    finally:
        is_over.set()
        thread.join()

    assert found


# Joining


def test_small_chunks_in_a_row_are_joined(kernel: ModuleType) -> None:
    reason, count, records = join(kernel, ONE, TWO, THREE)

    assert (reason, count) == (NEEDS_BYTES, 3)
    assert records == [b"one", b"two", b"2", b"three"]


@pytest.mark.parametrize(
    "chunk",
    [
        replace(TWO, epoch=2),
        replace(TWO, epoch=0),
        replace(TWO, chunk_id=2),
        replace(TWO, chunk_id=0),
        replace(TWO, kind=1),
        replace(TWO, kind=2),
        replace(TWO, timestamp_ms=5 + 1001),
        replace(TWO, entries=1),
        replace(TWO, entries=3),
        replace(TWO, records=3),
        stored(SubBatch.of([b"a", b"b"]), chunk_id=1),
        stored(b"simple", SubBatch.of([b"a"]), chunk_id=1),
        stored(b"simple", SubBatch.of([]), b"", chunk_id=1),
        replace(TWO, data=TWO.data[:-1] + b"\0" * 3),
    ],
)
def test_a_chunk_that_does_not_continue_the_run_ends_it(kernel: ModuleType, chunk: Stored) -> None:
    assert join(kernel, ONE, chunk, THREE) == (NOT_JOINABLE, 1, [b"one"])


def test_a_chunk_with_a_sub_batch_must_go_alone(kernel: ModuleType) -> None:
    batch = stored(SubBatch.of([b"a", b"b"]))

    assert join(kernel, batch, stored(b"next", chunk_id=2)) == (NOT_JOINABLE, 0, [])


@pytest.mark.parametrize(("later_ms", "count"), [(999, 2), (1000, 2), (1001, 1)])
def test_a_run_spans_at_most_a_second_from_its_first_chunk(
    kernel: ModuleType, later_ms: int, count: int
) -> None:
    later = replace(TWO, timestamp_ms=5 + later_ms)

    assert join(kernel, ONE, later)[1] == count


def test_the_second_is_counted_from_the_first_chunk_not_from_the_one_before(
    kernel: ModuleType,
) -> None:
    later, latest = replace(TWO, timestamp_ms=905), replace(THREE, timestamp_ms=1006)

    assert join(kernel, ONE, later, latest)[:2] == (NOT_JOINABLE, 2)


def test_timestamps_before_1970_are_joined_too(kernel: ModuleType) -> None:
    first, second = replace(ONE, timestamp_ms=-500), replace(TWO, timestamp_ms=500)

    assert join(kernel, first, second)[1] == 2
    assert join(kernel, first, replace(TWO, timestamp_ms=501))[1] == 1


@pytest.mark.parametrize("missing", range(-1, 3))
def test_a_run_fills_its_room_exactly(kernel: ModuleType, missing: int) -> None:
    room = len(ONE.data + TWO.data + THREE.data)

    assert join(kernel, ONE, TWO, THREE, capacity=room - missing)[1] == (3 if missing < 1 else 2)


@pytest.mark.parametrize(("entries", "count"), [(65_534, 2), (65_535, 1)])
def test_a_run_has_at_most_65535_entries(kernel: ModuleType, entries: int, count: int) -> None:
    first = Stored(bytes(4 * entries), entries, entries, 0, 5, seed=SEED)

    assert join(kernel, first, replace(ONE, chunk_id=entries))[1] == count


@pytest.mark.parametrize(("bad", "count"), [(0, 0), (1, 1), (2, 2)])
def test_a_damaged_chunk_is_not_joined(kernel: ModuleType, bad: int, count: int) -> None:
    run = [ONE, TWO, THREE]
    run[bad] = replace(run[bad], crc=1)

    assert join(kernel, *run)[:2] == (BAD_CRC, count)


@pytest.mark.parametrize("end", range(len(RUN) + 1))
def test_a_run_holds_whole_chunks_only(kernel: ModuleType, end: int) -> None:
    target = bytearray(LARGE)

    found = kernel.join_chunks(RUN, end, target, LARGE, SEED)

    assert (found, bytes(target[: found[2]])) == chunk_model.join(RUN[:end], LARGE)
    assert found[1] == max(each for each in ENDS if each <= end)


@pytest.mark.parametrize("value", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_a_run_damaged_at_any_byte_does_what_the_rules_say(kernel: ModuleType, value: int) -> None:
    target = bytearray(LARGE)
    for place in range(len(RUN)):
        source = bytearray(RUN)
        source[place] = value

        found = kernel.join_chunks(source, len(source), target, LARGE, SEED)

        expected = chunk_model.join(bytes(source), LARGE)
        assert (found, bytes(target[: found[2]])) == expected, place

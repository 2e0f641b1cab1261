"""Finding whole chunks behind damaged bytes."""

import pytest

from gateway.log.damage.resync import next_chunk
from tests.unit.gateway.log.log_rig import SEED, event_of

EVENTS = [event_of([b"%d" % n * 40], chunk_id=n) for n in range(4)]
SIZE = len(EVENTS[0])
WHOLE = b"".join(EVENTS)


def found(data: bytes, first_offset: int = 0, end_offset: int = 99) -> int | None:
    return next_chunk(memoryview(data), SEED, first_offset, end_offset)


@pytest.mark.parametrize("place", [0, 4, 7, 8, 44, 46])
def test_it_is_the_one_behind_the_damaged_one(place: int) -> None:
    data = bytearray(WHOLE)
    data[place] ^= 0xFF
    assert found(bytes(data)) == SIZE


def test_it_is_found_behind_zeros() -> None:
    assert found(bytes(3 * SIZE) + EVENTS[3]) == 3 * SIZE


def test_where_there_is_no_whole_chunk_none_is_found() -> None:
    assert found(bytes(500)) is None
    assert found(b"") is None
    assert found(EVENTS[0]) is None
    assert found(bytes(SIZE) + EVENTS[1][:-1]) is None


def test_one_with_a_wrong_seal_is_none() -> None:
    data = bytearray(WHOLE)
    data[4] = data[2 * SIZE - 1] = 0xFF
    assert found(bytes(data)) == 2 * SIZE


def test_one_of_another_stream_is_none() -> None:
    other = [event_of([b"%d" % n * 40], chunk_id=n, seed=SEED + 1) for n in range(4)]
    assert found(bytes(SIZE) + other[1] + EVENTS[2]) == 2 * SIZE
    assert found(b"".join(other)) is None


def test_one_whose_data_is_damaged_is_found_for_its_offset_counts() -> None:
    data = bytearray(WHOLE)
    data[4] = data[SIZE + 60] = 0xFF
    assert found(bytes(data)) == SIZE


def test_one_whose_offset_cannot_be_here_is_none() -> None:
    assert found(WHOLE, first_offset=3) == 3 * SIZE
    assert found(WHOLE, end_offset=1) is None
    assert found(WHOLE, end_offset=2) == SIZE


def test_a_chunk_within_a_message_is_not_taken_for_a_stored_one() -> None:
    carrier = bytearray(event_of([EVENTS[1] + b"rest of the message"], chunk_id=0))
    carrier[4] = 0xFF
    assert found(bytes(carrier) + WHOLE) == len(carrier)


def test_with_more_damage_behind_it_the_first_is_found_all_the_same() -> None:
    data = bytearray(WHOLE)
    data[4] = data[2 * SIZE + 8] = 0xFF
    assert found(bytes(data)) == SIZE

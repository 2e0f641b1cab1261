import pytest

from gateway.log.derived.snapshot import Snapshot, unpack_head


def test_a_head_comes_back_with_the_number_of_its_parts() -> None:
    snapshot = Snapshot(
        position=2**63,
        next_offset=2**64 - 1,
        timestamp_ms=-5,
        last_chunk_id=7,
        last_chunk_position=9,
        parts=[b"one", b"two"],
    )

    assert unpack_head(snapshot.pack_head()) == (
        Snapshot(
            position=2**63,
            next_offset=2**64 - 1,
            timestamp_ms=-5,
            last_chunk_id=7,
            last_chunk_position=9,
        ),
        2,
    )


@pytest.mark.parametrize("size", [0, 43, 45, 47, 49])
def test_a_head_of_another_size_is_foreign(size: int) -> None:
    assert unpack_head(bytes(size)) is None

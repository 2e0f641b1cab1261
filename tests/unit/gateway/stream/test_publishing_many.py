"""How many entries go into one chunk."""

from hutch.formats.chunk import ENTRIES_MAX
from tests.unit.gateway.stream.link_rig import LinkRig
from tests.unit.gateway.stream.test_publishing import bodies, frame, stored

BURST = 1_000


def burst(first: int = 0, count: int = BURST, size: int = 4) -> bytes:
    return frame(*((number, number.to_bytes(size)) for number in range(first, first + count)))


def chunk_sizes(client: LinkRig) -> list[int]:
    return [chunk.entry_count for chunk, _ in stored(client.broker)]


def test_a_burst_into_a_quiet_stream_is_several_chunks_and_each_is_larger(client: LinkRig) -> None:
    client.declare(1, "s")

    client.publish_frames(burst(count=4_999))
    client.broker.settle("s")

    assert chunk_sizes(client) == [256, 512, 1_024, 2_048, 1_159]
    assert bodies(client.broker) == [number.to_bytes(4) for number in range(4_999)]
    confirmed = [number for _, ids in client.confirmed() for number in ids]
    assert confirmed == list(range(4_999))


def test_bursts_that_go_on_become_a_chunk_each(client: LinkRig) -> None:
    client.declare(1, "s")

    for number in range(6):
        client.publish_frames(burst(number * BURST))
        client.broker.settle("s")

    assert chunk_sizes(client)[-3:] == [BURST] * 3


def test_a_stream_that_is_written_slowly_again_gets_small_chunks_again(client: LinkRig) -> None:
    client.declare(1, "s")
    client.publish_frames(burst(count=4_999))
    client.broker.settle("s")
    for number in range(20):
        client.publish_frames(burst(5_000 + number, count=1))
        client.broker.settle("s")
    before = len(chunk_sizes(client))

    client.publish_frames(burst(6_000))
    client.broker.settle("s")

    assert chunk_sizes(client)[before:] == [256, 512, 232]


def test_what_fills_half_a_chunk_is_not_cut(client: LinkRig) -> None:
    client.declare(1, "s")
    frames = b"".join(burst(first, count=500, size=100) for first in range(0, 8_000, 500))

    client.publish_frames(frames)
    client.broker.settle("s")

    assert chunk_sizes(client) == [8_000]


def test_a_large_entry_behind_small_ones_is_taken(client: LinkRig) -> None:
    client.declare(1, "s")
    small = [(number, b"") for number in range(300)]

    client.publish_frames(frame(*small, (300, bytes(500_000))))
    client.broker.settle("s")

    assert sum(chunk_sizes(client)) == 301
    assert bodies(client.broker)[-1] == bytes(500_000)


def test_a_chunk_takes_65535_entries_and_the_next_one_the_rest(client: LinkRig) -> None:
    client.declare(1, "s")

    numbers = range(ENTRIES_MAX + 2)
    parts = (numbers[at : at + 4_000] for at in range(0, len(numbers), 4_000))
    client.publish_frames(b"".join(frame(*((n, b"") for n in part)) for part in parts))
    client.broker.settle("s")

    assert chunk_sizes(client) == [ENTRIES_MAX, 2]
    confirmed = [number for _, ids in client.confirmed() for number in ids]
    assert confirmed == list(range(ENTRIES_MAX + 2))


def test_a_full_chunk_with_more_filter_values_than_it_has_room_for_is_stored(
    client: LinkRig,
) -> None:
    client.declare(1, "s")
    bodies_sent = [bytes([number]) * 12_000 for number in range(40)]

    client.publish(1, (1, bytes(600_000)))
    client.publish_filtered(
        1, *((2 + number, f"{number:012000}", body) for number, body in enumerate(bodies_sent))
    )
    client.broker.settle("s")

    assert bodies(client.broker) == [bytes(600_000), *bodies_sent]
    confirmed = [number for _, ids in client.confirmed() for number in ids]
    assert confirmed == list(range(1, 42))

"""How many entries go into one chunk."""

from gateway.log.chunk import ENTRIES_MAX
from gateway.stream import publishing
from tests.unit.gateway.stream.link_rig import LinkRig
from tests.unit.gateway.stream.test_publishing import bodies, frame, stored


def test_a_frame_of_many_entries_is_stored_in_several_chunks(client: LinkRig) -> None:
    client.declare(1, "s")
    count = 2 * publishing._LARGE_FRAME_ENTRIES + 1
    sent = [(number, b"%d" % number) for number in range(count)]

    client.publish(1, (9, b"before"))
    client.publish_frames(frame(*sent))
    client.broker.settle("s")

    assert bodies(client.broker) == [b"before", *(body for _, body in sent)]
    assert [chunk.entry_count for chunk, _ in stored(client.broker)] == [4096, 4096, 2]
    assert sum(len(ids) for _, ids in client.confirmed()) == count + 1


def test_frames_of_few_entries_share_a_chunk(client: LinkRig) -> None:
    client.declare(1, "s")
    run = b"".join(frame(*((n, b"x") for n in range(2_500))) for _ in range(2))

    client.publish_frames(run)
    client.broker.settle("s")

    assert len(stored(client.broker)) == 1


def test_a_chunk_takes_65535_entries_and_the_next_one_the_rest(client: LinkRig) -> None:
    client.declare(1, "s")

    numbers = range(ENTRIES_MAX + 2)
    parts = (numbers[at : at + 4_000] for at in range(0, len(numbers), 4_000))
    client.publish_frames(b"".join(frame(*((n, b"") for n in part)) for part in parts))
    client.broker.settle("s")

    assert [chunk.entry_count for chunk, _ in stored(client.broker)] == [ENTRIES_MAX, 2]
    confirmed = [each for _, ids in client.confirmed() for each in ids]
    assert confirmed == list(range(ENTRIES_MAX + 2))

"""Chunks of every size, taken apart and checked by a stock client."""

from __future__ import annotations

import random

from rstream import schema
from rstream.encoding import decode_frame

from hutch.stream.offsets import NEXT
from tests.client import Client
from tests.integration.server import Endpoint
from tests.waiting import HANG_S

SIZE_COUNT = 2_000
# Key, version, publisher, count, publishing id, size of the entry: what a Publish of one has.
LARGEST = (1 << 20) - 2 - 2 - 1 - 4 - 8 - 4


def sizes() -> list[int]:
    """Give 2,000 sizes from 1 byte to the largest frame, denser where they are small."""
    found = {LARGEST, LARGEST - 1}
    for power in range(20):
        found |= {(1 << power) - 1, 1 << power, (1 << power) + 1}
    found.discard(0)
    chance = random.Random(3)
    while len(found) < SIZE_COUNT:
        found.add(round(LARGEST ** chance.random()))
    order = sorted(found)
    chance.shuffle(order)
    return order


def test_a_chunk_of_every_size_passes_the_clients_own_check(
    endpoint: Endpoint, stream: str
) -> None:
    wanted = sizes()
    assert len(set(wanted)) == SIZE_COUNT
    assert (min(wanted), max(wanted)) == (1, LARGEST)
    content = random.Random(5).randbytes(LARGEST)
    with Client.opened(*endpoint, timeout_s=HANG_S) as writer, Client.opened(*endpoint) as reader:
        writer.create(stream)
        writer.declare(1, stream)
        # At the tail, so that each chunk comes as it was stored and is joined to none.
        reader.subscribe(1, stream, NEXT, credit=30_000)
        for number, size in enumerate(wanted):
            writer.publish(1, {number: content[:size]})
            frame = reader.receive_frame()
            # The client's own code: raises if data size or CRC are not what the header says.
            deliver = decode_frame(frame)
            assert isinstance(deliver, schema.Deliver)
            assert deliver.chunk_first_offset == number
            assert deliver.get_messages() == [content[:size]]
        writer.confirmed_ids(SIZE_COUNT)

"""Events of mewbase's clients and messages of stream clients are the same records."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import bson
import pytest
from bson.raw_bson import RawBSONDocument
from rstream import (
    AMQPMessage,
    Consumer,
    ConsumerOffsetSpecification,
    MessageContext,
    OffsetType,
    Producer,
    amqp_decoder,
)

from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient
from tests.waiting import HANG_S

EVENTS = [bson.encode(each) for each in ({}, {"n": 1}, {"data": bytes(300)}, {"t": "größer"})]


async def read(server: HutchServer, count: int) -> list[AMQPMessage]:
    """Read messages of channel1 by rstream."""
    found: list[AMQPMessage] = []
    enough = asyncio.Event()
    consumer = Consumer(*server.endpoint, username="mew", password="base")

    def take(message: AMQPMessage, _context: MessageContext) -> None:
        found.append(message)
        if len(found) >= count:
            enough.set()

    await consumer.start()
    await consumer.subscribe(
        "channel1",
        take,
        decoder=amqp_decoder,
        offset_specification=ConsumerOffsetSpecification(OffsetType.FIRST, None),
    )
    running = asyncio.create_task(consumer.run())
    await asyncio.wait_for(enough.wait(), HANG_S)
    await consumer.close()
    running.cancel()
    return found


def test_rstream_reads_what_mewbase_wrote(server: HutchServer, client: MewbaseClient) -> None:
    for event in EVENTS:
        client.publish("channel1", RawBSONDocument(event))

    messages = asyncio.run(read(server, len(EVENTS)))

    assert [bytes(each.body) for each in messages] == EVENTS
    assert all(each.properties.content_type == b"application/bson" for each in messages)


async def write(server: HutchServer, messages: Sequence[Any]) -> None:
    """Write messages to channel1 by rstream, and wait until they are stored."""
    async with Producer(*server.endpoint, username="mew", password="base") as producer:
        for message in messages:
            await producer.send_wait("channel1", message)


@pytest.mark.parametrize("is_amqp", [True, False])
def test_mewbase_reads_what_rstream_wrote(
    server: HutchServer, client: MewbaseClient, *, is_amqp: bool
) -> None:
    bodies = [*EVENTS, b"no document", b"", EVENTS[1] + b"x"]
    made = [AMQPMessage(body=each) if is_amqp else each for each in bodies]
    asyncio.run(write(server, made))

    client.subscribe("channel1", startPos=0)
    found = [each["event"] for each in client.events(len(bodies))]

    assert found[: len(EVENTS)] == [bson.decode(each) for each in EVENTS]
    assert found[len(EVENTS) :] == [{"data": each} for each in bodies[len(EVENTS) :]]

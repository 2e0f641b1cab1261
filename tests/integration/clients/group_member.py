"""A program with the stock client `rstream` that is one of several single active consumers.

    python -m tests.integration.clients.group_member HOST PORT NAME STREAM [SUPER_STREAM]

It says in lines of JSON what it is told and what it reads, stores the offset of what it has read,
and goes on from there when it becomes active. With a super stream it reads all of its partitions
(STREAM is ignored). It runs until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from rstream import (
    AMQPMessage,
    Consumer,
    ConsumerOffsetSpecification,
    EventContext,
    MessageContext,
    OffsetSpecification,
    OffsetType,
    SuperStreamConsumer,
    exceptions,
)

LOGIN: dict[str, Any] = {"username": "guest", "password": "guest"}


def say(**what: object) -> None:
    """Print a line, at once."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def updated(is_active: bool, context: EventContext) -> OffsetSpecification:  # noqa: FBT001 - rstream's signature
    """Go on behind what was stored last, by whomever."""
    offset = 0
    if is_active:
        try:
            offset = 1 + await context.consumer.query_offset(context.stream, context.reference)
        except exceptions.OffsetNotFound:
            offset = 0
    say(stream=context.stream, active=is_active, offset=offset)
    return OffsetSpecification(OffsetType.OFFSET, offset)


async def read(message: AMQPMessage, context: MessageContext) -> None:
    """Say what was read, and remember that it was."""
    body = bytes(message).decode()
    say(stream=context.stream, read=body, offset=context.offset)
    assert context.subscriber_name is not None
    await context.consumer.store_offset(context.stream, context.subscriber_name, context.offset)


async def main(host: str, port: str, name: str, stream: str, super_stream: str = "") -> None:
    """Join and read for ever."""
    properties = {"single-active-consumer": "true", "name": name}
    where: dict[str, Any] = {"host": host, "port": int(port), **LOGIN}
    options: dict[str, Any] = {
        "subscriber_name": name,
        "properties": properties,
        "offset_specification": ConsumerOffsetSpecification(OffsetType.FIRST),
        "consumer_update_listener": updated,
    }
    if super_stream:
        properties["super-stream"] = super_stream
        partitions = SuperStreamConsumer(**where, super_stream=super_stream)
        await partitions.start()
        await partitions.subscribe(read, **options)
    else:
        consumer = Consumer(**where)
        await consumer.start()
        await consumer.subscribe(stream, read, **options)
    say(joined=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

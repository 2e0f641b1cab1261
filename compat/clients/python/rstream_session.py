"""Short ways to publish and read with `rstream`, as its users would."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from rstream import (
    AMQPMessage,
    CompressionType,
    ConfirmationStatus,
    Consumer,
    ConsumerOffsetSpecification,
    FilterConfiguration,
    MessageContext,
    OffsetType,
    Producer,
    amqp_decoder,
)

from compat.clients.messages import indexes
from compat.clients.python.program import Request, arrived, eventually

# Keyword arguments handed on to the client.
Options: TypeAlias = Any
Records: TypeAlias = list[tuple[int, bytes]]

FIRST: Final = ConsumerOffsetSpecification(OffsetType.FIRST)


def login(request: Request, **others: Options) -> dict[str, Options]:
    """Return the keyword arguments of everything that connects."""
    found = {"username": "guest", "password": "guest", "port": request.where.port}
    return {"host": request.where.host, **found, **others}


def over_tls(request: Request, authority: str, **others: Options) -> dict[str, Options]:
    """Return them for TLS, trusting the authority in that file."""
    context = ssl.create_default_context(cafile=authority)
    return {"port": request.where.tls_port, "ssl_context": context, **others}


@asynccontextmanager
async def producer_of(request: Request, **options: Options) -> AsyncIterator[Producer]:
    """Connect a producer for the length of the block."""
    async with Producer(**login(request, **options)) as producer:
        yield producer


@asynccontextmanager
async def consumer_of(request: Request, **options: Options) -> AsyncIterator[Consumer]:
    """Connect a consumer for the length of the block."""
    async with Consumer(**login(request, **options)) as consumer:
        yield consumer


class Confirms:
    """Counts what comes back for messages."""

    def __init__(self) -> None:
        self.confirmed = 0
        self.refused = 0

    def note(self, status: ConfirmationStatus) -> None:
        """Count one message."""
        if status.is_confirmed:
            self.confirmed += 1
        else:
            self.refused += 1

    async def reach(self, count: int) -> None:
        """Wait until as many came back."""
        await eventually(
            lambda: self.confirmed + self.refused >= count,
            lambda: f"{self.confirmed} confirmed, {self.refused} refused of {count}",
        )

    def result(self) -> dict[str, int]:
        """Return both counts, as most results have them."""
        return {"confirmed": self.confirmed, "refused": self.refused}


async def publish(
    producer: Producer,
    stream: str,
    bodies: Sequence[bytes],
    confirms: Confirms | None = None,
    name: str | None = None,
    first_id: int | None = None,
) -> Confirms:
    """Send each message by itself and wait for all.

    Args:
        producer: Sends them.
        stream: Where to.
        bodies: The messages' bodies.
        confirms: Counts them; None for a new one.
        name: The producer's name.
        first_id: The first one's publishing id, which then grows by one; None for the library's.
    """
    counted = confirms or Confirms()
    before = counted.confirmed + counted.refused
    for number, one in enumerate(bodies):
        message = AMQPMessage(body=one)
        if first_id is not None:
            message.publishing_id = first_id + number
        await producer.send(stream, message, publisher_name=name, on_publish_confirm=counted.note)
    await counted.reach(before + len(bodies))
    return counted


async def publish_sub_entries(
    producer: Producer, stream: str, bodies: Sequence[bytes], codec: CompressionType
) -> Confirms:
    """Send ten messages after the other as one sub-entry; count the messages."""
    counted = Confirms()
    for first in range(0, len(bodies), 10):
        entry = Confirms()
        messages = [AMQPMessage(body=one) for one in bodies[first : first + 10]]
        await producer.send_sub_entry(stream, messages, codec, on_publish_confirm=entry.note)
        await entry.reach(1)  # an entry has one confirm
        counted.confirmed += entry.confirmed * len(messages)
        counted.refused += entry.refused * len(messages)
    return counted


async def subscribe(
    consumer: Consumer,
    stream: str,
    offset: ConsumerOffsetSpecification = FIRST,
    **options: Options,
) -> Records:
    """Subscribe; the returned list grows with every message that arrives."""
    records: Records = []

    def note(message: AMQPMessage, context: MessageContext) -> None:
        records.append((context.offset, body_of(message)))

    await consumer.subscribe(
        stream, note, decoder=amqp_decoder, offset_specification=offset, **options
    )
    return records


def body_of(message: AMQPMessage) -> bytes:
    """Return the body; this client gives the parts of a Data section."""
    found = message.body
    return found if isinstance(found, bytes) else b"".join(found)


async def read(
    request: Request,
    stream: str,
    count: int,
    offset: ConsumerOffsetSpecification = FIRST,
    connection: dict[str, Options] | None = None,
    **options: Options,
) -> Records:
    """Read by a consumer of its own until `count` messages are there and no more come."""
    async with consumer_of(request, **(connection or {})) as consumer:
        records = await subscribe(consumer, stream, offset, **options)
        await arrived(records, count)
    return records


def read_indexes(records: Iterable[tuple[int, bytes]]) -> list[int]:
    """Return the messages' indexes, in their order."""
    return indexes(found for _, found in records)


def choose(*values: str, unfiltered: bool = False) -> FilterConfiguration:
    """Return a filter of those values; every message delivered is chosen."""
    return FilterConfiguration(list(values), predicate=lambda _: True, match_unfiltered=unfiltered)

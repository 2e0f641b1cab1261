"""Addresses of the brokers at the ends of a bridge, messages put there, and messages read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import aiormq
from pamqp import commands as spec
from pamqp.common import FieldValue
from rstream import amqp_decoder

from compat.broker import RunningBroker
from hutch.formats.amqp.message import AmqpMessage, message_of
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.waiting import HANG_S

Properties = spec.Basic.Properties
TIMEOUT_S = HANG_S


class Published(NamedTuple):
    """A message of AMQP 0-9-1 to publish."""

    properties: Properties
    body: bytes = b"body"


class Seen(NamedTuple):
    """A message of AMQP 0-9-1 as a consumer has it."""

    body: bytes
    properties: dict[str, object]


_ports: dict[tuple[str, int, str], int] = {}


def port_of(broker: RunningBroker, protocol: str) -> int:
    """Return where a broker listens; one that was merely found is asked, once."""
    if known := {"amqp": broker.ports.amqp, "mqtt": broker.ports.mqtt}[protocol]:
        return known
    key = (*broker.stream_address, protocol)
    if key not in _ports:
        listeners = broker.management("overview")["listeners"]
        _ports[key] = next(one["port"] for one in listeners if one["protocol"] == protocol)
    return _ports[key]


def amqp_uri(broker: RunningBroker) -> str:
    """Return where queues and exchanges are."""
    return f"amqp://guest:guest@{broker.host}:{port_of(broker, 'amqp')}/"


def mqtt_uri(broker: RunningBroker) -> str:
    """Return where topics are."""
    return f"mqtt://guest:guest@{broker.host}:{port_of(broker, 'mqtt')}"


def stream_uri(address: tuple[str, int]) -> str:
    """Return where streams are."""
    return f"rabbitmq-stream://guest:guest@{address[0]}:{address[1]}/"


async def _declared(channel: aiormq.abc.AbstractChannel, queues: Mapping[str, str]) -> None:
    for queue, kind in queues.items():
        await channel.queue_delete(queue)
        arguments: dict[str, FieldValue] = {"x-queue-type": kind}
        await channel.queue_declare(queue, durable=True, arguments=arguments)
        await channel.queue_bind(queue, "amq.topic", "#")


def publish(uri: str, queues: Mapping[str, str], messages: Mapping[str, Published]) -> None:
    """Make queues, each of its type, and publish to all of them; routing keys are the names."""

    async def work() -> None:
        connection = await aiormq.connect(uri)
        try:
            channel = await connection.channel(publisher_confirms=True)
            await _declared(channel, queues)
            waiting = [
                asyncio.ensure_future(
                    channel.basic_publish(
                        body,
                        exchange="amq.topic",
                        routing_key=f"key.{name}",
                        properties=properties,
                        timeout=TIMEOUT_S,
                    )
                )
                for name, (properties, body) in messages.items()
            ]
            await asyncio.gather(*waiting)
            for queue in queues:
                await channel.queue_unbind(queue, "amq.topic", "#")
        finally:
            await connection.close()

    asyncio.run(work())


def consume(uri: str, queue: str, count: int, **arguments: Any) -> list[Seen]:  # noqa: ANN401  # of AMQP
    """Return the first messages of a queue, or of a stream as a queue."""

    async def work() -> list[Seen]:
        found: list[Seen] = []
        are_all = asyncio.Event()

        async def take(message: aiormq.abc.DeliveredMessage) -> None:
            given = message.header.properties
            found.append(Seen(message.body, dict(given)))
            await message.channel.basic_ack(message.delivery_tag or 0)
            if len(found) == count:
                are_all.set()

        connection = await aiormq.connect(uri)
        try:
            channel = await connection.channel()
            await channel.basic_qos(prefetch_count=100)
            await channel.basic_consume(queue, take, arguments=arguments)
            await asyncio.wait_for(are_all.wait(), TIMEOUT_S)
        finally:
            await connection.close()
        return found

    return asyncio.run(work())


def records(address: tuple[str, int], stream: str, count: int) -> list[bytes]:
    """Return the records of a stream, which has that many."""
    with Client.opened(*address, timeout_s=TIMEOUT_S) as client:
        client.subscribe(1, stream, FIRST)
        found = [record for _, record in client.records(count, subscription_id=1)]
    assert len(found) == count
    return found


def store(address: tuple[str, int], stream: str, entries: Sequence[bytes]) -> None:
    """Make a stream with these records."""
    with Client.opened(*address, timeout_s=TIMEOUT_S) as client:
        client.code_of("delete_stream", m.DeleteStream(stream))
        client.create(stream)
        client.declare(1, stream)
        client.publish(1, dict(enumerate(entries)))
        client.confirmed_ids(len(entries))


def by_rstream(record: bytes) -> dict[str, object]:
    """Return a record as rstream reads it, by the names of its parts."""
    message = amqp_decoder(record)
    names = ("header", "message_annotations", "properties", "application_properties", "body")
    return {name: getattr(message, name) for name in (*names, "value", "sequence", "footer")}


def by_us(record: bytes) -> AmqpMessage:
    """Return a record with the kinds of its values, which rstream does not tell apart."""
    message = message_of(record)
    assert message is not None
    return message

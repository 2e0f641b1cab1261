"""What AMQP clients write to a stream of the broker, read over the stream protocol.

RabbitMQ stores it as AMQP 1.0 sections, which stream clients write as well. A Hutch stream with the
same entries reads alike, by a raw client and by a stock one.
"""

import asyncio
import uuid
from collections.abc import Mapping
from pathlib import Path

import aio_pika
from pamqp.common import FieldValue
from rstream import AMQPMessage, Consumer, ConsumerOffsetSpecification, OffsetType, amqp_decoder

from compat.broker import RunningBroker
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.server import HutchServer

TIMEOUT_S = 30
BODIES = (
    b"",
    b"hello",
    "größe 🐇".encode(),
    bytes(range(256)),
    b"x" * 255,
    b"x" * 256,
    b"y" * 70_000,
)
HEADERS: dict[str, FieldValue] = {"kind": "order", "count": 7, "urgent": True}
DATA_SMALL, DATA_LARGE = b"\x00\x53\x75\xa0", b"\x00\x53\x75\xb0"


def amqp_uri(broker: RunningBroker) -> str:
    """Where the broker listens for AMQP; a broker that was merely found is asked."""
    port = broker.ports.amqp
    if not port:
        listeners = broker.management("overview")["listeners"]
        port = next(one["port"] for one in listeners if one["protocol"] == "amqp")
    return f"amqp://guest:guest@{broker.host}:{port}/"


def data_section(body: bytes) -> bytes:
    """Source: AMQP 1.0, 3.2.6 Data, and 1.6.19 binary."""
    if len(body) < 256:
        return DATA_SMALL + bytes([len(body)]) + body
    return DATA_LARGE + len(body).to_bytes(4) + body


async def write(uri: str, stream: str) -> None:
    """Write every body by AMQP, with and without properties; each is confirmed."""
    connection = await aio_pika.connect(uri, timeout=TIMEOUT_S)
    async with connection:
        channel = await connection.channel(publisher_confirms=True)
        await channel.declare_queue(stream, durable=True, arguments={"x-queue-type": "stream"})
        for number, body in enumerate(BODIES):
            message = aio_pika.Message(body)
            if number % 2:
                message = aio_pika.Message(
                    body,
                    headers=HEADERS,
                    message_id=str(number),
                    content_type="application/octet-stream",
                    delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
                )
            await channel.default_exchange.publish(message, routing_key=stream)


def entries(address: tuple[str, int], stream: str) -> list[bytes]:
    """Read the entries of a stream as they are."""
    with Client.opened(*address, timeout_s=TIMEOUT_S) as client:
        client.subscribe(1, stream, FIRST)
        return [body for _, body in client.records(len(BODIES), subscription_id=1)]


async def decoded(
    address: tuple[str, int], stream: str
) -> list[tuple[bytes, Mapping[str, object]]]:
    """Read a stream with rstream; return bodies and application properties."""
    found: list[tuple[bytes, Mapping[str, object]]] = []
    consumer = Consumer(host=address[0], port=address[1], username="guest", password="guest")
    enough = asyncio.Event()

    def take(message: AMQPMessage, _context: object) -> None:
        body = message.body
        properties = message.application_properties or {}
        found.append(
            (
                body if isinstance(body, bytes) else bytes(body),
                {
                    (key.decode() if isinstance(key, bytes) else key): value
                    for key, value in properties.items()
                },
            )
        )
        if len(found) == len(BODIES):
            enough.set()

    await consumer.start()
    try:
        await consumer.subscribe(
            stream,
            take,
            decoder=amqp_decoder,
            offset_specification=ConsumerOffsetSpecification(OffsetType.FIRST),
        )
        await asyncio.wait_for(enough.wait(), TIMEOUT_S)
    finally:
        await consumer.close()
    return found


def test_what_amqp_wrote_reads_alike_from_both(rabbitmq: RunningBroker, tmp_path: Path) -> None:
    stream = f"amqp-{uuid.uuid4().hex[:8]}"
    asyncio.run(write(amqp_uri(rabbitmq), stream))
    theirs = entries(rabbitmq.stream_address, stream)
    try:
        for body, entry in zip(BODIES, theirs, strict=True):
            assert entry.endswith(data_section(body))
        their_messages = asyncio.run(decoded(rabbitmq.stream_address, stream))
    finally:
        with Client.opened(*rabbitmq.stream_address) as client:
            client.must("delete_stream", m.DeleteStream(stream))

    with HutchServer(tmp_path / "data") as hutch:
        address = (hutch.host, hutch.port)
        with Client.opened(*address) as client:
            client.create(stream)
            client.declare(1, stream)
            client.publish(1, dict(enumerate(theirs)))
            client.confirmed_ids(len(theirs))
        assert entries(address, stream) == theirs
        our_messages = asyncio.run(decoded(address, stream))

    assert our_messages == their_messages
    assert [body for body, _ in our_messages] == list(BODIES)
    for number, (_, properties) in enumerate(our_messages):
        assert {key: properties.get(key) for key in HEADERS} == (
            {**HEADERS, "kind": properties["kind"]} if number % 2 else dict.fromkeys(HEADERS)
        )

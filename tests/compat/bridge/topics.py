"""Messages of MQTT: those to publish, and those that a subscriber has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiomqtt
from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

TIMEOUT_S = 30
V5, V311 = aiomqtt.ProtocolVersion.V5, aiomqtt.ProtocolVersion.V311


class Topical(NamedTuple):
    """A message to publish; without properties it is one of MQTT 3.1.1."""

    topic: str
    payload: bytes = b"payload"
    qos: int = 1
    properties: Mapping[str, object] | None = None


def client(uri: str, version: aiomqtt.ProtocolVersion) -> aiomqtt.Client:
    """Return a client that is not connected."""
    parts = urlsplit(uri)
    return aiomqtt.Client(
        parts.hostname or "",
        parts.port or 0,
        username=parts.username,
        password=parts.password,
        protocol=version,
        max_inflight_messages=1_000,
        timeout=TIMEOUT_S,
    )


def publish(uri: str, messages: Mapping[str, Topical]) -> None:
    """Publish messages, one after the other."""

    async def work() -> None:
        async with client(uri, V5) as five, client(uri, V311) as three:
            for topic, payload, qos, given in messages.values():
                if given is None:
                    await three.publish(topic, payload, qos)
                else:
                    await five.publish(topic, payload, qos, properties=packed(given))

    asyncio.run(work())


def packed(given: Mapping[str, object]) -> Properties:
    """Return properties as paho has them."""
    properties: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    for name, value in given.items():
        setattr(properties, name, value)
    found: Properties = properties
    return found


class Received(NamedTuple):
    """A message that a subscriber has."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: dict[str, object]

    @classmethod
    def of(cls, message: MQTTMessage | aiomqtt.Message) -> Received:
        """Take a message apart."""
        given = message.properties.json() if message.properties else {}  # type: ignore[no-untyped-call]
        payload = bytes(message.payload)
        return cls(str(message.topic), payload, message.qos, bool(message.retain), given)


@contextmanager
def subscribed(uri: str, topic: str, count: int) -> Iterator[list[Received]]:
    """Subscribe; at the end of the block all messages have come into the list."""
    found: list[Received] = []
    is_there = Event()

    async def work() -> None:
        async with asyncio.timeout(4 * TIMEOUT_S), client(uri, V5) as subscriber:
            await subscriber.subscribe(topic, qos=1)
            is_there.set()
            async for message in subscriber.messages:
                found.append(Received.of(message))
                if len(found) == count:
                    return

    thread = Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    assert is_there.wait(TIMEOUT_S)
    yield found
    thread.join(4 * TIMEOUT_S)
    assert len(found) == count

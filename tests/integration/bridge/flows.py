"""Numbered messages: published while brokers end and come back, and found again.

A body is `SERIAL NUMBER`. A number whose confirm did not come is published again with another
serial: so what has the same serial twice was repeated by the bridge, and by nothing else.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from threading import Thread
from typing import Final, NamedTuple

import aiomqtt
import aiormq
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from pamqp import commands as spec

from hutch.client.errors import ClientError
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST, LAST
from tests.client import Client
from tests.integration.bridge.mosquitto import HOST

FAULTS: Final = (aiormq.AMQPError, aiomqtt.MqttError, ClientError, OSError, RuntimeError)
ANSWER_S: Final = 10.0
AGAIN_S: Final = 0.3
QUIET_S: Final = 2.0
COLLECTOR: Final = "collector"
WEEK_S: Final = 7 * 24 * 3600


class Sent(NamedTuple):
    """A message to publish, or one that was found."""

    serial: int
    number: int

    @property
    def body(self) -> bytes:
        """Its bytes."""
        return f"{self.serial} {self.number}".encode()

    @classmethod
    def of(cls, body: bytes) -> Sent:
        """Read a body."""
        serial, number = body.split()
        return cls(int(serial), int(number))


class Feed(Thread, ABC):
    """Publishes all numbers, one batch after the other.

    Attributes:
        sent: Numbers that are confirmed.
    """

    def __init__(self, count: int, batch: int, pause_s: float) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self._count = count
        self._batch = batch
        self._pause_s = pause_s
        self._serial = 0

    def run(self) -> None:
        """Publish until all is confirmed."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        while self.sent < self._count:
            try:
                await self._publish_all()
            except (*FAULTS, TimeoutError):
                await asyncio.sleep(AGAIN_S)

    async def _publish_all(self) -> None:
        async with self.connected():
            while self.sent < self._count:
                numbers = range(self.sent, min(self.sent + self._batch, self._count))
                batch = [Sent(self.serial_of(number), number) for number in numbers]
                async with asyncio.timeout(ANSWER_S):
                    await self.publish(batch)
                self.sent = numbers.stop
                await asyncio.sleep(self._pause_s)

    def serial_of(self, _number: int) -> int:
        """Return a new serial."""
        self._serial += 1
        return self._serial

    @abstractmethod
    def connected(self) -> AbstractAsyncContextManager[None]:
        """Connect to the broker."""

    @abstractmethod
    async def publish(self, batch: Sequence[Sent]) -> None:
        """Publish a batch, and wait for all of its confirms."""


class ExchangeFeed(Feed):
    """Publishes to an exchange, or by the default one to a queue; with seven routing keys."""

    def __init__(
        self, uri: str, exchange: str, key: str, count: int, batch: int, pause_s: float
    ) -> None:
        super().__init__(count, batch, pause_s)
        self._uri, self._exchange, self._key = uri, exchange, key

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        connection = await aiormq.connect(self._uri)
        try:
            self._channel = await connection.channel(publisher_confirms=True)
            yield
        finally:
            await connection.close()

    async def publish(self, batch: Sequence[Sent]) -> None:
        properties = (spec.Basic.Properties(delivery_mode=2) for _ in batch)
        await asyncio.gather(
            *(
                self._channel.basic_publish(
                    sent.body,
                    exchange=self._exchange,
                    routing_key=self._key.format(sent.number % 7),
                    properties=each,
                )
                for sent, each in zip(batch, properties, strict=True)
            )
        )


class TopicFeed(Feed):
    """Publishes to a topic with QoS 1."""

    def __init__(self, port: int, topic: str, count: int, batch: int, pause_s: float) -> None:
        super().__init__(count, batch, pause_s)
        self._port, self._topic = port, topic

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        async with aiomqtt.Client(HOST, self._port, max_inflight_messages=100) as self._client:
            yield

    async def publish(self, batch: Sequence[Sent]) -> None:
        await asyncio.gather(*(self._client.publish(self._topic, each.body, 1) for each in batch))


class StreamFeed(Feed):
    """Publishes to a stream, under a name: no number is there twice."""

    def __init__(
        self, address: tuple[str, int], stream: str, count: int, batch: int, pause_s: float
    ) -> None:
        super().__init__(count, batch, pause_s)
        self._address, self._stream = address, stream

    def serial_of(self, number: int) -> int:
        return number

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        with Client.opened(*self._address, timeout_s=ANSWER_S) as self._client:
            self._client.declare(1, self._stream, "feed")
            yield

    async def publish(self, batch: Sequence[Sent]) -> None:
        self._client.publish(1, {sent.number + 1: sent.body for sent in batch})
        self._client.confirmed_ids(len(batch))
        await asyncio.sleep(0)


def collector(port: int, *, expiry_s: int = WEEK_S) -> aiomqtt.Client:
    """Return a client with a session that stays."""
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = expiry_s
    return aiomqtt.Client(
        HOST,
        port,
        identifier=COLLECTOR,
        protocol=aiomqtt.ProtocolVersion.V5,
        clean_start=False,
        properties=properties,
    )


def collect_from_now(port: int, topic: str) -> None:
    """Let mosquitto keep what comes to a topic."""

    async def work() -> None:
        async with collector(port) as client:
            await client.subscribe(topic, qos=1)

    asyncio.run(work())


def collected(port: int) -> list[bytes]:
    """Return what mosquitto has kept, until nothing more comes."""

    async def work() -> list[bytes]:
        found: list[bytes] = []
        async with collector(port, expiry_s=0) as client:
            messages = aiter(client.messages)
            while True:
                try:
                    message = await asyncio.wait_for(anext(messages), QUIET_S)
                except TimeoutError:
                    return found
                found.append(bytes(message.payload))

    return asyncio.run(work())


def stored(address: tuple[str, int], stream: str) -> list[bytes]:
    """Return all records of a stream that has some, and does not grow."""
    found: list[bytes] = []
    with Client.opened(*address, timeout_s=ANSWER_S) as client:
        last = client.request("resolve_offset_spec", m.ResolveOffsetSpec(stream, LAST, {}))
        assert isinstance(last, m.ResolvedOffset)
        client.subscribe(1, stream, FIRST)
        while True:
            chunk = client.delivery().chunk
            client.credit(1, 1)
            records = chunk.records()
            found += records
            if chunk.chunk_id + len(records) > last.offset:
                return found


def wait_for_feeds(feeds: Iterable[Feed], share: float, count: int, within_s: float) -> None:
    """Wait until each feed has sent that share of its numbers."""
    deadline = time.monotonic() + within_s
    while min(feed.sent for feed in feeds) < share * count:
        assert time.monotonic() < deadline, [feed.sent for feed in feeds]
        time.sleep(0.02)

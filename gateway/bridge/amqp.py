"""Queues and exchanges of AMQP 0-9-1 as ends of a route, by aio-pika.

Messages pass by the channel beneath aio-pika's, which gives and takes the properties as they are.
"""

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final, Self, TypeAlias, TypeVar, cast
from uuid import uuid4

import aio_pika
import aiormq
from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp import commands as spec

from gateway.bridge.ends import (
    BYTES_MAX,
    Arrivals,
    EndLink,
    EndUnreachable,
    Judge,
    Parcel,
    RouteSource,
    RouteTarget,
    begun,
)
from gateway.bridge.routes import ExchangeSource, ExchangeTarget, QueueSource, QueueTarget, Route
from gateway.bridge.templates import Missing
from hutch.formats.amqp.basic import basic_of, pack_moment, pack_table
from hutch.formats.amqp.values import Moment
from hutch.formats.amqp.writing import BasicProperties, Unpackable, pack_message

_Read: TypeAlias = QueueSource | ExchangeSource
_Written: TypeAlias = QueueTarget | ExchangeTarget
T = TypeVar("T")

CONNECT_S, CLOSE_S = 10.0, 5.0
_TOO_LARGE: Final = re.compile(r"larger than (?:configured )?max size (\d+)")
_FAULTS: Final = (
    *(aiormq.AMQPError, aiormq.ChannelInvalidStateError, OSError, TimeoutError),
    asyncio.CancelledError,
)
_NAMES: Final = {
    name: {"type": "message_type"}.get(name, name) for name in BasicProperties.__dataclass_fields__
}
"""Names of properties, each with pamqp's name."""


_largest: Final[dict[tuple[str, int], int]] = {}
"""The largest message of a broker, by its place; it is known when a larger one was refused."""


class AmqpLink(EndLink):
    """A connection to a broker, with one channel."""

    connection: aio_pika.abc.AbstractConnection | None = None
    channel: AbstractChannel

    @classmethod
    async def to(cls, end: _Read | _Written, route: str, *, has_confirms: bool) -> Self:
        """Connect. Raises Unreachable."""
        link = cls(end)
        try:
            link.connection = await aio_pika.connect(
                end.uri,
                timeout=CONNECT_S,
                ssl_context=end.tls(),
                client_properties={"connection_name": f"hutch bridge, route {route}"},
            )
            wrapped = await link.connection.channel(
                publisher_confirms=has_confirms, on_return_raises=has_confirms
            )
            link.channel = await wrapped.get_underlay_channel()
        except _FAULTS as error:
            await link.close()
            raise link.unreachable(error) from None
        link.channel.closing.add_done_callback(link._closed)
        return link

    def _closed(self, closing: "asyncio.Future[Any]") -> None:
        error = None if closing.cancelled() else closing.exception()
        self.fail(error or ConnectionError("the channel was closed"))

    async def do(self, work: Awaitable[T]) -> T:
        """Return an answer of the broker. Raises Unreachable."""
        try:
            # aiormq gives up a channel if an answer is no longer awaited.
            return await asyncio.shield(begun(work))
        except _FAULTS as error:
            raise self.unreachable(error) from None

    async def close(self) -> None:
        with suppress(*_FAULTS, RuntimeError):
            async with asyncio.timeout(CLOSE_S):
                if self.connection is not None:
                    await self.connection.close()


class QueueMessages(RouteSource[_Read]):
    """Messages of a queue, or of an exchange by a queue of the route's own, read exclusively."""

    link: AmqpLink

    def __init__(self, route: Route, end: _Read) -> None:
        """Keep the source to read."""
        super().__init__(route, end)
        self._queue = end.queue if isinstance(end, QueueSource) else route.owned
        self._messages: Arrivals[DeliveredMessage] = Arrivals()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._tag = ""
        self._prefetch = route.window
        self._is_held_back = False

    async def open(self) -> None:
        self.link = await AmqpLink.to(self.end, self.route.name, has_confirms=False)
        self.links.append(self.link)
        channel = self.link.channel
        if isinstance(self.end, ExchangeSource):
            await self.link.do(channel.exchange_declare(self.end.exchange, passive=True))
            queue = await self.link.do(channel.queue_declare(self._queue, durable=True))
            for key in self.end.keys:
                await self.link.do(channel.queue_bind(self._queue, self.end.exchange, key))
        else:
            queue = await self.link.do(channel.queue_declare(self._queue, passive=True))
        if queue.consumer_count:  # quorum queues take no heed of `exclusive`
            raise EndUnreachable(f"{self.end.name}: another consumer reads queue {self._queue!r}")
        channel.on_consumer_cancel_callbacks.add(
            lambda _: self.link.fail(ConnectionError("the queue is no longer there"))
        )
        await self._consume()

    async def _consume(self) -> None:
        channel = self.link.channel
        await self.link.do(channel.basic_qos(prefetch_count=self._prefetch))
        consume = channel.basic_consume(self._queue, self._taken, exclusive=True)
        self._tag = (await self.link.do(consume)).consumer_tag or ""

    async def _taken(self, message: DeliveredMessage) -> None:
        self._messages.put(message)
        self._sizes.append(len(message.body))
        self._bytes += len(message.body)
        if self._bytes > BYTES_MAX and self._tag:
            # Read on with fewer messages under way when these are done, as they are so large.
            self._is_held_back = True
            self._prefetch = max(BYTES_MAX * len(self._sizes) // (2 * self._bytes), 1)
            with suppress(EndUnreachable):  # it is said by what waits for the connection
                await self._cancel()

    async def take(self) -> Sequence[Parcel]:
        return [_parcel(message) for message in await self._messages.take(self.links)]

    async def settle(self, parcels: Sequence[Parcel]) -> None:
        for _ in parcels:
            self._bytes -= self._sizes.popleft()
        last = cast("int", parcels[-1].mark)
        await self.link.do(self.link.channel.basic_ack(last, multiple=True))
        if self._is_held_back and not self._tag and not self._sizes:
            self._is_held_back = False
            await self._consume()

    async def _cancel(self) -> None:
        tag, self._tag = self._tag, ""
        if tag:
            await self.link.do(self.link.channel.basic_cancel(tag))

    async def waiting(self) -> int | None:
        answer = await self.link.do(self.link.channel.queue_declare(self._queue, passive=True))
        return (answer.message_count or 0) + len(self._messages)

    async def remove(self) -> None:
        if isinstance(self.end, ExchangeSource):
            self.link = await AmqpLink.to(self.end, self.route.name, has_confirms=False)
            self.links.append(self.link)
            await self.link.do(self.link.channel.queue_delete(self._queue))


def _parcel(message: DeliveredMessage) -> Parcel:
    delivery = cast("spec.Basic.Deliver", message.delivery)
    given = {name: getattr(message.header.properties, pamqp) for name, pamqp in _NAMES.items()}
    try:
        made, expiry = given["timestamp"], given["expiration"]
        given["timestamp"] = None if made is None else int(made.timestamp())
        given["expiration"] = int(expiry) if expiry else None
        given["headers"] = _stored(given["headers"] or {})
        record = pack_message(
            message.body,
            BasicProperties(**given),
            exchange=delivery.exchange or "",
            routing_key=delivery.routing_key or "",
        )
    except (Unpackable, ValueError) as error:
        return Parcel(message.body, delivery.delivery_tag, refusal=f"as a record: {error}")
    return Parcel(record, delivery.delivery_tag, is_repeated=bool(delivery.redelivered))


def _stored(value: Any) -> Any:  # noqa: ANN401  # whatever a header has
    """Return a header's value as a record has it."""
    match value:
        case dict():
            return {str(key): _stored(each) for key, each in value.items()}
        case list():
            return [_stored(each) for each in value]
        case datetime():
            return Moment(int(value.timestamp()) * 1000)
        case bytearray():
            return bytes(value)
        case Decimal():
            return float(value)
    return value


class BasicPublisher(RouteTarget[_Written]):
    """Publishes to an exchange or a queue; a message that no queue takes is refused."""

    link: AmqpLink

    def __init__(self, route: Route, end: _Written, judge: Judge) -> None:
        """Keep where to publish."""
        super().__init__(route, end, judge)
        self._user = end.login[0] or "guest"
        self._next: deque[Parcel] = deque()
        self._ids: set[str] = set()

    async def open(self) -> None:
        self.link = await AmqpLink.to(self.end, self.route.name, has_confirms=True)
        self.links.append(self.link)
        if isinstance(self.end, QueueTarget):
            await self.link.do(self.link.channel.queue_declare(self.end.queue, passive=True))
        else:
            await self.link.do(self.link.channel.exchange_declare(self.end.exchange, passive=True))

    def send(self, parcels: Sequence[Parcel]) -> None:
        self._next.extend(parcels)
        self._send()

    def _send(self) -> None:
        """Send all but those behind one whose id is under way: by it a broker's return is known."""
        while self._next:
            parcel = self._next[0]
            try:
                given = self._publication(parcel)
            except (Missing, ValueError, TypeError) as error:
                self._next.popleft()
                self.judge(parcel, str(error))
                continue
            name = str(given["properties"].message_id)
            if name in self._ids:
                return
            self._next.popleft()
            self._ids.add(name)
            sent = asyncio.ensure_future(self.link.channel.basic_publish(**given, mandatory=True))
            sent.add_done_callback(partial(self._confirmed, parcel, name))

    def _publication(self, parcel: Parcel) -> dict[str, Any]:
        """Return a message in AMQP's form. Raises Missing, and others if it has no place."""
        body, properties, _, _ = basic_of(parcel.record)
        if len(body) > (most := _largest.get(self.end.place, len(body))):
            raise ValueError(f"{len(body)} bytes are more than the {most} that the broker takes")
        exchange, key = "", getattr(self.end, "queue", "")
        if isinstance(self.end, ExchangeTarget):
            exchange, key = self.end.exchange, self.end.routing_key.of(parcel.record, parcel.place)
        given = {pamqp: getattr(properties, name) for name, pamqp in _NAMES.items()}
        made, expiry = properties.timestamp, properties.expiration
        given["headers"] = pack_table(properties.headers) if properties.headers else None
        given["timestamp"] = None if made is None else pack_moment(made)
        given["expiration"] = None if expiry is None else str(expiry)
        if properties.user_id != self._user:  # a broker takes the name of the user alone
            given["user_id"] = None
        if not properties.message_id:
            place = "{stream}/{offset}".format(**parcel.place) if parcel.place else uuid4().hex
            given["message_id"] = place[-255:]
        made_of = _Properties(**given)
        return {"body": body, "exchange": exchange, "routing_key": key, "properties": made_of}

    def _confirmed(self, parcel: Parcel, name: str, sent: "asyncio.Future[Any]") -> None:
        self._ids.discard(name)
        error = None if sent.cancelled() else sent.exception()
        if isinstance(error, aiormq.exceptions.PublishError):
            self.judge(parcel, "no queue takes it")
        elif isinstance(error, aiormq.exceptions.DeliveryError):
            self.judge(parcel, "the broker refused it (basic.nack)")
        elif isinstance(error, ValueError | TypeError):  # not sent: a property has no form
            self.judge(parcel, str(error))
        elif error is not None:
            if found := _TOO_LARGE.search(str(error)):
                _largest[self.end.place] = int(found[1])
            self.link.fail(error)
        elif not sent.cancelled():
            self.judge(parcel, None)
        if not self.link.lost.done():
            self._send()


class _Properties(spec.Basic.Properties):
    """Properties with headers and time as bytes: pamqp cuts names and the digits of floats."""

    def encode_property(self, name: str, value: Any) -> bytes:  # noqa: ANN401  # the base's
        return value if isinstance(value, bytes) else super().encode_property(name, value)

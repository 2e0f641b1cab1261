"""A client of mewbase's protocol for asyncio: publish events, and read them.

    from hutch.mewbase import connect

    async with await connect("localhost", 7451, username="guest", password="guest") as client:
        await client.publish("orders", {"number": 1})
        orders = await client.subscribe("orders", start=0)
        async for event in orders:
            print(event.position, event.document)
            await orders.acknowledge(event)
        async with client.transaction() as order:
            await order.publish("orders", {"number": 2})
            await order.publish("invoices", {"order": 2})
        async for document in client.query("totals", {"customer": "tim"}):
            print(document)

It needs `bson`, which is part of pymongo and comes with the extra `mewbase` of Hutch.

Source: the mewbase wire protocol; docs/protocols/mewbase.md says what Hutch makes of it.
"""

import asyncio
import itertools
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final, NamedTuple, Self

try:
    import bson
except ModuleNotFoundError as missing:
    told = "hutch.mewbase needs bson of pymongo, which the extra `mewbase` of Hutch brings"
    raise ModuleNotFoundError(told, name=missing.name) from None

__all__ = ["PORT", "Client", "Event", "Refused", "Subscription", "Transaction", "connect"]

Document = Mapping[str, Any]

PORT: Final = 7451
_SIZE_BYTES: Final = 4
_VERSION: Final = "0.1"


class Refused(Exception):
    """A request that the server refuses.

    Attributes:
        code: The error's number.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Event(NamedTuple):
    """An event of a channel.

    Attributes:
        position: Its number in the channel; the first has 0.
        timestamp_ms: When it was stored, in milliseconds since 1970.
        document: The event.
    """

    position: int
    timestamp_ms: int
    document: dict[str, Any]


class Subscription:
    """The events of a channel, in order: an asynchronous iterator that waits for more.

    The server stops when 4 MiB are not acknowledged. The iterator ends with the connection.
    """

    def __init__(self, client: "Client", number: int) -> None:
        self._client = client
        self._number = number
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self._events.get()
        if event is None:
            self._events.put_nowait(None)  # for the next one that asks
            raise StopAsyncIteration
        return event

    def take(self, event: Event | None) -> None:
        """Add an event; None for the end."""
        self._events.put_nowait(event)

    async def acknowledge(self, event: Event) -> None:
        """Say that this event and all before it are done with."""
        await self._client.send("ACKEV", subID=self._number, pos=bson.Int64(event.position))

    async def close(self) -> None:
        """Take no more events; a durable subscription keeps its place."""
        await self._client.end(self._number, "SUBCLOSE")

    async def forget(self) -> None:
        """Take no more events; a durable subscription is removed."""
        await self._client.end(self._number, "UNSUBSCRIBE")


class Transaction:
    """Events that are stored together; `Client.transaction` makes it."""

    def __init__(self, client: "Client", session: int) -> None:
        self._client = client
        self._session = session

    async def publish(self, channel: str, event: Document) -> None:
        """Put an event; it is stored with the commit. Raises Refused or ConnectionError."""
        await self._client.publish(channel, event, self._session)


class Client:
    """One connection; `connect` makes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count()
        self._sessions = itertools.count()
        self._waiting: dict[int | None, asyncio.Future[dict[str, Any]]] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._queries: dict[int, asyncio.Queue[dict[str, Any] | None]] = {}
        self._is_over = False
        self._receiving = asyncio.create_task(self._receive())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
        await self._receiving

    # Requests

    async def log_in(self, credentials: Document | None) -> None:
        """Log in. Raises Refused or ConnectionError."""
        answer = self._answer_to(None)
        await self.send("CONNECT", version=_VERSION, authInfo=credentials)
        _check(await answer)

    async def publish(self, channel: str, event: Document, session: int = -1) -> None:
        """Publish an event; it is stored when this returns. Raises Refused or ConnectionError.

        Args:
            channel: The channel, which has to exist.
            event: Whatever BSON can hold.
            session: A session with a transaction: it is stored with that; -1: with none.
        """
        await self._ask("PUB", channel=channel, event=event, sessID=session)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Store the events that are put into it when the block ends, all or none.

        A block that ends with an exception stores none. Raises Refused or ConnectionError.
        """
        session = next(self._sessions)
        await self._ask("STARTTX", sessID=session)
        try:
            yield Transaction(self, session)
        except BaseException:
            with suppress(ConnectionError):
                await self._ask("ABORTTX", sessID=session)
            raise
        await self._ask("COMMITTX", sessID=session)

    async def subscribe(
        self,
        channel: str,
        *,
        start: int | None = None,
        since_ms: int | None = None,
        durable: str | None = None,
        matcher: Document | None = None,
    ) -> Subscription:
        """Subscribe to a channel. Raises Refused or ConnectionError.

        Args:
            channel: The channel.
            start: Position of the first event; None: those from now on, unless `since_ms` is given.
            since_ms: Earliest time of an event, in milliseconds since 1970.
            durable: Name of the durable subscription to begin, or to go on with.
            matcher: Fields that wanted events have.
        """
        number = next(self._numbers)
        answer = self._answer_to(number)
        await self.send(
            "SUBSCRIBE",
            rID=number,
            channel=channel,
            startPos=bson.Int64(-1 if start is None else start),
            startTimestamp=bson.Int64(since_ms or 0),
            durableID=durable,
            matcher=matcher,
        )
        subscription: Subscription = _check(await answer)["subscription"]
        return subscription

    async def end(self, number: int, kind: str) -> None:
        """End a subscription by a SUBCLOSE or UNSUBSCRIBE. Raises Refused or ConnectionError."""
        await self._ask(kind, subID=number)
        self._subscriptions.pop(number).take(None)

    async def query(
        self, binder: str, matcher: Document | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the documents of a binder, in the order of their ids.

        They are as they were when the query began. Raises Refused or ConnectionError.

        Args:
            binder: The binder.
            matcher: Fields that wanted documents have.
        """
        async with aclosing(self._results(binder=binder, matcher=matcher or {})) as results:
            async for document in results:
                yield document

    async def find(self, binder: str, name: str) -> dict[str, Any] | None:
        """Return the document of an id, None if there is none.

        Raises Refused or ConnectionError.
        """
        async with aclosing(self._results(binder=binder, docID=name)) as results:
            return await anext(results, None)

    async def _results(self, **fields: object) -> AsyncGenerator[dict[str, Any], None]:
        if self._is_over:
            raise ConnectionError("the connection has ended")
        number = next(self._numbers)
        queue = self._queries[number] = asyncio.Queue()
        try:
            await self.send("QUERY", queryID=number, **fields)
            is_last = False
            while not is_last:
                answer = await queue.get()
                if answer is None:
                    raise ConnectionError("the connection has ended")
                is_last = _check(answer)["last"]
                if answer["result"] is not None:
                    yield answer["result"]
                await self.send("QUERYACK", queryID=number)
        finally:
            del self._queries[number]

    async def ping(self) -> None:
        """Show that the client lives."""
        await self.send("PING")

    async def send(self, kind: str, **fields: object) -> None:
        """Send a frame that no answer is wanted of."""
        self._writer.write(bson.encode({"type": kind, "frame": fields}))
        await self._writer.drain()

    async def _ask(self, kind: str, **fields: object) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._answer_to(number)
        await self.send(kind, rID=number, **fields)
        return _check(await answer)

    def _answer_to(self, number: int | None) -> "asyncio.Future[dict[str, Any]]":
        if self._is_over:
            raise ConnectionError("the connection has ended")
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        return answer

    # Frames of the server

    async def _receive(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(_SIZE_BYTES)
                size = int.from_bytes(head, "little") - _SIZE_BYTES
                whole = bson.decode(head + await self._reader.readexactly(size))
                self._take(whole["type"], whole["frame"])
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._end()

    def _take(self, kind: str, fields: dict[str, Any]) -> None:
        if kind == "RECEV":
            subscription = self._subscriptions.get(fields["subID"])
            if subscription is not None:
                event = Event(fields["pos"], fields["timestamp"], fields["event"])
                subscription.take(event)
            return
        if kind == "QUERYRESULT":
            self._take_result(fields)
            return
        if kind == "SUBRESPONSE" and fields["ok"]:
            # Now: events may come in the same read.
            number = fields["subID"]
            fields["subscription"] = self._subscriptions[number] = Subscription(self, number)
        answer = self._waiting.pop(fields.get("rID"), None)
        if answer is not None and not answer.done():
            answer.set_result(fields)

    def _take_result(self, fields: dict[str, Any]) -> None:
        queue = self._queries.get(fields["queryID"])
        if queue is not None:
            queue.put_nowait(fields)
        elif not fields["last"]:  # its caller wants no more: let it come to its end
            whole = {"type": "QUERYACK", "frame": {"queryID": fields["queryID"]}}
            self._writer.write(bson.encode(whole))

    def _end(self) -> None:
        self._is_over = True
        for subscription in self._subscriptions.values():
            subscription.take(None)
        for queue in self._queries.values():
            queue.put_nowait(None)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionError("the connection has ended"))
        self._waiting.clear()


async def connect(
    host: str,
    port: int = PORT,
    *,
    username: str | None = None,
    password: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> Client:
    """Connect and log in; without a user name as the server's anonymous user.

    Raises:
        Refused: The server refuses the login.
        OSError: It cannot be reached.
    """
    client = Client(*await asyncio.open_connection(host, port, ssl=tls))
    credentials = None if username is None else {"username": username, "password": password}
    try:
        await client.log_in(credentials)
    except BaseException:
        await client.close()
        raise
    return client


def _check(fields: dict[str, Any]) -> dict[str, Any]:
    if not fields["ok"]:
        raise Refused(int(fields["errCode"]), fields["errMsg"])
    return fields

"""The scenarios by `rbfly` (which is under GPL-3: used here and in tests, never shipped).

python -m compat.clients.python.rbfly_program --host localhost --port 5552 publish some-stream
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

import rbfly.streams as rbs
from rbfly.streams.error import ProtocolError

from compat.clients.messages import LARGE_SIZES, bodies, indexes, large_body, summary
from compat.clients.python.program import (
    Request,
    Result,
    Scenario,
    arrived,
    eventually,
    harness,
    main,
)

# Its type says these are of instances; they are of the class.
FIRST: Final[rbs.Offset] = vars(rbs.Offset)["FIRST"]
LAST: Final[rbs.Offset] = vars(rbs.Offset)["LAST"]
NEXT: Final[rbs.Offset] = vars(rbs.Offset)["NEXT"]
ANSWER_S: Final = 5


def uri(request: Request, login: str = "guest:guest", path: str = "") -> str:
    """Return the server's address; a path is taken as the virtual host's name as it stands."""
    return f"rabbitmq-stream://{login}@{request.where.host}:{request.where.port}{path}"


@asynccontextmanager
async def client_of(
    request: Request, authority: str | None = None, address: str | None = None
) -> AsyncIterator[rbs.StreamsClient]:
    """Yield a client, which connects when it is first used.

    Args:
        request: Names the server.
        authority: Certificate to trust on the TLS port; None for the plain port.
        address: Another address.
    """
    if authority is None:
        client = rbs.streams_client(address or uri(request))
    else:
        host, port = request.where.host, request.where.tls_port
        secure = f"rabbitmq-stream+tls://guest:guest@{host}:{port}"
        client = rbs.streams_client(secure, ssl=ssl.create_default_context(cafile=authority))
    try:
        yield client
    finally:
        await client.disconnect()


class Reading:
    """Messages of a subscription.

    Attributes:
        records: Offset and body of each message.
    """

    def __init__(
        self,
        client: rbs.StreamsClient,
        stream: str,
        offset: rbs.Offset = FIRST,
        wanted: rbs.MessageFilter | None = None,
    ) -> None:
        self.records: list[tuple[int, bytes]] = []
        self._messages = client.subscribe(stream, offset=offset, filter=wanted)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Subscribe; it is done when the client has had time for it, since it does not tell."""
        self._task = asyncio.create_task(self._collect())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Unsubscribe."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._messages.aclose()  # type: ignore[attr-defined]  # it is a generator

    async def _collect(self) -> None:
        async for found in self._messages:
            assert isinstance(found, bytes)
            self.records.append((rbs.get_message_ctx().stream_offset, found))

    async def reach(self, count: int) -> list[tuple[int, bytes]]:
        """Wait for as many messages, and for no more."""
        assert self._task is not None
        await eventually(
            lambda: len(self.records) >= count or self._task is None or self._task.done(),
            lambda: f"{len(self.records)} of {count}",
        )
        if self._task.done():
            await self._task
        await arrived(self.records, count)
        return self.records

    def indexes(self) -> list[int]:
        """Return the messages' indexes, in their order."""
        return read_indexes(self.records)


def read_indexes(records: Iterable[tuple[int, bytes]]) -> list[int]:
    """Return the messages' indexes, in their order."""
    return indexes(found for _, found in records)


async def publish(client: rbs.StreamsClient, stream: str, sent: Sequence[bytes]) -> int:
    """Send each message by itself, which waits for its confirm; return how many were confirmed."""
    async with client.publisher(stream) as publisher:
        for one in sent:
            await publisher.send(one)
    return len(sent)


async def publish_batches(
    client: rbs.StreamsClient, stream: str, sent: Sequence[bytes], size: int
) -> int:
    """Send messages in batches, which waits for their confirms; return how many were confirmed."""
    async with client.publisher(stream, cls=rbs.PublisherBatchFast) as publisher:
        for first in range(0, len(sent), size):
            for one in sent[first : first + size]:
                publisher.batch(one)
            await publisher.flush()
    return len(sent)


async def read(
    client: rbs.StreamsClient,
    stream: str,
    count: int,
    offset: rbs.Offset = FIRST,
    wanted: rbs.MessageFilter | None = None,
) -> list[tuple[int, bytes]]:
    """Read until `count` messages are there and no more come."""
    async with Reading(client, stream, offset, wanted) as reading:
        return await reading.reach(count)


async def publish_and_read(request: Request, authority: str | None = None) -> Result:
    """Send messages one by one, read them with their offsets."""
    async with client_of(request, authority) as client:
        await client.create_stream(request.stream)
        confirmed = await publish(client, request.stream, bodies(0, 19))
        records = await read(client, request.stream, 20)
    offsets = [offset for offset, _ in records]
    found = read_indexes(records)
    return {"confirmed": confirmed, "refused": 0, "read": found, "offsets": offsets}


async def batch(request: Request) -> Result:
    """Send a thousand messages in batches of a hundred."""
    async with client_of(request) as client:
        await client.create_stream(request.stream)
        confirmed = await publish_batches(client, request.stream, bodies(0, 999), 100)
        records = await read(client, request.stream, 1000)
    return {"confirmed": confirmed, "refused": 0, "read": summary([one for _, one in records])}


async def large(request: Request) -> Result:
    """Send messages of sizes around those where an encoding changes."""
    async with client_of(request) as client:
        await client.create_stream(request.stream)
        sent = [large_body(size) for size in LARGE_SIZES]
        confirmed = await publish(client, request.stream, sent)
        found = [one for _, one in await read(client, request.stream, len(sent))]
    sizes = [len(one) for one in found]
    return {"confirmed": confirmed, "refused": 0, "sizes": sizes, "read": summary(found)}


@dataclass(frozen=True, slots=True)
class Beginning:
    """A place to begin, and the number of messages from there.

    Attributes:
        offset: Where; None for a time.
        count: How many messages are read.
        time_s: What to add to the time in the middle of the messages.
        is_ahead: It lies where nothing is yet: ten more messages are published.
    """

    offset: rbs.Offset | None
    count: int
    time_s: float = 0.0
    is_ahead: bool = False


BEGINNINGS: Final = {
    "offset-first": Beginning(FIRST, 20),
    "offset-last": Beginning(LAST, 1),
    "offset-next": Beginning(NEXT, 10, is_ahead=True),
    "offset-absolute": Beginning(rbs.Offset.offset(5), 15),
    "offset-beyond": Beginning(rbs.Offset.offset(21), 9, is_ahead=True),
    "offset-timestamp": Beginning(None, 10),
    "offset-future": Beginning(None, 10, 3600.0, is_ahead=True),
}


async def begin_at(request: Request, beginning: Beginning) -> Result:
    """Read from an offset of some kind."""
    stream, offset = request.stream, beginning.offset
    async with client_of(request) as client:
        await client.create_stream(stream)
        await publish_batches(client, stream, bodies(0, 9), 10)
        if offset is None:
            await asyncio.sleep(0.5)
            offset = rbs.Offset.timestamp(time.time() + beginning.time_s)
            await asyncio.sleep(0.5)
        await publish_batches(client, stream, bodies(10, 18), 9)
        await publish_batches(client, stream, bodies(19, 19), 1)
        async with Reading(client, stream, offset) as reading:
            if beginning.is_ahead:
                await asyncio.sleep(0.5)
                await publish_batches(client, stream, bodies(20, 29), 10)
            return {"read": read_indexes(await reading.reach(beginning.count))}


async def dedup(request: Request) -> Result:
    """Send some messages twice under the same publishing ids."""
    stream = request.stream
    confirmed: list[int] = []
    # It asks only when a publisher is made, which then begins behind the answer.
    last: list[int | None] = [None]
    async with client_of(request) as client:
        await client.create_stream(stream)
        for rounds in (
            ((1, bodies(0, 9)), (6, bodies(106, 115))),
            ((15, bodies(215, 216)),),
        ):
            async with client.publisher(stream, name="p", cls=rbs.PublisherBatchFast) as publisher:
                if confirmed:
                    last.append(publisher.message_id - 1)
                for first_id, sent in rounds:
                    for number, one in enumerate(sent):
                        message = rbs.stream_message_ctx(one, publish_id=first_id + number)
                        publisher.batch(message)
                    await publisher.flush()
                    confirmed.append(len(sent))
            async with client.publisher(stream, name="p") as publisher:
                last.append(publisher.message_id - 1)
        records = await read(client, stream, 16)
    return {"confirmed": confirmed, "last": last, "read": read_indexes(records)}


async def filtering(request: Request) -> Result:
    """Publish with filter values, read with filters."""
    stream = request.stream
    async with client_of(request) as client:
        await client.create_stream(stream)
        for value, sent in (("apple", bodies(0, 9)), ("banana", bodies(10, 19))):
            async with client.publisher(
                stream,
                filter_extract=lambda _, value=value: value,  # type: ignore[misc]
                cls=rbs.PublisherBatchFast,
            ) as publisher:
                for one in sent:
                    publisher.batch(one)
                await publisher.flush()
        await publish_batches(client, stream, bodies(20, 29), 10)
        found = {
            name: read_indexes(await read(client, stream, 10 * len(values), wanted=choose(*values)))
            for name, values in (("banana", ["banana"]), ("apple or banana", ["apple", "banana"]))
        }
    return {"confirmed": 30, **found, "banana or none": None}


def choose(*values: str) -> rbs.MessageFilter:
    """Return a filter of those values; every message delivered is chosen."""
    return rbs.MessageFilter(extract=lambda _: values[0], values=set(values))


async def tracking(request: Request) -> Result:
    """Store offsets, and go on behind what is stored: nothing else asks for it."""
    stream = request.stream
    async with client_of(request) as client:
        await client.create_stream(stream)
        await publish_batches(client, stream, bodies(0, 9), 10)
        for offset in (4, 7):
            await client.write_offset(stream, "app", offset)
        await asyncio.sleep(0.5)
        records = await read(client, stream, 2, rbs.Offset.reference("app"))
    return {"before": None, "stored": None, "other": None, "read": read_indexes(records)}


async def reconnect(request: Request) -> Result:
    """Go on after the server was stopped and started."""
    stream = request.stream
    async with client_of(request) as client:
        await client.create_stream(stream)
        async with client.publisher(stream) as publisher, Reading(client, stream) as reading:
            for one in bodies(0, 9):
                await publisher.send(one)
            await reading.reach(10)
            before = reading.indexes()
            await harness("restart")
            for one in bodies(10, 19):
                await publisher.send(one)  # waits 30 s once its connection was refused
            await eventually(
                lambda: set(reading.indexes()) >= set(range(20)), lambda: str(reading.indexes())
            )
        after = [index for index in dict.fromkeys(reading.indexes()) if index not in before]
    return {"before": before, "after": after, "recovery": "library"}


async def tls(request: Request) -> Result:
    """The same as `publish`, on the TLS port."""
    return await publish_and_read(request, request.where.ca)


async def tls_distrust(request: Request) -> Result:
    """Find the server's certificate signed by another authority."""
    try:
        async with client_of(request, request.where.other_ca) as client:
            await client.create_stream(request.stream)
    except OSError:  # ssl.SSLError is one
        return {"connected": False}
    return {"connected": True}


async def errors(request: Request) -> Result:
    """Do what must be refused, and tell the codes; it tries for ever where a stream is missing."""
    stream, missing = request.stream, f"{request.stream}-x"
    async with client_of(request) as client:
        return {
            "create": await code(client.create_stream(stream)),
            "again": await code(client.create_stream(stream)),
            "otherwise": None,
            "publish_missing": None,
            "read_missing": None,
            "delete_missing": await code(client.delete_stream(missing)),
            "delete": await code(client.delete_stream(stream)),
            "password": await code(connect(request, uri(request, "guest:wrong"))),
            "vhost": await code(connect(request, uri(request, path="/nowhere"))),
        }


async def connect(request: Request, address: str) -> None:
    """Connect and close again."""
    async with client_of(request, address=address) as client:
        await client.create_stream(request.stream)


async def code(call: Awaitable[object]) -> int | str:
    """Return the response code with which a call ended."""
    try:
        await asyncio.wait_for(call, ANSWER_S)
    except ProtocolError as error:
        return int(error.code)
    except Exception as error:  # noqa: BLE001 - its name is the result
        return type(error).__name__
    return 1


async def write(request: Request) -> Result:
    """Write messages for other clients to read."""
    sent = bodies(0, int(request.values["count"]) - 1, request.values["mark"])
    assert request.values["codec"] == "plain"
    async with client_of(request) as client:
        await client.create_stream(request.stream)
        confirmed = await publish_batches(client, request.stream, sent, 10)
    return {"confirmed": confirmed, "refused": 0}


async def read_others(request: Request) -> Result:
    """Read what any client wrote."""
    async with client_of(request) as client:
        records = await read(client, request.stream, int(request.values["count"]))
    found = [one for _, one in records]
    indexes(found, request.values["mark"])
    return {"read": summary(found)}


SCENARIOS: dict[str, Scenario] = {
    "publish": publish_and_read,
    "batch": batch,
    "large": large,
    **{name: partial(begin_at, beginning=found) for name, found in BEGINNINGS.items()},
    "tracking": tracking,
    "dedup": dedup,
    "filter": filtering,
    "reconnect": reconnect,
    "tls": tls,
    "tls-distrust": tls_distrust,
    "errors": errors,
    "write": write,
    "read": read_others,
}

if __name__ == "__main__":
    main("rbfly", SCENARIOS)

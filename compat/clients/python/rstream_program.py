"""The scenarios by `rstream`.

python -m compat.clients.python.rstream_program --host localhost --port 5552 publish some-stream
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rstream import (
    AMQPMessage,
    CompressionType,
    ConsumerOffsetSpecification,
    OffsetNotFound,
    OffsetType,
    Producer,
    SlasMechanism,
)
from rstream.exceptions import ServerError
from rstream.recovery import IReliableEntity, RecoveryStrategy

from compat.clients.messages import LARGE_SIZES, bodies, indexes, large_body, summary
from compat.clients.python import rstream_groups
from compat.clients.python.program import (
    Request,
    Result,
    Scenario,
    arrived,
    eventually,
    harness,
    main,
)
from compat.clients.python.rstream_session import (
    Confirms,
    choose,
    consumer_of,
    over_tls,
    producer_of,
    publish,
    publish_sub_entries,
    read,
    read_indexes,
    subscribe,
)

CODECS = {"none": CompressionType.No, "gzip": CompressionType.Gzip}
# How long a library may take to find a server again.
RECOVERY_S = 60.0
# After so many sends that came to nothing, the producer is started anew.
SENDS = 3


async def publish_and_read(
    request: Request, count: int = 20, connection: dict[str, Any] | None = None
) -> Result:
    """Send messages one by one, read them with their offsets."""
    stream = request.stream
    async with producer_of(request, **(connection or {})) as producer:
        await producer.create_stream(stream)
        confirms = await publish(producer, stream, bodies(0, count - 1))
        records = await read(request, stream, count, connection=connection)
    offsets = [offset for offset, _ in records]
    return {**confirms.result(), "read": read_indexes(records), "offsets": offsets}


async def batch(request: Request) -> Result:
    """Send a thousand messages in batches of a hundred."""
    stream, sent = request.stream, bodies(0, 999)
    confirms = Confirms()
    async with producer_of(request) as producer:
        await producer.create_stream(stream)
        for first in range(0, len(sent), 100):
            messages = [AMQPMessage(body=one) for one in sent[first : first + 100]]
            await producer.send_batch(stream, messages, on_publish_confirm=confirms.note)
        await confirms.reach(len(sent))
        records = await read(request, stream, len(sent))
    return {**confirms.result(), "read": summary([found for _, found in records])}


async def large(request: Request) -> Result:
    """Send messages of sizes around those where an encoding changes."""
    stream, confirms = request.stream, Confirms()
    async with producer_of(request) as producer:
        await producer.create_stream(stream)
        for size in LARGE_SIZES:
            await publish(producer, stream, [large_body(size)], confirms)
        records = await read(request, stream, len(LARGE_SIZES))
    found = [one for _, one in records]
    return {**confirms.result(), "sizes": [len(one) for one in found], "read": summary(found)}


async def sub_entries(request: Request, codec: CompressionType) -> Result:
    """Send ten sub-entries of ten messages."""
    async with producer_of(request) as producer:
        await producer.create_stream(request.stream)
        sent = bodies(0, 99)
        confirms = await publish_sub_entries(producer, request.stream, sent, codec)
        records = await read(request, request.stream, len(sent))
    return {**confirms.result(), "read": read_indexes(records)}


@dataclass(frozen=True, slots=True)
class Beginning:
    """A place to begin, and the number of messages from there.

    Attributes:
        kind: What the offset is told by.
        count: How many messages are read.
        value: The offset, or what to add to the time in the middle of the messages, in ms.
        is_ahead: It lies where nothing is yet: ten more messages are published.
    """

    kind: OffsetType
    count: int
    value: int | None = None
    is_ahead: bool = False


BEGINNINGS = {
    "offset-first": Beginning(OffsetType.FIRST, 20),
    "offset-last": Beginning(OffsetType.LAST, 1),
    "offset-next": Beginning(OffsetType.NEXT, 10, is_ahead=True),
    "offset-absolute": Beginning(OffsetType.OFFSET, 15, 5),
    "offset-beyond": Beginning(OffsetType.OFFSET, 9, 21, is_ahead=True),
    "offset-timestamp": Beginning(OffsetType.TIMESTAMP, 10, 0),
    "offset-future": Beginning(OffsetType.TIMESTAMP, 10, 3_600_000, is_ahead=True),
}


async def begin_at(request: Request, beginning: Beginning) -> Result:
    """Read from an offset of some kind."""
    stream, value = request.stream, beginning.value
    async with producer_of(request) as producer, consumer_of(request) as consumer:
        await producer.create_stream(stream)
        await publish(producer, stream, bodies(0, 9))
        if beginning.kind is OffsetType.TIMESTAMP:
            assert value is not None
            await asyncio.sleep(0.5)
            value += time.time_ns() // 1_000_000
            await asyncio.sleep(0.5)
        await publish(producer, stream, bodies(10, 18))
        await publish(producer, stream, bodies(19, 19))
        offset = ConsumerOffsetSpecification(beginning.kind, value)
        records = await subscribe(consumer, stream, offset)
        if beginning.is_ahead:
            await asyncio.sleep(0.5)
            await publish(producer, stream, bodies(20, 29))
        await arrived(records, beginning.count)
        return {"read": read_indexes(records)}


async def tracking(request: Request) -> Result:
    """Store offsets, ask for them, and go on behind what is stored."""
    stream = request.stream
    async with producer_of(request) as producer, consumer_of(request) as consumer:
        await producer.create_stream(stream)
        await publish(producer, stream, bodies(0, 9))
        before = await stored(consumer.query_offset(stream, "app"))
        answers = []
        for offset in (4, 7):
            await consumer.store_offset(stream, "app", offset)
            answer: int | str = "none"
            while answer != offset:
                answer = await stored(consumer.query_offset(stream, "app"))
            answers.append(answer)
        other = await stored(consumer.query_offset(stream, "other"))
        behind = 1 + await consumer.query_offset(stream, "app")
        records = await subscribe(
            consumer,
            stream,
            ConsumerOffsetSpecification(OffsetType.OFFSET, behind),
            subscriber_name="app",
        )
        await arrived(records, 2)
        read_now = read_indexes(records)
    return {"before": before, "stored": answers, "other": other, "read": read_now}


async def stored(question: Awaitable[int]) -> int | str:
    """Return the answer to a question for an offset; "none" where there is none."""
    try:
        return await question
    except OffsetNotFound:
        return "none"


async def dedup(request: Request) -> Result:
    """Send some messages twice under the same publishing ids."""
    stream = request.stream
    confirmed: list[int] = []
    async with producer_of(request) as producer:
        await producer.create_stream(stream)
        for first_id, sent in ((1, bodies(0, 9)), (6, bodies(106, 115))):
            done = await publish(producer, stream, sent, name="p", first_id=first_id)
            confirmed.append(done.confirmed)
    async with producer_of(request) as producer:
        done = await publish(producer, stream, bodies(215, 216), name="p", first_id=15)
        confirmed.append(done.confirmed)
    records = await read(request, stream, 16)
    return {"confirmed": confirmed, "last": [None] * 4, "read": read_indexes(records)}


async def filtering(request: Request) -> Result:
    """Publish with filter values, read with filters."""
    stream, confirms = request.stream, Confirms()
    async with producer_of(request) as producer:
        await producer.create_stream(stream)
    for value, sent in (("apple", bodies(0, 9)), ("banana", bodies(10, 19))):

        async def value_of(_: object, value: str = value) -> str:
            return value

        async with producer_of(request, filter_value_extractor=value_of) as producer:
            await publish(producer, stream, sent, confirms)
    async with producer_of(request) as producer:
        await publish(producer, stream, bodies(20, 29), confirms)
    found = {
        name: read_indexes(await read(request, stream, count, filter_input=wanted))
        for name, count, wanted in (
            ("banana", 10, choose("banana")),
            ("apple or banana", 20, choose("apple", "banana")),
            ("banana or none", 20, choose("banana", unfiltered=True)),
        )
    }
    return {"confirmed": confirms.confirmed, **found}


class SteadyRecovery(RecoveryStrategy):
    """The library's recovery, tried every second.

    Its own strategy waits four times as long after each failure: most of a minute where the
    server's start takes half of one.
    """

    async def recover(
        self,
        entity: IReliableEntity,
        stream: str,
        error: Exception,  # noqa: ARG002 - the library's signature
        attempt: int,  # noqa: ARG002 - the same
        recovery_fun: Callable[[], Awaitable[object]],
    ) -> None:
        """Call what makes a publisher or subscriber anew, until it succeeds."""
        while True:
            await asyncio.sleep(1)
            try:
                if await entity.stream_exists(stream):
                    await entity.clean_list(stream)
                    await recovery_fun()
                    return
            except Exception as failure:  # noqa: BLE001 - whatever a lost connection surfaces as
                print(f"not recovered yet: {failure!r}", file=sys.stderr)


async def reconnect(request: Request) -> Result:
    """Go on after the server was stopped and started."""
    stream = request.stream
    recovery = {"recovery_strategy": SteadyRecovery()}
    async with (
        producer_of(request, **recovery) as producer,
        consumer_of(request, **recovery) as consumer,
    ):
        await producer.create_stream(stream)
        await publish(producer, stream, bodies(0, 9))
        records = await subscribe(consumer, stream)
        await arrived(records, 10)
        before = read_indexes(records)
        await harness("restart")
        for one in bodies(10, 19):
            await publish_persistently(producer, stream, one)
        await eventually(
            lambda: set(read_indexes(records)) >= set(range(20)),
            lambda: str(read_indexes(records)),
            RECOVERY_S,
        )
        after = [index for index in dict.fromkeys(read_indexes(records)) if index not in before]
    return {"before": before, "after": after, "recovery": "library"}


async def publish_persistently(producer: Producer, stream: str, one: bytes) -> None:
    """Send one message until it is confirmed.

    A publisher that the server refused once is never declared again by the library: what is sent
    by it gets no confirm. A producer that is closed and started has no publishers.
    """
    for number in itertools.count(1):
        try:
            await producer.send_wait(stream, AMQPMessage(body=one))
        except Exception as failure:  # noqa: BLE001 - whatever a lost connection surfaces as
            print(f"not confirmed: {failure!r}", file=sys.stderr)
            await asyncio.sleep(0.2)
        else:
            return
        if number % SENDS == 0:
            with contextlib.suppress(Exception):  # the same
                await producer.close()
            with contextlib.suppress(Exception):
                await producer.start()


async def tls(request: Request) -> Result:
    """The same as `publish`, on the TLS port."""
    return await publish_and_read(request, 20, over_tls(request, request.where.ca))


async def tls_distrust(request: Request) -> Result:
    """Find the server's certificate signed by another authority."""
    try:
        async with producer_of(request, **over_tls(request, request.where.other_ca)):
            return {"connected": True}
    except OSError:  # ssl.SSLError is one
        return {"connected": False}


async def tls_external(request: Request) -> Result:
    """Be the user that the client's certificate names."""
    connection = over_tls(
        request,
        request.where.ca,
        username="",
        password="",
        sasl_configuration_mechanism=SlasMechanism.MechanismExternal,
    )
    connection["ssl_context"].load_cert_chain(request.where.cert, request.where.key)
    return await publish_and_read(request, 5, connection)


async def errors(request: Request) -> Result:
    """Do what must be refused, and tell the codes."""
    stream, missing = request.stream, f"{request.stream}-x"
    limited = {"max-length-bytes": 1_000_000}
    async with producer_of(request) as producer, consumer_of(request) as consumer:
        return {
            "create": await code(producer.create_stream(stream)),
            "again": await code(producer.create_stream(stream)),
            "otherwise": await code(producer.create_stream(stream, arguments=limited)),
            "publish_missing": await code(producer.send_wait(missing, AMQPMessage(body=b"x"))),
            "read_missing": await code(subscribe(consumer, missing)),
            "delete_missing": await code(producer.delete_stream(missing)),
            "delete": await code(producer.delete_stream(stream)),
            "password": await code(connect(request, password="wrong")),
            "vhost": await code(connect(request, vhost="nowhere")),
        }


async def connect(request: Request, **options: str) -> None:
    """Connect and close again."""
    async with producer_of(request, **options):
        pass


async def code(call: Awaitable[object]) -> int | str:
    """Return the response code with which a call ended."""
    try:
        await asyncio.wait_for(call, 10)
    except ServerError as error:
        return error.code
    except Exception as error:  # noqa: BLE001 - its name is the result
        return type(error).__name__
    return 1


async def write(request: Request) -> Result:
    """Write messages for other clients to read."""
    sent = bodies(0, int(request.values["count"]) - 1, request.values["mark"])
    codec = request.values["codec"]
    async with producer_of(request) as producer:
        await producer.create_stream(request.stream, exists_ok=True)
        if codec != "plain":
            done = await publish_sub_entries(producer, request.stream, sent, CODECS[codec])
            return done.result()
        confirms = Confirms()
        for first in range(0, len(sent), 10):
            messages = [AMQPMessage(body=one) for one in sent[first : first + 10]]
            await producer.send_batch(request.stream, messages, on_publish_confirm=confirms.note)
            await confirms.reach(first + len(messages))
        return confirms.result()


async def read_others(request: Request) -> Result:
    """Read what any client wrote."""
    records = await read(request, request.stream, int(request.values["count"]))
    found = [one for _, one in records]
    indexes(found, request.values["mark"])
    return {"read": summary(found)}


SCENARIOS: dict[str, Scenario] = {
    "publish": publish_and_read,
    "batch": batch,
    "large": large,
    "sub-none": partial(sub_entries, codec=CompressionType.No),
    "sub-gzip": partial(sub_entries, codec=CompressionType.Gzip),
    **{name: partial(begin_at, beginning=found) for name, found in BEGINNINGS.items()},
    "tracking": tracking,
    "dedup": dedup,
    "filter": filtering,
    **rstream_groups.SCENARIOS,
    "reconnect": reconnect,
    "tls": tls,
    "tls-distrust": tls_distrust,
    "tls-external": tls_external,
    "errors": errors,
    "write": write,
    "read": read_others,
}

if __name__ == "__main__":
    main("rstream", SCENARIOS)

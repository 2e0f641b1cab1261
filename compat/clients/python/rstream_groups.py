"""The scenarios of super streams and single active consumers, by `rstream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from rstream import (
    AMQPMessage,
    ConfirmationStatus,
    Consumer,
    EventContext,
    MessageContext,
    OffsetNotFound,
    OffsetSpecification,
    OffsetType,
    RouteType,
    SuperStreamConsumer,
    SuperStreamCreationOption,
    SuperStreamProducer,
    amqp_decoder,
)

from compat.clients.messages import bodies, index_of
from compat.clients.python.program import QUIET_S, Request, Result, Scenario, arrived, eventually
from compat.clients.python.rstream_session import (
    FIRST,
    Confirms,
    Records,
    body_of,
    consumer_of,
    login,
    producer_of,
    publish,
    read_indexes,
    subscribe,
)

PARTITIONS: Final = ("0", "1", "2")
REGIONS: Final = ("amer", "emea", "apac")
GROUP: Final = "group"


async def hashed(message: AMQPMessage) -> str:
    """Return the routing key of a message of its own."""
    return f"key-{index_of(body_of(message))}"


async def regional(message: AMQPMessage) -> str:
    """Return the routing key of a message, one of three."""
    return REGIONS[index_of(body_of(message)) % len(REGIONS)]


@asynccontextmanager
async def routing_producer(
    request: Request,
    routing: RouteType,
    **options: Any,  # noqa: ANN401 - handed on
) -> AsyncIterator[SuperStreamProducer]:
    """Connect a producer to the super stream for the length of the block."""
    extractor = hashed if routing is RouteType.Hash else regional
    producer = SuperStreamProducer(
        **login(request),
        super_stream=request.stream,
        routing=routing,
        routing_extractor=extractor,
        **options,
    )
    async with producer:
        yield producer


async def send(producer: SuperStreamProducer, sent: Sequence[bytes]) -> int:
    """Send messages where they belong, wait for them; return how many were confirmed."""
    confirms = Confirms()

    async def note(status: ConfirmationStatus) -> None:
        confirms.note(status)

    for one in sent:
        await producer.send(AMQPMessage(body=one), on_publish_confirm=note)
    await confirms.reach(len(sent))
    return confirms.confirmed


async def fill(request: Request) -> int:
    """Make a super stream of three partitions and put thirty messages into it."""
    option = SuperStreamCreationOption(n_partitions=len(PARTITIONS))
    async with routing_producer(
        request, RouteType.Hash, super_stream_creation_option=option
    ) as producer:
        return await send(producer, bodies(0, 29))


async def partitions(request: Request, names: Sequence[str]) -> dict[str, list[int]]:
    """Read what each partition holds, thirty messages in all."""
    async with AsyncExitStack() as stack:
        found: dict[str, Records] = {}
        for name in names:
            consumer = await stack.enter_async_context(consumer_of(request))
            found[name] = await subscribe(consumer, f"{request.stream}-{name}")
        await eventually(lambda: sum(map(len, found.values())) >= 30, lambda: str(found))  # noqa: PLR2004
        await asyncio.sleep(QUIET_S)
    return {name: read_indexes(records) for name, records in found.items()}


async def super_hash(request: Request) -> Result:
    """Publish to partitions by a hash of the routing key."""
    return {"confirmed": await fill(request), "read": await partitions(request, PARTITIONS)}


async def super_key(request: Request) -> Result:
    """Publish to partitions by their routing keys."""
    option = SuperStreamCreationOption(n_partitions=0, binding_keys=list(REGIONS))
    async with routing_producer(
        request, RouteType.Key, super_stream_creation_option=option
    ) as producer:
        confirmed = await send(producer, bodies(0, 29))
    return {"confirmed": confirmed, "read": await partitions(request, REGIONS)}


async def super_read(request: Request) -> Result:
    """Read all partitions by one consumer."""
    confirmed = await fill(request)
    reader = Member(request)
    async with reader.reading_all(properties=None):
        await arrived(reader.records, 30)
    return {"confirmed": confirmed, "read": sorted(read_indexes(reader.records))}


class Member:
    """A consumer of a group, of which one at a time is active.

    Attributes:
        records: What it has read.
        offsets: The last offset that it has read of each stream.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self.records: Records = []
        self.offsets: dict[str, int] = {}

    def note(self, message: AMQPMessage, context: MessageContext) -> None:
        """Keep a message."""
        self.records.append((context.offset, body_of(message)))
        self.offsets[context.stream] = context.offset

    async def updated(self, is_active: bool, context: EventContext) -> OffsetSpecification:  # noqa: FBT001 - rstream's signature
        """Begin behind what the group has stored when this one becomes active."""
        behind = 0
        if is_active:
            try:
                behind = 1 + await context.consumer.query_offset(context.stream, GROUP)
            except OffsetNotFound:
                behind = 0
        return OffsetSpecification(OffsetType.OFFSET, behind)

    def options(self, properties: dict[str, str] | None) -> dict[str, Any]:
        """Return the keyword arguments of the subscription."""
        found: dict[str, Any] = {"decoder": amqp_decoder, "offset_specification": FIRST}
        if properties is not None:
            found["subscriber_name"] = GROUP
            found["properties"] = {"single-active-consumer": "true", "name": GROUP, **properties}
            found["consumer_update_listener"] = self.updated
        return found

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Consumer]:
        """Be a single active consumer of the stream."""
        async with consumer_of(self._request) as consumer:
            await consumer.subscribe(self._request.stream, self.note, **self.options({}))
            yield consumer

    @asynccontextmanager
    async def reading_all(self, properties: dict[str, str] | None) -> AsyncIterator[None]:
        """Be a consumer of the super stream, of a group unless `properties` is None."""
        where = login(self._request)
        async with SuperStreamConsumer(**where, super_stream=self._request.stream) as consumer:
            await consumer.subscribe(self.note, **self.options(properties))
            yield


async def store(consumer: Consumer, stream: str, offset: int) -> None:
    """Store an offset for the group and wait until it is stored."""
    await consumer.store_offset(stream, GROUP, offset)
    while True:
        try:
            if await consumer.query_offset(stream, GROUP) == offset:
                return
        except OffsetNotFound:
            continue


async def sac(request: Request) -> Result:
    """Hand a stream over from one single active consumer to another."""
    stream = request.stream
    a, b = Member(request), Member(request)
    async with AsyncExitStack() as stack, producer_of(request) as producer:
        await producer.create_stream(stream)
        reading_a = await stack.enter_async_context(AsyncExitStack())
        consumer_a = await reading_a.enter_async_context(a.reading())
        await asyncio.sleep(0.5)
        await stack.enter_async_context(b.reading())
        await asyncio.sleep(0.5)
        await publish(producer, stream, bodies(0, 9))
        await arrived(a.records, 10)
        await store(consumer_a, stream, 9)
        await reading_a.aclose()
        await publish(producer, stream, bodies(10, 19))
        await arrived(b.records, 10)
    return {"a": read_indexes(a.records), "b": read_indexes(b.records)}


async def super_sac(request: Request) -> Result:
    """Hand the partitions of a super stream over."""
    option = SuperStreamCreationOption(n_partitions=len(PARTITIONS))
    group = {"super-stream": request.stream}
    a, b = Member(request), Member(request)
    async with AsyncExitStack() as stack:
        producer = await stack.enter_async_context(
            routing_producer(request, RouteType.Hash, super_stream_creation_option=option)
        )
        reading_a = await stack.enter_async_context(AsyncExitStack())
        await reading_a.enter_async_context(a.reading_all(group))
        await asyncio.sleep(0.5)
        await stack.enter_async_context(b.reading_all(group))
        await asyncio.sleep(0.5)
        await send(producer, bodies(0, 29))
        await eventually(lambda: len(a.records) + len(b.records) >= 30)  # noqa: PLR2004
        await asyncio.sleep(QUIET_S)
        together = sorted(read_indexes(a.records) + read_indexes(b.records))
        async with consumer_of(request) as asking:
            for partition, offset in {**a.offsets, **b.offsets}.items():
                await store(asking, partition, offset)
        before = len(b.records)
        await reading_a.aclose()
        await send(producer, bodies(30, 59))
        await eventually(lambda: len(b.records) - before >= 30)  # noqa: PLR2004
        await asyncio.sleep(QUIET_S)
    return {"together": together, "b": sorted(read_indexes(b.records[before:]))}


SCENARIOS: dict[str, Scenario] = {
    "super-hash": super_hash,
    "super-key": super_key,
    "super-read": super_read,
    "sac": sac,
    "super-sac": super_sac,
}

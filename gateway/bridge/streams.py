"""Streams and super streams as ends of a route."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias, cast

import cramjam
import mmh3

from gateway.bridge.ends import (
    BYTES_MAX,
    Arrivals,
    EndUnreachable,
    Judge,
    Parcel,
    RouteSource,
    RouteTarget,
)
from gateway.bridge.links import StreamEnd, StreamLink
from gateway.bridge.routes import Route, StreamSource, StreamTarget, SuperStreamSource
from gateway.bridge.routes import SuperStreamTarget as SuperTarget
from gateway.bridge.templates import Missing
from hutch.client.connection import IDS, Confirmed, DeliveredChunk
from hutch.client.entries import records_of
from hutch.formats.entries import SubBatchCodec
from hutch.formats.sub_batches import Decompress
from hutch.stream import messages as m
from hutch.stream import offsets
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode, in_words

_Streams: TypeAlias = StreamSource | SuperStreamSource
_Written: TypeAlias = StreamTarget | SuperTarget

CREDIT, CREDIT_MAX = 2, 100
"""Chunks to ask for before one has come, and at most."""
DOUBTFUL: Final = 1_000
"""Offsets at the end that may be no records, where the server cannot tell."""
NO_PLACE: Final = (1 << 64) - 1
"""The offset that is stored when a route is removed: the protocol has no way to forget one."""
HASH_SEED: Final = 104729
"""The seed of RabbitMQ's clients, which find a key in the same partition."""
FRAME_BYTES_MAX: Final = 1 << 20
HEAD_BYTES, ENTRY_BYTES = 9, 12
_SNAPPY_STREAM: Final = b"\xff\x06\x00\x00sNaPpY"


def _opens(codec: SubBatchCodec) -> Decompress:
    """Return a function that opens sub-batches; what it cannot open it returns as empty."""

    def opened(body: bytes, size: int) -> bytes:
        room = bytearray(size)
        module = getattr(cramjam, codec.name.lower())
        is_raw = codec is SubBatchCodec.SNAPPY and not body.startswith(_SNAPPY_STREAM)
        try:
            (module.decompress_raw_into if is_raw else module.decompress_into)(body, room)
        except Exception:  # noqa: BLE001  # each codec has errors of its own
            return b""
        return bytes(room)

    return opened


CODECS: Final[dict[int, Decompress]] = {
    codec: _opens(codec) for codec in (SubBatchCodec.SNAPPY, SubBatchCodec.LZ4, SubBatchCodec.ZSTD)
}


@dataclass(slots=True)
class _Reader:
    """A subscription: chunks that were asked for, records and bytes of the last one that came."""

    stream: str
    link: StreamLink
    number: int
    credit: int = CREDIT
    records: int = 0
    size: int = 0


class StreamRecords(StreamEnd[_Streams], RouteSource[_Streams]):
    """Records of a stream or super stream, read as the single active consumer of the route's name.

    The place of each stream is an offset that is stored under that name.
    """

    def __init__(self, route: Route, end: _Streams) -> None:
        """Keep the source to read."""
        super().__init__(route, end)
        self._readers: dict[tuple[StreamLink, int], _Reader] = {}
        self._next: dict[str, int | None] = {}
        self._settled: dict[str, int] = {}
        self._parcels: Arrivals[Parcel] = Arrivals()
        self._records = self._bytes = 0  # not settled

    async def open(self) -> None:
        await self.connect(await self.streams())
        properties = {"single-active-consumer": "true", "name": self.route.owned}
        if isinstance(self.end, SuperStreamSource):
            properties["super-stream"] = self.end.super_stream
        for stream, link in self.leaders.items():
            link.client.updated = partial(self._updated, link)
            number = link.client.new_subscription_id()
            self._readers[link, number] = _Reader(stream, link, number)
            start = link.do(self._start, stream, link)
            link.do(
                link.client.subscribe, number, stream, start, credit=CREDIT, properties=properties
            )

    def _start(self, stream: str, link: StreamLink) -> offsets.OffsetSpec:
        """Return where to read: behind the stored offset, or where the route says."""
        question = m.QueryOffset(self.route.owned, stream)
        stored = link.client.ask(m.StoredOffset, "query_offset", question)
        start = self.end.start
        spec = {"first": offsets.FIRST, "last": offsets.LAST}.get(str(start), offsets.NEXT)
        if stored.code == ResponseCode.OK and stored.offset != NO_PLACE:
            spec = offsets.at_offset(stored.offset + 1)
        elif isinstance(start, datetime):
            spec = offsets.at_timestamp(int(start.timestamp() * 1000))
        elif isinstance(start, int):
            spec = offsets.at_offset(start)
        numbers = self._numbers(stream, link)
        self._next[stream] = {
            offsets.OffsetType.OFFSET: spec.value,
            offsets.OffsetType.FIRST: max(numbers.get("first_chunk_id", 0), 0),
            offsets.OffsetType.NEXT: numbers.get("committed_offset", -1) + 1,
        }.get(spec.type)
        return spec

    @staticmethod
    def _numbers(stream: str, link: StreamLink) -> dict[str, int]:
        question = m.StreamStats(stream)
        return dict(link.client.ask(m.StreamStatsReply, "stream_stats", question).statistics)

    def _updated(self, link: StreamLink, asked: Decoded) -> None:
        """Begin as the active consumer of a stream, or stop because another one is."""
        update = cast("m.ConsumerUpdate", asked.message)
        stream = self._readers[link, update.subscription_id].stream
        if update.active:
            link.client.answer_update(asked, self._start(stream, link))
            return
        link.client.answer_update(asked)
        self._settled.pop(stream, None)  # the other one stores its own
        link.fail(EndUnreachable(f"another bridge reads {stream!r} now"))

    def taken(self, link: StreamLink, pushed: DeliveredChunk | Confirmed | m.Message) -> None:
        if not isinstance(pushed, DeliveredChunk):
            super().taken(link, pushed)
            return
        reader = self._readers[link, pushed.subscription_id]
        stream, before = reader.stream, len(self._parcels)
        first = self._next[stream] or 0

        def put(offset: int, record: bytes, refusal: object = None) -> None:
            if offset >= first:
                place = {"stream": stream, "offset": str(offset)}
                why = None if refusal is None else str(refusal)
                self._parcels.put(Parcel(record, (stream, offset), place, refusal=why))
                self._bytes += len(record)
                self._next[stream] = offset + 1

        for offset, record in records_of(bytes(pushed.chunk), CODECS, put):
            put(offset, record)
        came = len(self._parcels) - before
        self._records += came
        reader.credit -= 1
        reader.records, reader.size = max(came, 1), len(pushed.chunk)
        self._ask(reader)

    def _ask(self, reader: "_Reader") -> None:
        """Ask for as many chunks as there is room for, if they are like the last one."""
        if not reader.size:  # the first one is still to come
            return
        room, size = 2 * self.route.window - self._records, BYTES_MAX - self._bytes
        fit = min(room // reader.records, size // reader.size, CREDIT_MAX)
        more = max(fit, not self._records) - reader.credit
        if more > reader.credit:
            reader.credit += more
            reader.link.send(reader.link.client.credit, reader.number, more)

    async def take(self) -> Sequence[Parcel]:
        return await self._parcels.take(self.links)

    async def settle(self, parcels: Sequence[Parcel]) -> None:
        for parcel in parcels:
            stream, offset = cast("tuple[str, int]", parcel.mark)
            self._settled[stream] = offset
            self._bytes -= len(parcel.record)
        self._records -= len(parcels)
        for reader in self._readers.values():
            self._ask(reader)
        self.unsaved += len(parcels)
        if self.unsaved >= max(self.route.window // 2, 1):
            await self.save()

    async def save(self) -> None:
        self._store(self._settled)
        self._settled.clear()
        self.unsaved = 0

    def _store(self, places: dict[str, int]) -> None:
        """Store offsets. A server answers none, and drops one that it has not read when we die.

        So it is asked for one of them: its answer says that they have all arrived.
        """
        last: dict[StreamLink, m.QueryOffset] = {}
        for stream, offset in places.items():
            link, place = self.leaders[stream], m.StoreOffset(self.route.owned, stream, offset)
            link.send(link.client.send_request, "store_offset", place)
            last[link] = m.QueryOffset(self.route.owned, stream)
        for link, question in last.items():
            link.ask(m.StoredOffset, "query_offset", question)

    async def waiting(self) -> int | None:
        total = len(self._parcels)
        for stream, link in self.leaders.items():
            first = self._next[stream]
            if first is None:
                return None
            numbers = link.do(self._numbers, stream, link)
            there = numbers.get("committed_offset", -1) + 1 - first
            if there > 0 and not link.resolves:
                if there <= DOUBTFUL:
                    return None
            elif there <= 0 or not self._have_records(stream, link, first):
                there = 0
            total += there
        return total

    @staticmethod
    def _have_records(stream: str, link: StreamLink, first: int) -> bool:
        """Return whether records follow; RabbitMQ gives offsets to places that it stores, too.

        The order of the questions matters, as records may come in between.
        """
        specs = offsets.at_offset(first), offsets.LAST, offsets.NEXT
        here, last, end = (link.place_of(stream, spec) for spec in specs)
        return here <= last < end

    async def remove(self) -> None:
        await self.connect(await self.streams())
        self._store(dict.fromkeys(self.leaders, NO_PLACE))


class _Publisher:
    """A publisher of a stream, with the messages that are sent, in order, and not confirmed."""

    def __init__(self, link: StreamLink, number: int, name: str) -> None:
        self.link: Final = link
        self.sent: Final[deque[tuple[int, Parcel]]] = deque()
        self._number = number
        self._has_name = bool(name)
        self._last_id = 0

    def publish(self, parcels: Sequence[Parcel]) -> None:
        """Send messages in one frame; those of a stream have their offset as publishing id."""
        entries: list[tuple[int, bytes]] = []
        for parcel in parcels:
            self._last_id = int(parcel.place["offset"]) if self._has_name else self._last_id + 1
            self.sent.append((self._last_id, parcel))
            entries.append((self._last_id, parcel.record))
        self.link.send(self.link.client.publish, self._number, entries)


class StreamTargetEnd(StreamEnd[_Written], RouteTarget[_Written]):
    """Publishes to a stream or super stream.

    What comes from a stream is published under its name and the route's, so that the server leaves
    out what it has.
    """

    def __init__(self, route: Route, end: _Written, judge: Judge) -> None:
        """Keep where to write."""
        super().__init__(route, end, judge)
        self._publishers: dict[tuple[str, str], _Publisher] = {}
        self._by_number: dict[tuple[StreamLink, int], _Publisher] = {}

    async def open(self) -> None:
        end = self.end
        arguments = {name: str(value) for name, value in (end.create or {}).items()}
        if isinstance(end, StreamTarget):
            if end.create is not None:
                await self._create("create_stream", m.CreateStream(end.stream, arguments))
        elif end.create is not None and not await self.streams():
            keys = tuple(map(str, range(end.partitions)))
            names = tuple(f"{end.super_stream}-{key}" for key in keys)
            request = m.CreateSuperStream(end.super_stream, names, keys, arguments)
            await self._create("create_super_stream", request)
        await self.connect(await self.streams())
        for stream in self.leaders:  # a missing right is told now
            self._publisher(stream, "")

    async def _create(self, name: str, request: m.Message) -> None:
        first = await self.first()
        code = int(getattr(first.do(first.client.request, name, request), "code", 0))
        if code not in (ResponseCode.OK, ResponseCode.STREAM_ALREADY_EXISTS):
            raise EndUnreachable(f"{self.end.name}: `create`: {in_words(code)}")

    def _publisher(self, stream: str, source: str) -> _Publisher:
        """Return the publisher for records of one source, declared when it is first used."""
        if (stream, source) not in self._publishers:
            link, number = self.leaders[stream], len(self._by_number)
            if number >= IDS:
                raise EndUnreachable(f"{self.end.name}: a route has at most {IDS} publishers")
            name = f"{self.route.owned}/{source}"[-255:] if source else ""
            link.do(link.client.declare, number, stream, name)
            publisher = _Publisher(link, number, name)
            self._publishers[stream, source] = self._by_number[link, number] = publisher
        return self._publishers[stream, source]

    def send(self, parcels: Sequence[Parcel]) -> None:
        batches: dict[_Publisher, list[Parcel]] = {}
        sizes: dict[_Publisher, int] = {}
        for parcel in parcels:
            try:
                stream = self._stream_for(parcel)
            except Missing as missing:
                self.judge(parcel, str(missing))
                continue
            publisher = self._publisher(stream, parcel.place.get("stream", ""))
            most = publisher.link.client.frame_bytes_max or FRAME_BYTES_MAX
            size = ENTRY_BYTES + len(parcel.record)
            if HEAD_BYTES + size > most:
                self.judge(parcel, f"{len(parcel.record)} bytes do not fit into a frame of {most}")
                continue
            sizes[publisher] = sizes.get(publisher, HEAD_BYTES) + size
            if sizes[publisher] > min(most, FRAME_BYTES_MAX) and publisher in batches:
                publisher.publish(batches.pop(publisher))
                sizes[publisher] = HEAD_BYTES + size
            batches.setdefault(publisher, []).append(parcel)
        for publisher, batch in batches.items():
            publisher.publish(batch)

    def _stream_for(self, parcel: Parcel) -> str:
        if isinstance(self.end, StreamTarget):
            return self.end.stream
        key = self.end.partition_by.of(parcel.record, parcel.place)
        streams = tuple(self.leaders)
        return streams[mmh3.hash(key, HASH_SEED, signed=False) % len(streams)]

    def taken(self, link: StreamLink, pushed: DeliveredChunk | Confirmed | m.Message) -> None:
        if not isinstance(pushed, Confirmed | m.PublishError):
            super().taken(link, pushed)
            return
        sent = self._by_number[link, pushed.publisher_id].sent
        if isinstance(pushed, Confirmed):
            for _ in range(min(pushed.entries, len(sent))):
                self.judge(sent.popleft()[1], None)
            return
        codes = {error.publishing_id: error.code for error in pushed.errors}
        for entry in [entry for entry in sent if entry[0] in codes]:
            sent.remove(entry)
            self.judge(entry[1], in_words(codes[entry[0]]))

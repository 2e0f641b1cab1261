"""Streams and super streams: create, delete, describe; find a place, a partition.

Route and Partitions answer for every exchange. A permission on a name holds for the exchange of
that name as well as for the stream.

Source: RabbitMQ stream protocol; order of checks and codes as observed on RabbitMQ 4.3.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from gateway.broker.access.access import Demand, name_of_exchange
from gateway.broker.errors import BrokerError, StreamDoesNotExist, StreamNotAvailable
from gateway.broker.hosts import super_streams
from gateway.broker.naming import clean_name
from gateway.broker.streams.streams import Stream
from gateway.broker.yielding import THINGS_A_TURN, Slice
from gateway.log.damage.errors import LogError
from gateway.log.log import StreamLog
from gateway.log.reading.locations import Start, StartKind, locate
from gateway.stream.link import RIGHTS, Link
from gateway.stream.refusals import Refusal, code_of
from hutch.stream import messages as m
from hutch.stream import wire_types
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission
from hutch.stream.layout import layout_of
from hutch.stream.offsets import OffsetSpec
from store.errors import StoreError

OK: Final = m.Status(ResponseCode.OK)
_THIS_BROKER: Final = 0
_NO_LEADER: Final = 0xFFFF
_FEW_NAMES: Final = 1_000


async def create_stream(link: Link, request: m.CreateStream) -> m.Status:
    """Create a stream."""
    name = clean_name(request.stream)
    link.require(Permission.CONFIGURE, name)
    may = partial(link.require, Permission.CONFIGURE, name)
    await link.streams.create(name, request.arguments, check=may)
    return OK


async def delete_stream(link: Link, request: m.DeleteStream) -> m.Status:
    """Delete a stream; its users are told after this reply."""
    link.require(Permission.CONFIGURE, request.stream)

    def gone(stream: Stream) -> None:
        link.after_reply(lambda: link.streams.logs.tell_watchers(stream))

    may = partial(link.require, Permission.CONFIGURE, request.stream)
    await link.streams.delete(request.stream, gone, check=may)
    return OK


async def metadata(link: Link, request: m.Metadata) -> m.MetadataReply:
    """Say where each stream is: on this server, or nowhere. Each name once.

    In maintenance mode a stream exists but has no leader, so that clients go elsewhere. A frame of
    1 MiB may hold 260,000 names, which take 0.7 s: others have their turns meanwhile.
    """
    names = await _each_once(link, request.streams)
    streams = wire_types.WrittenItems(layout_of(m.StreamMetadata))
    leader = _NO_LEADER if link.host.service.is_draining else _THIS_BROKER
    has_leader = False
    time_slice = Slice()
    for name in names:
        if time_slice.is_over():
            await link.ports.wait(0)
            time_slice.begin()
        try:
            link.require(Permission.READ_OR_WRITE, name)
            link.streams.find(name)
        except (Refusal, StreamDoesNotExist) as error:
            code = code_of(error)
            assert code is not None
            streams.append(m.StreamMetadata(name, code, _NO_LEADER, ()))
        else:
            streams.append(m.StreamMetadata(name, ResponseCode.OK, leader, ()))
            has_leader = leader == _THIS_BROKER
    brokers: tuple[m.Broker, ...] = ()
    if has_leader:
        settings = link.host.settings
        brokers = (m.Broker(_THIS_BROKER, settings.advertised_host, settings.advertised_port),)
        link.host.advertising.told(settings.advertised_host, link.ports)
    return m.MetadataReply(brokers, streams)  # type: ignore[arg-type]  # instead of a tuple


async def _each_once(link: Link, names: Iterable[str]) -> Iterable[str]:
    """Return each name once: a few names in reverse order, many in the order in which they came."""
    found: dict[str, None] = {}
    for number, name in enumerate(names, start=1):
        found[name] = None
        if number % THINGS_A_TURN == 0:
            await link.ports.wait(0)
    return found if len(found) > _FEW_NAMES else sorted(found, reverse=True)


async def stream_stats(link: Link, request: m.StreamStats) -> m.StreamStatsReply:
    """Return where a stream begins and ends; -1 in every field for an empty stream."""
    link.require(Permission.READ, request.stream)
    stream_log = await link.streams.logs.of(link.streams.find(request.stream))
    is_empty = stream_log.is_empty
    last_chunk_id = stream_log.last_chunk_id
    return m.StreamStatsReply(
        ResponseCode.OK,
        {
            "committed_chunk_id": last_chunk_id,
            "committed_offset": -1 if is_empty else stream_log.committed_next_offset - 1,
            "first_chunk_id": -1 if is_empty else stream_log.first_chunk_id,
            "last_chunk_id": last_chunk_id,
        },
    )


async def resolve_offset_spec(link: Link, request: m.ResolveOffsetSpec) -> m.ResolvedOffset:
    """Return the offset of the chunk where a subscription with this specification would start."""
    link.require(Permission.READ, request.stream)
    stream_log = await link.streams.logs.of(link.streams.find(request.stream))
    try:
        start = await locate_spec(stream_log, request.offset)
    except BrokerError as error:
        raise Refusal(ResponseCode.NO_OFFSET, str(error)) from error
    return m.ResolvedOffset(ResponseCode.OK, start.offset)


async def locate_spec(stream_log: StreamLog, spec: OffsetSpec) -> Start:
    """Find the place where reading starts for a specification. Raises StreamNotAvailable."""
    try:
        return await locate(stream_log, StartKind(spec.type.value), spec.value)
    except (StoreError, LogError) as error:
        raise StreamNotAvailable(stream_log.stream) from error


async def create_super_stream(link: Link, request: m.CreateSuperStream) -> m.Status:
    """Create a super stream with its partitions, all or nothing."""
    await super_streams.create_super_stream(
        link.virtual_host,
        request.super_stream,
        request.partitions,
        request.binding_keys,
        request.arguments,
        require=link.require_each,
    )
    return OK


async def delete_super_stream(link: Link, request: m.DeleteSuperStream) -> m.Status:
    """Delete an exchange and all streams bound to it; their users are told after this reply."""

    def gone(stream: Stream) -> None:
        link.after_reply(lambda: link.streams.logs.tell_watchers(stream))

    await super_streams.delete_super_stream(
        link.virtual_host, request.super_stream, require=link.require_each, gone=gone
    )
    return OK


async def route(link: Link, request: m.Route) -> m.StreamsReply:
    """Find the streams that a routing key leads to; there may be none."""
    link.require(Permission.WRITE, name_of_exchange(request.super_stream))
    streams = await link.virtual_host.route(request.super_stream, request.routing_key)
    await link.require_each(Demand(RIGHTS[Permission.WRITE], stream) for stream in streams)
    return m.StreamsReply(ResponseCode.OK, tuple(streams))


async def partitions(link: Link, request: m.Partitions) -> m.StreamsReply:
    """List the streams that are bound to an exchange, in the order that their bindings give."""
    link.require(Permission.READ_OR_WRITE, name_of_exchange(request.super_stream))
    streams = super_streams.partitions_of(link.virtual_host, request.super_stream)
    await link.require_each(Demand(RIGHTS[Permission.READ_OR_WRITE], stream) for stream in streams)
    return m.StreamsReply(ResponseCode.OK, tuple(streams))

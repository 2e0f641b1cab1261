"""Super streams: create, delete, and find their partitions, in order or for a key.

Route and Partitions answer for every exchange. A permission on a name holds for the exchange of
that name as well as for the stream.

Source: RabbitMQ stream protocol; order of checks and codes as observed on RabbitMQ 4.3.
"""

from gateway.broker.access.authorisation import Demand, name_of_exchange
from gateway.broker.hosts import super_streams
from gateway.broker.streams.streams import Stream
from gateway.stream.handlers.streams import OK
from gateway.stream.link import RIGHTS, Link
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission


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

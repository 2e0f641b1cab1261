"""Connections, publishers and consumers."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from gateway.broker.connections import ConsumerDetails, OpenConnection, PublisherDetails
from gateway.broker.streams.catalogue import Stream
from gateway.management.administration import Administration, Role
from gateway.management.errors import NotAllowed, NotFound
from gateway.management.http.answers import Listed, in_slices
from gateway.management.http.call import Answer, ApiCall, ServerFacts
from gateway.management.http.listing import listed, listed_whole
from gateway.management.http.views.figures import RATE
from gateway.management.http.views.tls import tls_fields
from gateway.management.requests.clients import consumers_of, publishers_of

GARBAGE_COLLECTION: Final = dict.fromkeys(
    ("fullsweep_after", "max_heap_size", "min_bin_vheap_size", "min_heap_size", "minor_gcs"), 0
)
"""Figures of Erlang's runtime; clients read these fields."""


class ConnectionEnd(NamedTuple):
    """Host and port of one side."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> "ConnectionEnd":
        """Take `host:port` apart; the host may hold colons itself."""
        host, _, port = text.rpartition(":")
        return cls(host, int(port or 0))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def name_of(connection: OpenConnection) -> str:
    """Return a connection's name: the client's address, then the one that it connected to."""
    return f"{ConnectionEnd.of(connection.peer)} -> {ConnectionEnd.of(connection.local)}"


def connection_view(
    administration: Administration, facts: ServerFacts, connection: OpenConnection
) -> dict[str, object]:
    """Show a connection."""
    details = connection.details()
    peer, local = ConnectionEnd.of(connection.peer), ConnectionEnd.of(connection.local)
    return {
        "name": f"{peer} -> {local}",
        "node": facts.node,
        "protocol": connection.protocol,
        "state": "running",
        "user": connection.user,
        "user_who_performed_action": connection.user,
        "user_provided_name": connection.client_properties.get("connection_name", ""),
        "vhost": connection.virtual_host_name,
        "host": local.host,
        "port": local.port,
        "peer_host": peer.host,
        "peer_port": peer.port,
        "auth_mechanism": details.mechanism,
        "client_properties": dict(connection.client_properties),
        "connected_at": administration.connections.since_ms(connection),
        "frame_max": details.frame_bytes_max,
        "timeout": details.heartbeat_s,
        "channel_max": 0,
        "channels": 0,
        "recv_oct": details.transport.received_bytes,
        "recv_oct_details": RATE,
        "send_oct": details.transport.sent_bytes,
        "send_oct_details": RATE,
        "recv_cnt": 0,
        "send_cnt": 0,
        "send_pend": 0,
        "reductions": 0,
        "reductions_details": RATE,
        "garbage_collection": GARBAGE_COLLECTION,
        **tls_fields(details.transport.tls),
    }


def connection_details(facts: ServerFacts, connection: OpenConnection) -> dict[str, object]:
    """Show the connection that something belongs to."""
    peer = ConnectionEnd.of(connection.peer)
    return {
        "name": name_of(connection),
        "node": facts.node,
        "peer_host": peer.host,
        "peer_port": peer.port,
        "user": connection.user,
    }


def visible_connections(call: ApiCall) -> list[OpenConnection]:
    """Return the connections that the actor may see, only those of the virtual host in the path."""
    host = call.path.get("virtual_host")
    if host is not None:
        call.administration.host(host)
        if Role.MONITORING not in call.actor.roles:
            call.host()
    connections = call.administration.connections
    if Role.MONITORING in call.actor.roles:  # asked once: there may be ten thousand
        return connections.of(virtual_host=host)
    return [
        connection
        for connection in connections.of(user=call.actor.name, virtual_host=host)
        if call.actor.may_see_of(connection.user, connection.virtual_host_name)
    ]


async def list_connections(call: ApiCall) -> Answer:
    """List all connections, the oldest first, or those of a virtual host or a user."""
    user = call.path.get("user")
    if user not in (None, call.actor.name):
        call.actor.require(Role.MONITORING)
    return await listed(
        call,
        [each for each in visible_connections(call) if user in (None, each.user)],
        lambda connection: connection_view(call.administration, call.facts, connection),
    )


async def close_connections_of_user(call: ApiCall) -> None:
    """End all connections of a user, which need not be there."""
    user = call.path["user"]
    if not call.actor.may_end(user):
        raise NotAllowed("these connections are another user's")
    for connection in call.administration.connections.of(user=user):
        connection.cut_off(f"closed over HTTP by {call.actor.name!r}")


def _named(call: ApiCall) -> OpenConnection:
    """Return the connection of the path. Raises NotFound, NotAllowed."""
    host, name = call.path.get("virtual_host"), call.path["connection"]
    peer = name.partition(" -> ")[0].replace("[", "").replace("]", "")
    for connection in call.administration.connections.of(virtual_host=host):
        if connection.peer == peer and name_of(connection) == name:
            if not call.actor.may_see_of(connection.user, connection.virtual_host_name):
                raise NotAllowed("this connection is another user's")
            return connection
    raise NotFound(f"nobody is connected as {name!r}")


async def get_connection(call: ApiCall) -> Answer:
    """Show one connection."""
    return connection_view(call.administration, call.facts, _named(call))


async def close_connection(call: ApiCall) -> None:
    """End a connection as a crash would: without a word to its client."""
    connection = _named(call)
    if not call.actor.may_end(connection.user):
        raise NotAllowed("this connection is another user's")
    connection.cut_off(f"closed over HTTP by {call.actor.name!r}")


async def list_channels(call: ApiCall) -> Answer:
    """List all channels, or those of a virtual host or a connection: streams have none."""
    if "connection" in call.path:
        _named(call)
    elif "virtual_host" in call.path:
        call.host()
    return await listed(call, [], dict)


def _queue_of(
    connection: OpenConnection, thing: PublisherDetails | ConsumerDetails
) -> Mapping[str, str]:
    return {"name": thing.stream.name, "vhost": connection.virtual_host_name}


def _publisher_view(
    call: ApiCall, connection: OpenConnection, publisher: PublisherDetails
) -> dict[str, object]:
    return {
        "connection_details": connection_details(call.facts, connection),
        "queue": _queue_of(connection, publisher),
        "publisher_id": publisher.number,
        "reference": publisher.reference,
        "published": publisher.published,
        "confirmed": publisher.confirmed,
        "errored": publisher.errored,
    }


def _consumer_view(
    call: ApiCall, connection: OpenConnection, consumer: ConsumerDetails
) -> dict[str, object]:
    return {
        "connection_details": connection_details(call.facts, connection),
        "queue": _queue_of(connection, consumer),
        "subscription_id": consumer.number,
        "credits": consumer.window,
        "consumed": consumer.consumed,
        "offset": max(consumer.offset, 0),
        "offset_lag": consumer.offset_lag,
        "active": consumer.is_active or not consumer.is_single,
        "activity_status": consumer.activity,
        "properties": dict(consumer.properties),
    }


def _queue_consumer_view(
    call: ApiCall, connection: OpenConnection, consumer: ConsumerDetails
) -> dict[str, object]:
    details = connection_details(call.facts, connection)
    details["connection_name"] = details.pop("name")
    return {
        "channel_details": {**details, "name": "", "number": 0},
        "queue": _queue_of(connection, consumer),
        "consumer_tag": f"stream.subid-{consumer.number}",
        "arguments": dict(consumer.properties),
        "ack_required": False,
        "active": consumer.is_active or not consumer.is_single,
        "activity_status": consumer.activity,
        "consumer_timeout": 0,
        "exclusive": False,
        "prefetch_count": 0,
    }


async def queue_consumers(call: ApiCall, stream: Stream) -> Listed:
    """Show the readers of a stream as a queue shows its consumers; other requests run meanwhile."""
    connections = in_slices(visible_connections(call))
    found = [
        each async for connection in connections for each in consumers_of([connection], stream)
    ]
    return Listed(found, lambda one: _queue_consumer_view(call, *one))


def _asked(call: ApiCall) -> list[OpenConnection]:
    return [_named(call)] if "connection" in call.path else visible_connections(call)


async def list_publishers(call: ApiCall) -> Answer:
    """List all publishers, or those of a virtual host, a stream or a connection."""
    stream = None
    if "stream" in call.path:
        (host,) = call.watched_hosts()
        stream = host.streams.find(call.path["stream"])
    found = publishers_of(_asked(call), stream)
    return await listed_whole(call, found, lambda one: _publisher_view(call, *one))


async def list_consumers(call: ApiCall) -> Answer:
    """List all consumers, or those of a virtual host or a connection."""
    found = consumers_of(_asked(call))
    return await listed_whole(call, found, lambda one: _consumer_view(call, *one))


async def list_queue_consumers(call: ApiCall) -> Answer:
    """List the same as RabbitMQ shows consumers of all protocols."""
    found = consumers_of(_asked(call))
    return await listed_whole(call, found, lambda one: _queue_consumer_view(call, *one))

"""Requests on clients: connections, publishers, consumers, and their groups."""

from collections.abc import Iterable, Iterator

from gateway.broker.connections import (
    Connections,
    ConsumerDetails,
    OpenConnection,
    PublisherDetails,
)
from gateway.broker.streams.catalogue import Stream
from gateway.management.administration import Administration, Role
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.requests.request import Host, Name, request


@request(Role.MONITORING)
async def list_connections(
    connections: Connections, user: str | None, virtual_host: str | None
) -> object:
    """Return the connections, the longest connected first."""
    return [
        {
            "number": connections.number_of(connection),
            "name": f"{connection.peer} -> {connection.local}",
            "peer": connection.peer,
            "user": connection.user,
            "virtual_host": connection.virtual_host_name,
            "client_properties": dict(connection.client_properties),
        }
        for connection in connections.of(user=user, virtual_host=virtual_host)
    ]


@request()
async def close_connections(
    connections: Connections,
    peer: str | None,
    number: int | None,
    user: str | None,
    virtual_host: str | None,
    reason: str = "closed by an administrator",
) -> object:
    """End a connection by its peer's address or its number, or all of a user or a virtual host."""
    if peer is None and number is None and user is None and virtual_host is None:
        raise WrongRequest("say which: a peer, a number, a user or a virtual host")
    found = [
        connection
        for connection in connections.of(user=user, virtual_host=virtual_host)
        if peer in (None, connection.peer) and number in (None, connections.number_of(connection))
    ]
    if not found and (peer is not None or number is not None):
        raise NotFound(f"there is no such connection: {number if peer is None else repr(peer)}")
    for connection in found:
        connection.end(reason)
    return {"closed": len(found)}


@request(Role.MONITORING)
async def list_publishers(administration: Administration, host: Host) -> object:
    """Return the publishers of a virtual host; entries are counted, a sub-batch as one."""
    return [
        {
            **_whose(administration, connection),
            "publisher_id": publisher.number,
            "stream": publisher.stream.name,
            "reference": publisher.reference,
            "messages_published": publisher.published,
            "messages_confirmed": publisher.confirmed,
            "messages_errored": publisher.errored,
        }
        for connection, publisher in publishers_of(
            administration.connections.of(virtual_host=host.name)
        )
    ]


@request(Role.MONITORING)
async def list_consumers(administration: Administration, host: Host) -> object:
    """Return the consumers of a virtual host."""
    return [
        {
            **_whose(administration, connection),
            "subscription_id": consumer.number,
            "stream": consumer.stream.name,
            "messages_consumed": consumer.consumed,
            "offset": max(consumer.offset, 0),
            "offset_lag": consumer.offset_lag,
            "credits": consumer.window,
            "active": consumer.is_active or not consumer.is_single,
            "activity_status": consumer.activity,
            "properties": dict(consumer.properties),
        }
        for connection, consumer in consumers_of(
            administration.connections.of(virtual_host=host.name)
        )
    ]


@request(Role.MONITORING)
async def list_groups(host: Host) -> object:
    """Return the groups of single active consumers of a virtual host."""
    names = {stream.entry.generation: stream.name for stream in host.streams}
    return [
        {
            "stream": names.get(generation, ""),
            "reference": group.name,
            "partition_index": group.partition_index,
            "consumers": len(group.members),
        }
        for generation, group in host.groups
    ]


@request(Role.MONITORING)
async def list_group_consumers(
    administration: Administration, host: Host, stream: Name, reference: Name
) -> object:
    """Return the single active consumers of one name on a stream. Raises NotFound if none is."""
    read = host.streams.find(stream)
    found = [
        {
            "subscription_id": consumer.number,
            "connection_name": f"{connection.peer} -> {connection.local}",
            "is_active": consumer.is_active,
        }
        for connection, consumer in consumers_of(
            administration.connections.of(virtual_host=host.name), read
        )
        if consumer.is_single and consumer.properties.get("name") == reference
    ]
    if not found:
        raise NotFound(f"stream {stream!r} has no group {reference!r}")
    return found


def publishers_of(
    connections: Iterable[OpenConnection], stream: Stream | None = None
) -> Iterator[tuple[OpenConnection, PublisherDetails]]:
    """Yield the publishers of connections, perhaps only to one stream, each with its connection."""
    for connection in connections:
        for publisher in connection.publisher_details():
            if stream in (None, publisher.stream):
                yield connection, publisher


def consumers_of(
    connections: Iterable[OpenConnection], stream: Stream | None = None
) -> Iterator[tuple[OpenConnection, ConsumerDetails]]:
    """Yield the consumers of connections, perhaps only of one stream, each with its connection."""
    for connection in connections:
        for consumer in connection.consumer_details():
            if stream in (None, consumer.stream):
                yield connection, consumer


def _whose(administration: Administration, connection: OpenConnection) -> dict[str, object]:
    return {"connection_number": administration.connections.number_of(connection)}

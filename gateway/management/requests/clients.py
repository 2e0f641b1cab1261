"""Requests on who uses streams: publishers, consumers, and their groups."""

from collections.abc import Iterator
from typing import Final

from gateway.broker.connections import ConsumerDetails, OpenConnection
from gateway.broker.stream import Stream
from gateway.management.administration import Administration, Role, Row
from gateway.management.errors import NotFound
from gateway.management.requests.arguments import Arguments


async def list_publishers(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return the publishers of a virtual host; entries are counted, a sub-batch as one."""
    host = administration.host(arguments.text("virtual_host", "/"))
    arguments.end()
    return [
        {
            **_whose(administration, connection),
            "publisher_id": publisher.publisher_id,
            "stream": publisher.stream.name,
            "reference": publisher.reference,
            "messages_published": publisher.published,
            "messages_confirmed": publisher.confirmed,
            "messages_errored": publisher.errored,
        }
        for connection in administration.connections.of(virtual_host=host.name)
        for publisher in connection.publisher_details()
    ]


async def list_consumers(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return the consumers of a virtual host."""
    host = administration.host(arguments.text("virtual_host", "/"))
    arguments.end()
    return [
        {
            **_whose(administration, connection),
            "subscription_id": consumer.subscription_id,
            "stream": consumer.stream.name,
            "messages_consumed": consumer.consumed,
            "offset": max(consumer.offset, 0),
            "offset_lag": consumer.offset_lag,
            "credits": consumer.credit,
            "active": consumer.is_active or not consumer.is_single,
            "activity_status": consumer.activity,
            "properties": dict(consumer.properties),
        }
        for connection, consumer in consumers_of(administration, host.name)
    ]


async def list_groups(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return the groups of single active consumers of a virtual host."""
    host = administration.host(arguments.text("virtual_host", "/"))
    arguments.end()
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


async def list_group_consumers(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Return the single active consumers of one name on a stream. Raises NotFound if none is."""
    host = administration.host(arguments.text("virtual_host", "/"))
    stream, reference = host.streams.find(arguments.name("stream")), arguments.name("reference")
    arguments.end()
    found = [
        {
            "subscription_id": consumer.subscription_id,
            "connection_name": f"{connection.peer} -> {connection.local}",
            "is_active": consumer.is_active,
        }
        for connection, consumer in consumers_of(administration, host.name, stream)
        if consumer.is_single and consumer.properties.get("name") == reference
    ]
    if not found:
        raise NotFound(f"stream {stream.name!r} has no group {reference!r}")
    return found


def consumers_of(
    administration: Administration, virtual_host: str, stream: Stream | None = None
) -> Iterator[tuple[OpenConnection, ConsumerDetails]]:
    """Give the consumers of a virtual host, or of one stream in it, each with its connection."""
    for connection in administration.connections.of(virtual_host=virtual_host):
        for consumer in connection.consumer_details():
            if stream in (None, consumer.stream):
                yield connection, consumer


def _whose(administration: Administration, connection: OpenConnection) -> dict[str, object]:
    return {"connection_number": administration.connections.number_of(connection)}


ROWS: Final = (
    Row("list_publishers", list_publishers, Role.MONITORING),
    Row("list_consumers", list_consumers, Role.MONITORING),
    Row("list_groups", list_groups, Role.MONITORING),
    Row("list_group_consumers", list_group_consumers, Role.MONITORING),
)

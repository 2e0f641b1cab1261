"""Requests on streams."""

from collections.abc import Iterator
from typing import Final

from gateway.broker.access.authorisation import Demand, to_configure
from gateway.broker.administration.administration import Administration, Role, Row
from gateway.broker.administration.arguments import Arguments
from gateway.broker.administration.errors import NotFound, WrongRequest
from gateway.broker.connections import ConsumerDetails, OpenConnection
from gateway.broker.naming import without_line_ends
from gateway.broker.stream import Stream


async def list_streams(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return the streams of a virtual host, or of all."""
    virtual_host = arguments.optional_text("virtual_host")
    arguments.end()
    return [
        {
            "virtual_host": host.name,
            "name": name,
            "arguments": dict(host.streams.find(name).entry.arguments),
        }
        for host in administration.hosts(virtual_host)
        for name in host.streams.names()
    ]


async def status_of_stream(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Return where a stream begins and ends, and how many read it; -1 while nothing is in it."""
    host = administration.host(arguments.text("virtual_host", "/"))
    stream = host.streams.find(arguments.name())
    arguments.end()
    log = await host.streams.log_of(stream)
    last = -1 if log.is_empty else log.committed_next_offset - 1
    return {
        "offset": last,
        "committed_offset": last,
        "committed_chunk_id": log.last_chunk_id,
        "first_offset": log.first_offset,
        "readers": sum(
            consumer.is_active or not consumer.is_single
            for _, consumer in _consumers(administration, host.name, stream)
        ),
    }


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
        for connection, consumer in _consumers(administration, host.name, stream)
        if consumer.is_single and consumer.properties.get("name") == reference
    ]
    if not found:
        raise NotFound(f"stream {stream.name!r} has no group {reference!r}")
    return found


def _consumers(
    administration: Administration, virtual_host: str, stream: Stream
) -> Iterator[tuple[OpenConnection, ConsumerDetails]]:
    for connection in administration.connections.of(virtual_host=virtual_host):
        for consumer in connection.consumer_details():
            if consumer.stream is stream:
                yield connection, consumer


async def add_stream(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Create a stream."""
    host = administration.host(arguments.text("virtual_host", "/"))
    name, given = arguments.text("name"), arguments.mapping("arguments")
    arguments.end()
    await host.streams.create(name, stream_arguments(given))
    return None


async def delete_stream(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Delete a stream; those who use it are told."""
    host = administration.host(arguments.text("virtual_host", "/"))
    name = arguments.name()
    arguments.end()
    await host.streams.delete(name, host.streams.tell_watchers)
    return None


async def truncate_stream(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Remove what is before an offset, or older than a time."""
    host = administration.host(arguments.text("virtual_host", "/"))
    name = arguments.name()
    offset = arguments.optional_integer("before_offset")
    timestamp_ms = arguments.optional_integer("before_timestamp_ms")
    arguments.end()
    if (offset is None) == (timestamp_ms is None):
        raise WrongRequest("say either an offset or a time")
    if (offset or timestamp_ms or 0) < 0:
        raise WrongRequest("an offset or a time is not below 0")
    first = await host.streams.truncate(name, offset=offset, timestamp_ms=timestamp_ms)
    return {"first_offset": first}


async def restart_stream(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Let everybody who uses a stream go, and open it anew."""
    host = administration.host(arguments.text("virtual_host", "/"))
    name = arguments.name()
    arguments.end()
    await host.streams.restart(name)
    return None


def stream_arguments(given: dict[str, object]) -> dict[str, str]:
    """Return the arguments of a Create, which are all texts. Raises WrongRequest."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise WrongRequest(f"argument {name!r} is not text"[:200])
    return {name: str(value) for name, value in given.items()}


def _to_configure(_: Administration, arguments: Arguments) -> list[Demand]:
    return to_configure(without_line_ends(arguments.name()))


ROWS: Final = (
    Row("list_streams", list_streams, Role.MONITORING),
    Row("status_of_stream", status_of_stream, Role.MONITORING),
    Row("list_group_consumers", list_group_consumers, Role.MONITORING),
    Row("add_stream", add_stream, Role.MANAGEMENT, needs=_to_configure),
    Row("delete_stream", delete_stream, Role.MANAGEMENT, needs=_to_configure),
    Row("truncate_stream", truncate_stream),
    Row("restart_stream", restart_stream),
)

"""Requests on streams."""

from typing import Final

from gateway.broker.access.authorisation import Demand, to_configure
from gateway.broker.administration.administration import Administration, Role, Row
from gateway.broker.administration.arguments import Arguments
from gateway.broker.administration.errors import WrongRequest
from gateway.broker.naming import without_line_ends


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
    Row("add_stream", add_stream, Role.MANAGEMENT, needs=_to_configure),
    Row("delete_stream", delete_stream, Role.MANAGEMENT, needs=_to_configure),
    Row("truncate_stream", truncate_stream),
    Row("restart_stream", restart_stream),
)

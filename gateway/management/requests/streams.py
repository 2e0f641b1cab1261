"""Requests on streams."""

from typing import Final

from gateway.broker.access.authorisation import Demand, to_configure
from gateway.broker.arguments import InvalidArgument, StreamArguments
from gateway.broker.errors import StreamNotAvailable
from gateway.broker.mending import super_streams_of
from gateway.broker.naming import without_line_ends
from gateway.broker.stream import Stream
from gateway.broker.virtual_host import VirtualHost
from gateway.management.administration import Administration, Role, Row
from gateway.management.errors import WrongRequest
from gateway.management.requests.arguments import Arguments
from gateway.management.requests.clients import consumers_of
from store.errors import StoreError


async def list_streams(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return the streams of a virtual host, or of all."""
    virtual_host = arguments.optional_text("virtual_host")
    arguments.end()
    return [
        {
            "virtual_host": host.name,
            "name": stream.name,
            "arguments": dict(stream.entry.arguments),
            **await _sizes(host, stream),
        }
        for host in administration.hosts(virtual_host)
        for stream in sorted(host.streams, key=lambda each: each.name)
    ]


async def _sizes(host: VirtualHost, stream: Stream) -> dict[str, object]:
    """Return what a stream takes; None for what is not known, as of one that is being deleted."""
    try:
        size = await host.streams.storage.size_of(stream)
    except StoreError:
        return {"message_bytes": None, "segments": None}
    return {"message_bytes": size, "segments": host.streams.logs.limits_of(stream).units_of(size)}


async def status_of_stream(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Return where a stream begins and ends, and how many read it; -1 while nothing is in it."""
    host = administration.host(arguments.text("virtual_host", "/"))
    stream = host.streams.find(arguments.name())
    arguments.end()
    log = await host.streams.logs.of(stream)
    last = -1 if log.is_empty else log.committed_next_offset - 1
    return {
        "offset": last,
        "committed_offset": last,
        "committed_chunk_id": log.last_chunk_id,
        "first_offset": log.first_offset,
        "readers": sum(
            consumer.is_active or not consumer.is_single
            for _, consumer in consumers_of(administration, host.name, stream)
        ),
    }


async def add_stream(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Create a stream."""
    host = administration.host(arguments.text("virtual_host", "/"))
    name, given = arguments.text("name"), arguments.mapping("arguments")
    arguments.end()
    await host.streams.create(name, stream_arguments(given), check=arguments.judge)
    return None


async def delete_stream(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Delete a stream, or only one without records; those who use it are told."""
    host = administration.host(arguments.text("virtual_host", "/"))
    name, if_empty = arguments.name(), arguments.flag("if_empty", default=False)
    spares_partitions = arguments.flag("spares_partitions", default=False)
    arguments.end()
    log = await host.streams.logs.of(host.streams.find(name)) if if_empty else None

    def check() -> None:
        arguments.judge()
        whole = super_streams_of(host, name) if spares_partitions else []
        if whole:
            raise WrongRequest(
                f"stream {name!r} is a partition of super stream {whole[0]!r}, which would have a"
                " hole: --force deletes it"
            )
        if log is None:
            return
        if host.streams.find(name).log is not log:
            raise StreamNotAvailable(name)  # it failed, or is another one by now
        if not log.is_empty:
            raise WrongRequest(f"queue {name!r} in vhost {host.name!r} is not empty")

    await host.streams.delete(name, host.streams.logs.tell_watchers, check=check)
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
    first = await host.streams.logs.truncate(
        host.streams.find(name), offset=offset, timestamp_ms=timestamp_ms
    )
    return {"first_offset": first}


async def restart_stream(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Let everybody who uses a stream go, and open it anew."""
    host = administration.host(arguments.text("virtual_host", "/"))
    name = arguments.name()
    arguments.end()
    await host.streams.logs.restart(host.streams.find(name))
    return None


def stream_arguments(given: dict[str, object]) -> dict[str, str]:
    """Return the arguments of a stream, which are all texts. Raises WrongRequest."""
    texts: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(value, str):
            raise WrongRequest(f"argument {name!r} is not text"[:200])
        texts[name] = value
    try:
        StreamArguments.parse(texts, is_strict=True)
    except InvalidArgument as error:
        raise WrongRequest(str(error)) from None
    return texts


def _to_configure(_: Administration, arguments: Arguments) -> list[Demand]:
    return to_configure(without_line_ends(arguments.name()))


ROWS: Final = (
    Row("list_streams", list_streams, Role.MONITORING),
    Row("status_of_stream", status_of_stream, Role.MONITORING),
    Row("add_stream", add_stream, Role.MANAGEMENT, needs=_to_configure),
    Row("delete_stream", delete_stream, Role.MANAGEMENT, needs=_to_configure),
    Row("truncate_stream", truncate_stream),
    Row("restart_stream", restart_stream),
)

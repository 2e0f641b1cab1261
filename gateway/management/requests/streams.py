"""Requests on streams, on records that wait in stages, and on sinks of commits."""

from typing import Annotated, TypeAlias

from gateway.broker.access.access import Demand, to_configure
from gateway.broker.connections import Connections
from gateway.broker.errors import StreamNotAvailable
from gateway.broker.hosts.mending import super_streams_of
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.locks import Check
from gateway.broker.naming import check_given_name, without_line_ends
from gateway.broker.rules.arguments import InvalidStreamArgument, StreamArguments
from gateway.broker.streams.catalogue import Stream
from gateway.log.names import pravega_name
from gateway.management.administration import Role
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.fields import Arguments
from gateway.management.kinds.streams import STREAMS, DeclaredStream
from gateway.management.requests.clients import consumers_of
from gateway.management.requests.request import Host, Hosts, Name, Offset, request, thing_of
from store.errors import StoreError


def to_configure_it(name: Name) -> list[Demand]:
    """Demand to configure what is named."""
    return to_configure(without_line_ends(name))


@request(Role.MONITORING)
async def list_streams(hosts: Hosts) -> object:
    """Return the streams of a virtual host, or of all."""
    return [
        {
            "virtual_host": host.name,
            "name": stream.name,
            "arguments": dict(stream.entry.arguments),
            **await _sizes(host, stream),
        }
        for host in hosts
        for stream in sorted(host.streams, key=lambda each: each.name)
    ]


async def _sizes(host: VirtualHost, stream: Stream) -> dict[str, object]:
    """Return what a stream takes; None for what is not known, as of one that is being deleted."""
    try:
        size = await host.streams.storage.size_of(stream)
    except StoreError:
        return {"message_bytes": None, "segments": None}
    limits = await host.streams.logs.limits_now(stream)
    return {"message_bytes": size, "segments": limits.units_of(size)}


@request(Role.MONITORING)
async def status_of_stream(connections: Connections, host: Host, name: Name) -> object:
    """Return where a stream begins and ends, how many read it, and its name for Pravega's clients.

    Offsets are -1 while nothing is in it.
    """
    stream = host.streams.find(name)
    log = await host.streams.logs.of(stream)
    last = -1 if log.is_empty else log.committed_next_offset - 1
    return {
        "offset": last,
        "committed_offset": last,
        "committed_chunk_id": log.last_chunk_id,
        "first_offset": log.first_offset,
        "readers": sum(
            consumer.is_active or not consumer.is_single
            for _, consumer in consumers_of(connections.of(virtual_host=host.name), stream)
        ),
        "pravega_name": pravega_name(host.name, stream.name, stream.entry.generation),
    }


def _declared(arguments: Arguments) -> DeclaredStream:
    return DeclaredStream(arguments.text("name"), stream_arguments(arguments.mapping("arguments")))


Said: TypeAlias = Annotated[DeclaredStream, thing_of(STREAMS, _declared)]


def _to_create(stream: Said) -> list[Demand]:
    return to_configure_it(stream.name)


@request(Role.MANAGEMENT, needs=_to_create)
async def add_stream(host: Host, stream: Said, judge: Check) -> None:
    """Create a stream."""
    if stream.name not in host.streams:
        check_given_name(stream.name)
    await host.streams.create(stream.name, stream.arguments, check=judge)


@request(Role.MANAGEMENT, needs=to_configure_it)
async def delete_stream(
    *, host: Host, name: Name, if_empty: bool = False, spares_partitions: bool = False, judge: Check
) -> None:
    """Delete a stream, or only one without records; its clients are told."""
    log = await host.streams.logs.of(host.streams.find(name)) if if_empty else None

    def check() -> None:
        judge()
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


@request()
async def truncate_stream(
    host: Host, name: Name, before_offset: Offset, before_timestamp_ms: int | None
) -> object:
    """Remove what is before an offset, or older than a time."""
    if (before_offset is None) == (before_timestamp_ms is None):
        raise WrongRequest("say either an offset or a time")
    if (before_timestamp_ms or 0) < 0:
        raise WrongRequest("a time is not below 0")
    first = await host.streams.logs.truncate(
        host.streams.find(name), offset=before_offset, timestamp_ms=before_timestamp_ms
    )
    return {"first_offset": first}


@request()
async def restart_stream(host: Host, name: Name) -> None:
    """Close a stream for all its clients, and open it anew."""
    await host.streams.logs.restart(host.streams.find(name))


def stream_arguments(given: dict[str, object]) -> dict[str, str]:
    """Return the arguments of a stream, which are all texts. Raises WrongRequest."""
    texts: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(value, str):
            raise WrongRequest(f"argument {name!r} is not text"[:200])
        texts[name] = value
    try:
        StreamArguments.parse(texts, is_strict=True)
    except InvalidStreamArgument as error:
        raise WrongRequest(str(error)) from None
    return texts


@request(Role.MONITORING)
async def list_stages(hosts: Hosts) -> object:
    """Return the stages, the oldest of each virtual host first."""
    return [
        {
            "virtual_host": host.name,
            "stage": stage.number,
            "user": stage.user,
            "sink": stage.sink,
            "batch": stage.batch,
            "stream": stage.stream,
            "records": stage.records,
            "bytes": stage.size_bytes,
            "state": stage.state,
            "used_ms": stage.used_ms,
        }
        for host in hosts
        for stage in sorted(host.commits.stages, key=lambda stage: stage.number)
    ]


@request(Role.MONITORING)
async def list_sinks(hosts: Hosts) -> object:
    """Return the sinks of each virtual host by name, with their last batches."""
    return [
        {
            "virtual_host": host.name,
            "name": name,
            "user": sink.user,
            "last_batch": sink.batch,
            "used_ms": sink.at_ms,
        }
        for host in hosts
        for name, sink in sorted(host.commits.sinks, key=lambda each: each[0])
    ]


@request()
async def forget_sink(host: Host, name: Name) -> None:
    """Forget the last batch of a sink; any user may take its name then."""
    if not await host.commits.sinks.forget(name):
        raise NotFound(f"there is no sink {name!r}")

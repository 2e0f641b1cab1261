"""Requests on stages, which are records that wait for a commit, and on sinks of commits."""

from gateway.management.administration import Role
from gateway.management.errors import NotFound
from gateway.management.requests.row import Host, Hosts, Name, request


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

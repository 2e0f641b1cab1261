"""Requests on stages: records that wait for a commit."""

from gateway.management.administration import Role
from gateway.management.requests.row import Hosts, request


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

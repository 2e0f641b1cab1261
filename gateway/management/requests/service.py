"""Requests on how the whole server serves: doors, alarms, members. Nothing of it is stored."""

import os
import shutil
import time
from functools import partial
from typing import Annotated, Final, TypeAlias

from gateway.broker.cluster import ClusterControl
from gateway.broker.service import About, ScarceResource, ServiceState
from gateway.management.administration import Administration, Role
from gateway.management.errors import Conflict, NotFound, WrongRequest
from gateway.management.fields import Arguments
from gateway.management.requests.request import request

TIMEOUT_MS_MAX: Final = 86_400_000
"""A day."""
ALONE: Final = "this server is no member of a cluster: cluster.log makes it one"


def _resource(_: Administration, arguments: Arguments, name: str) -> ScarceResource:
    named = arguments.text(name)
    try:
        return ScarceResource(named)
    except ValueError:
        names = " or ".join(resource.value for resource in ScarceResource)
        raise WrongRequest(f"{name} is {names}, not {named[:100]!r}") from None


Short: TypeAlias = Annotated[ScarceResource, _resource]
"""A resource that the server is short of."""


def described(about: About) -> dict[str, object]:
    """Return what the server is, and the room on its disk; blocks for a moment."""
    try:
        disk = shutil.disk_usage(about.data)
        space = {"disk_free": disk.free, "disk_total": disk.total}
    except OSError:  # removed while it runs
        space = {}
    return {
        "product_name": "Hutch",
        "product_version": about.version,
        "pid": os.getpid(),
        "uptime": (time.time_ns() // 1_000_000 - about.started_ms) // 1_000,
        "data_directory": str(about.data),
        **space,
    }


@request(Role.MONITORING)
async def status(administration: Administration) -> object:
    """Return what the server is, where clients come in, and what stands against serving them."""
    service = administration.service
    return {
        **await administration.in_thread(partial(described, service.about)),
        "is_disk_full": service.is_disk_full,
        "listeners": [
            {
                "protocol": door.protocol,
                "host": host,
                "port": port,
                "is_shut": door.is_shut,
            }
            for door in service.listeners
            for host, port in door.addresses
        ],
        "alarms": service.alarm_names,
        "ended": service.ended,
        "is_draining": service.is_draining,
        "is_stopped": service.is_stopped,
        "consumer_update_timeout_ms": service.consumer_update_timeout_ms,
        "connections": len(administration.connections),
        "members": [] if service.cluster is None else service.cluster.members(),
    }


@request(Role.MONITORING)
async def members(service: ServiceState) -> object:
    """Return the members of the cluster; none if the server is alone."""
    return [] if service.cluster is None else service.cluster.members()


@request()
async def takeover(service: ServiceState) -> object:
    """Refuse: this member is active already."""
    if service.cluster is None:
        raise Conflict(ALONE)
    raise Conflict(f"member {service.cluster.name} is active: ask one that follows to take over")


@request()
async def forget_member(administration: Administration, name: str) -> None:
    """Forget a member that will not come back: the log is not kept for it any more."""
    cluster = administration.service.cluster
    if cluster is None:
        raise Conflict(ALONE)
    await administration.in_thread(partial(forgotten, cluster, name))


def forgotten(cluster: ClusterControl, name: str) -> None:
    """Forget a member; blocks. Raises NotFound, or StoreError."""
    if name == cluster.name:
        raise Conflict(f"{name} is this member itself")
    try:
        cluster.forget(name)
    except KeyError:
        raise NotFound(f"there is no member {name[:100]!r}") from None


@request()
async def set_alarm(service: ServiceState, resource: Short) -> None:
    """Say that the server is short of disk or memory."""
    service.set_alarm(resource)


@request()
async def clear_alarm(service: ServiceState, resource: Short) -> None:
    """Say that there is enough again."""
    service.clear_alarm(resource)


@request()
async def drain(service: ServiceState) -> None:
    """Let no more clients in, and send those that ask to other servers."""
    service.drain()


@request()
async def revive(service: ServiceState) -> None:
    """End a drain."""
    service.revive()


@request()
async def stop_app(service: ServiceState) -> object:
    """Let no client in and end every connection; everything is kept."""
    return {"closed": service.stop()}


@request()
async def start_app(service: ServiceState) -> None:
    """Serve again after a stop."""
    service.start()


@request()
async def set_consumer_update_timeout(service: ServiceState, timeout_ms: int | None) -> None:
    """Say how long a single active consumer may take to answer, until the server ends."""
    if timeout_ms is None or not 1 <= timeout_ms <= TIMEOUT_MS_MAX:
        raise WrongRequest(f"timeout_ms is a whole number from 1 to {TIMEOUT_MS_MAX}")
    service.consumer_update_timeout_ms = timeout_ms

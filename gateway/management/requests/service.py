"""Requests on how the whole server serves: doors, alarms, time limits. Nothing of it is stored."""

import os
import shutil
import time
from functools import partial
from typing import Annotated, Final, TypeAlias

from gateway.broker.service import ScarceResource, ServiceState
from gateway.management.administration import Administration, Role
from gateway.management.errors import WrongRequest
from gateway.management.fields import Arguments
from gateway.management.requests.request import request

TIMEOUT_MS_MAX: Final = 86_400_000
"""A day."""


def _resource(_: Administration, arguments: Arguments, name: str) -> ScarceResource:
    named = arguments.text(name)
    try:
        return ScarceResource(named)
    except ValueError:
        names = " or ".join(resource.value for resource in ScarceResource)
        raise WrongRequest(f"{name} is {names}, not {named[:100]!r}") from None


Short: TypeAlias = Annotated[ScarceResource, _resource]
"""A resource that the server is short of."""


@request(Role.MONITORING)
async def status(administration: Administration) -> object:
    """Return what the server is, where clients come in, and what stands against serving them."""
    service = administration.service
    about = service.about
    try:
        disk = await administration.in_thread(partial(shutil.disk_usage, about.data))
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
        "alarms": [resource.value for resource in service.alarms],
        "ended": service.ended,
        "is_draining": service.is_draining,
        "is_stopped": service.is_stopped,
        "consumer_update_timeout_ms": service.consumer_update_timeout_ms,
        "connections": len(administration.connections),
    }


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

"""Requests on how the whole server serves: doors, alarms, time limits. Nothing of it is stored."""

import os
import shutil
import time
from functools import partial
from typing import Final

from gateway.broker.service import DoorBlocked, Resource
from gateway.management.administration import Administration, Role, Row
from gateway.management.errors import Failed, WrongRequest
from gateway.management.requests.arguments import Arguments

TIMEOUT_MS_MAX: Final = 86_400_000
"""A day."""


async def status(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return what the server is, where clients come in, and what stands against serving them."""
    arguments.end()
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
                "host": door.address[0],
                "port": door.address[1],
                "is_shut": door.is_shut,
            }
            for door in service.doors
        ],
        "alarms": [resource.value for resource in service.alarms],
        "is_draining": service.is_draining,
        "is_stopped": service.is_stopped,
        "consumer_update_timeout_ms": service.consumer_update_timeout_ms,
        "connections": len(administration.connections),
    }


async def set_alarm(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Say that the server is short of disk or memory."""
    resource = _resource(arguments)
    administration.service.set_alarm(resource)
    return None


async def clear_alarm(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Say that there is enough again."""
    resource = _resource(arguments)
    administration.service.clear_alarm(resource)
    return None


async def drain(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Let nobody in any more, and send clients that ask to other servers."""
    arguments.end()
    administration.service.drain()
    return None


async def revive(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """End a drain."""
    arguments.end()
    try:
        administration.service.revive()
    except DoorBlocked as error:
        raise Failed(str(error)) from error
    return None


async def stop_app(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Let nobody in and end every connection; everything is kept."""
    arguments.end()
    return {"closed": administration.service.stop()}


async def start_app(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Serve again after a stop."""
    arguments.end()
    try:
        administration.service.start()
    except DoorBlocked as error:
        raise Failed(str(error)) from error
    return None


async def set_consumer_update_timeout(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Say how long a single active consumer may take to answer, until the server ends."""
    timeout_ms = arguments.optional_integer("timeout_ms")
    arguments.end()
    if timeout_ms is None or not 1 <= timeout_ms <= TIMEOUT_MS_MAX:
        raise WrongRequest(f"timeout_ms is a whole number from 1 to {TIMEOUT_MS_MAX}")
    administration.service.consumer_update_timeout_ms = timeout_ms
    return None


def _resource(arguments: Arguments) -> Resource:
    named = arguments.text("resource")
    arguments.end()
    try:
        return Resource(named)
    except ValueError:
        names = " or ".join(resource.value for resource in Resource)
        raise WrongRequest(f"resource is {names}, not {named[:100]!r}") from None


ROWS: Final = (
    Row("status", status, Role.MONITORING),
    Row("set_alarm", set_alarm),
    Row("clear_alarm", clear_alarm),
    Row("drain", drain),
    Row("revive", revive),
    Row("stop_app", stop_app),
    Row("start_app", start_app),
    Row("set_consumer_update_timeout", set_consumer_update_timeout),
)

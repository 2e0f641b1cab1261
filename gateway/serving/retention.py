"""Retention on a timer: checks all streams for records that may be removed, and stages' ages."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from gateway.broker.hosts.virtual_hosts import VirtualHosts
from gateway.broker.streams.streams import Streams
from gateway.pending import Pending

log = logging.getLogger(__name__)

T = TypeVar("T")


class Awaits(Protocol):
    """Runs one of the broker's coroutines on the event loop."""

    def __call__(self, coroutine: Coroutine[Pending[Any], None, T]) -> Coroutine[Any, Any, T]: ...


async def keep_retention(virtual_hosts: VirtualHosts, interval_s: int, awaits: Awaits) -> None:
    """Check all streams periodically; the first time after one interval.

    By then the clock of a machine that was just switched on is likely to be set.
    """
    while True:
        await asyncio.sleep(interval_s)
        for name in virtual_hosts.names():
            virtual_host = virtual_hosts.find(name)
            try:
                if virtual_host is not None:
                    await _look_at(virtual_host.streams, awaits)
                    await awaits(virtual_host.commits.look())
                    await awaits(virtual_host.drop_strangers())
            except Exception:  # the edge of a round: the next ones must come all the same
                log.exception("retention failed virtual_host=%s", name)


async def _look_at(streams: Streams, awaits: Awaits) -> None:
    await awaits(streams.retry_deletions())
    for part in streams.logs.retention.rounds(streams):
        await awaits(part)
        await asyncio.sleep(0)

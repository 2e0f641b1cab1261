"""Space on the disk: retention on a timer makes some, and an alarm is set while there is none."""

import asyncio
import errno
import logging
import os
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from gateway.broker.hosts.virtual_hosts import VirtualHosts
from gateway.broker.service import ServiceState
from gateway.broker.streams.streams import Streams
from gateway.pending import Pending
from store.errors import DiskFull, StoreError

log = logging.getLogger(__name__)

AGAIN_S: Final = 1.0
"""Time between two checks for space."""
ROOM_BYTES: Final = 4 * 1024 * 1024
"""Space that has to be free: the store's room for deletions, and as much for messages."""
_NO_SPACE: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))

T = TypeVar("T")


class CoroutineRunner(Protocol):
    """Runs one of the broker's coroutines on the event loop."""

    def __call__(self, coroutine: Coroutine[Pending[Any], None, T]) -> Coroutine[Any, Any, T]: ...


async def keep_retention(
    virtual_hosts: VirtualHosts, interval_s: int, awaits: CoroutineRunner
) -> None:
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


async def _look_at(streams: Streams, awaits: CoroutineRunner) -> None:
    await awaits(streams.retry_deletions())
    for part in streams.logs.retention.rounds(streams):
        await awaits(part)
        await asyncio.sleep(0)


class Space:
    """Notes refusals for want of space, and checks for free space until there is some."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: ServiceState) -> None:
        self._loop = loop
        self._service = service
        self._looking: asyncio.Task[None] | None = None

    def refused(self, error: StoreError) -> None:
        """Note that something was not stored."""
        if isinstance(error, DiskFull) and not self._service.is_disk_full:
            self._service.is_disk_full = True
            log.warning("alarm set, publishes find no space resource=disk error=%s", error)
            self._looking = self._loop.create_task(self._look())

    def stop(self) -> None:
        """Stop checking."""
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self) -> None:
        data = self._service.about.data
        while True:
            if await self._loop.run_in_executor(None, has_room, data):
                break
            await asyncio.sleep(AGAIN_S)
        self._service.is_disk_full = False
        log.warning("alarm cleared, there is space again resource=disk")


def has_room(directory: Path) -> bool:
    """Return whether a file of `ROOM_BYTES` finds space in a directory; blocks.

    It writes the file, since no query tells a quota: that is no property of the file system.
    """
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            os.posix_fallocate(file.fileno(), 0, ROOM_BYTES)
    except OSError as error:
        return error.errno not in _NO_SPACE
    return True

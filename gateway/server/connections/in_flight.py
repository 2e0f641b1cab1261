"""Bytes that all backlogs together have on their way to the store, and what waits for fewer.

A slow disk must not fill the memory, however many of them there are. Every backlog knows its own
bytes; here they are added up as connections see them, so that what brings little pays nothing.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from gateway.server.front import Backlog

NOTED_BYTES: Final = 64 * 1024
"""A backlog of no more than this is not counted."""

IN_FLIGHT_BYTES_MAX: Final = 256 * 1024 * 1024
_LOOK_AGAIN_S: Final = 0.01


class InFlight:
    """The backlogs that are large, by what they were when last looked at."""

    def __init__(self, bytes_max: int = IN_FLIGHT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._noted: dict[Backlog, int] = {}
        self._total_bytes = 0
        self._waiting: list[Callable[[], object]] = []

    def is_too_much(self, backlog: Backlog) -> bool:
        """Note a backlog that has grown; tell whether the client that did it should wait."""
        size = backlog.in_flight_bytes
        self._total_bytes += size - self._noted.get(backlog, 0)
        self._noted[backlog] = size
        if self._total_bytes > self._bytes_max:
            self._look()  # others may have been stored since they were noted
        return self._total_bytes > self._bytes_max

    def when_drained(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        """Call `callback` when no more than half of the maximum is on its way."""
        self._waiting.append(callback)
        if len(self._waiting) == 1:
            loop.call_later(_LOOK_AGAIN_S, self._look_again, loop)

    def _look(self) -> None:
        self._noted = {
            backlog: backlog.in_flight_bytes for backlog in self._noted if backlog.in_flight_bytes
        }
        self._total_bytes = sum(self._noted.values())

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self._look()
        if self._total_bytes > self._bytes_max // 2:
            loop.call_later(_LOOK_AGAIN_S, self._look_again, loop)
            return
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

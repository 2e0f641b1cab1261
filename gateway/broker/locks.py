"""Locks by name, for work that waits for the store between its steps.

A caller that holds locks of several kinds takes exchanges before streams, and streams in the order
of their names, so that there is no deadlock.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from gateway.pending import Pending

Check: TypeAlias = Callable[[], object]
"""A check of rights that is made once more while the lock is held; raises what stands against it.

The rights that were checked before the wait for the lock may have changed meanwhile."""

log = logging.getLogger(__name__)


def unchecked() -> None:
    """Allow everything: the check of callers that may do all."""


class _Line:
    """Those that wait for a lock, first come, first served.

    Attributes:
        waiting: Each is settled when the lock is its own.
        is_free: Whether the lock is to be handed on.
        is_moving: Whether it is being handed on.
    """

    __slots__ = ("is_free", "is_moving", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Pending[None]] = deque()
        self.is_free = False
        self.is_moving = False

    def move(self) -> None:
        """Hand the lock on while it comes back at once: in a loop, however many wait."""
        self.is_moving = True
        try:
            while self.is_free and self.waiting:
                self.is_free = False
                try:
                    self.waiting.popleft().settle(None)
                except Exception:  # of what has the lock now: those behind it wait for it as well
                    log.exception("what had waited for a lock failed")
        finally:
            self.is_moving = False


class Locks:
    """A lock for each name."""

    def __init__(self) -> None:
        self._held: dict[str, _Line] = {}

    def __len__(self) -> int:
        return len(self._held)

    async def all_released(self) -> None:
        """Wait until every lock that is held now is released, and those in line had it."""
        for name in tuple(self._held):
            async with self.hold(name):
                pass

    @asynccontextmanager
    async def hold(self, *names: str) -> AsyncIterator[None]:
        """Wait for the locks of some names, each named once, and hold them."""
        taken: list[str] = []
        try:
            for name in sorted(names):
                await self._take(name)
                taken.append(name)
            yield
        finally:
            for name in taken:
                self._release(name)

    async def _take(self, name: str) -> None:
        line = self._held.get(name)
        if line is None:
            self._held[name] = _Line()
            return
        place: Pending[None] = Pending()
        line.waiting.append(place)
        await place

    def _release(self, name: str) -> None:
        line = self._held[name]
        line.is_free = True
        if line.is_moving:
            return
        line.move()
        if line.is_free:
            del self._held[name]

"""Locks by name, for work that waits for the store between its steps.

A caller that holds locks of several kinds takes exchanges before streams, and streams in the order
of their names, so that there is no deadlock.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from gateway.pending import Pending

Check: TypeAlias = Callable[[], object]
"""A check of rights that is made once more while the lock is held; raises what forbids the change.

The rights that were checked before the wait for the lock may have changed meanwhile."""


def unchecked() -> None:
    """Allow everything: the check of callers that may do all."""


class Locks:
    """A lock for each name."""

    def __init__(self) -> None:
        self._held: dict[str, Pending[None]] = {}

    def __len__(self) -> int:
        return len(self._held)

    async def all_released(self) -> None:
        """Wait until every lock that is held now is released."""
        for lock in tuple(self._held.values()):
            await lock

    @asynccontextmanager
    async def hold(self, *names: str) -> AsyncIterator[None]:
        """Wait for the locks of some names, each named once, and hold them."""
        taken: list[str] = []
        try:
            for name in sorted(names):
                while name in self._held:
                    await self._held[name]
                self._held[name] = Pending()
                taken.append(name)
            yield
        finally:
            for name in taken:
                self._held.pop(name).settle(None)

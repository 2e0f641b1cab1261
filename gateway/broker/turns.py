"""Whose turn it is with a name, for work that waits for the store between its steps.

Whoever takes several kinds of turns takes exchanges before streams, and streams in the order of
their names, so that nobody waits in a circle.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from gateway.pending import Pending

Check: TypeAlias = Callable[[], object]
"""Judges once more whether something may be done, by what is so now; raises what prevents it. Who
waits for a turn calls it when nothing is left to wait for: rights that were judged before the wait
were judged by a state that others may have changed since."""


def unchecked() -> None:
    """Let everything be done: the check of those who may do all."""


class Turns:
    """One turn at a time for each name."""

    def __init__(self) -> None:
        self._taken: dict[str, Pending[None]] = {}

    def __len__(self) -> int:
        return len(self._taken)

    async def all_ended(self) -> None:
        """Wait until every turn that is taken now has ended."""
        for turn in tuple(self._taken.values()):
            await turn

    async def take(self, name: str) -> None:
        """Wait until nobody has the turn, and take it."""
        while name in self._taken:
            await self._taken[name]
        self._taken[name] = Pending()

    def end(self, name: str) -> None:
        """Give the turn back."""
        self._taken.pop(name).settle(None)

    async def take_all(self, names: Iterable[str]) -> None:
        """Take the turns of several names, each named once."""
        for name in sorted(names):
            await self.take(name)

    def end_all(self, names: Iterable[str]) -> None:
        """Give back the turns of several names."""
        for name in names:
            self.end(name)

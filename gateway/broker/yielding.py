"""Letting others have their turn while one client asks for something that takes long."""

import logging
from collections.abc import Callable
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Final, TypeAlias

from gateway.pending import Pending

log = logging.getLogger(__name__)

THINGS_A_TURN: Final = 1_000
"""Some 3 ms where each is looked up and nothing more."""
_TURN_S: Final = 0.005
_WOKEN_AT_ONCE: Final = 8

Wake: TypeAlias = Callable[[], object]


class Slice:
    """Counts things and time since the others had a turn.

    Attributes:
        began_s: When they had it, by a clock that cannot be set, in seconds.
    """

    __slots__ = ("_count", "_every", "began_s")

    def __init__(self, every: int = 1) -> None:
        """Begin.

        Args:
            every: Things after which the clock is looked at, each of which takes little. A look
                for a pattern in a name may take 10 ms, and there may be two for each name.
        """
        self._every = every
        self.begin()

    def begin(self) -> None:
        """Say that the others had one."""
        self._count = 0
        self.began_s = perf_counter()

    def is_over(self) -> bool:
        """Count one more thing; return whether it is the others' turn now."""
        self._count += 1
        if self._count % self._every:
            return False
        return self._count >= THINGS_A_TURN or perf_counter() - self.began_s > _TURN_S


class TurnBudget:
    """The time that several readers have together in one turn of the event loop.

    Each of them stops when its own slice is over. Where there are many, those that come when the
    time of all is used up wait in line, and the first ones are woken in the next turn.
    """

    def __init__(self, next_turn: Callable[[Callable[[], object]], object]) -> None:
        """`next_turn` calls a function in the next turn of the event loop."""
        self._next_turn = next_turn
        self._used_s = 0.0
        self._ended_s = 0.0
        self._is_armed = False
        # Readers that wait, and what wakes each: those that were woken in vain, all others, and
        # those that were woken in this turn.
        self._first: dict[object, Wake] = {}
        self._line: dict[object, Wake] = {}
        self._woken: dict[object, Wake] = {}

    def begin(self, reader: object, wake: Wake, time_slice: Slice) -> bool:
        """Begin the slice of a reader, which `end` has to follow.

        False: it has to wait, and `wake` is called when it may come again.
        """
        if self._used_s > _TURN_S:
            if reader not in self._first:
                (self._first if reader in self._woken else self._line)[reader] = wake
            self._arm()
            return False
        if self._is_armed:
            for readers in (self._first, self._line, self._woken):
                readers.pop(reader, None)
        time_slice.begin()
        return True

    def end(self, time_slice: Slice) -> None:
        """Count the time that a reader has used."""
        ended_s, began_s = perf_counter(), time_slice.began_s
        left_s = self._used_s - (began_s - self._ended_s)  # what lay between was others' time
        self._used_s = ended_s - began_s + max(left_s, 0.0)
        self._ended_s = ended_s

    async def slice(self) -> Slice:
        """Wait until there is time, and return a slice of it, which `end` has to follow."""
        time_slice = Slice(every=1)
        woken: Pending[None] = Pending()
        while not self.begin(time_slice, partial(woken.settle, None), time_slice):
            await woken
            woken = Pending()
        return time_slice

    async def go_on(self, time_slice: Slice) -> Slice:
        """Count one more thing; return the slice, or if it is over the next one."""
        if not time_slice.is_over():
            return time_slice
        self.end(time_slice)
        return await self.slice()

    def _arm(self) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._next_turn(self._begin_turn)

    def _begin_turn(self) -> None:
        self._used_s = 0.0
        self._is_armed = False
        self._woken = {}
        for readers in (self._first, self._line):
            for reader in list(islice(readers, _WOKEN_AT_ONCE - len(self._woken))):
                self._woken[reader] = readers.pop(reader)
        if self._woken:
            self._arm()
        for wake in list(self._woken.values()):
            try:
                wake()
            except Exception:  # of one reader: the others have their turn
                log.exception("a reader that had waited for its turn failed")

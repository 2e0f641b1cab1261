"""The time of day, and how far it can be believed when data is to be removed for its age.

The clock of a machine may be set, and set back. What is asked before anything is removed is a time
that is not later than any chunk of a certain age allows: a chunk that this process wrote less than
`age` ago, by a clock that nobody can set, never looks older than it is.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_SAME_MS: Final = 1_000
"""What the time of day gains or loses without having been set."""
_RUNS_MAX: Final = 1_000

_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts while the machine sleeps, where there is such a clock."""


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _steady_ms() -> int:
    return time.clock_gettime_ns(_STEADY) // 1_000_000


@dataclass(slots=True)
class _Run:
    """A time during which the time of day was not set."""

    offset: int
    """Least difference of the time of day to the steady clock."""
    until: int
    """By the steady clock."""


class Clock:
    """Milliseconds since the epoch, as the machine says; every reading is taken note of."""

    def __init__(
        self,
        wall_ms: Callable[[], int] = _wall_ms,
        steady_ms: Callable[[], int] = _steady_ms,
    ) -> None:
        self._wall_ms = wall_ms
        self._steady_ms = steady_ms
        steady = steady_ms()
        self._runs = deque([_Run(wall_ms() - steady, steady)])

    def __call__(self) -> int:
        """Return the time of day."""
        wall = self._wall_ms()
        steady = self._steady_ms()
        offset = wall - steady
        run = self._runs[-1]
        if -_SAME_MS < offset - run.offset < _SAME_MS:
            run.until = steady
            run.offset = min(run.offset, offset)
        else:
            self._set_to(offset, steady)
        return wall

    def _set_to(self, offset: int, steady: int) -> None:
        self._runs.append(_Run(offset, steady))
        if len(self._runs) > _RUNS_MAX:
            oldest = self._runs.popleft()
            self._runs[0].offset = min(self._runs[0].offset, oldest.offset)

    def for_age(self, age_ms: int) -> int:
        """Return the earliest time that it may be by any reading of the last `age_ms`."""
        self()
        steady = self._runs[-1].until
        return steady + min(run.offset for run in self._runs if run.until >= steady - age_ms)

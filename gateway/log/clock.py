# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The time of day, and how far it can be believed when data is to be removed for its age.

The clock of a machine may be set, and set back. What is asked before anything is removed is a time
that is not later than any chunk of a certain age allows: a chunk that this process wrote less than
`age` ago, by a clock that nobody can set, never looks older than it is.
"""

import time
from collections import deque
from collections.abc import Callable
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


class _Run:
    """A time during which the time of day was not set.

    `offset` is the least difference of the time of day to the steady clock; `until` is by the
    steady clock.
    """

    __slots__ = ("offset", "until")

    def __init__(self, offset: int, until: int) -> None:
        self.offset = offset
        self.until = until


class Clock:
    """Milliseconds since the epoch, as the machine says; every reading is taken note of."""

    def __init__(
        self,
        wall_ms: Callable[[], int] | None = None,
        steady_ms: Callable[[], int] | None = None,
    ) -> None:
        self._wall_ms = wall_ms or _wall_ms
        self._steady_ms = steady_ms or _steady_ms
        steady = self._steady_ms()
        self._runs = deque([_Run(self._wall_ms() - steady, steady)])
        self._last = self._runs[-1]

    def __call__(self) -> int:
        """Return the time of day."""
        wall = self._wall_ms()
        steady = self._steady_ms()
        offset = wall - steady
        run = self._last
        if -_SAME_MS < offset - run.offset < _SAME_MS:
            run.until = steady
            run.offset = min(run.offset, offset)
        else:
            self._set_to(offset, steady)
        return wall

    def _set_to(self, offset: int, steady: int) -> None:
        self._last = _Run(offset, steady)
        self._runs.append(self._last)
        if len(self._runs) > _RUNS_MAX:
            oldest = self._runs.popleft()
            self._runs[0].offset = min(self._runs[0].offset, oldest.offset)

    def for_age(self, age_ms: int) -> int:
        """Return the earliest time that it may be by any reading of the last `age_ms`."""
        self()
        steady = self._last.until
        return steady + min(run.offset for run in self._runs if run.until >= steady - age_ms)

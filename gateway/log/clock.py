# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The time of day, and a safe reading of it for removing data by age.

The clock of a machine may be set forward or back. Retention therefore asks for the earliest time
that it can be now. A chunk that this process wrote less than `age` ago, by a clock that cannot be
set, then never looks older than it is.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.log.kernel.clocks import clock_ms

_SAME_MS: Final = 1_000
"""Drift of the time of day, in milliseconds, that does not mean that it was set."""
_RUNS_MAX: Final = 1_000

_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts on while the machine sleeps, where the system has such a clock."""
_WALL: Final = time.CLOCK_REALTIME


class _Run:
    """A period in which the time of day was not set.

    `offset` is the smallest difference between the time of day and the steady clock. `until` is a
    time of the steady clock.
    """

    __slots__ = ("offset", "until")

    def __init__(self, offset: int, until: int) -> None:
        self.offset = offset
        self.until = until


def wall_ms() -> int:
    """Return the time of day, in milliseconds since the epoch."""
    return clock_ms(_WALL)


class Clock:
    """Clock in milliseconds since the epoch, by the machine's; remembers every reading."""

    def __init__(
        self,
        wall_ms: Callable[[], int] | None = None,
        steady_ms: Callable[[], int] | None = None,
    ) -> None:
        """Read the clocks of the system, or others."""
        self._wall_ms = wall_ms
        self._steady_ms = steady_ms
        steady = self._read_steady_ms()
        self._runs = deque([_Run(self._read_wall_ms() - steady, steady)])
        self._last = self._runs[-1]

    def __call__(self) -> int:
        """Return the time of day."""
        return self.now_ms()

    def now_ms(self) -> int:
        """Return the time of day."""
        wall = self._read_wall_ms()
        steady = self._read_steady_ms()
        offset = wall - steady
        run = self._last
        if -_SAME_MS < offset - run.offset < _SAME_MS:
            run.until = steady
            run.offset = min(run.offset, offset)
        else:
            self._set_to(offset, steady)
        return wall

    def _read_wall_ms(self) -> int:
        if self._wall_ms is not None:
            return self._wall_ms()
        return clock_ms(_WALL)

    def _read_steady_ms(self) -> int:
        if self._steady_ms is not None:
            return self._steady_ms()
        return clock_ms(_STEADY)

    def _set_to(self, offset: int, steady: int) -> None:
        self._last = _Run(offset, steady)
        self._runs.append(self._last)
        if len(self._runs) > _RUNS_MAX:
            oldest = self._runs.popleft()
            self._runs[0].offset = min(self._runs[0].offset, oldest.offset)

    def for_age(self, age_ms: int) -> int:
        """Return the earliest time that it can be now, by the readings of the last `age_ms`."""
        self()
        steady = self._last.until
        return steady + min(run.offset for run in self._runs if run.until >= steady - age_ms)

"""How fast this machine is, for limits of CPU time.

Limits are for the two quiet cores that they were measured on. On a slower machine, or where two
virtual cores share a real one, the same instructions take more CPU time.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Final

QUIET_S: Final = 0.007
"""CPU time of `_work` on the cores that limits are for."""
SLOWNESS_MAX: Final = 4.0
"""A machine that is slower still cannot be judged by."""
_ITEMS: Final = 60_000
_TRIES: Final = 9
"""Beside other work some take twice as long as others, as what is judged does."""


def is_within(seconds: float, limit_s: float) -> bool:
    """Return whether some CPU time would be within a limit on the cores that it is for."""
    return seconds <= limit_s or seconds <= limit_s * slowness()


def slowness() -> float:
    """Return how many times longer this machine takes now for the same work; at least 1."""
    took_s = median(_work() for _ in range(_TRIES))
    return min(max(took_s / QUIET_S, 1.0), SLOWNESS_MAX)


def _work() -> float:
    """Return the CPU time of some work of Python's own: numbers, tuples, memory, a dictionary."""
    begin = time.thread_time()
    kept: dict[int, tuple[int, bytes]] = {}
    for number in range(_ITEMS):
        kept[number & 0x3FF] = number, bytes(8)
    return time.thread_time() - begin

"""Python's collector, so that no turn of the event loop is long because of it.

A full collection looks at every object that may be part of a ring: some 0.4 µs each, for hundreds
of thousands of virtual hosts' objects a good part of a second. So what has survived one that took
time is frozen: it is not looked at again. It still goes when the last reference to it goes; only a
ring of it would not, and what lives long breaks its rings when it ends.
"""

import gc
import time
from collections.abc import Callable, Mapping
from typing import Final, Literal

_LONG_NS: Final = 5_000_000
"""CPU of a full collection after which the survivors, some ten thousand, are left alone."""
_THRESHOLDS: Final = (700, 10, 4)
"""As Python's own, but for the last: full collections come early, and look at little each."""
_FULL: Final = 2


class Collector:
    """Freezes the objects that a long collection has left."""

    def __init__(self, clock_ns: Callable[[], int] = time.thread_time_ns) -> None:
        """Begin; `clock_ns` tells the CPU that this thread has used."""
        self._clock_ns = clock_ns
        self._begun_ns = 0

    def start(self) -> None:
        """Freeze all objects, and from now on those that survive."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)
        gc.callbacks.append(self.note)

    def note(self, phase: Literal["start", "stop"], info: Mapping[str, int]) -> None:
        """Take the beginning or the end of a collection: Python calls this on its thread."""
        if info["generation"] != _FULL:
            return
        if phase == "start":
            self._begun_ns = self._clock_ns()
        elif self._clock_ns() - self._begun_ns > _LONG_NS:
            gc.freeze()

"""The timed part of a work: wall clock, the server's CPU time and the generator's own."""

import os
import resource
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from compat.bench.jobs import Figures
from compat.bench.usage import cpu_seconds, machine_busy_seconds, tree_of

TICKS_S: Final = (os.cpu_count() or 1) / os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """A context manager around the timed part; it may be entered again and adds up."""

    def __init__(self, pids: Sequence[int]) -> None:
        """Find the server's processes; none means that its CPU time is not known."""
        self._pids = tree_of(pids)
        self._seconds = 0.0
        self._server_cpu_s = 0.0
        self._own_cpu_s = 0.0
        self._machine_cpu_s = 0.0
        self._entries = 0

    def __enter__(self) -> Self:
        self._entries += 1
        self._machine_cpu_s -= machine_busy_seconds()
        self._server_cpu_s -= cpu_seconds(self._pids)
        self._own_cpu_s -= _own_cpu_seconds()
        self._seconds -= time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._seconds += time.perf_counter()
        self._own_cpu_s += _own_cpu_seconds()
        self._server_cpu_s += cpu_seconds(self._pids)
        self._machine_cpu_s += machine_busy_seconds()

    def figures(self, message_count: int) -> Figures:
        """Return rates for so many messages.

        Returns:
            `rate` in messages/s, `seconds`, `generator_share` (the generator's CPU time
            over the wall clock: at 0.9 or more it is the bottleneck itself), and if the
            processes are known `cpu`, the server's CPU seconds per million messages, and
            `others_share`, what everything else on the machine used over the wall clock.
        """
        figures = {
            "rate": message_count / self._seconds,
            "seconds": self._seconds,
            "generator_share": self._own_cpu_s / self._seconds,
        }
        if self._pids:
            figures["cpu"] = self._server_cpu_s / message_count * 1e6
            # The machine's count has ticks of each core, which a short work must not be blamed for.
            blur_s = self._entries * TICKS_S
            others_s = self._machine_cpu_s - self._server_cpu_s - self._own_cpu_s - blur_s
            figures["others_share"] = max(0.0, others_s / self._seconds)
        return figures


def _own_cpu_seconds() -> float:
    """Return what this process has used, with its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime

"""CPU time of Spark, its Python processes and a server, as Linux counts it in /proc.

Python's daemons let the system forget what their workers have used. So the processes are looked at
again and again while a work runs, and the last that was seen of an ended one counts.
"""

import os
import threading
from collections.abc import Collection
from types import TracebackType
from typing import Final, NamedTuple, Self

from compat.bench.usage import machine_busy_seconds
from compat.broker.processes import (
    PROC,
    STAT_PARENT,
    STAT_SYSTEM_TICKS,
    STAT_USER_TICKS,
    stat_fields,
)

TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
LOOK_S: Final = 0.05


class Usage(NamedTuple):
    """CPU seconds, user and system.

    Attributes:
        jvm: Of the Java process alone.
        python: Of all that it started: daemons, planners and workers.
        server: Of the server's processes.
        machine: Of everything on the machine.
    """

    jvm: float
    python: float
    server: float
    machine: float

    @property
    def job(self) -> float:
        """CPU of the work in all."""
        return self.jvm + self.python + self.server

    @property
    def others(self) -> float:
        """CPU of the rest of the machine."""
        return max(0.0, self.machine - self.job)


class Tree:
    """Processes and all that they start, and what each has used since the first look."""

    def __init__(self, roots: Collection[int]) -> None:
        self._roots = set(roots)
        self._members = set(roots)
        self._strangers: set[int] = set()
        self._latest: dict[int, float] = {}
        self.look()
        self._before = dict(self._latest)

    def look(self) -> None:
        """Note what the processes have used; those that are known to be others are not read."""
        pids = {int(path.name) for path in PROC.iterdir() if path.name.isdigit()}
        self._strangers &= pids
        new: dict[int, int] = {}
        for pid in pids - self._strangers:
            fields = stat_fields(pid)
            if fields is None:
                continue
            ticks = int(fields[STAT_USER_TICKS]) + int(fields[STAT_SYSTEM_TICKS])
            self._latest[pid] = ticks / TICKS_A_SECOND
            if pid not in self._members:
                new[pid] = int(fields[STAT_PARENT])
        # Ids are no order: they begin anew when they are used up.
        while joining := {pid for pid, parent in new.items() if parent in self._members}:
            self._members |= joining
            new = {pid: parent for pid, parent in new.items() if pid not in joining}
        self._strangers |= new.keys()

    def used(self, *, by_roots: bool) -> float:
        """Return what the roots have used, or all the others."""
        return sum(
            self._latest.get(pid, 0.0) - self._before.get(pid, 0.0)
            for pid in self._members
            if (pid in self._roots) == by_roots
        )


class Meter:
    """A context manager around a work; `used` is there when it has ended."""

    def __init__(self, jvm: int, servers: Collection[int]) -> None:
        """Look for the first time.

        Args:
            jvm: Spark's Java process.
            servers: Outermost processes of the server that it reads or writes; may be empty.
        """
        self._spark = Tree({jvm})
        self._servers = Tree(set(servers))
        self._machine = machine_busy_seconds()
        self._is_over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="meter", daemon=True)
        self.used = Usage(0, 0, 0, 0)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._watcher.join()
        self._spark.look()
        self._servers.look()
        server = self._servers.used(by_roots=True) + self._servers.used(by_roots=False)
        self.used = Usage(
            self._spark.used(by_roots=True),
            self._spark.used(by_roots=False),
            server,
            machine_busy_seconds() - self._machine,
        )

    def _watch(self) -> None:
        while not self._is_over.wait(LOOK_S):
            self._spark.look()

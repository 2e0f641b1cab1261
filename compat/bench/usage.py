"""CPU time and memory of a server's processes, as Linux counts them."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from compat.broker.processes import descendants

PROC: Final = Path("/proc")
# The scheduler's count for a whole process, its threads that have ended included. It is
# the sum of utime and stime in /proc/PID/stat, in nanoseconds where that has ticks of 10 ms.
CPUCLOCK_OF_PROCESS: Final = 2
TCP_LISTEN: Final = "0A"


class Memory(NamedTuple):
    """Bytes of several processes together.

    Attributes:
        rss: Resident pages; those that two processes share are counted twice.
        pss: Resident pages, shared ones divided by the number of their users.
    """

    rss: int
    pss: int


def tree_of(roots: Iterable[int]) -> list[int]:
    """Return these processes and all their living descendants, ascending."""
    found = set(roots)
    for root in list(found):
        found.update(descendants(root))
    return sorted(found)


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds, user and system, that processes have used up to now."""
    total = 0.0
    for pid in pids:
        try:
            total += time.clock_gettime((~pid << 3) | CPUCLOCK_OF_PROCESS)
        except OSError:
            continue
    return total


def memory_of(pids: Iterable[int]) -> Memory:
    """Return the resident memory of processes, in bytes."""
    rss = pss = 0
    for pid in pids:
        try:
            lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, rest = line.partition(":")
            if name == "Rss":
                rss += int(rest.split()[0]) * 1024
            elif name == "Pss":
                pss += int(rest.split()[0]) * 1024
    return Memory(rss, pss)


def machine_busy_seconds() -> float:
    """Return the CPU seconds that the whole machine has spent on anything, since boot."""
    user, nice, system, _idle, _wait, irq, softirq, steal = map(
        int, (PROC / "stat").read_text().split()[1:9]
    )
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def listeners_on(port: int) -> list[int]:
    """Return the local processes that listen on a TCP port; none if it is another machine's."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        for line in (PROC / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == TCP_LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{fields[9]}]")
    return sorted({pid for pid in _processes() if sockets & _targets(pid)})


def _processes() -> list[int]:
    return [int(path.name) for path in PROC.glob("[0-9]*")]


def _targets(pid: int) -> set[str]:
    targets = set()
    try:
        for entry in (PROC / str(pid) / "fd").iterdir():
            targets.add(str(entry.readlink()))
    except OSError:
        return targets
    return targets

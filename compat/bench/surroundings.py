"""The machine before the first figure: whether it is quiet, and its memory touched once.

`python -m compat.bench.surroundings BYTES` touches so much memory and ends.
"""

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from compat.bench.machine import GIB, REPOSITORY
from compat.bench.usage import machine_busy_seconds

MEMORY: Final = Path("/proc/meminfo")
# The machine counts in ticks of 10 ms for each core, and a look should see a hundred of them.
LOOK_S: Final = 1.0
TOUCH_LIMIT_S: Final = 600
# A step of some thousand pages at a time, so that the pages to write need little memory.
STEP_BYTES: Final = 1 << 28


def busy_cores(look_s: float = LOOK_S) -> float:
    """Return how many cores other processes use, on average over a short look."""
    own_s, busy_s, began = time.process_time(), machine_busy_seconds(), time.perf_counter()
    time.sleep(look_s)
    others_s = machine_busy_seconds() - busy_s - (time.process_time() - own_s)
    return max(0.0, others_s / (time.perf_counter() - began))


def warm_memory(part: float, say: Callable[[str], None]) -> None:
    """Touch a part of the memory that is available, once, and give it back.

    A fresh virtual machine gets a page of memory from its host when it is touched for the first
    time, which takes longer than anything that a server does with it: rates are halved. A process
    of its own does it, which the kernel ends before any other if there was not so much.

    Args:
        part: Of what the kernel calls available; 0 for nothing.
        say: Takes a line that tells what was done.
    """
    byte_count = int(available_bytes() * part)
    if not byte_count:
        return
    began = time.perf_counter()
    try:
        subprocess.run(
            [sys.executable, "-m", "compat.bench.surroundings", str(byte_count)],
            cwd=REPOSITORY,
            check=True,
            timeout=TOUCH_LIMIT_S,
        )
    except (subprocess.SubprocessError, OSError) as error:
        say(f"warning: memory was not touched before: {error}")
        return
    say(f"touched {byte_count / GIB:.1f} GiB of memory in {time.perf_counter() - began:.1f} s")


def available_bytes() -> int:
    """Return how much memory the kernel would give to a new process."""
    for line in MEMORY.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def touch(byte_count: int) -> None:
    """Write to each page of so much new memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, byte_count, flags=flags) as area:
        for begin in range(0, byte_count, STEP_BYTES):
            end = min(begin + STEP_BYTES, byte_count)
            pages = -(-(end - begin) // mmap.PAGESIZE)
            area[begin : end : mmap.PAGESIZE] = b"\1" * pages


def main() -> None:
    """Touch what the command line says."""
    with suppress(OSError):
        Path(f"/proc/{os.getpid()}/oom_score_adj").write_text("1000")
    touch(int(sys.argv[1]))


if __name__ == "__main__":
    main()

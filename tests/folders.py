"""Where tests keep their files: in memory, or on the disk where the disk is what they are about.

Each of some ten thousand tests opens a store of its own, which waits for the disk several times. In
memory these waits cost nothing. What a power cut leaves is the simulation's matter: to a process
that is killed, files in memory are like files on a disk.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

MEMORY: Final = "/dev/shm"
MEMORY_BYTES_MIN: Final = 4 << 30
DISK: Final = tempfile.gettempdir()


def use_memory() -> None:
    """Keep temporary files in memory, where there is room and TMPDIR names no other place."""
    if "TMPDIR" in os.environ or not _has_room():
        return
    os.environ["PYTEST_DEBUG_TEMPROOT"] = MEMORY  # where pytest makes `tmp_path`
    tempfile.tempdir = MEMORY


def _has_room() -> bool:
    try:
        told = os.statvfs(MEMORY)
    except OSError:
        return False
    # Some tests write a program and run it.
    is_executable = not told.f_flag & os.ST_NOEXEC
    return is_executable and told.f_bavail * told.f_frsize >= MEMORY_BYTES_MIN


@pytest.fixture(name="tmp_path")
def on_disk() -> Iterator[Path]:
    """A folder on the disk, in place of pytest's own; gone after the test."""
    with tempfile.TemporaryDirectory(prefix="hutch-", dir=DISK) as folder:
        yield Path(folder)

"""Where tests keep their files: in memory, or on the disk where the disk is what they are about.

Each of some ten thousand tests opens a store of its own, which waits for the disk several times. In
memory these waits cost nothing. What a power cut leaves is the simulation's matter: to a process
that is killed, files in memory are like files on a disk.

A run has a folder of its own in either place, for all that it, its workers and their processes put
down, and both go with it, whatever failed. `--basetemp=FOLDER` keeps the files of failed tests.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

MEMORY: Final = "/dev/shm"
MEMORY_BYTES_MIN: Final = 4 << 30
DISK: Final = "HUTCH_TEST_DISK"
"""The variable that tells the processes of a run its folder on the disk."""
_PREFIX: Final = "hutch-tests-"


def own_folders(config: pytest.Config) -> None:
    """Have all temporary files of this run in folders of its own.

    They are in memory, where this user may write to it and there is room, and TMPDIR names no other
    place.
    """
    if DISK in os.environ:  # a worker, which puts its files where the run has its own
        return
    disk = memory = _own(tempfile.gettempdir(), config)
    if "TMPDIR" not in os.environ and _has_room():
        memory = _own(MEMORY, config)
    os.environ.update({DISK: disk, "TMPDIR": memory})
    tempfile.tempdir = memory
    if config.option.basetemp is None:  # where pytest makes `tmp_path`
        config.option.basetemp = f"{memory}/pytest"


def _has_room() -> bool:
    try:
        told = os.statvfs(MEMORY)
    except OSError:
        return False
    # Some tests write a program and run it.
    is_executable = not told.f_flag & os.ST_NOEXEC
    has_room = told.f_bavail * told.f_frsize >= MEMORY_BYTES_MIN
    return is_executable and has_room and os.access(MEMORY, os.R_OK | os.W_OK | os.X_OK)


def _own(place: str, config: pytest.Config) -> str:
    """Make a folder that goes with the run; remove those whose runs were killed.

    A run holds a lock on its folder as long as it lasts.
    """
    turn = os.open(place, os.O_RDONLY)
    fcntl.flock(turn, fcntl.LOCK_EX)  # else another run could remove it before it is locked
    for left in Path(place).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it is in use, or another user's
            lock = _locked(left)
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)
    folder = TemporaryDirectory(prefix=_PREFIX, dir=place)
    _locked(folder.name)
    config.add_cleanup(folder.cleanup)
    os.close(turn)
    return folder.name


def _locked(folder: str | Path) -> int:
    """Lock a folder; return the descriptor that holds the lock. Raises OSError: it is locked."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


@pytest.fixture(name="tmp_path")
def on_disk() -> Iterator[Path]:
    """A folder on the disk, in place of pytest's own; gone after the test."""
    with TemporaryDirectory(prefix="t-", dir=os.environ[DISK]) as folder:
        yield Path(folder)

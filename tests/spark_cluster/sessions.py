"""Processes that stay together, whatever they start: a session of the operating system.

Spark's Python daemons leave their process group, but not their session, so this is what is killed.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from compat.broker.processes import PROC, stat_fields

END_SECONDS: Final = 20.0
# How much of a log a failed test shows: its end.
LOG_CHARACTERS: Final = 8_000
STAT_SESSION: Final = 3
# Even a test run that is killed leaves no cluster behind: executors end without their worker, and
# Python without its Java.
DIES_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL")


class Session:
    """A command in a session of its own, its output in a file; all of it ends with the block."""

    def __init__(
        self, command: Sequence[str], output: Path, folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.output = output
        with output.open("wb") as written:
            self.process = subprocess.Popen(
                [*DIES_WITH_US, *command],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _running.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self.output.read_text(errors="replace")

    def members(self) -> list[int]:
        """Return the processes of the session that have not ended."""
        return [pid for pid in _processes() if _session_of(pid) == self.process.pid]

    def wait_for(self, words: str, within_s: float, count: int = 1) -> str:
        """Wait until it has printed some words so often; return what it printed."""
        deadline = time.monotonic() + within_s
        while (said := self.said).count(words) < count:
            assert self.process.poll() is None, f"it ended:\n{said[-LOG_CHARACTERS:]}"
            assert time.monotonic() < deadline, f"no {words!r}:\n{said[-LOG_CHARACTERS:]}"
            time.sleep(0.05)
        return said

    def finish(self, within_s: float) -> str:
        """Wait until it has ended well; return what it printed."""
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it runs on:\n{self.said[-LOG_CHARACTERS:]}") from None
        assert code == 0, f"exit code {code}:\n{self.said[-LOG_CHARACTERS:]}"
        return self.said

    def end(self) -> None:
        """Kill all processes of the session, and wait until there are none."""
        deadline = time.monotonic() + END_SECONDS
        while members := self.members():
            for pid in members:
                _kill(pid)
            self.process.poll()  # so that it is no zombie, which would hide nothing but itself
            assert time.monotonic() < deadline, f"processes {members} do not end"
            time.sleep(0.02)
        self.process.wait()


def _processes() -> list[int]:
    return [int(path.name) for path in PROC.glob("[0-9]*")]


def _session_of(pid: int) -> int | None:
    fields = stat_fields(pid)
    return None if fields is None or fields[0] == "Z" else int(fields[STAT_SESSION])


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


_running: weakref.WeakSet[Session] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for session in list(_running):
        session.end()

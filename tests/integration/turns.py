"""CPU of a server's loop in one turn: what holds up all of its clients, whatever else runs.

The loop's own thread reads its own clock, in the server: a timer of the loop, due each `TICK_S`,
notes how much CPU the thread has used since the timer before. That is at least what a turn used
that made the timer late, and at most `TICK_S` more. Time for which the process waits for a
processor, or is stopped, does not count.

    with Turns(server) as turns:
        …something hostile…
    assert turns.longest_s < …
"""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import struct
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.integration.server import HutchServer

TICK_S: Final = 0.005
_BEGIN: Final = signal.SIGUSR2
_SEEN: Final = struct.Struct("<QQQQ")
"""Numbers that the server shows: beginnings, 0 before it can be asked; ticks; longest turn, ns; CPU
since the beginning, ns."""
_IS_WANTED: Final = _SEEN.size
"""Place of the byte that is 1 while it is to go on."""
_BYTES: Final = _SEEN.size + 1


class Ticks:
    """The server's side, on the thread of its loop."""

    def __init__(self, path: Path) -> None:
        """Be ready to begin: a signal asks for it, and a file shows what was seen."""
        self._shared = _mapped(path)
        self._begun, self._count, self._longest_ns, self._last_ns = 1, 0, 0, 0
        self._spent_ns = 0
        self._is_ticking = False
        self._show()
        signal.signal(_BEGIN, lambda *_: self._begin())

    def _begin(self) -> None:
        self._begun += 1
        self._count = self._longest_ns = self._spent_ns = 0
        self._last_ns = time.thread_time_ns()
        if not self._is_ticking:
            self._is_ticking = True
            self._tick(asyncio.get_running_loop())

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now_ns = time.thread_time_ns()
        self._count += 1
        self._longest_ns = max(self._longest_ns, now_ns - self._last_ns)
        self._spent_ns += now_ns - self._last_ns
        self._last_ns = now_ns
        self._show()
        self._is_ticking = bool(self._shared[_IS_WANTED])
        if self._is_ticking:
            loop.call_later(TICK_S, self._tick, loop)

    def _show(self) -> None:
        seen = self._begun, self._count, self._longest_ns, self._spent_ns
        _SEEN.pack_into(self._shared, 0, *seen)


class Turns:
    """The test's side: the longest turn of a server, in the block and up to now."""

    def __init__(self, server: HutchServer) -> None:
        self._pid = server.pid
        self._shared = _mapped(server.turns_path)

    def __enter__(self) -> Self:
        begun, *_ = self._seen()
        assert begun, "a server that is started as users do it shows no turns"
        self._shared[_IS_WANTED] = 1
        os.kill(self._pid, _BEGIN)
        wait_until(lambda: self._seen()[0] > begun)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shared[_IS_WANTED] = 0

    @property
    def longest_s(self) -> float:
        """CPU of the longest turn, in seconds; what is under way is waited for."""
        return self._seen_next()[2] / 1e9

    @property
    def spent_s(self) -> float:
        """CPU of all turns, in seconds; what is under way is waited for."""
        return self._seen_next()[3] / 1e9

    def _seen_next(self) -> tuple[int, int, int, int]:
        _, count, _, _ = self._seen()
        wait_until(lambda: self._seen()[1] > count)
        return self._seen()

    def _seen(self) -> tuple[int, int, int, int]:
        begun, count, longest_ns, spent_ns = _SEEN.unpack_from(self._shared)
        return begun, count, longest_ns, spent_ns


def make(path: Path) -> None:
    """Make the file that a server and a test share, as a server begins with it."""
    path.write_bytes(bytes(_BYTES))


def _mapped(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), _BYTES)

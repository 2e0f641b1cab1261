"""CPU of a server's loop in one turn: what holds up all of its clients, whatever else runs.

The loop's own thread reads its own clock, in the server: a timer of the loop, due each `TICK_S`,
notes how much CPU the thread has used since the timer before. That is at least what a turn used
that made the timer late, and at most `TICK_S` more. Time for which the process waits for a
processor, or is stopped, does not count.

A thread that holds Python's lock keeps the timer waiting as well, and it is its own clock that goes
on: the timer notes the CPU of all threads too.

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
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.integration.server import HutchServer

TICK_S: Final = 0.005
_BEGIN: Final = signal.SIGUSR2
_SEEN: Final = struct.Struct("<QQQQQQ")
"""Numbers that the server shows: beginnings, 0 before it can be asked; ticks; longest turn and CPU
since the beginning, ns; the same two of all threads."""
_IS_WANTED: Final = _SEEN.size
"""Place of the byte that is 1 while it is to go on."""
_BYTES: Final = _SEEN.size + 1


class Ticks:
    """The server's side, on the thread of its loop."""

    def __init__(self, path: Path) -> None:
        """Be ready to begin: a signal asks for it, and a file shows what was seen."""
        self._shared = _mapped(path)
        self._begun, self._count = 1, 0
        self._clocks = _Clock(time.thread_time_ns), _Clock(time.process_time_ns)
        self._is_ticking = False
        self._show()
        signal.signal(_BEGIN, lambda *_: self._begin_soon())

    def _begin_soon(self) -> None:
        """Begin in a turn of its own: a signal may come in the middle of a tick."""
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe(self._begin, loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun += 1
        self._count = 0
        for clock in self._clocks:
            clock.begin()
        if not self._is_ticking:
            self._is_ticking = True
            self._tick(loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._count += 1
        for clock in self._clocks:
            clock.tick()
        self._show()
        self._is_ticking = bool(self._shared[_IS_WANTED])
        if self._is_ticking:
            loop.call_later(TICK_S, self._tick, loop)

    def _show(self) -> None:
        loop, all_threads = self._clocks
        seen = loop.longest_ns, loop.spent_ns, all_threads.longest_ns, all_threads.spent_ns
        _SEEN.pack_into(self._shared, 0, self._begun, self._count, *seen)


class _Clock:
    """A clock of CPU: the longest time between two ticks, and the time of all."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self.begin()

    def begin(self) -> None:
        self._last_ns = self._now_ns()
        self.longest_ns = self.spent_ns = 0

    def tick(self) -> None:
        now_ns = self._now_ns()
        self.longest_ns = max(self.longest_ns, now_ns - self._last_ns)
        self.spent_ns += now_ns - self._last_ns
        self._last_ns = now_ns


class Seen(NamedTuple):
    """What a server computed, in seconds of CPU.

    Attributes:
        turn_s: In the longest turn of its loop.
        loop_s: In all turns.
        held_s: In all threads, while the loop had no turn. What a thread computes without Python's
            lock is among it, but no longer than the loop waits for a processor.
        all_s: In all threads, from the beginning.
    """

    turn_s: float
    loop_s: float
    held_s: float
    all_s: float


class Turns:
    """The test's side: the longest turn of a server, in the block and up to now."""

    def __init__(self, server: HutchServer) -> None:
        self._pid = server.pid
        self._shared = _mapped(server.turns_path)

    def __enter__(self) -> Self:
        begun, *_ = self._numbers()
        assert begun, "a server that is started as users do it shows no turns"
        self._shared[_IS_WANTED] = 1
        os.kill(self._pid, _BEGIN)
        wait_until(lambda: self._numbers()[0] > begun)
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
        return self.seen().turn_s

    def seen(self) -> Seen:
        """Return what was seen since the beginning; what is under way is waited for."""
        count = self._numbers()[1]
        wait_until(lambda: self._numbers()[1] > count)
        return Seen(*(each / 1e9 for each in self._numbers()[2:]))

    def _numbers(self) -> tuple[int, ...]:
        return _SEEN.unpack_from(self._shared)


def make(path: Path) -> None:
    """Make the file that a server and a test share, as a server begins with it."""
    path.write_bytes(bytes(_BYTES))


def _mapped(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), _BYTES)

"""Threads for work that takes long and needs no event loop: password hashes, handshakes."""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, TypeVar

from gateway.pending import Pending

T = TypeVar("T")

PASSWORD_THREADS: Final = 2


class Threads:
    """Runs functions on a few threads, which start with the first one."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        count: int = PASSWORD_THREADS,
        *,
        name: str = "check",
        begin: Callable[[], object] | None = None,
    ) -> None:
        """Take all that the threads need.

        Args:
            loop: Where results come.
            count: How many threads.
            name: What they are called, before their number.
            begin: Done first by each of them.
        """
        self._loop = loop
        self._count = count
        self._name = name
        self._begin = begin
        self._jobs: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._is_started = False

    @property
    def waiting_count(self) -> int:
        """Functions that no thread has begun with."""
        return self._jobs.qsize()

    def run(self, function: Callable[[], T]) -> Pending[T]:
        """Run a function on a thread; its result comes on the event loop."""
        if not self._is_started:
            self._is_started = True
            for index in range(self._count):
                # Daemons: nothing that they do has to be finished at the end of the process.
                name = f"{self._name}-{index}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
        pending: Pending[T] = Pending()

        def job() -> None:
            outcome: T | BaseException
            try:
                outcome = function()
            except Exception as error:  # noqa: BLE001  # handed to the caller that waits
                outcome = error
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(pending.settle, outcome)

        self._jobs.put(job)
        return pending

    def _work(self) -> None:
        if self._begin is not None:
            self._begin()
        while True:
            self._jobs.get()()

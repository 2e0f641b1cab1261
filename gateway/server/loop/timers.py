"""The timers of one connection: delays that handlers wait for, and the limit of the next step."""

import asyncio
from collections.abc import Callable

from gateway.pending import Abandoned, Pending


class Timers:
    """Delays and the one time limit of a connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waits: dict[Pending[None], asyncio.TimerHandle] = {}
        self._limit: asyncio.TimerHandle | None = None
        self._is_over = False

    def wait(self, delay_ms: int) -> Pending[None]:
        """Return what is settled after a delay, or as Abandoned once the connection is over."""
        pending: Pending[None] = Pending()

        def over() -> None:
            del self._waits[pending]
            pending.settle(None)

        if self._is_over:
            pending.settle(Abandoned())
        else:
            self._waits[pending] = self._loop.call_later(delay_ms / 1000, over)
        return pending

    def later(self, delay_ms: int, action: Callable[[], object]) -> Callable[[], object]:
        """Do something after a delay, unless what is returned is called before."""
        return self._loop.call_later(delay_ms / 1000, action).cancel

    def limit(self, delay_s: float, action: Callable[[], object]) -> None:
        """Do something after a delay, in place of what the last limit would have done."""
        self.no_limit()
        if not self._is_over:
            self._limit = self._loop.call_later(delay_s, action)

    def no_limit(self) -> None:
        """Take the limit away."""
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def stop(self) -> None:
        """Take everything away. Handlers that wait end: others may wait for what they hold."""
        self._is_over = True
        self.no_limit()
        for pending, timer in self._waits.items():
            timer.cancel()
            self._loop.call_soon(pending.settle, Abandoned())
        self._waits.clear()

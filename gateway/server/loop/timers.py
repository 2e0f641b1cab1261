"""Timers of connections: the delays and the time limit of one, and the heartbeats of all."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, TypeAlias

from gateway.pending import Abandoned, Pending


class Timers:
    """Delays and the one time limit of a connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waits: dict[Pending[None], asyncio.TimerHandle] = {}
        self._limit: asyncio.TimerHandle | None = None
        self._is_over = False

    def wait(self, delay_ms: int) -> Pending[None]:
        """Return a Pending, settled after a delay, or as Abandoned once the connection is over."""
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
        """Do something after a delay, unless the returned function is called before."""
        return self._loop.call_later(delay_ms / 1000, action).cancel

    def limit(self, delay_s: float, action: Callable[[], object]) -> None:
        """Do something after a delay, in place of the action of the last limit."""
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


_LOOKS_IN_VAIN_MAX: Final = 2
_COARSE_S: Final = 10.0
"""Delay from which on half a second more or less is no matter."""
_LOOKS_A_TURN: Final = 50
"""Looks of a whole second that are made before other work has its turn."""


_Looks: TypeAlias = dict[Callable[[], object], None]


class HeartbeatTimers:
    """Heartbeat timers of all. Long ones go off at whole seconds, so that one serves many."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[int, _Looks] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def call_later(self, delay_s: float, look: Callable[[], object]) -> Callable[[], object]:
        """Call `look` after a delay; return a function that cancels that."""
        if delay_s < _COARSE_S:
            return self._loop.call_later(delay_s, look).cancel
        now_s = self._loop.time()
        second = round(now_s + delay_s)
        looks = self._due.get(second)
        if looks is None:
            looks = self._due[second] = {}
            self._timers[second] = self._loop.call_later(second - now_s, self._look, second)
        looks[look] = None
        return partial(self._forget, second, looks, look)

    def _forget(self, second: int, looks: _Looks, look: Callable[[], object]) -> None:
        """Take a look away, and with the last one of a second its timer."""
        looks.pop(look, None)
        if not looks and self._due.get(second) is looks:
            del self._due[second]
            self._timers.pop(second).cancel()

    def _look(self, second: int) -> None:
        del self._timers[second]
        self._look_on(self._due.pop(second))

    def _look_on(self, looks: _Looks) -> None:
        for _ in range(_LOOKS_A_TURN):
            if not looks:  # one look may take others away
                return
            looks.popitem()[0]()
        if looks:
            self._loop.call_soon(self._look_on, looks)


class Line(Protocol):
    """Connection, as its heartbeats see it."""

    def sent_bytes(self) -> int:
        """Return how many bytes went out."""
        ...

    def bytes_of_life(self) -> int:
        """Return a number that grows while the peer shows that it lives."""
        ...

    def listens(self) -> bool:
        """Return whether the peer can show that it lives."""
        ...

    def heartbeat_missed(self) -> None:
        """End the connection: the peer was silent for too long."""
        ...


class Heartbeats:
    """Signs of life of one connection in both directions, at the pace the client chose.

    Sending: one after H/2; then every H/2 a look whether anything went out since the last look, and
    a heartbeat if not.
    Receiving: at every second look, whether anything came in since the one before; two of them in a
    row without end the connection. Most connections are idle, so one look serves both directions.

    Source: RabbitMQ's timing, observed: the first heartbeat H/2 after Tune, the end 2H to 3H after
    the last byte.
    """

    __slots__ = (
        "_cancel",
        "_interval_s",
        "_is_whole",
        "_line",
        "_looks_in_vain",
        "_received_seen",
        "_send",
        "_sent_seen",
        "_timers",
    )

    def __init__(
        self, timers: HeartbeatTimers, interval_s: int, line: Line, send: Callable[[], object]
    ) -> None:
        self._timers = timers
        self._interval_s = interval_s
        self._line = line
        self._send = send
        self._sent_seen = -1
        self._received_seen = -1
        self._looks_in_vain = 0
        self._is_whole = False
        self._cancel: Callable[[], object] | None = None
        if interval_s > 0:
            self._arm()

    def stop(self) -> None:
        """Make no more looks."""
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _arm(self) -> None:
        """Ask for the next look. Two of them take a whole interval, on coarse timers as well."""
        half_s = self._interval_s / 2
        if half_s >= _COARSE_S:
            half_s = self._interval_s // 2
        delay_s = self._interval_s - half_s if self._is_whole else half_s
        self._cancel = self._timers.call_later(delay_s, self._look)

    def _look(self) -> None:
        is_whole, self._is_whole = self._is_whole, not self._is_whole
        self._arm()
        sent = self._line.sent_bytes()
        if self._sent_seen in (-1, sent):
            self._send()
        self._sent_seen = sent
        if is_whole:
            self._look_at_received()

    def _look_at_received(self) -> None:
        received = self._line.bytes_of_life()
        if received != self._received_seen or not self._line.listens():
            self._received_seen = received
            self._looks_in_vain = 0
            return
        self._looks_in_vain += 1
        if self._looks_in_vain == _LOOKS_IN_VAIN_MAX:
            self._line.heartbeat_missed()

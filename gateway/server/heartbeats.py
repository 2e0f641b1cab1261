"""Signs of life in both directions, at the pace the client chose.

Sending: one after H/2; then every H/2 a look whether anything went out since the last look, and a
heartbeat if not.
Receiving: every H a look whether anything came in; two looks in a row without end the connection.

Source: RabbitMQ's timing, observed: the first heartbeat H/2 after Tune, the end 2H to 3H after the
last byte.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

_LOOKS_IN_VAIN_MAX: Final = 2
_COARSE_S: Final = 10.0
"""Delay from which on half a second more or less is no matter."""
_LOOKS_A_TURN: Final = 50
"""Looks of a whole second that are made before other work has its turn."""


class HeartbeatTimers:
    """Timers of all connections. Long ones go off at whole seconds, so that one serves many."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[int, dict[Callable[[], object], None]] = {}

    def call_later(self, delay_s: float, look: Callable[[], object]) -> Callable[[], object]:
        """Call `look` after a delay; return what cancels that."""
        if delay_s < _COARSE_S:
            return self._loop.call_later(delay_s, look).cancel
        now_s = self._loop.time()
        second = round(now_s + delay_s)
        looks = self._due.get(second)
        if looks is None:
            looks = self._due[second] = {}
            self._loop.call_later(second - now_s, self._look, second)
        looks[look] = None
        return partial(looks.pop, look, None)

    def _look(self, second: int) -> None:
        self._look_on(self._due.pop(second))

    def _look_on(self, looks: dict[Callable[[], object], None]) -> None:
        for _ in range(min(len(looks), _LOOKS_A_TURN)):
            looks.popitem()[0]()
        if looks:
            self._loop.call_soon(self._look_on, looks)


@dataclass(frozen=True, slots=True)
class HeartbeatPorts:
    """Ports of the heartbeats of a connection."""

    sent_bytes: Callable[[], int]
    received_bytes: Callable[[], int]
    is_reading: Callable[[], bool]
    send: Callable[[], object]
    fail: Callable[[], object]


class Heartbeats:
    """The two timers of one connection."""

    def __init__(self, timers: HeartbeatTimers, interval_s: int, ports: HeartbeatPorts) -> None:
        self._timers = timers
        self._interval_s = interval_s
        self._ports = ports
        self._sent_seen: int | None = None
        self._received_seen = -1
        self._looks_in_vain = 0
        self._cancel: dict[str, Callable[[], object]] = {}
        if interval_s > 0:
            self._arm("send", interval_s / 2, self._look_at_sent)
            self._arm("receive", interval_s, self._look_at_received)

    def stop(self) -> None:
        """Cancel both timers."""
        for cancel in self._cancel.values():
            cancel()
        self._cancel.clear()

    def _arm(self, name: str, delay_s: float, look: Callable[[], None]) -> None:
        self._cancel[name] = self._timers.call_later(delay_s, look)

    def _look_at_sent(self) -> None:
        self._arm("send", self._interval_s / 2, self._look_at_sent)
        sent = self._ports.sent_bytes()
        if self._sent_seen is None or sent == self._sent_seen:
            self._ports.send()
        self._sent_seen = sent

    def _look_at_received(self) -> None:
        self._arm("receive", self._interval_s, self._look_at_received)
        received = self._ports.received_bytes()
        if received != self._received_seen or not self._ports.is_reading():
            self._received_seen = received
            self._looks_in_vain = 0
            return
        self._looks_in_vain += 1
        if self._looks_in_vain == _LOOKS_IN_VAIN_MAX:
            self._ports.fail()

# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The end of a turn of the event loop: things to do there, and rests under load.

A turn of the loop costs as much as several messages do. Where messages come by themselves, a rest
of a moment before the loop looks for more gives it several at once, for little more than the price
of one. Where clients wait for answers before they send more, a rest only delays them. A single turn
does not show which it is. So the loop tries: it rests for a short while, and goes on if as many
bytes come as before.

    PLAIN      busy for a while      -> TRIAL
    TRIAL      as many bytes         -> RESTING      fewer -> PLAIN
    RESTING    a second later        -> COMPARING    little to do -> PLAIN
    COMPARING  no more bytes than so -> RESTING      more -> PLAIN

The loop rests in TRIAL and RESTING. After each trial in vain the next one comes later.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

log = logging.getLogger(__name__)

WINDOW_NS: Final = 25_000_000
"""Length of the times whose rates are compared."""
BUSY_TURNS: Final = 125
"""Turns of such a time, 5,000 a second, from which on a rest is tried."""
QUIET_TURNS: Final = 50
"""Turns of such a time below which rests end: there is little to put together."""
_KEPT_PART: Final = 0.85
"""Part of the bytes that must still come. Turns are so short where a rest is tried that clients
that wait for answers send far less."""
BUSY_NS: Final = 250_000_000
"""Time that the loop must be busy before the first trial."""
_RESTING_NS: Final = 1_000_000_000
_BARRED_MIN_NS: Final = 500_000_000
_BARRED_MAX_NS: Final = 8_000_000_000

_PLAIN, _TRIAL, _RESTING, _COMPARING = range(4)


class AdaptiveSleep:
    """Rests at the end of turns, where that saves work and costs no client its pace.

    Attributes:
        received_bytes: All bytes that came from clients; the connections count them.
        now_ns: Reads a clock that cannot be set.
    """

    def __init__(
        self,
        rest_us: int,
        *,
        now_ns: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Begin without rests.

        Args:
            rest_us: Length of one; 0 for none at all.
            now_ns: Reads a clock that cannot be set.
            sleep: Waits for a time in seconds.
        """
        self.received_bytes = 0
        self.now_ns = now_ns
        self._sleep = sleep
        self._rest_s = rest_us / 1e6
        self._state = _PLAIN
        self._rests = False
        self._turns = 0
        self._began_ns = 0
        self._received_before = 0
        self._other_rate = 0.0
        self._next_ns = 0
        self._barred_ns = _BARRED_MIN_NS

    def at_end_of_turn(self) -> bool:
        """Rest if it is time to; return whether it did."""
        if not self._rest_s:
            return False
        self._turns += 1
        now_ns = self.now_ns()
        if now_ns - self._began_ns >= WINDOW_NS:
            self._look(now_ns)
        if not self._rests:
            return False
        self._sleep(self._rest_s)
        return True

    def _look(self, now_ns: int) -> None:
        """Decide how the next time goes, by the bytes of the last one."""
        passed_ns = now_ns - self._began_ns
        rate = (self.received_bytes - self._received_before) / passed_ns
        turns = self._turns * WINDOW_NS / passed_ns
        self._began_ns, self._received_before, self._turns = now_ns, self.received_bytes, 0
        if self._state == _PLAIN:
            if turns < BUSY_TURNS:
                self._next_ns = max(self._next_ns, now_ns + BUSY_NS)
            elif now_ns >= self._next_ns:
                self._go_to(_TRIAL, rate)
        elif self._state == _TRIAL:
            self._judge(now_ns, plain=self._other_rate, resting=rate)
        elif self._state == _COMPARING:
            self._judge(now_ns, plain=rate, resting=self._other_rate)
        elif turns < QUIET_TURNS:
            self._go_to(_PLAIN, rate)
        elif now_ns >= self._next_ns:
            self._go_to(_COMPARING, rate)

    def _judge(self, now_ns: int, *, plain: float, resting: float) -> None:
        """Go on with rests, or without them, by the rates with and without."""
        if resting >= plain * _KEPT_PART:
            self._barred_ns = _BARRED_MIN_NS
            self._next_ns = now_ns + _RESTING_NS
            self._go_to(_RESTING, resting)
        else:
            self._next_ns = now_ns + self._barred_ns
            self._barred_ns = min(2 * self._barred_ns, _BARRED_MAX_NS)
            self._go_to(_PLAIN, plain)

    def _go_to(self, state: int, rate: float) -> None:
        self._state = state
        self._other_rate = rate
        self._rests = state in (_TRIAL, _RESTING)


_PASSES: Final = 4
"""Steps that lead to each other (flush, commit, confirm, send) and are done in the same turn: each
turn of the event loop costs a system call."""


_VAIN_POLLS_MAX: Final = 4
_TURNS_WITHOUT_POLL: Final = 16
"""Turns of which one polls busily, after `_VAIN_POLLS_MAX` waits in vain."""


class Schedule:
    """Calls to make at the end of this turn of the event loop.

    Attributes:
        rest: Rests at the end of turns, under load.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, busy_poll_us: int = 0, rest_us: int = 0
    ) -> None:
        """Begin with nothing to do.

        Args:
            loop: The event loop.
            busy_poll_us: How long the loop looks for more before it sleeps, after it had something
                to do. To wake a sleeping processor takes as long as a message does; a client that
                answers at once finds this one awake. After waits in vain it waits less often.
            rest_us: How long the loop rests at the end of a turn, where that saves work.
        """
        self.rest = AdaptiveSleep(rest_us)
        self._loop = loop
        self._actions: list[Callable[[], object]] = []
        # Made once: each look-up of a method makes an object.
        self._call_run = self._run
        self._call_poll = self._poll
        self._is_armed = False
        self._busy_poll_ns = busy_poll_us * 1000
        self._is_polling = False
        self._polls_until_ns = 0
        self._vain_polls = 0
        self._turns_without_poll = 0

    def add(self, action: Callable[[], object]) -> None:
        """Run `action` at the end of this turn, after those that were asked for before."""
        self._actions.append(action)
        if not self._is_armed:
            self._is_armed = True
            self._loop.call_soon(self._call_run)

    def call_soon(self, action: Callable[..., object], *arguments: Any) -> None:  # noqa: ANN401
        """Call a function soon, like an event loop's `call_soon`."""
        self.add(partial(action, *arguments) if arguments else action)

    def _run(self) -> None:
        actions = self._actions
        done = 0
        for _ in range(_PASSES):
            pass_end = len(actions)
            while done < pass_end:
                try:
                    actions[done]()
                except Exception:
                    # The others have nothing to do with it, and are not asked for again.
                    log.exception("scheduled action failed")
                done += 1
            if len(actions) == done:
                actions.clear()
                self._is_armed = False
                if not self.rest.at_end_of_turn() and self._busy_poll_ns:
                    self._poll_busily()
                return
        del actions[:done]
        self._loop.call_soon(self._call_run)

    def _poll_busily(self) -> None:
        """Keep the loop from sleeping for a moment: there may be more to do."""
        if self._is_polling:
            self._vain_polls = 0
        elif self._vain_polls >= _VAIN_POLLS_MAX:
            self._turns_without_poll += 1
            if self._turns_without_poll < _TURNS_WITHOUT_POLL:
                return
        self._turns_without_poll = 0
        self._polls_until_ns = self.rest.now_ns() + self._busy_poll_ns
        if not self._is_polling:
            self._is_polling = True
            self._loop.call_soon(self._call_poll)

    def _poll(self) -> None:
        if self.rest.now_ns() < self._polls_until_ns:
            self._loop.call_soon(self._call_poll)
        else:
            self._is_polling = False
            self._vain_polls = min(self._vain_polls + 1, _VAIN_POLLS_MAX)

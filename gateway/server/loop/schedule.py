# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Things to do at the end of a turn of the event loop."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from gateway.server.loop.adaptive_sleep import AdaptiveSleep

log = logging.getLogger(__name__)

_PASSES: Final = 4
"""Steps that lead to each other (flush, commit, confirm, send) and are done in the same turn: each
turn of the event loop costs a system call."""


_VAIN_POLLS_MAX: Final = 4
_TURNS_WITHOUT_POLL: Final = 16
"""After so many times in vain, the loop polls busily once in so many turns."""


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
        """Run `action` at the end of this turn, after what was asked for before."""
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

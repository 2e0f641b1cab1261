# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Things to do at the end of a turn of the event loop."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

log = logging.getLogger(__name__)

_PASSES: Final = 4
"""What one thing leads to (flush, commit, confirm, send) is done in the same turn, this deep:
each turn of the event loop costs a system call."""


class Schedule:
    """What is to be done at the end of this turn of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._actions: list[Callable[[], object]] = []
        self._is_armed = False

    def __call__(self, action: Callable[[], object]) -> None:
        """Run `action` at the end of this turn, after what was asked for before."""
        self._actions.append(action)
        if not self._is_armed:
            self._is_armed = True
            self._loop.call_soon(self._run)

    def call_soon(self, action: Callable[..., object], *arguments: Any) -> None:  # noqa: ANN401
        """Like an event loop's `call_soon`, for who expects one."""
        self(partial(action, *arguments) if arguments else action)

    def _run(self) -> None:
        for _ in range(_PASSES):
            actions, self._actions = self._actions, []
            for action in actions:
                try:
                    action()
                except Exception:
                    # The others have nothing to do with it, and are not asked for again.
                    log.exception("scheduled action failed")
            if not self._actions:
                self._is_armed = False
                return
        self._loop.call_soon(self._run)

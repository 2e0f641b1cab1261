"""Things to do at the end of a turn of the event loop."""

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger(__name__)


class Schedule:
    """What is to be done at the end of this turn of the event loop, each thing once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._actions: list[Callable[[], None]] = []

    def __call__(self, action: Callable[[], None]) -> None:
        """Run `action` at the end of this turn."""
        if not self._actions:
            self._loop.call_soon(self._run)
        self._actions.append(action)

    def _run(self) -> None:
        actions, self._actions = self._actions, []
        for action in actions:
            try:
                action()
            except Exception:
                # The others have nothing to do with it, and are not asked for again.
                log.exception("scheduled action failed")

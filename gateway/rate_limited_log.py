"""Rate-limited log lines: written at once, then at most once every few seconds.

A full disk refuses every client that tries again, and its log must not fill it further.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

AGAIN_S: Final = 10.0


class RateLimitedLog:
    """One kind of rate-limited line."""

    def __init__(
        self, log: logging.Logger, message: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Write `message` to `log`, with `unsaid=` for the number of lines left out before it."""
        self._log = log
        self._message = message
        self._clock = clock
        self._again_at = 0.0
        self._unsaid = 0

    def error(self, *args: object) -> None:
        """Write it as an error, or count it."""
        self._say(logging.ERROR, args)

    def warning(self, *args: object) -> None:
        """Write it as a warning, or count it."""
        self._say(logging.WARNING, args)

    def _say(self, level: int, args: tuple[object, ...]) -> None:
        now = self._clock()
        if now < self._again_at:
            self._unsaid += 1
            return
        unsaid, self._unsaid = self._unsaid, 0
        self._again_at = now + AGAIN_S
        self._log.log(level, self._message + " unsaid=%d", *args, unsaid)

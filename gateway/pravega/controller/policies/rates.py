"""Rates at which segments are written.

Source: Pravega's windows and the weights in them. Times are in milliseconds since the epoch.
"""

import math
from typing import Final

WINDOWS: Final = (2, 5, 10, 20)
"""Minutes."""


class Rates:
    """The rates of one segment, in units a second: a mean over each window.

    A time counts less the longer ago it is, by e^(-age / window). So that a young segment is not
    taken for a quiet one, a mean is over the time since its beginning alone.
    """

    __slots__ = ("_at_ms", "_began_ms", "_means", "_minute_ms")

    def __init__(self, began_ms: int, minute_ms: int) -> None:
        """Begin with nothing written.

        Args:
            began_ms: When.
            minute_ms: How long a minute takes.
        """
        self._began_ms = self._at_ms = began_ms
        self._minute_ms = minute_ms
        self._means = [0.0] * len(WINDOWS)

    def age(self, now_ms: int) -> float:
        """Return the minutes since its beginning."""
        return (now_ms - self._began_ms) / self._minute_ms

    def add(self, count: float, since_ms: int, now_ms: int) -> None:
        """Note what was written since a time; nothing was between that and the last note."""
        since_ms = max(since_ms, self._at_ms)
        rate = 1_000 * count / max(now_ms - since_ms, 1)
        for place, window in enumerate(WINDOWS):
            old = self._means[place] * self._share(window, self._at_ms, since_ms)
            kept = self._share(window, since_ms, now_ms)
            self._means[place] = old * kept + rate * (1.0 - kept)
        self._at_ms = now_ms

    def over(self, window: int, now_ms: int) -> float:
        """Return the rate over one of the windows."""
        there = 1.0 - self._share(window, self._began_ms, now_ms)
        if there <= 0.0:
            return 0.0
        mean = self._means[WINDOWS.index(window)]
        return mean * self._share(window, self._at_ms, now_ms) / there

    def _share(self, window: int, since_ms: int, now_ms: int) -> float:
        """Return what is left of a mean after a time; all, where the clock has gone back."""
        return math.exp(min(since_ms - now_ms, 0) / (window * self._minute_ms))

"""Plans of a policy of scaling: busy segments are split, neighbours that are cold merge.

Pure functions on rates. Source: Pravega's windows, the weights in them, its thresholds, and its
rules for the number of parts. Times are in milliseconds since the epoch.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple, TypeAlias

from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.records.model import StreamPolicy

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
        """Return the minutes since the segment began."""
        return (now_ms - self._began_ms) / self._minute_ms

    def add(self, count: float, since_ms: int, now_ms: int) -> None:
        """Note the writes since a time; there were none between that and the last note."""
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
        """Return the share of a mean that is left after a time; 1 if the clock has gone back."""
        return math.exp(min(since_ms - now_ms, 0) / (window * self._minute_ms))


Keys: TypeAlias = tuple[float, float]
"""A range of keys, [low, high)."""

BY_SIZE, BY_EVENTS = 1, 2
"""Kinds of scaling, in Pravega's numbers: by KB of 1,024 bytes a second, by events a second."""
COOLDOWN: Final = 10
"""Minutes without a change of a segment that has begun."""
COLD: Final = 20
"""Minutes after which a segment may be called cold."""
_BUSY: Final = ((2, 5), (5, 2), (10, 1))
"""A segment is busy if its rate over so many minutes is above so many times its policy's."""
_MERGED_MAX: Final = 3
"""Segments that become one: a cold one, and its neighbours."""


class ScalingStep(NamedTuple):
    """Segments that end, and the keys of those that follow them.

    Attributes:
        ended: The segments.
        keys: Of the new ones.
        rate: What was written to all of them in a second, of the policy's unit.
        why: The threshold, in words.
    """

    ended: tuple[StreamSegment, ...]
    keys: tuple[Keys, ...]
    rate: float
    why: str


def planned(
    segments: Sequence[StreamSegment],
    rates: Mapping[Keys, Rates],
    policy: StreamPolicy,
    now_ms: int,
    most: int,
) -> list[ScalingStep]:
    """Return the changes of a stream that are due.

    Args:
        segments: Those that are written now, by their keys.
        rates: How fast, of the policy's unit.
        policy: The stream's.
        now_ms: Milliseconds since the epoch.
        most: Segments that it may have.
    """
    there = [rates[each.low, each.high] for each in segments]
    changes = []
    count = len(segments)
    for segment, its in zip(segments, there, strict=True):
        parts, why = _parts(its, policy, now_ms)
        if parts and count + parts - 1 <= most:
            count += parts - 1
            changes.append(
                ScalingStep((segment,), _split(segment, parts), its.over(2, now_ms), why)
            )
    cold = [_is_cold(its, policy.rate, now_ms) for its in there]
    for some in _groups(cold, max(count - policy.segments, 0)):
        ended = tuple(segments[some])
        rate = sum(its.over(COLD, now_ms) for its in there[some])
        why = f"each below {policy.rate}, and below {policy.rate / 2:g} over {COLD} minutes"
        changes.append(ScalingStep(ended, ((ended[0].low, ended[-1].high),), rate, why))
    return changes


def _parts(rates: Rates, policy: StreamPolicy, now_ms: int) -> tuple[int, str]:
    """Return the number of parts for a busy segment, and why; 0 for another one."""
    if rates.age(now_ms) <= COOLDOWN:
        return 0, ""
    over = {window: rates.over(window, now_ms) for window, _ in _BUSY}
    for window, times in _BUSY:
        if over[window] > times * policy.rate:
            wanted = int(max(over.values()) / policy.rate)
            why = f"{over[window]:.1f} over {window} minutes, above {times} times {policy.rate}"
            return min(max(2, wanted), max(2, policy.factor)), why
    return 0, ""


def _is_cold(rates: Rates, target: int, now_ms: int) -> bool:
    return (
        rates.age(now_ms) > COLD
        and all(rates.over(window, now_ms) < target for window, _ in _BUSY)
        and rates.over(COLD, now_ms) < target / 2
    )


def _split(segment: StreamSegment, parts: int) -> tuple[Keys, ...]:
    width = (segment.high - segment.low) / parts
    lows = [segment.low + width * place for place in range(parts)]
    return tuple(zip(lows, [*lows[1:], segment.high], strict=True))


def _groups(is_cold: Sequence[bool], spare: int) -> Iterator[slice]:
    """Yield which neighbours become one segment, while segments can be spared."""
    first = 0
    while first < len(is_cold):
        most = min(_MERGED_MAX, spare + 1)
        some = list(takewhile(bool, is_cold[first : first + most]))
        if len(some) > 1:
            yield slice(first, first + len(some))
            spare -= len(some) - 1
        first += max(len(some), 1)

"""Plans of a policy of scaling: busy segments are split, neighbours that are cold merge.

Pure functions. Source: Pravega's thresholds, and its rules for the number of parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple, TypeAlias

from gateway.pravega.controller.epochs import Segment
from gateway.pravega.controller.model import Policy
from gateway.pravega.controller.policies.rates import Rates

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


class Change(NamedTuple):
    """Segments that end, and the keys of those that follow them.

    Attributes:
        ended: The segments.
        keys: Of the new ones.
        rate: What was written to all of them in a second, of the policy's unit.
        why: The threshold, in words.
    """

    ended: tuple[Segment, ...]
    keys: tuple[Keys, ...]
    rate: float
    why: str


def planned(
    segments: Sequence[Segment],
    rates: Mapping[Keys, Rates],
    policy: Policy,
    now_ms: int,
    most: int,
) -> list[Change]:
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
            changes.append(Change((segment,), _split(segment, parts), its.over(2, now_ms), why))
    cold = [_is_cold(its, policy.rate, now_ms) for its in there]
    for some in _groups(cold, max(count - policy.segments, 0)):
        ended = tuple(segments[some])
        rate = sum(its.over(COLD, now_ms) for its in there[some])
        why = f"each below {policy.rate}, and below {policy.rate / 2:g} over {COLD} minutes"
        changes.append(Change(ended, ((ended[0].low, ended[-1].high),), rate, why))
    return changes


def _parts(rates: Rates, policy: Policy, now_ms: int) -> tuple[int, str]:
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


def _split(segment: Segment, parts: int) -> tuple[Keys, ...]:
    width = (segment.high - segment.low) / parts
    lows = [segment.low + width * place for place in range(parts)]
    return tuple(zip(lows, [*lows[1:], segment.high], strict=True))


def _groups(is_cold: Sequence[bool], spare: int) -> Iterator[slice]:
    """Yield which neighbours become one segment, while so many segments can be spared."""
    first = 0
    while first < len(is_cold):
        most = min(_MERGED_MAX, spare + 1)
        some = list(takewhile(bool, is_cold[first : first + most]))
        if len(some) > 1:
            yield slice(first, first + len(some))
            spare -= len(some) - 1
        first += max(len(some), 1)

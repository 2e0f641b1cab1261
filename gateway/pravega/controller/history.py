"""Facts of a stream that follow from its history: its head, legal cuts, epochs to come.

Pure functions.
"""

from collections.abc import Iterable, Mapping, Sequence

from gateway.pravega.controller.epochs import Epoch, History, Segment
from gateway.pravega.controller.model import Stream

_NEARLY = 1e-9
"""Difference of keys that is no gap, and no range: clients compute their ranges."""


def at_time(stream: Stream, time_ms: int) -> dict[int, int]:
    """Return the segments that were written at a time, and where to read them from.

    At 0, or before what truncation left, that is the stream's head.
    """
    history = stream.history
    first = history.epochs[0]
    head = dict(stream.cut) or {each.identity: 0 for each in history.at(first.number)}
    if time_ms <= first.at_ms:
        return head
    then = [epoch for epoch in history.epochs if epoch.at_ms <= time_ms][-1]
    found = [each.identity for each in history.at(then.number)]
    if not stream.given_up.isdisjoint(found):
        return head
    return {identity: stream.cut.get(identity, 0) for identity in found}


def is_cut(history: History, cut: Mapping[int, int]) -> bool:
    """Return whether a cut names each key once, by segments that are known."""
    known = history.segments
    return (
        0 < len(cut) <= len(known)
        and all(offset >= 0 and identity in known for identity, offset in cut.items())
        and covers_all(sorted((known[each].low, known[each].high) for each in cut))
    )


def between(stream: Stream, start: Mapping[int, int], end: Mapping[int, int]) -> list[int]:
    """Return the segments with what lies between two cuts; an empty one is the stream's end."""
    history = stream.history
    lower = history.before(start or at_time(stream, 0))
    upper = history.before(end) | set(end) if end else set(history.segments)
    return sorted(upper - lower)


def covers_all(ranges: Sequence[tuple[float, float]]) -> bool:
    """Return whether sorted ranges of keys cover 0 … 1, without a gap and without a key in two."""
    position = 0.0
    for low, high in ranges:
        if abs(low - position) > _NEARLY or high - low <= _NEARLY:
            return False
        position = high
    return abs(1.0 - position) <= _NEARLY


def scaled(
    history: History, closed: Iterable[int], ranges: Iterable[tuple[float, float]], at_ms: int
) -> Epoch | None:
    """Return the epoch after a scaling; None if it is not possible.

    Args:
        history: The stream's.
        closed: Segments that end.
        ranges: Keys of the new segments, which must be those of the old ones.
        at_ms: When, in milliseconds since the epoch.
    """
    ended = set(closed)
    wanted = sorted(ranges)
    kept = [each for each in history.open if each.identity not in ended]
    if not ended or not wanted or len(kept) + len(ended) != len(history.open):
        return None
    if not covers_all(sorted(wanted + [(each.low, each.high) for each in kept])):
        return None
    number, epoch = history.next_number, history.last.number + 1
    made = (Segment(*keys, number + place, epoch) for place, keys in enumerate(wanted))
    return Epoch(epoch, at_ms, tuple(made), tuple(sorted(ended)))


def evenly(count: int, first: int, at_ms: int) -> Epoch:
    """Return a stream's first epoch: segments with keys of the same width, numbered on."""
    segments = tuple(
        Segment(place / count, (place + 1) / count, first + place, 0) for place in range(count)
    )
    return Epoch(0, at_ms, segments)


def next_number(stream: Stream) -> int:
    """Return the number behind those of all segments that a stream has had, or is to have."""
    coming = () if stream.coming is None else stream.coming.made
    return max([stream.history.next_number, *(each.number + 1 for each in coming)])

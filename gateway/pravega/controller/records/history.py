"""Facts of a stream that follow from its history: its head, legal cuts, epochs to come.

Pure functions.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from gateway.pravega.controller.records.epochs import Epoch, History, StreamSegment
from gateway.pravega.controller.records.model import StreamRecord

READ_OFF = -1
_NEARLY = 1e-9
"""Difference of keys that is no gap, and no range: clients compute their ranges."""


def at_time(stream: StreamRecord, time_ms: int) -> dict[int, int]:
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


def is_cut(history: History, cut: Mapping[int, int], *, least: int = 0) -> bool:
    """Return whether a cut names each key once, by segments that are known.

    Its offsets are at least `least`; READ_OFF is that of a segment that readers have read off.
    """
    known = history.segments
    return (
        0 < len(cut) <= len(known)
        and all(offset >= least and identity in known for identity, offset in cut.items())
        and covers_all(sorted((known[each].low, known[each].high) for each in cut))
    )


def precedes(history: History, cut: Mapping[int, int], other: Mapping[int, int]) -> bool:
    """Return whether nothing lies before a cut that does not lie before another one too.

    Either may have segments that are not known, of which nothing is left: they are forgotten, or
    were those of a deleted stream of the same name.
    """
    known = history.segments
    behind = history.before(other.keys() & known.keys())
    return all(
        _is_within(offset, other[identity]) if identity in other else identity in behind
        for identity, offset in cut.items()
        if identity in known
    )


def _is_within(offset: int, end: int) -> bool:
    return end == READ_OFF or READ_OFF != offset <= end


def between(stream: StreamRecord, start: Mapping[int, int], end: Mapping[int, int]) -> list[int]:
    """Return the segments with data between two cuts; an empty one is the stream's end."""
    history = stream.history
    lower = history.before(start or at_time(stream, 0))
    upper = history.before(end) | set(end) if end else set(history.segments)
    return sorted(upper - lower)


def covers_all(ranges: Sequence[tuple[float, float]]) -> bool:
    """Return whether sorted ranges of keys cover 0 … 1, without a gap and without a key in two."""
    position = 0.0
    for low, high in ranges:
        is_next = abs(low - position) <= _NEARLY and high - low > _NEARLY
        if not is_next:  # a bound that is no number is neither near nor far
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
        ranges: Keys of the new segments, which must be those of the old ones, nearly: writers of
            Java stop at a difference in the last bit. They are numbered in this order.
        at_ms: When, in milliseconds since the epoch.
    """
    ended = set(closed)
    edges = {edge for each in history.open for edge in (each.low, each.high)}
    wanted = list(_aligned(ranges, sorted(edges)))
    kept = [each for each in history.open if each.identity not in ended]
    if not ended or not wanted or len(kept) + len(ended) != len(history.open):
        return None
    if not covers_all(sorted([*wanted, *((each.low, each.high) for each in kept)])):
        return None
    number, epoch = history.next_number, history.last.number + 1
    made = (StreamSegment(*keys, number + place, epoch) for place, keys in enumerate(wanted))
    return Epoch(epoch, at_ms, tuple(made), tuple(sorted(ended)))


def _aligned(
    ranges: Iterable[tuple[float, float]], edges: list[float]
) -> Iterator[tuple[float, float]]:
    """Yield ranges with the edges of the stream, and of each other, where they are nearly these."""

    def aligned(edge: float) -> float:
        place = bisect_left(edges, edge)
        for known in edges[max(place - 1, 0) : place + 1]:
            if abs(known - edge) <= _NEARLY:
                return known
        edges.insert(place, edge)
        return edge

    return ((aligned(low), aligned(high)) for low, high in ranges)


def is_done(last: Epoch, closed: Iterable[int], ranges: Iterable[tuple[float, float]]) -> bool:
    """Return whether the last epoch came from just this scaling: its answer may have been lost."""
    made = sorted((each.low, each.high) for each in last.made)
    wanted = sorted(_aligned(ranges, sorted({edge for keys in made for edge in keys})))
    return bool(last.ended) and set(last.ended) == set(closed) and made == wanted


def evenly(count: int, first: int, at_ms: int) -> Epoch:
    """Return a stream's first epoch: segments whose keys have equal widths, numbered on.

    Clients compute the same edges, as Pravega does.
    """
    width = 1.0 / count
    edges = [place * width for place in range(count)]
    keys = pairwise([*edges, 1.0])
    return Epoch(
        0, at_ms, tuple(StreamSegment(*each, first + at, 0) for at, each in enumerate(keys))
    )


def next_number(stream: StreamRecord) -> int:
    """Return the number behind those of all segments that a stream has had, or is to have."""
    coming = () if stream.coming is None else stream.coming.made
    return max([stream.history.next_number, *(each.number + 1 for each in coming)])

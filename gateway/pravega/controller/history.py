"""Facts that follow from the epochs of a stream: its head, successors of segments, legal cuts.

Pure functions of a `Stream`.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from gateway.pravega.controller.model import Epoch, Segment, Stream

_NEARLY = 1e-9
"""Difference of keys that is no gap: clients compute their ranges."""


def at_time(stream: Stream, time_ms: int) -> dict[int, int]:
    """Return the segments that were written at a time, and where to read them from.

    At 0, or before what truncation left, that is the stream's head.
    """
    head = dict(stream.cut) or {each.identity: 0 for each in stream.epochs[0].segments}
    if time_ms <= stream.epochs[0].at_ms:
        return head
    then = [epoch for epoch in stream.epochs if epoch.at_ms <= time_ms][-1]
    found = {each.identity: 0 for each in then.segments}
    left = left_of(stream, stream.cut)
    if stream.cut and not set(found) <= left:
        return head
    return {identity: stream.cut.get(identity, 0) for identity in found}


def successors(
    stream: Stream, identity: int, before: Sequence[Segment] = ()
) -> dict[Segment, list[int]]:
    """Return the segments that follow one, each with all that it follows. Empty: it is open.

    Args:
        stream: The stream.
        identity: The segment.
        before: What a deleted stream of the same name had at its end; its segments are followed
            by the first ones of this stream.
    """
    shapes = [before, *(epoch.segments for epoch in stream.epochs)]
    for now, after in pairwise(shapes):
        ended = [each for each in now if each not in after]
        for segment in ended:
            if segment.identity == identity:
                return {
                    new: [old.identity for old in ended if old.overlaps(new)]
                    for new in after
                    if new not in now and new.overlaps(segment)
                }
    return {}


def left_of(stream: Stream, cut: Mapping[int, int]) -> set[int]:
    """Return the segments that hold what comes at or after a cut."""
    return set(stream.segments) - before(stream, cut)


def before(stream: Stream, cut: Mapping[int, int]) -> set[int]:
    """Return the segments of which nothing is left when a stream is cut there."""
    first_epoch = {
        each.identity: epoch.number for epoch in reversed(stream.epochs) for each in epoch.segments
    }
    inside = [stream.segments[identity] for identity in cut]
    return {
        segment.identity
        for segment in stream.segments.values()
        if segment.identity not in cut
        and any(
            segment.overlaps(each) and first_epoch[segment.identity] < first_epoch[each.identity]
            for each in inside
        )
    }


def is_cut(stream: Stream, cut: Mapping[int, int]) -> bool:
    """Tell whether a cut names each key once, by segments that the stream has had."""
    known = stream.segments
    return (
        bool(cut)
        and all(offset >= 0 and identity in known for identity, offset in cut.items())
        and covers_all(sorted((known[each].low, known[each].high) for each in cut))
    )


def between(stream: Stream, start: Mapping[int, int], end: Mapping[int, int]) -> list[int]:
    """Return the segments with what lies between two cuts; an empty one is the stream's end."""
    lower = set(before(stream, start or at_time(stream, 0)))
    upper = set(stream.segments)
    if end:
        upper = before(stream, end) | set(end)
    return sorted(upper - lower)


def covers_all(ranges: Sequence[tuple[float, float]]) -> bool:
    """Tell whether sorted ranges of keys cover 0 … 1, without a gap and without a key in two."""
    return _joins(ranges, 0.0, 1.0)


def scaled(
    stream: Stream, closed: Iterable[int], ranges: Iterable[tuple[float, float]], at_ms: int
) -> Epoch | None:
    """Return the epoch after a scaling; None if it is not possible.

    Args:
        stream: The stream.
        closed: Segments that end.
        ranges: Keys of the new segments, which must be those of the old ones.
        at_ms: When, in milliseconds since the epoch.
    """
    now = stream.epoch
    old = {each.identity: each for each in now.segments}
    ended = set(closed)
    wanted = sorted(ranges)
    if not ended or not ended <= set(old) or not wanted:
        return None
    kept = tuple(each for each in now.segments if each.identity not in ended)
    parts = sorted(wanted + [(each.low, each.high) for each in kept])
    if not covers_all(parts):
        return None
    number = next_number(stream)
    epoch = now.number + 1
    made = tuple(
        Segment(low, high, number + place, epoch) for place, (low, high) in enumerate(wanted)
    )
    return Epoch(epoch, at_ms, tuple(sorted(kept + made)))


def evenly(count: int, first: int, at_ms: int) -> Epoch:
    """Return a stream's first epoch: segments with keys of the same width, numbered on."""
    segments = tuple(
        Segment(place / count, (place + 1) / count, first + place, 0) for place in range(count)
    )
    return Epoch(0, at_ms, segments)


def next_number(stream: Stream) -> int:
    """Return the number behind those of all segments that a stream has had, or is to have."""
    coming = () if stream.coming is None else stream.coming.segments
    return max(each.number for each in (*stream.segments.values(), *coming)) + 1


def _joins(ranges: Sequence[tuple[float, float]], start: float, end: float) -> bool:
    position = start
    for low, high in ranges:
        if abs(low - position) > _NEARLY or high <= low:
            return False
        position = high
    return abs(end - position) <= _NEARLY

"""The segments of a stream, and the epochs in which they began and ended."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gateway.pravega.names import segment_id


class StreamSegment(NamedTuple):
    """A segment of a stream: it holds the keys in [low, high) of 0 … 1."""

    low: float
    high: float
    number: int
    epoch: int

    @property
    def identity(self) -> int:
        """Its number as clients write it."""
        return segment_id(self.number, self.epoch)


class Epoch(NamedTuple):
    """A time in which a set of segments was written.

    Attributes:
        number: Its number.
        at_ms: When it began, in milliseconds since the epoch of Unix.
        made: The segments that began with it; of the first one that is known, all that it has.
        ended: The segments that ended when it began.
        of_commit: A commit began it, and no scaling.
    """

    number: int
    at_ms: int
    made: tuple[StreamSegment, ...]
    ended: tuple[int, ...] = ()
    of_commit: bool = False


class Ranges:
    """Segments of which no two have a key in common, in the order of their keys."""

    def __init__(self, segments: Iterable[StreamSegment]) -> None:
        self.segments = sorted(segments)
        self._lows = [each.low for each in self.segments]
        self._highs = [each.high for each in self.segments]

    def places(self, segment: StreamSegment) -> tuple[int, int]:
        """Return the places [first, end) of those that have a key in common with a segment."""
        first = bisect_right(self._highs, segment.low)
        return first, max(first, bisect_left(self._lows, segment.high))

    def overlapping(self, segment: StreamSegment) -> list[StreamSegment]:
        """Return those that have a key in common with a segment."""
        first, end = self.places(segment)
        return self.segments[first:end]


@dataclass(frozen=True)
class History:
    """The epochs of a stream, oldest first, and facts that follow from them; each is found once.

    It takes n log n for n segments.
    """

    epochs: tuple[Epoch, ...]

    @cached_property
    def segments(self) -> Mapping[int, StreamSegment]:
        """Every segment that is known, by identity, oldest first."""
        return {each.identity: each for epoch in self.epochs for each in epoch.made}

    @cached_property
    def of_commits(self) -> frozenset[int]:
        """The segments that commits have opened, by identity."""
        began = (epoch.made for epoch in self.epochs if epoch.of_commit)
        return frozenset(each.identity for made in began for each in made)

    @cached_property
    def _ends(self) -> Mapping[int, Epoch]:
        """The epochs that began when segments ended, by the segments' identities."""
        return {identity: epoch for epoch in self.epochs for identity in epoch.ended}

    @cached_property
    def open(self) -> tuple[StreamSegment, ...]:
        """The segments that are written now, by their keys."""
        ends = self._ends
        return tuple(sorted(each for key, each in self.segments.items() if key not in ends))

    @property
    def last(self) -> Epoch:
        """The epoch of now."""
        return self.epochs[-1]

    def began_ms(self, number: int) -> int:
        """Return when an epoch began; of one that is forgotten, when the first one began."""
        place = max(number - self.epochs[0].number, 0)
        return self.epochs[min(place, len(self.epochs) - 1)].at_ms

    @cached_property
    def next_number(self) -> int:
        """The number behind those of all its segments."""
        return max(each.number for each in self.segments.values()) + 1

    def at(self, number: int) -> tuple[StreamSegment, ...]:
        """Return the segments of an epoch, by their keys; none if it is not known."""
        if not self.epochs[0].number <= number <= self.last.number:
            return ()
        ends = self._ends
        return tuple(
            sorted(
                each
                for key, each in self.segments.items()
                if each.epoch <= number and (key not in ends or ends[key].number > number)
            )
        )

    def successors(
        self, identity: int, before: Iterable[StreamSegment] = ()
    ) -> dict[StreamSegment, list[int]]:
        """Return the segments that follow one, each with all that it follows. Empty: it is open.

        Args:
            identity: The segment.
            before: What a deleted stream of the same name had at its end; its segments are
                followed by the first ones of this stream.
        """
        segment = self.segments.get(identity)
        if segment is None:
            end, ended = self.epochs[0], Ranges(before)
            segment = next(each for each in ended.segments if each.identity == identity)
        elif identity in self._ends:
            end = self._ends[identity]
            ended = Ranges(self.segments[each] for each in end.ended)
        else:
            return {}
        made = Ranges(end.made)
        return {
            new: [old.identity for old in ended.overlapping(new)]
            for new in made.overlapping(segment)
        }

    def before(self, cut: Collection[int]) -> set[int]:
        """Return the segments of which nothing is left when a stream is cut there.

        Those are older than one of the cut's segments that has a key of theirs.
        """
        inside = Ranges(self.segments[each] for each in cut)
        epochs = [each.epoch for each in inside.segments]
        newest, last = _newest(epochs), max(epochs, default=0)
        found = set()
        for identity, segment in self.segments.items():
            if segment.epoch < last and identity not in cut:
                first, end = inside.places(segment)
                if first < end and newest(first, end) > segment.epoch:
                    found.add(identity)
        return found

    def behind(self, cut: Collection[int]) -> set[int]:
        """Return the segments of a cut and their successors, also where it has not all keys.

        Those that follow are newer than one of the cut's segments that has a key of theirs.
        """
        inside = Ranges(self.segments[each] for each in cut)
        oldest = _newest([-each.epoch for each in inside.segments])
        found = set(cut)
        for identity, segment in self.segments.items():
            first, end = inside.places(segment)
            if first < end and -oldest(first, end) < segment.epoch:
                found.add(identity)
        return found

    def followed_by(self, epoch: Epoch) -> "History":
        """Return it with one more epoch."""
        return History((*self.epochs, epoch))

    def since(self, place: int) -> "History":
        """Return it from the epoch at a place on, without the segments that ended before."""
        first = self.epochs[place]
        base = Epoch(first.number, first.at_ms, self.at(first.number))
        return History((base, *self.epochs[place + 1 :]))


def _newest(epochs: Sequence[int]) -> Callable[[int, int], int]:
    """Return a function for the largest of the numbers at [first, end), by two of its rows."""
    rows = [epochs]
    while len(rows[-1]) > 1 << len(rows) - 1:
        row = rows[-1]
        rows.append(list(map(max, row, row[1 << len(rows) - 1 :])))

    def newest(first: int, end: int) -> int:
        level = (end - first).bit_length() - 1
        return max(rows[level][first], rows[level][end - (1 << level)])

    return newest

"""Times that the writers of a stream have told, and the watermark that follows from them.

Pure: a record, and what becomes of it.

Source: Pravega's rules. A writer takes part while its time is above the last watermark's; one that
does not is waited for as long as the stream's timeout says, unless it has said that it ends.
"""

import dataclasses
import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from gateway.pravega.controller.readers.group import Cut
from gateway.pravega.controller.records.epochs import History, Ranges, StreamSegment
from gateway.pravega.controller.rounds.marks import Watermark

WRITERS_MAX: Final = 1_000
NAME_LETTERS_MAX: Final = 255
ENTRIES_MAX: Final = 10_000
"""Segments in the positions of all writers of a stream: its record has to fit into a row."""


class Told(enum.Enum):
    """Outcome of a time that a writer tells."""

    TAKEN = 0
    INVALID_TIME = 1
    INVALID_POSITION = 2
    TOO_MANY = 3


class WriterTimes(NamedTuple):
    """A writer of a stream.

    Attributes:
        time: The last time that it told.
        position: Where it was then: offsets by segments.
        is_alive: It has not said that it ends.
    """

    time: int
    position: Cut
    is_alive: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Record of a stream's writers.

    Attributes:
        writers: By their names.
        last: The last watermark; None before the first.
    """

    scope: str
    stream: str
    writers: Mapping[str, WriterTimes] = field(default_factory=dict)
    last: Watermark | None = None

    def tell(self, name: str, time: int, position: Cut) -> tuple[Told, Self]:
        """Return the outcome of a writer's time, and the record after it."""
        before = self.writers.get(name)
        if before is not None and before.time > time:
            return Told.INVALID_TIME, self
        if before is not None and not _goes_on(before.position, position):
            return Told.INVALID_POSITION, self
        writers = {**self.writers, name: WriterTimes(time, dict(position))}
        entries = sum(len(each.position) for each in writers.values())
        is_long = len(name) > NAME_LETTERS_MAX
        if is_long or len(writers) > WRITERS_MAX or entries > ENTRIES_MAX:
            return Told.TOO_MANY, self
        return Told.TAKEN, replace(self, writers=writers)

    def end(self, name: str) -> Self | None:
        """Return the record after a writer has ended; None if there is no such writer."""
        if name not in self.writers:
            return None
        ended = self.writers[name]._replace(is_alive=False)
        return replace(self, writers={**self.writers, name: ended})

    def takes_part(self, name: str) -> bool:
        """Return whether a writer's time is above the last watermark's."""
        return self.last is None or self.writers[name].time > self.last.lower

    def mark(self, silent: Iterable[str], history: History) -> Self:
        """Return the record after a round: with a new watermark, if all writers are so far.

        Args:
            silent: Writers that are not waited for any more; they are forgotten.
            history: The stream's segments.
        """
        gone = {name for name in silent if not self.takes_part(name)}
        writers = {name: each for name, each in self.writers.items() if name not in gone}
        left = replace(self, writers=writers)
        if not writers or not all(map(left.takes_part, writers)):
            return left
        bound: dict[StreamSegment, int] = {}
        known = history.segments
        positions = [each.position for each in writers.values()]
        for position in positions:
            _raise(bound, {known[key]: value for key, value in position.items() if key in known})
        if self.last is not None:
            _raise(bound, self.last.cut)
        if not bound:
            return left
        _complete(bound, history)
        times = [each.time for each in writers.values()]
        return replace(left, last=Watermark(min(times), max(times), bound))

    def to_bytes(self) -> bytes:
        """Return the record's form in the table."""
        fields: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in dataclasses.fields(self)
        }
        if self.last is not None:
            fields["last"] = [self.last.lower, self.last.upper, list(self.last.cut.items())]
        return json.dumps(fields).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the bytes of `to_bytes`."""
        fields = json.loads(data)
        fields["writers"] = {
            name: WriterTimes(time, {int(key): value for key, value in position.items()}, is_alive)
            for name, (time, position, is_alive) in fields["writers"].items()
        }
        if fields["last"] is not None:
            lower, upper, cut = fields["last"]
            entries = {StreamSegment(*segment): offset for segment, offset in cut}
            fields["last"] = Watermark(lower, upper, entries)
        return cls(**fields)


def _goes_on(before: Cut, position: Cut) -> bool:
    """Return whether no segment that two positions have has a lower offset in the second."""
    return all(position[key] >= value for key, value in before.items() if key in position)


def _raise(bound: dict[StreamSegment, int], position: Mapping[StreamSegment, int]) -> None:
    """Make an upper bound one of a position too."""
    for segment, offset in position.items():
        if segment in bound:
            bound[segment] = max(bound[segment], offset)
            continue
        shared = [each for each in bound if _overlap(each, segment)]
        if not any(each.identity > segment.identity for each in shared):
            for each in shared:
                del bound[each]
            bound[segment] = offset


def _overlap(one: StreamSegment, other: StreamSegment) -> bool:
    return one.low < other.high and other.low < one.high


def _complete(bound: dict[StreamSegment, int], history: History) -> None:
    """Add segments of the highest epoch, from their starts, until all keys are there."""
    while missing := _missing(bound):
        epoch = max(each.epoch for each in bound)
        there = Ranges(history.at(epoch))
        found = {
            each
            for low, high in missing
            for each in there.overlapping(StreamSegment(low, high, 0, 0))
        }
        before = dict(bound)
        _raise(bound, dict.fromkeys(sorted(found - set(bound)), 0))
        if bound == before:
            return


def _missing(bound: Mapping[StreamSegment, int]) -> list[tuple[float, float]]:
    """Return the ranges of keys that no segment has."""
    gaps, position = [], 0.0
    for each in sorted(bound):
        if each.low > position:
            gaps.append((position, each.low))
        position = max(position, each.high)
    return [*gaps, (position, 1.0)] if position < 1.0 else gaps

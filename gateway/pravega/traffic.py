"""Appends of all connections: those under way, counts of those stored, places where they begin."""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import Final, NamedTuple

from store.api import TRANSACTION_MARK

_FEW_BYTES: Final = 8 * 1024 * 1024
SEGMENTS_MAX: Final = 20_000
"""Segments that are counted at a time; what is written to others does not count."""
SPACING_BYTES: Final = 256 * 1024


class AppendsUnderWay:
    """The appends that the store has not answered yet; a `Backlog` of the server.

    Attributes:
        in_flight_bytes: Bytes of them.
    """

    def __init__(self, whole: "AppendsUnderWay | None" = None) -> None:
        """Begin with none; `whole` counts those of several connections, with these among them."""
        self.in_flight_bytes = 0
        self._whole = whole
        self._count = 0
        self._when_drained: list[Callable[[], object]] = []
        self._when_none: list[Callable[[], object]] = []

    def begin(self, size: int) -> None:
        """Count an append, by its size in bytes."""
        self._count += 1
        self.in_flight_bytes += size
        if self._whole is not None:
            self._whole.begin(size)

    def end(self, size: int) -> None:
        """Count it as answered."""
        self._count -= 1
        self.in_flight_bytes -= size
        if self._whole is not None:
            self._whole.end(size)
        if self._when_drained and self.in_flight_bytes <= _FEW_BYTES:
            callbacks, self._when_drained = self._when_drained, []
            _call(callbacks)
        if self._when_none and not self._count:
            callbacks, self._when_none = self._when_none, []
            _call(callbacks)

    def when_drained(self, callback: Callable[[], object]) -> None:
        """Call `callback` once few bytes are under way."""
        self._when_drained.append(callback)

    def when_none(self, callback: Callable[[], object]) -> None:
        """Call `callback` once no append is under way; at once if none is."""
        if self._count:
            self._when_none.append(callback)
        else:
            callback()


def _call(callbacks: list[Callable[[], object]]) -> None:
    for callback in callbacks:
        callback()


class WriteCounts(NamedTuple):
    """Bytes and events that were written."""

    size: int
    events: int


_NOTHING: Final = WriteCounts(0, 0)


class Traffic:
    """Bytes and events by segment, since the controller last took them.

    What a transaction writes counts when it is committed.

    Attributes:
        is_watched: A controller takes what is counted; nothing is counted without.
    """

    def __init__(self) -> None:
        """Begin without a controller."""
        self.is_watched = False
        self._written: dict[str, WriteCounts] = {}
        self._parts: dict[str, WriteCounts] = {}

    def note(self, segment: str, size: int, events: int) -> None:
        """Count an append that is stored."""
        if not self.is_watched:
            return
        counts = self._parts if TRANSACTION_MARK in segment else self._written
        before = counts.get(segment)
        if before is not None:
            counts[segment] = WriteCounts(before.size + size, before.events + events)
        elif len(counts) < SEGMENTS_MAX:
            counts[segment] = WriteCounts(size, events)

    def commit(self, part: str, segment: str) -> None:
        """Count the writes of a transaction as those of its segment."""
        self.note(segment, *self._parts.pop(part, _NOTHING))

    def abort(self, part: str) -> None:
        """Forget the writes of a transaction."""
        self._parts.pop(part, None)

    def taken(self) -> dict[str, WriteCounts]:
        """Return the counts by segment, and begin anew."""
        taken, self._written = self._written, {}
        return taken


class _Noted(NamedTuple):
    created_at: int
    positions: "array[int]"


class Boundaries:
    """Positions of the appends of each segment since the start.

    They are so sparse that they take 8 bytes for each 256 KiB.
    A segment is its name and the time of its creation: a name may be used again.
    """

    def __init__(self) -> None:
        self._noted: dict[str, _Noted] = {}

    def note(self, segment: str, created_at: int, position: int) -> None:
        """Note that an append begins at a position, unless one near below is noted."""
        noted = self._noted.get(segment)
        if noted is not None and noted.created_at == created_at:
            if position - noted.positions[-1] >= SPACING_BYTES:
                noted.positions.append(position)
        elif position >= SPACING_BYTES:
            self._noted[segment] = _Noted(created_at, array("q", (position,)))

    def below(self, segment: str, created_at: int, position: int) -> int:
        """Return the last that is noted at or below a position; 0 if none is."""
        noted = self._noted.get(segment)
        if noted is None or noted.created_at != created_at:
            return 0
        index = bisect_right(noted.positions, position)
        return noted.positions[index - 1] if index else 0

    def forget(self, segment: str) -> None:
        """Forget a segment that was deleted."""
        self._noted.pop(segment, None)

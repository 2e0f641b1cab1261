"""Counts of what clients write to segments, for the policies of scaling."""

from typing import Final, NamedTuple

from store.api import TRANSACTION_MARK

SEGMENTS_MAX: Final = 20_000
"""Segments that are counted at a time; what is written to others does not count."""


class Written(NamedTuple):
    """Bytes and events that were written."""

    size: int
    events: int


_NOTHING: Final = Written(0, 0)


class Traffic:
    """Bytes and events by segment, since the controller last took them.

    What a transaction writes counts when it is committed.

    Attributes:
        is_watched: A controller takes what is counted; nothing is counted without.
    """

    def __init__(self) -> None:
        """Begin without a controller."""
        self.is_watched = False
        self._written: dict[str, Written] = {}
        self._parts: dict[str, Written] = {}

    def note(self, segment: str, size: int, events: int) -> None:
        """Count what is stored."""
        if not self.is_watched:
            return
        counts = self._parts if TRANSACTION_MARK in segment else self._written
        before = counts.get(segment)
        if before is not None:
            counts[segment] = Written(before.size + size, before.events + events)
        elif len(counts) < SEGMENTS_MAX:
            counts[segment] = Written(size, events)

    def commit(self, part: str, segment: str) -> None:
        """Count what a transaction has written beside a segment."""
        self.note(segment, *self._parts.pop(part, _NOTHING))

    def abort(self, part: str) -> None:
        """Forget what a transaction has written."""
        self._parts.pop(part, None)

    def taken(self) -> dict[str, Written]:
        """Return what segments have got, and begin anew."""
        taken, self._written = self._written, {}
        return taken

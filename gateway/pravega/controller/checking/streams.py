"""Check of a stream's record against the segments of the store, and a count of their events."""

import struct
from collections.abc import Iterator
from typing import Final

from gateway.pravega.controller.checking.finding import UNDER_WAY, Finding, Held, note
from gateway.pravega.controller.records.history import covers_all
from gateway.pravega.controller.records.model import StreamRecord, StreamState
from store.api import SegmentInfo

_WITHOUT_SEGMENTS: Final = {StreamState.CREATING, StreamState.DELETING}
"""Segments may be missing while these changes are under way."""


def owner_of(stream: StreamRecord) -> str:
    """Return how a finding names a stream."""
    return f"stream={stream.scope}/{stream.name}"


def flaws_of(stream: StreamRecord, held: Held) -> Iterator[Finding]:
    """Yield the flaws of a stream, and a note if a change of it is under way."""
    if not stream.state.is_settled:
        yield note(UNDER_WAY, owner_of(stream))
    if stream.state in _WITHOUT_SEGMENTS:
        return
    owner = owner_of(stream)
    if not covers_all([(each.low, each.high) for each in stream.history.open]):
        yield Finding("its open segments do not have each key once", owner)
    written = {each.identity for each in stream.history.open}
    sealing = _sealing(stream)
    for identity in sorted(stream.history.segments.keys() - stream.given_up):
        name = stream.segment_name(identity)
        is_written = identity in written and stream.state is not StreamState.SEALED
        is_sealed = None if identity in sealing else not is_written
        what = _flaw_of_segment(held.get(name), is_sealed=is_sealed)
        if what:
            yield Finding(what, owner, name)
    yield from _flaws_of_cut(stream, held)


def _flaw_of_segment(shape: SegmentInfo | None, *, is_sealed: bool | None) -> str:
    """Return what is wrong with a segment, which is to be sealed, or not, or perhaps."""
    if shape is None:
        return "a segment of the stream is missing"
    if shape.is_table:
        return "a segment of the stream is a table"
    if is_sealed is None or shape.sealed == is_sealed:
        return ""
    return (
        "a segment that has ended is not sealed"
        if is_sealed
        else "a segment that the stream writes is sealed"
    )


def _sealing(stream: StreamRecord) -> set[int]:
    """Return the segments that the change that is under way seals."""
    if stream.state is StreamState.SEALING:
        return {each.identity for each in stream.history.open}
    return set() if stream.coming is None else set(stream.coming.ended)


def _flaws_of_cut(stream: StreamRecord, held: Held) -> Iterator[Finding]:
    """Yield the flaws of the place where a stream begins."""
    for identity, offset in stream.cut.items():
        name = stream.segment_name(identity)
        shape = held.get(name)
        if shape is None or shape.is_table:
            continue
        if offset > shape.length:
            what = f"the stream begins at {offset}, and the segment ends at {shape.length}"
            yield Finding(what, owner_of(stream), name)
        elif offset < shape.start:  # clients may truncate it themselves
            what = f"the stream begins at {offset}, and the segment at {shape.start}"
            yield note(what, owner_of(stream), name)


_HEAD: Final = struct.Struct(">ii")
_EVENT: Final = 0


class Events:
    """Counts the events of a segment that is fed in pieces.

    They are `int 0, int length, bytes`, one behind the other.
    """

    def __init__(self) -> None:
        """Begin at the segment's start."""
        self._count = 0
        self._are_events = True
        self._left = b""
        self._to_skip = 0
        """Bytes of the last event that are still to come."""

    @property
    def count(self) -> int:
        """The events; 0 if they do not add up: bytes may be written as a stream of bytes."""
        is_whole = self._are_events and not self._left and not self._to_skip
        return self._count if is_whole else 0

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        if not self._are_events:
            return
        data, place = self._left + data, self._to_skip
        while place + _HEAD.size <= len(data):
            kind, size = _HEAD.unpack_from(data, place)
            if kind != _EVENT or size < 0:
                self._are_events = False
                return
            place += _HEAD.size + size
            self._count += 1
        self._left = data[place:]
        self._to_skip = max(0, place - len(data))

"""Check of a stream's record against the segments of the store."""

from collections.abc import Iterator
from typing import Final

from gateway.pravega.controller.checking.finding import UNDER_WAY, Finding, Held, note
from gateway.pravega.controller.history import covers_all
from gateway.pravega.controller.model import State, Stream
from store.api import SegmentInfo

_WITHOUT_SEGMENTS: Final = {State.CREATING, State.DELETING}
"""Segments may be missing while these changes are under way."""


def owner_of(stream: Stream) -> str:
    """Return how a finding names a stream."""
    return f"stream={stream.scope}/{stream.name}"


def flaws_of(stream: Stream, held: Held) -> Iterator[Finding]:
    """Yield what is wrong with a stream, and a note if a change of it is under way."""
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
        is_written = identity in written and stream.state is not State.SEALED
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


def _sealing(stream: Stream) -> set[int]:
    """Return the segments that the change that is under way seals."""
    if stream.state is State.SEALING:
        return {each.identity for each in stream.history.open}
    return set() if stream.coming is None else set(stream.coming.ended)


def _flaws_of_cut(stream: Stream, held: Held) -> Iterator[Finding]:
    """Yield what is wrong with the place where a stream begins."""
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

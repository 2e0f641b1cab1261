"""Marks of time: each stream has a stream of them, in which the server says how far in time it is.

A reader opens it with its stream. It is no row of its own: it is there as long as its stream is,
and its segment is made when it is asked for. Clients read it as they may read the stream, and only
the server writes it.

Source: Pravega, whose clients ask for `_MARK<stream>`. The bytes of a mark are what Pravega 0.13
writes there, by its format for values with a version.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from gateway.broker.access.model import Right
from gateway.pravega.access.callers import Caller
from gateway.pravega.controller.records.directory import Directory
from gateway.pravega.controller.records.epochs import History, StreamSegment
from gateway.pravega.controller.records.history import evenly
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord, StreamState
from gateway.pravega.names import MARK, marked

_HEAD: Final = struct.Struct(">BBBBI")
"""The number of the format, version, count of revisions, number of the one, and its size."""
_EVENT: Final = struct.Struct(">II")
_BOUNDS: Final = struct.Struct(">qq")
_SEGMENT: Final = struct.Struct(">qdd")
_OFFSET: Final = struct.Struct(">q")
_ONE, _TWO = 0x7F, 0x3FFF


class Watermark(NamedTuple):
    """A mark of time: no event from here on is older than `lower`, as its writers said.

    Attributes:
        lower: The least of the times that writers said; any unit.
        upper: The greatest.
        cut: Where: offsets by segments.
    """

    lower: int
    upper: int
    cut: Mapping[StreamSegment, int]


def pack(mark: Watermark) -> bytes:
    """Return a watermark as an event of its stream."""
    entries = b"".join(
        _revision(_SEGMENT.pack(each.identity, each.low, each.high)) + _OFFSET.pack(offset)
        for each, offset in sorted(mark.cut.items())
    )
    bounds = _BOUNDS.pack(mark.lower, mark.upper)
    value = _revision(bounds + _compact(len(mark.cut)) + entries)
    return _EVENT.pack(0, len(value)) + value


def _revision(content: bytes) -> bytes:
    return _HEAD.pack(0, 0, 1, 0, len(content)) + content


def _compact(number: int) -> bytes:
    """Return a number below 2^30 in 1, 2 or 4 bytes, by its first bits."""
    if number <= _ONE:
        return number.to_bytes(1, "big")
    if number <= _TWO:
        return (number | 0x8000).to_bytes(2, "big")
    return (number | 0xC0000000).to_bytes(4, "big")


def marks_of(stream: StreamRecord) -> StreamRecord:
    """Return the stream of a stream's marks."""
    return StreamRecord(
        scope=stream.scope,
        name=MARK + stream.name,
        policy=StreamPolicy(),
        state=StreamState.ACTIVE,
        history=History((evenly(1, stream.first_number, stream.history.epochs[0].at_ms),)),
    )


class Shown:
    """The names of a scope's streams and of their marks, in order."""

    def __init__(self, streams: Directory[StreamRecord]) -> None:
        """Show the streams of a scope."""
        self._streams = streams

    def after(self, name: str) -> str | None:
        """Return the name that follows another, which need not be there; None at the end."""
        found = [self._streams.after(name), self._mark_after(name)]
        return min(filter(None, found), default=None)

    def _mark_after(self, name: str) -> str | None:
        if name >= MARK and not name.startswith(MARK):
            return None
        stream = self._streams.after(name.removeprefix(MARK) if name >= MARK else "")
        return None if stream is None else MARK + stream


class MarkRights:
    """A caller with its rights on marks: it reads them where it may read the stream."""

    def __init__(self, caller: Caller) -> None:
        """Take the rights of a caller."""
        self._may: Final[Callable[[Right, str, str], bool]] = caller.may
        self.name: Final = caller.name

    def may(self, right: Right, scope: str, stream: str) -> bool:
        """Return whether it has a right on a stream; on its scope if the stream is ''."""
        base = marked(stream)
        if base is None:
            return self._may(right, scope, stream)
        return right is Right.READ and self._may(right, scope, base)

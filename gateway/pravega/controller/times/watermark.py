"""Watermarks: how far in time a stream is, and where; and their bytes in a stream of marks.

Source: what Pravega 0.13 writes there, by its format for values with a version.
"""

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from gateway.pravega.controller.epochs import Segment

_HEAD: Final = struct.Struct(">BBBBI")
"""The number of the format, version, count of revisions, number of the one, and its size."""
_EVENT: Final = struct.Struct(">II")
_BOUNDS: Final = struct.Struct(">qq")
_SEGMENT: Final = struct.Struct(">qdd")
_OFFSET: Final = struct.Struct(">q")
_ONE, _TWO = 0x7F, 0x3FFF


class Watermark(NamedTuple):
    """A mark of time: no event from here on is older than `lower`, by what its writers said.

    Attributes:
        lower: The least of the times that writers said; any unit.
        upper: The greatest.
        cut: Where: offsets by segments.
    """

    lower: int
    upper: int
    cut: Mapping[Segment, int]


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

"""Messages of the early dialect. Their fields are in the order of the draft, and are their bytes.

An Event is that of today's dialect. `early_commands.py` says which code a class has.
"""

from dataclasses import dataclass, field
from typing import Final

from hutch.pravega.layout import Message
from hutch.pravega.wire_types import Boolean, Byte, Id, Int, Long, Rest, Text

FIRST: Final = 0
MIDDLE: Final = 1
LAST: Final = 2
"""Places of a part in its message."""


@dataclass(frozen=True, slots=True)
class PartialMessage(Message):
    """Brings a part of a message that was cut: 0 is its first, 1 a middle one, 2 its last."""

    part: Byte
    data: Rest = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeepAlive(Message):
    """Shows that a side is there; the server sends it back with its data."""

    data: Rest = field(repr=False)


@dataclass(frozen=True, slots=True)
class SetupAppend(Message):
    """Opens an appender on a segment."""

    connection_id: Id
    segment: Text


@dataclass(frozen=True, slots=True)
class AppendSetup(Message):
    """Gives the offset behind the appender's last stored block, 0 if it is new."""

    segment: Text
    connection_id: Id
    acknowledged: Long


@dataclass(frozen=True, slots=True)
class BeginAppendBlock(Message):
    """Begins a block; gives its offset, and the most bytes of messages before its end."""

    connection_id: Id
    offset: Long
    length_before_end: Int


@dataclass(frozen=True, slots=True)
class EndAppendBlock(Message):
    """Ends a block; gives the offset behind it and its size as it is stored."""

    connection_id: Id
    offset: Long
    block_length: Int


@dataclass(frozen=True, slots=True)
class DataAppended(Message):
    """Says that all blocks up to an offset are stored."""

    connection_id: Id
    acknowledged: Long


@dataclass(frozen=True, slots=True)
class ReadSegment(Message):
    """Asks for bytes from an offset on; at the tail the answer waits for them."""

    segment: Text
    offset: Long
    suggested_length: Int


@dataclass(frozen=True, slots=True)
class SegmentRead(Message):
    """Brings bytes of a segment; a read has as many of these as it takes."""

    segment: Text
    offset: Long
    at_tail: Boolean
    end_of_segment: Boolean
    data: Rest = field(repr=False)

"""The early dialect of Pravega's wire protocol: its messages, and its table of commands.

The fields of a message are in the order of the draft, and are its bytes. An Event is that of
today's dialect. The draft fixes no codes: these are of the first servers, from 2016.
"""

from dataclasses import dataclass, field
from typing import Final

from hutch.pravega.commands import BOTH, CLIENT, SERVER, CommandCode
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import Event
from hutch.pravega.wire_types import Boolean, Byte, Id, Int, Long, Rest, Text

FIRST: Final = 0
MIDDLE: Final = 1
LAST: Final = 2
"""Places of a part in its message."""


@dataclass(frozen=True, slots=True)
class PartialMessage(WireMessage):
    """Brings a part of a message that was cut: 0 is its first, 1 a middle one, 2 its last."""

    part: Byte
    data: Rest = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeepAlive(WireMessage):
    """Shows that a side is there; the server sends it back with its data."""

    data: Rest = field(repr=False)


@dataclass(frozen=True, slots=True)
class SetupAppend(WireMessage):
    """Opens an appender on a segment."""

    connection_id: Id
    segment: Text


@dataclass(frozen=True, slots=True)
class AppendSetup(WireMessage):
    """Gives the offset behind the appender's last stored block, 0 if it is new."""

    segment: Text
    connection_id: Id
    acknowledged: Long


@dataclass(frozen=True, slots=True)
class BeginAppendBlock(WireMessage):
    """Begins a block; gives its offset, and the most bytes of messages before its end."""

    connection_id: Id
    offset: Long
    length_before_end: Int


@dataclass(frozen=True, slots=True)
class EndAppendBlock(WireMessage):
    """Ends a block; gives the offset behind it and its size as it is stored."""

    connection_id: Id
    offset: Long
    block_length: Int


@dataclass(frozen=True, slots=True)
class DataAppended(WireMessage):
    """Says that all blocks up to an offset are stored."""

    connection_id: Id
    acknowledged: Long


@dataclass(frozen=True, slots=True)
class ReadSegment(WireMessage):
    """Asks for bytes from an offset on; at the tail the answer waits for them."""

    segment: Text
    offset: Long
    suggested_length: Int


@dataclass(frozen=True, slots=True)
class SegmentRead(WireMessage):
    """Brings bytes of a segment; a read has as many of these as it takes."""

    segment: Text
    offset: Long
    at_tail: Boolean
    end_of_segment: Boolean
    data: Rest = field(repr=False)


# fmt: off
EARLY_COMMANDS: Final = (
    #       code  from    message
    CommandCode(-2,   BOTH,   PartialMessage),
    CommandCode(0,    CLIENT, Event),
    CommandCode(1,    CLIENT, SetupAppend),
    CommandCode(2,    SERVER, AppendSetup),
    CommandCode(3,    CLIENT, BeginAppendBlock),
    CommandCode(4,    CLIENT, EndAppendBlock),
    CommandCode(5,    SERVER, DataAppended),
    CommandCode(8,    CLIENT, ReadSegment),
    CommandCode(9,    SERVER, SegmentRead),
    CommandCode(100,  BOTH,   KeepAlive),
)
# fmt: on

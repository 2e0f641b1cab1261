"""Messages about the connection, appends, reads, segments and their attributes.

Their fields, in order, are their bytes. A reply repeats the `request_id` of its request, and a
client may give it any meaning. `commands.py` says which code a class has, and which side sends it.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final

from hutch.pravega.layout import PayloadLayout, WireMessage
from hutch.pravega.wire_types import (
    STRING_TYPE,
    Boolean,
    Byte,
    Data,
    EventData,
    Id,
    Int,
    Items,
    Long,
    Rest,
    Text,
)

UNKNOWN: Final = -1
"""A number that an older peer did not send."""
ABSENT: Final = -(2**63)
"""The value of an attribute that is not set, and the last event number of a new writer."""


ATTRIBUTE_UPDATES_MAX: Final = 1_000
"""Updates of attributes in one merge."""
SOURCES_MAX: Final = 1_000
"""Segments that one request merges."""


# ---- connection ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello(WireMessage):
    """Tells the versions that a side speaks; the client's comes first."""

    high_version: Int
    low_version: Int


@dataclass(frozen=True, slots=True)
class KeepAlive(WireMessage):
    """Shows that a side is there; a server sends it back."""


# ---- appends ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetupAppend(WireMessage):
    """Opens a writer on a segment."""

    request_id: Long
    writer_id: Id
    segment: Text
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class AppendSetup(WireMessage):
    """Gives the writer's last event number, -2^63 if it is new."""

    request_id: Long
    segment: Text
    writer_id: Id
    last_event_number: Long


@dataclass(frozen=True, slots=True)
class AppendBlock(WireMessage):
    """Brings events before their number is known; an AppendBlockEnd follows."""

    writer_id: Id
    data: Rest = field(repr=False)


@dataclass(frozen=True, slots=True)
class AppendBlockEnd(WireMessage):
    """Ends an append: says how much of the block are whole events, and brings what is missing."""

    writer_id: Id
    whole_events_size: Int
    data: Data = field(repr=False)
    event_count: Int
    last_event_number: Long
    request_id: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class Event(WireMessage):
    """Holds one event inside a block, in the form in which it is stored; never sent alone."""

    data: Rest = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartialEvent(WireMessage):
    """Holds the beginning of an event at the end of a block; its rest is in the AppendBlockEnd."""

    data: Rest = field(repr=False)


@dataclass(frozen=True, slots=True)
class Padding(WireMessage):
    """Fills the end of a block; ignored when it is sent alone."""

    data: Rest = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConditionalAppend(WireMessage):
    """Appends one event if the segment has the expected length."""

    writer_id: Id
    event_number: Long
    expected_offset: Long
    event: EventData = field(repr=False)
    request_id: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class ConditionalBlockEnd(WireMessage):
    """Appends bytes without an event's head if the segment has the expected length."""

    writer_id: Id
    event_number: Long
    expected_offset: Long
    data: Data = field(repr=False)
    request_id: Long


@dataclass(frozen=True, slots=True)
class DataAppended(WireMessage):
    """Says that all events up to a number are stored."""

    writer_id: Id
    event_number: Long
    previous_event_number: Long
    request_id: Long = UNKNOWN
    current_segment_write_offset: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class ConditionalCheckFailed(WireMessage):
    """Says that the segment did not have the expected length; nothing was written."""

    writer_id: Id
    event_number: Long
    request_id: Long = UNKNOWN


# ---- reads and facts -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadSegment(WireMessage):
    """Asks for bytes from an offset on; at the tail the answer waits for them."""

    segment: Text
    offset: Long
    suggested_length: Int
    token: Text = field(repr=False)
    request_id: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class SegmentRead(WireMessage):
    """Brings bytes of a segment, of any length."""

    segment: Text
    offset: Long
    at_tail: Boolean
    end_of_segment: Boolean
    data: Data = field(repr=False)
    request_id: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class SegmentRequest(WireMessage):
    """A request that names a segment and nothing else."""

    request_id: Long
    segment: Text
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class SegmentReply(WireMessage):
    """An answer that names a segment and nothing else."""

    request_id: Long
    segment: Text


@dataclass(frozen=True, slots=True)
class GetStreamSegmentInfo(SegmentRequest):
    """Asks for length, start and state of a segment."""


@dataclass(frozen=True, slots=True)
class StreamSegmentInfo(SegmentReply):
    """Gives length, start and state of a segment; the time is in ms since the epoch."""

    exists: Boolean
    is_sealed: Boolean
    is_deleted: Boolean
    last_modified: Long
    write_offset: Long
    start_offset: Long


@dataclass(frozen=True, slots=True)
class LocateOffset(WireMessage):
    """Asks for the beginning of the event that holds an offset."""

    request_id: Long
    segment: Text
    target_offset: Long
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class OffsetLocated(SegmentReply):
    """Gives the offset of an event's beginning."""

    offset: Long


# ---- life of a segment -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateSegment(WireMessage):
    """Creates a segment; scale type 0 is none, 1 KB/s, 2 events/s."""

    request_id: Long
    segment: Text
    target_rate: Int
    scale_type: Byte
    token: Text = field(repr=False)
    rollover_size: Long = 0


@dataclass(frozen=True, slots=True)
class SegmentCreated(SegmentReply):
    """Says that a segment or a table was created."""


@dataclass(frozen=True, slots=True)
class CreateTransientSegment(WireMessage):
    """Creates a segment that the server names, and deletes when the connection ends."""

    request_id: Long
    writer_id: Id
    parent: Text
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class SealSegment(SegmentRequest):
    """Seals a segment: it takes no more appends."""


@dataclass(frozen=True, slots=True)
class SegmentSealed(SegmentReply):
    """Says that a segment was sealed."""


@dataclass(frozen=True, slots=True)
class DeleteSegment(SegmentRequest):
    """Deletes a segment."""


@dataclass(frozen=True, slots=True)
class SegmentDeleted(SegmentReply):
    """Says that a segment or a table was deleted."""


@dataclass(frozen=True, slots=True)
class UpdateSegmentPolicy(WireMessage):
    """Changes rate and scale type of a segment."""

    request_id: Long
    segment: Text
    target_rate: Int
    scale_type: Byte
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class SegmentPolicyUpdated(SegmentReply):
    """Says that the policy of a segment was changed."""


@dataclass(frozen=True, slots=True)
class TruncateSegment(WireMessage):
    """Moves the start of a segment: what lies before is gone."""

    request_id: Long
    segment: Text
    offset: Long
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class SegmentTruncated(SegmentReply):
    """Says that the start of a segment was moved."""


@dataclass(frozen=True, slots=True)
class AttributeUpdate(WireMessage):
    """One change of an attribute, inside a MergeSegments; type 1 replaces, 4 replaces if equal."""

    attribute_id: Id
    update_type: Byte
    new_value: Long
    old_value: Long


@dataclass(frozen=True, slots=True)
class MergeSegments(WireMessage):
    """Appends a segment to another one and deletes it, if attributes have expected values."""

    request_id: Long
    target: Text
    source: Text
    token: Text = field(repr=False)
    attribute_updates: Annotated[
        tuple[AttributeUpdate, ...], Items(PayloadLayout(AttributeUpdate), ATTRIBUTE_UPDATES_MAX)
    ] = ()


@dataclass(frozen=True, slots=True)
class SegmentsMerged(WireMessage):
    """Gives the target's length behind what was merged."""

    request_id: Long
    target: Text
    source: Text
    new_target_write_offset: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class MergeSegmentsBatch(WireMessage):
    """Appends segments to another one, in order, and deletes them."""

    request_id: Long
    target: Text
    sources: Annotated[tuple[str, ...], Items(STRING_TYPE, SOURCES_MAX)]
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class MergedSource(WireMessage):
    """One source and the target's length behind it, inside a SegmentsBatchMerged."""

    source: Text
    new_target_write_offset: Long


@dataclass(frozen=True, slots=True)
class SegmentsBatchMerged(WireMessage):
    """Gives the target's length behind each of the sources."""

    request_id: Long
    target: Text
    sources: Annotated[tuple[MergedSource, ...], Items(PayloadLayout(MergedSource))]


# ---- attributes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetSegmentAttribute(WireMessage):
    """Asks for the value of an attribute."""

    request_id: Long
    segment: Text
    attribute_id: Id
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class SegmentAttribute(WireMessage):
    """Gives the value of an attribute, -2^63 if it is not set."""

    request_id: Long
    value: Long


@dataclass(frozen=True, slots=True)
class UpdateSegmentAttribute(WireMessage):
    """Sets an attribute if it has the expected value."""

    request_id: Long
    segment: Text
    attribute_id: Id
    new_value: Long
    expected_value: Long
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class SegmentAttributeUpdated(WireMessage):
    """Tells whether the attribute was set."""

    request_id: Long
    success: Boolean

"""Messages about tables; see `messages.py`.

The version of a key is -2^63 for any, -1 for a key that the table does not have.
"""

from dataclasses import dataclass, field

from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import UNKNOWN, SegmentReply, SegmentRequest
from hutch.pravega.wire_types import Boolean, Data, Entries, Int, Keys, Long, Longs, Text


@dataclass(frozen=True, slots=True)
class CreateTableSegment(SegmentRequest):
    """Creates a table; a key length of 0 allows keys of any length."""

    sorted_deprecated: Boolean = False
    key_length: Int = 0
    rollover_size: Long = 0


@dataclass(frozen=True, slots=True)
class DeleteTableSegment(WireMessage):
    """Deletes a table."""

    request_id: Long
    segment: Text
    must_be_empty: Boolean
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class GetTableSegmentInfo(SegmentRequest):
    """Asks for length and entries of a table."""


@dataclass(frozen=True, slots=True)
class TableSegmentInfo(SegmentReply):
    """Gives length, number of entries and key length of a table."""

    start_offset: Long
    length: Long
    entry_count: Long
    key_length: Int


@dataclass(frozen=True, slots=True)
class MergeTableSegments(WireMessage):
    """Merges a table into another one; servers from 0.10 on don't have it."""

    request_id: Long
    target: Text
    source: Text
    token: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class SealTableSegment(SegmentRequest):
    """Seals a table; servers from 0.10 on don't have it."""


@dataclass(frozen=True, slots=True)
class UpdateTableEntries(SegmentRequest):
    """Sets entries, all or none, if their keys have the expected versions."""

    entries: Entries
    table_segment_offset: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class TableEntriesUpdated(WireMessage):
    """Gives the new versions of the keys, in their order."""

    request_id: Long
    versions: Longs


@dataclass(frozen=True, slots=True)
class RemoveTableKeys(SegmentRequest):
    """Removes keys, all or none, if they have the expected versions."""

    keys: Keys
    table_segment_offset: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class TableKeysRemoved(SegmentReply):
    """Says that the keys are not in the table any more."""


@dataclass(frozen=True, slots=True)
class ReadTable(SegmentRequest):
    """Asks for the entries of keys; the keys' versions are ignored."""

    keys: Keys


@dataclass(frozen=True, slots=True)
class TableRead(SegmentReply):
    """Brings the entries of keys; a missing key has version -1 and an empty value."""

    entries: Entries


@dataclass(frozen=True, slots=True)
class TableIteration(SegmentRequest):
    """A request for the next part of a table; empty bounds are none."""

    suggested_count: Int
    continuation: Data
    prefix_deprecated: Data = b""
    from_key: Data = b""
    to_key: Data = b""


@dataclass(frozen=True, slots=True)
class ReadTableKeys(TableIteration):
    """Asks for the next keys of a table."""


@dataclass(frozen=True, slots=True)
class TableKeysRead(SegmentReply):
    """Brings keys, and where to go on."""

    keys: Keys
    continuation: Data


@dataclass(frozen=True, slots=True)
class ReadTableEntries(TableIteration):
    """Asks for the next entries of a table."""


@dataclass(frozen=True, slots=True)
class TableEntriesRead(SegmentReply):
    """Brings entries, and where to go on."""

    entries: Entries
    continuation: Data


@dataclass(frozen=True, slots=True)
class ReadTableEntriesDelta(SegmentRequest):
    """Asks for what was changed from a position on."""

    from_position: Long
    suggested_count: Int


@dataclass(frozen=True, slots=True)
class TableEntriesDeltaRead(SegmentReply):
    """Brings changed entries; says whether older copies are to be forgotten, and where to go on."""

    entries: Entries
    should_clear: Boolean
    reached_end: Boolean
    last_position: Long

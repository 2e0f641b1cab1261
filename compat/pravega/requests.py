"""Requests of the cases, with the names and numbers that most of them use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import Final, NamedTuple
from uuid import UUID

from compat.pravega.case import TAG
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.wire_types import ANY_VERSION, KeyAndValue, TableKey

S: Final = f"{TAG}/s/0.#epoch.0"
OTHER: Final = f"{TAG}/s/1.#epoch.0"
THIRD: Final = f"{TAG}/s/2.#epoch.0"
MISSING: Final = f"{TAG}/s/9.#epoch.0"
TABLE: Final = f"{TAG}/_tables/t"
W: Final = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
W2: Final = UUID("10010203-0405-0607-0809-0a0b0c0d0e0f")
ATTRIBUTE: Final = UUID("20010203-0405-0607-0809-0a0b0c0d0e0f")
UNSET: Final = m.ABSENT


class Pair(NamedTuple):
    """An entry to set, and the version that is expected of its key."""

    key: bytes
    value: bytes
    version: int = ANY_VERSION


def core(low: int) -> UUID:
    """Return the id of one of the attributes that every segment has."""
    return UUID(int=(0x8000000000000000 << 64) | low)


def event(data: bytes) -> bytes:
    """Return an event as it is stored."""
    return bytes(4) + len(data).to_bytes(4) + data


def head(code: int, length: int) -> bytes:
    """Return the head of a frame."""
    return code.to_bytes(4, signed=True) + length.to_bytes(4, signed=True)


# ---- segments --------------------------------------------------------------------------------


def create(
    segment: str = S, *, rate: int = 0, scale: int = 0, rollover: int = 0
) -> m.CreateSegment:
    """Create a segment."""
    return m.CreateSegment(1, segment, rate, scale, "", rollover)


def info(segment: str = S) -> m.GetStreamSegmentInfo:
    """Ask for a segment's length, start and state."""
    return m.GetStreamSegmentInfo(6, segment, "")


def seal(segment: str = S) -> m.SealSegment:
    """Seal a segment."""
    return m.SealSegment(7, segment, "")


def delete(segment: str = S) -> m.DeleteSegment:
    """Delete a segment."""
    return m.DeleteSegment(8, segment, "")


def truncate(offset: int, segment: str = S) -> m.TruncateSegment:
    """Truncate a segment."""
    return m.TruncateSegment(9, segment, offset, "")


def policy(rate: int, scale: int, segment: str = S) -> m.UpdateSegmentPolicy:
    """Set the scale policy of a segment."""
    return m.UpdateSegmentPolicy(10, segment, rate, scale, "")


def attribute(id_: UUID = ATTRIBUTE, segment: str = S) -> m.GetSegmentAttribute:
    """Ask for an attribute."""
    return m.GetSegmentAttribute(11, segment, id_, "")


def set_attribute(
    new: int, expected: int, id_: UUID = ATTRIBUTE, segment: str = S
) -> m.UpdateSegmentAttribute:
    """Set an attribute if it has the expected value."""
    return m.UpdateSegmentAttribute(12, segment, id_, new, expected, "")


def merge(
    target: str = S, source: str = OTHER, updates: Sequence[m.AttributeUpdate] = ()
) -> m.MergeSegments:
    """Merge a segment into another one."""
    return m.MergeSegments(13, target, source, "", tuple(updates))


def merge_batch(target: str, *sources: str) -> m.MergeSegmentsBatch:
    """Merge segments into another one."""
    return m.MergeSegmentsBatch(14, target, sources, "")


def transient(parent: str = S, writer: UUID = W) -> m.CreateTransientSegment:
    """Create a segment that goes with the connection."""
    return m.CreateTransientSegment(15, writer, parent, "")


# ---- appends and reads -----------------------------------------------------------------------


def setup(segment: str = S, writer: UUID = W) -> m.SetupAppend:
    """Open a writer."""
    return m.SetupAppend(2, writer, segment, "")


def block(data: bytes, writer: UUID = W) -> m.AppendBlock:
    """Begin a block."""
    return m.AppendBlock(writer, data)


def end(
    number: int, data: bytes = b"", *, whole: int = 0, count: int = 1, writer: UUID = W
) -> m.AppendBlockEnd:
    """End a block, or append alone."""
    return m.AppendBlockEnd(writer, whole, data, count, number, 3)


def append(number: int, data: bytes, *, writer: UUID = W) -> m.AppendBlockEnd:
    """Append one event."""
    stored = event(data)
    return end(number, stored, whole=len(stored), writer=writer)


def conditional(number: int, offset: int, data: bytes, writer: UUID = W) -> m.ConditionalAppend:
    """Append one event at an offset."""
    return m.ConditionalAppend(writer, number, offset, data, 4)


def conditional_end(
    number: int, offset: int, data: bytes, writer: UUID = W
) -> m.ConditionalBlockEnd:
    """Append bytes at an offset."""
    return m.ConditionalBlockEnd(writer, number, offset, data, 4)


def read(offset: int = 0, length: int = 1024, segment: str = S) -> m.ReadSegment:
    """Read from a segment."""
    return m.ReadSegment(segment, offset, length, "", 5)


# ---- tables ----------------------------------------------------------------------------------


def create_table(segment: str = TABLE, *, key_length: int = 0) -> t.CreateTableSegment:
    """Create a table."""
    return t.CreateTableSegment(20, segment, "", key_length=key_length)


def delete_table(segment: str = TABLE, *, must_be_empty: bool = False) -> t.DeleteTableSegment:
    """Delete a table."""
    return t.DeleteTableSegment(21, segment, must_be_empty, "")


def table_info(segment: str = TABLE) -> t.GetTableSegmentInfo:
    """Ask for a table's length and entries."""
    return t.GetTableSegmentInfo(22, segment, "")


def update(
    *pairs: tuple[bytes, bytes] | tuple[bytes, bytes, int], segment: str = TABLE, length: int = -1
) -> t.UpdateTableEntries:
    """Set entries: key, value, and the version that is expected of the key."""
    entries = tuple(
        KeyAndValue(TableKey(pair.key, pair.version), pair.value) for pair in starmap(Pair, pairs)
    )
    return t.UpdateTableEntries(23, segment, "", entries, length)


def remove(
    *keys: bytes | tuple[bytes, int], segment: str = TABLE, length: int = -1
) -> t.RemoveTableKeys:
    """Remove keys; each may be with the version that is expected of it."""
    return t.RemoveTableKeys(24, segment, "", _keys(keys), length)


def get(*keys: bytes | tuple[bytes, int], segment: str = TABLE) -> t.ReadTable:
    """Ask for the entries of keys."""
    return t.ReadTable(25, segment, "", _keys(keys))


def _keys(keys: Sequence[bytes | tuple[bytes, int]]) -> tuple[TableKey, ...]:
    return tuple(TableKey(key) if isinstance(key, bytes) else TableKey(*key) for key in keys)


def keys_of(
    count: int = 100,
    continuation: bytes = b"",
    *,
    first: bytes = b"",
    last: bytes = b"",
    segment: str = TABLE,
) -> t.ReadTableKeys:
    """Ask for the next keys of a table."""
    return t.ReadTableKeys(26, segment, "", count, continuation, b"", first, last)


def entries_of(
    count: int = 100,
    continuation: bytes = b"",
    *,
    first: bytes = b"",
    last: bytes = b"",
    segment: str = TABLE,
) -> t.ReadTableEntries:
    """Ask for the next entries of a table."""
    return t.ReadTableEntries(27, segment, "", count, continuation, b"", first, last)


def delta(position: int = 0, count: int = 100, *, segment: str = TABLE) -> t.ReadTableEntriesDelta:
    """Ask for what was changed from a position on."""
    return t.ReadTableEntriesDelta(28, segment, "", position, count)

"""The promises of store/api.py once more, as plainly as possible: bytearrays and dicts.

Calls return their value or raise. It is what the store is compared with after any history, and
the conformance suite runs against it too (see model_store.py), so that it promises the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from typing_extensions import Buffer

from store.api import (
    ABSENT,
    ANY_VERSION,
    APPEND_BYTES_MAX,
    ATTRIBUTES_MAX,
    ENTRY_BYTES_MAX,
    KEY_BYTES_MAX,
    NOT_EXISTS,
    PART_MARKS,
    READ_BYTES_MAX,
    RESEND_WINDOW,
    TABLE_BATCH_BYTES_MAX,
    Appended,
    AttributeUpdate,
    Durability,
    ReadResult,
    SegmentInfo,
    TableDelta,
    TableEntry,
    TablePage,
)
from store.errors import (
    AttributeMismatch,
    EventNumberTooLow,
    InvalidArgument,
    IsATable,
    KeyVersionMismatch,
    LengthMismatch,
    NoSuchSegment,
    NotATable,
    PositionOutOfRange,
    SegmentExists,
    SegmentSealed,
    SegmentTruncated,
    TableNotEmpty,
    WriterFenced,
)

NAME_BYTES_MAX: Final = 1_024

Versioned = tuple[bytes, int]
"""The value of a key and its version."""


@dataclass
class ModelSegment:
    """One segment. `data` holds all bytes ever, also those before `start`."""

    name: str
    is_table: bool = False
    key_length: int = 0
    data: bytes = b""
    start: int = 0
    is_sealed: bool = False
    is_deleted: bool = False
    attributes: dict[UUID, int] = field(default_factory=dict)
    writers: set[UUID] = field(default_factory=set)
    """Those of the attributes that an append has made."""
    entries: dict[bytes, Versioned] = field(default_factory=dict)
    history: list[TableEntry | None] = field(default_factory=list)
    """Every table entry ever written (None: a removal); a version is a place in this list."""
    modified_at_ms: int = 0

    @property
    def length(self) -> int:
        return len(self.history) if self.is_table else len(self.data)


class ModelWriter:
    """A session. It remembers what it stored, as the seam says."""

    def __init__(self, segment: ModelSegment, writer: UUID) -> None:
        self._segment = segment
        self._writer = writer
        self._is_dead = False
        self._stored: dict[int, Appended] = {}
        self.event_number = segment.attributes.get(writer, ABSENT)

    @property
    def length(self) -> int:
        return self._segment.length

    def append(
        self,
        data: Buffer,
        event_number: int,
        *,
        expected_length: int | None = None,
        durability: Durability | None = None,  # noqa: ARG002 - the same call as the store's
    ) -> Appended:
        content = bytes(data)
        segment = self._segment
        if len(content) > APPEND_BYTES_MAX or not 0 <= event_number < 2**63:
            raise InvalidArgument("too large, or a number out of range")
        _must_exist(segment)
        _must_be_open(segment)
        self._must_not_be_fenced()
        if event_number in self._stored:
            return self._stored[event_number]
        if event_number <= self.event_number:
            raise EventNumberTooLow(f"{event_number} is not above {self.event_number}")
        _must_have_length(segment, expected_length)
        appended = Appended(segment.length, len(content), event_number)
        segment.data += content
        segment.attributes[self._writer] = self.event_number = event_number
        segment.writers.add(self._writer)
        self._stored[event_number] = appended
        if len(self._stored) > RESEND_WINDOW:
            del self._stored[next(iter(self._stored))]
        return appended

    def _must_not_be_fenced(self) -> None:
        stored = self._segment.attributes.get(self._writer, ABSENT)
        self._is_dead |= stored != self.event_number
        if self._is_dead:
            raise WriterFenced("another session has appended")


class Model:
    """All segments."""

    def __init__(self) -> None:
        self.segments: dict[str, ModelSegment] = {}

    def segment(self, name: str) -> ModelSegment:
        if name not in self.segments:
            raise NoSuchSegment(f"no segment {name!r:.50}")
        return self.segments[name]

    def table(self, name: str) -> ModelSegment:
        segment = self.segment(name)
        if not segment.is_table:
            raise NotATable(f"{name!r:.50} is not a table")
        return segment

    # Segments

    def create_segment(
        self,
        name: str,
        *,
        durability: Durability | None = None,  # noqa: ARG002 - the same call as the store's
        attributes: Sequence[AttributeUpdate] = (),
    ) -> None:
        segment = ModelSegment(name)
        _update(segment, attributes)
        self._must_be_free(name)
        self.segments[name] = segment

    def _must_be_free(self, name: str) -> None:
        if not 1 <= len(name.encode()) <= NAME_BYTES_MAX:
            raise InvalidArgument("a name has 1 to 65535 bytes")
        if name in self.segments:
            raise SegmentExists(f"{name!r:.50} exists")

    def delete_segment(self, name: str) -> None:
        self.segment(name).is_deleted = True
        del self.segments[name]

    def seal_segment(self, name: str) -> int:
        segment = self.segment(name)
        _must_be_open(segment)
        segment.is_sealed = True
        return segment.length

    def truncate_segment(self, name: str, position: int) -> None:
        segment = self.segment(name)
        if not segment.start <= position <= segment.length:
            raise SegmentTruncated("not between start and length", segment.start)
        segment.start = position

    def merge_segments(
        self, target: str, source: str, *, attributes: Sequence[AttributeUpdate] = ()
    ) -> int:
        into, merged = self.segment(target), self.segment(source)
        if into is merged:
            raise InvalidArgument("a segment cannot be merged into itself")
        if into.is_table or merged.is_table:
            raise IsATable("a table cannot be merged")
        _must_be_open(into)
        if merged.start:
            raise SegmentTruncated("the source has lost its beginning", merged.start)
        _update(into, attributes)
        into.data += merged.data
        merged.is_sealed = True
        self.delete_segment(source)
        return into.length

    def list_segments(self, prefix: str) -> list[str]:
        return sorted(name for name in self.segments if name.startswith(prefix))

    def count_segments(self, name: str) -> int:
        return sum(_group_of(each) == _group_of(name) for each in self.segments)

    def info(self, name: str) -> SegmentInfo:
        segment = self.segment(name)
        return SegmentInfo(
            name,
            segment.start,
            segment.length,
            segment.is_sealed,
            segment.is_table,
            segment.modified_at_ms,
            key_length=segment.key_length,
        )

    def open_writer(self, name: str, writer: UUID) -> ModelWriter:
        segment = self.segment(name)
        if segment.is_table:
            raise IsATable(f"{name!r:.50} is a table")
        return ModelWriter(segment, writer)

    def read(self, name: str, position: int, size: int) -> ReadResult:
        return read_segment(self.segment(name), position, size)

    # Attributes

    def get_attribute(self, name: str, attribute: UUID) -> int:
        return self.segment(name).attributes.get(attribute, ABSENT)

    def update_attributes(self, name: str, updates: Sequence[AttributeUpdate]) -> None:
        segment = self.segment(name)
        _must_be_open(segment)
        _update(segment, updates)

    # Tables

    def create_table(self, name: str, *, key_length: int = 0) -> None:
        self._must_be_free(name)
        self.segments[name] = ModelSegment(name, is_table=True, key_length=key_length)

    def delete_table(self, name: str, *, must_be_empty: bool = False) -> None:
        if self.table(name).entries and must_be_empty:
            raise TableNotEmpty(f"{name!r:.50} has keys")
        self.delete_segment(name)

    def update_table(
        self,
        name: str,
        entries: Sequence[TableEntry],
        *,
        expected_length: int | None = None,
        durability: Durability | None = None,  # noqa: ARG002 - the same call as the store's
        versions: Sequence[int] | None = None,
    ) -> list[int]:
        """Write entries; `versions` are those that the store gave, where it is known."""
        table = self.table(name)
        _check_entries(table, entries)
        _must_be_open(table)
        _must_have_length(table, expected_length)
        _check_versions(table, entries)
        given = versions or range(table.length, table.length + len(entries))
        for entry, version in zip(entries, given, strict=True):
            table.entries[entry.key] = (entry.value, version)
            table.history.append(TableEntry(entry.key, entry.value, version))
        return list(given)

    def remove_keys(
        self, name: str, keys: Sequence[TableEntry], *, expected_length: int | None = None
    ) -> None:
        table = self.table(name)
        _must_be_open(table)
        _must_have_length(table, expected_length)
        _check_versions(table, keys)
        for entry in keys:
            if table.entries.pop(entry.key, None):
                table.history.append(None)

    def read_table(self, name: str, keys: Sequence[bytes]) -> list[TableEntry | None]:
        table = self.table(name)
        if table.key_length and any(len(key) != table.key_length for key in keys):
            raise InvalidArgument(f"table {name!r}: a key has another length")
        found = table.entries
        return [TableEntry(key, *found[key]) if key in found else None for key in keys]

    def iterate_table(
        self,
        name: str,
        *,
        continuation: bytes | None = None,
        count: int = 1000,
        first: bytes | None = None,
        last: bytes | None = None,
    ) -> TablePage:
        table = self.table(name)
        if count < 1 or (not table.key_length and (first, last) != (None, None)):
            raise InvalidArgument("no room, or bounds without an order")
        entries = [
            TableEntry(key, *table.entries[key])
            for key in sorted(table.entries)
            if (first is None or key >= first)
            and (last is None or key <= last)
            and (continuation is None or key > continuation)
        ]
        page = entries[:count]
        return TablePage(page, page[-1].key if len(entries) > count else None)

    def read_table_delta(self, name: str, position: int, *, count: int = 1000) -> TableDelta:
        table = self.table(name)
        if not 0 <= position <= table.length:
            raise PositionOutOfRange("past the end")
        entries: dict[bytes, TableEntry] = {}
        while position < table.length and len(entries) < count:
            entry = table.history[position]
            position += 1
            if entry is not None:
                entries.pop(entry.key, None)
                entries[entry.key] = entry
        reached_end = position == table.length
        return TableDelta(list(entries.values()), False, reached_end, position)  # noqa: FBT003 - a positional dataclass

    def table_info(self, name: str) -> tuple[SegmentInfo, int]:
        return self.info(name), len(self.table(name).entries)


def read_segment(segment: ModelSegment, position: int, size: int) -> ReadResult:
    """Read as `SegmentStore.read` does without waiting."""
    _must_exist(segment)
    if position < 0 or (segment.is_sealed and position > segment.length):
        raise PositionOutOfRange(f"nothing will be at {position}")
    if position < segment.start:
        raise SegmentTruncated("before the start", segment.start)
    size = min(max(size, 1), READ_BYTES_MAX)
    data = segment.data[position : position + size]
    at_tail = position + len(data) >= segment.length
    return ReadResult(position, data, segment.is_sealed and at_tail, at_tail)


def _must_exist(segment: ModelSegment) -> None:
    if segment.is_deleted:
        raise NoSuchSegment(f"no segment {segment.name!r:.50}")


def _must_be_open(segment: ModelSegment) -> None:
    if segment.is_sealed:
        raise SegmentSealed(f"{segment.name!r:.50} is sealed")


def _must_have_length(segment: ModelSegment, expected: int | None) -> None:
    if expected not in {None, segment.length}:
        raise LengthMismatch("not the length", segment.length)


def _update(segment: ModelSegment, updates: Sequence[AttributeUpdate]) -> None:
    for update in updates:
        found = segment.attributes.get(update.attribute, ABSENT)
        if update.expected not in {None, found}:
            raise AttributeMismatch(f"{update.attribute} is {found}")
    new = {update.attribute for update in updates if update.value != ABSENT}
    if len((segment.attributes.keys() | new) - segment.writers) > ATTRIBUTES_MAX:
        raise InvalidArgument("too many attributes")
    for update in updates:
        segment.attributes[update.attribute] = update.value
        if update.value == ABSENT:
            del segment.attributes[update.attribute]
            segment.writers.discard(update.attribute)


def _check_entries(table: ModelSegment, entries: Sequence[TableEntry]) -> None:
    for entry in entries:
        size = len(entry.key)
        if not 1 <= size <= KEY_BYTES_MAX or (table.key_length and size != table.key_length):
            raise InvalidArgument(f"a key of {size} bytes")
        if size + len(entry.value) > ENTRY_BYTES_MAX:
            raise InvalidArgument("too large an entry")
    if sum(len(entry.key) + len(entry.value) for entry in entries) > TABLE_BATCH_BYTES_MAX:
        raise InvalidArgument("too large a batch")


def _check_versions(table: ModelSegment, entries: Sequence[TableEntry]) -> None:
    for entry in entries:
        _, version = table.entries.get(entry.key, (b"", NOT_EXISTS))
        if entry.version not in {ANY_VERSION, version}:
            raise KeyVersionMismatch("another version", entry.key, version)


def _group_of(name: str) -> list[str]:
    marks = [mark for mark in PART_MARKS if mark in name]
    return name.split("/")[:-1][:2] + marks[:1]

"""Errors of a segment store, in words of segments, writers and records.

StoreError
├── NoSuchSegment          the name is not known (or was deleted)
├── SegmentExists          create of a name that is taken
├── SegmentSealed          append, attribute or table update on a sealed segment; wait past its end
├── SegmentTruncated       a position before the start (or outside [start, length] in a truncation)
├── PositionOutOfRange     a position that can never be read: negative, or past a sealed end
├── WriterFenced           another session of this writer has appended since: this session is dead
├── EventNumberTooLow      a number not above the last one, which this session did not store
├── LengthMismatch         the expected length is not the length: nothing was written
├── AttributeMismatch      a conditional attribute update found another value: nothing was changed
├── KeyVersionMismatch     a conditional table update found another version: nothing was changed
├── NotATable / IsATable   the operation does not fit the kind of the segment
├── TableNotEmpty          a deletion that asked for an empty table
├── InvalidArgument        a limit or a rule of the interface was broken; says which
├── CorruptSegment         stored bytes do not check out: the segment is read-only
├── SegmentFailed          a write or sync of its file failed: no further acknowledgement
├── DiskFull               no space; nothing was written, reading goes on
├── StoreLocked            another process holds the data directory
├── OtherFormat            the data directory has another number of the stored form
└── StoreClosed            the store is closing, closed, or its journal failed
"""


class StoreError(Exception):
    """Base of everything a store reports; the message is one line a person can act on."""


class NoSuchSegment(StoreError):
    """No segment of that name."""


class SegmentExists(StoreError):
    """A segment of that name exists."""


class SegmentSealed(StoreError):
    """The segment is sealed."""


class SegmentTruncated(StoreError):
    """The position lies before the segment's start; `start` is where it begins now."""

    def __init__(self, message: str, start: int) -> None:
        super().__init__(message)
        self.start = start


class PositionOutOfRange(StoreError):
    """The position cannot be read, now or later."""


class WriterFenced(StoreError):
    """A newer session of the writer has written; nothing of this one is stored any more."""


class EventNumberTooLow(StoreError):
    """The event number is not above the writer's last, and this session did not store it."""


class LengthMismatch(StoreError):
    """The segment's length is not the expected one; `length` is the real one."""

    def __init__(self, message: str, length: int) -> None:
        super().__init__(message)
        self.length = length


class AttributeMismatch(StoreError):
    """An attribute does not have the expected value."""


class KeyVersionMismatch(StoreError):
    """A key does not have the expected version.

    `key` is the first such key, `version` the one that it has: NOT_EXISTS if it does not exist.
    `key_length` is that of all keys of the table; 0 if they differ.
    """

    key_length = 0

    def __init__(self, message: str, key: bytes, version: int) -> None:
        super().__init__(message)
        self.key = key
        self.version = version


class NotATable(StoreError):
    """A table operation on a plain segment."""


class IsATable(StoreError):
    """A plain append, merge or read-region on a table segment."""


class TableNotEmpty(StoreError):
    """The table still has keys."""


class InvalidArgument(StoreError):
    """A limit or rule of the interface was broken by the caller."""


class CorruptSegment(StoreError):
    """Bytes that were acknowledged do not check out; the segment can only be read."""


class SegmentFailed(StoreError):
    """A write or sync of the segment's file failed; it takes no more appends in this process."""


class DiskFull(StoreError):
    """The file system has no space for this write."""


class StoreLocked(StoreError):
    """Another process holds the data directory."""


class OtherFormat(StoreError):
    """The data directory was written in another stored form than this version's."""


class StoreClosed(StoreError):
    """The store takes no more operations."""

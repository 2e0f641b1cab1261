"""SegmentStore: the one seam between the gateway and whatever keeps its bytes.

The model is Pravega's. A *segment* is a named append-only run of bytes. Names are free text.
A *table* is a segment that holds key-value entries. A *writer* (a UUID) appends under event
numbers, which is how a resend is told from a new append and an old writer from its successor.

How it is called. Everything happens on one thread (the event loop's). A call returns at once.
Its result comes later, on that same thread, never from inside the call, as one call of `done`
with either the value or a StoreError (it is passed, not raised). Results of operations on one
segment come in the order of the calls; only a read that waits, or goes through much, comes when
it can, perhaps with what was called after it (`read`, `check`, values, pages and deltas of tables,
lists of names). A call raises only for programming errors. What a reader sees (`read`, `info`,
tables, attributes) is committed: as durable as the operation that wrote it asked for.
"""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from typing_extensions import Buffer

from store.errors import StoreError

T = TypeVar("T")

Done = Callable[[T | StoreError], None]
"""Callback for a result: called once, with the value or the error."""

ABSENT: Final = -(2**63)
"""The value of an attribute (or event number of a writer) that does not exist."""

ANY_VERSION: Final = -(2**63)
"""A table update that does not look at the key's version."""

NOT_EXISTS: Final = -1
"""A table update that demands that the key does not exist."""

APPEND_BYTES_MAX: Final = 17 * 1024 * 1024
"""Largest append. (Pravega's own readers take events of 8 MiB at most.)"""

NAME_BYTES_MAX: Final = 1024
"""Longest name of a segment."""
PART_MARKS: Final = ("#transient.", "#transaction.")
"""These follow a segment's name in those of its parts; of a name with both the first one counts."""
TRANSIENT_MARK, TRANSACTION_MARK = PART_MARKS

ATTRIBUTES_MAX: Final = 10_000
"""Attributes of a segment that updates have made."""

WRITERS_MAX: Final = 100_000
"""Writers of a segment whose event numbers are known."""

KEY_BYTES_MAX: Final = 8 * 1024
ENTRY_BYTES_MAX: Final = 1024 * 1024
"""Key and value of a table entry together."""

TABLE_BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
"""Keys and values of one conditional update together."""

READ_BYTES_MAX: Final = 2 * 1024 * 1024
"""Largest result of one read, whatever size was asked for."""

CHECKS_KEPT: Final = 64
CHECKED_BYTES_KEPT: Final = APPEND_BYTES_MAX
"""Checks, and bytes of them, that a store remembers: see `Reader.check`."""

RESEND_WINDOW: Final = 1024
"""Number of its own event numbers that a session remembers to recognise a resend."""


class Durability(enum.Enum):
    """Meaning of an acknowledgement."""

    DISK = "disk"
    """The bytes have been synced to the disk."""
    INTERVAL = "interval"
    """The bytes are with the operating system and are synced within the store's interval."""
    OS = "os"
    """The bytes are with the operating system, which writes them when it likes."""


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """A segment as it is committed now. `length` is the position after the last byte.

    `is_damaged`: bytes of it, or entries of a table, are known to be lost. `key_length`: of each
    key of a table; 0 if they differ, and for a plain segment.
    """

    name: str
    start: int
    length: int
    sealed: bool
    is_table: bool
    modified_at_ms: int
    is_damaged: bool = False
    key_length: int = 0


class Appended(NamedTuple):
    """Place of an append: [position, position + size), and the committed length after it."""

    position: int
    size: int
    event_number: int


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Bytes from `position` on, perhaps fewer than asked; `end_of_segment`: sealed and all read.

    `at_tail`: no committed bytes followed these when the answer was given.
    """

    position: int
    data: bytes
    end_of_segment: bool
    at_tail: bool


class FileRegion(NamedTuple):
    """A run of committed bytes inside one open file, for `os.sendfile`.

    `fileno` stays open, and the bytes stay what they are, until `release` is called (once).
    """

    fileno: int
    position: int
    size: int
    release: Callable[[], None]


@dataclass(frozen=True, slots=True)
class AttributeUpdate:
    """Set `attribute` to `value` (ABSENT removes it) if it has the value `expected` (None: any)."""

    attribute: UUID
    value: int
    expected: int | None = None


class TableEntry(NamedTuple):
    """A key with its value and version. In an update the version is the condition."""

    key: bytes
    value: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class TablePage:
    """One page of an iteration; `continuation` is None at the end."""

    entries: Sequence[TableEntry]
    continuation: bytes | None


@dataclass(frozen=True, slots=True)
class TableDelta:
    """Changes from a position on, in the order of writing.

    `should_clear`: the position lies before a compaction, so forget all earlier entries.
    `position` is where the next delta read goes on; `reached_end`: nothing is left for now.
    """

    entries: Sequence[TableEntry]
    should_clear: bool
    reached_end: bool
    position: int


class Cancel(Protocol):
    """Handle of a waiting read: call it to give up. `done` is then not called."""

    def __call__(self) -> None: ...


class Writer(Protocol):
    """A session of one writer on one segment.

    `event_number` is the last number this session knows to be the writer's (ABSENT: none yet). It
    counts appends of this session when they are issued, not when they are acknowledged.
    """

    @property
    def event_number(self) -> int: ...

    @property
    def length(self) -> int:
        """The segment's length after every append issued so far, acknowledged or not."""
        ...

    def append(
        self,
        data: Buffer,
        event_number: int,
        *,
        done: Done[Appended],
        expected_length: int | None = None,
        durability: Durability | None = None,
    ) -> None:
        """Append `data` as one unit, together with the writer's event number.

        The bytes are taken before the call returns: the buffer is the caller's again. Appends may
        be pipelined. Empty data moves the number (which fences older sessions) and writes nothing.

        The checks, in this order, each of which ends the append with nothing written:
        the segment exists (NoSuchSegment) and is not sealed (SegmentSealed); the writer's stored
        number is the one that this session knows, else WriterFenced, and the session is dead; a
        number that this session stored (one of its last RESEND_WINDOW) is a resend: acknowledged
        with its first position and size, once that is committed, and not written again; a number
        not above the last is EventNumberTooLow; `expected_length` is the length
        (LengthMismatch: the session lives on and the number may be used again).

        After any other failure (DiskFull, SegmentFailed, …) every later append of the session that
        was already issued fails too, so that what is stored has no hole; open a new session.

        Args:
            data: At most APPEND_BYTES_MAX bytes.
            event_number: 0 … 2^63-1, growing, not necessarily dense.
            done: Gets where the bytes are.
            expected_length: Append only if the segment is exactly this long.
            durability: What the acknowledgement must mean; None is the store's setting.
        """
        ...


class Reader(Protocol):
    """Reads one segment without a look-up of its name. Holds nothing; costs nothing when idle.

    After the segment is deleted all of it answers NoSuchSegment (`region`: None).
    """

    @property
    def start(self) -> int: ...

    @property
    def length(self) -> int: ...

    def read_cached(self, position: int, size: int) -> bytes | None:
        """Return up to `size` committed bytes if that needs no disk read, else None.

        May be shorter than asked (end of file or of what is committed). Never blocks on a disk.
        """
        ...

    def region(self, position: int, size: int) -> FileRegion | None:
        """Return the committed bytes at `position` as a place in a file, for sendfile.

        At most `size` bytes, fewer where a file of the segment ends; None where nothing committed
        is there or where this store has no files. An append never lies in two files.
        """
        ...

    def is_cached(self, position: int, size: int) -> bool:
        """Return (a good guess, cheap) whether `size` bytes at `position` are in memory."""
        ...

    def check(
        self,
        position: int,
        size: int,
        look: Callable[[memoryview], T],
        *,
        done: Done[T],
        fills: bool = False,
    ) -> None:
        """Read bytes on a thread of the store, hand them to `look` there, report its result.

        `look` must be thread-safe and must not keep the view, whose bytes change afterwards; what
        it raises (if not a StoreError) is a programming error. `size` may be above READ_BYTES_MAX
        (up to APPEND_BYTES_MAX); the view is shorter where the committed bytes end. Bytes that are
        lost because a file is too short are an error, or zeros if `fills`.

        Afterwards `read_cached` gives the bytes at least once, in pieces perhaps, whatever else is
        in memory; unless CHECKS_KEPT others, or CHECKED_BYTES_KEPT bytes of others, were checked
        meanwhile, or all the bytes were in memory when they were read and have been dropped since:
        then the next check fetches them and gives them. `is_cached` may say no all the same.
        """
        ...


class Operations(Protocol):
    """Operations on segments. See the module's docstring for how results arrive."""

    # Segments

    def create_segment(
        self,
        name: str,
        *,
        done: Done[None],
        durability: Durability | None = None,
        attributes: Sequence[AttributeUpdate] = (),
    ) -> None:
        """Create an empty segment. SegmentExists if the name is taken.

        InvalidArgument for a name of 0 or above NAME_BYTES_MAX bytes.

        The segment has `attributes` from the beginning, also after a crash. AttributeMismatch if
        one expects a value: there is none before (ABSENT).
        """
        ...

    def delete_segment(self, name: str, *, done: Done[None]) -> None:
        """Delete a segment or table; the name is free again at once. NoSuchSegment."""
        ...

    def seal_segment(self, name: str, *, done: Done[int]) -> None:
        """Refuse all further appends and attribute updates; gives the final length.

        SegmentSealed when it is already. Truncation, reading and deletion still work.
        Waiting readers get the end of the segment.
        """
        ...

    def truncate_segment(self, name: str, position: int, *, done: Done[None]) -> None:
        """Discard the bytes before `position`, start ≤ position ≤ length, else SegmentTruncated.

        The same position again is fine. A FileRegion that is held keeps its bytes. Their space is
        free soon after, but for some of it in the first file that stays.
        """
        ...

    def merge_segments(
        self,
        target: str,
        source: str,
        *,
        done: Done[int],
        attributes: Sequence[AttributeUpdate] = (),
    ) -> None:
        """Append `source` to `target` as one unit, update `target`'s attributes, delete `source`.

        Gives the target's length after it. All or nothing. Seals the source if it is not. The
        source must not be truncated (SegmentTruncated) and not be the target (InvalidArgument);
        a sealed target is SegmentSealed; a condition that fails is AttributeMismatch.
        """
        ...

    def info(self, name: str, *, done: Done[SegmentInfo]) -> None:
        """Describe a segment. NoSuchSegment."""
        ...

    def list_segments(self, prefix: str, *, done: Done[Sequence[str]]) -> None:
        """List the names of segments and tables that begin with `prefix`, sorted."""
        ...

    def count_segments(self, name: str, *, done: Done[int]) -> None:
        """Count the segments and tables of the group of a name, whether one has it or not.

        Names that are the same up to the second slash are a group; without a second slash, up to
        the first one, and without one, all of them. Those with each of PART_MARKS are a group
        apart. All that was called before counts, and nothing is gone through.
        """
        ...

    def open_writer(self, name: str, writer: UUID, *, done: Done[Writer]) -> None:
        """Start a session. Works on a sealed segment (the append then fails). NoSuchSegment."""
        ...

    def open_reader(self, name: str, *, done: Done[Reader]) -> None:
        """Get a reader for many reads of one segment. NoSuchSegment; IsATable."""
        ...

    def read(
        self, name: str, position: int, size: int, *, done: Done[ReadResult], wait: bool = False
    ) -> Cancel:
        """Read up to `size` (1 … READ_BYTES_MAX, clamped) committed bytes from `position` on.

        At or past the tail: with `wait`, the result comes when bytes exist at `position` (or the
        segment is sealed, deleted or truncated past it); without, it is empty. A read that reaches
        or begins past the committed length says `at_tail`; on a sealed segment one that reaches the
        end says `end_of_segment` too, past the end is PositionOutOfRange (so is a negative
        position). Before the start: SegmentTruncated.
        """
        ...

    # Attributes

    def get_attribute(self, name: str, attribute: UUID, *, done: Done[int]) -> None:
        """Read an attribute, ABSENT if it is not there. A writer's id holds its event number.

        True at any age: an attribute does not fade because the segment was idle.
        """
        ...

    def update_attributes(
        self, name: str, updates: Sequence[AttributeUpdate], *, done: Done[None]
    ) -> None:
        """Change attributes, all or none: AttributeMismatch if one has not its expected value.

        Changing the attribute of a writer fences its sessions. SegmentSealed, NoSuchSegment.
        InvalidArgument where the segment would have more than ATTRIBUTES_MAX that are no writers.
        """
        ...

    # Tables

    def create_table(self, name: str, *, done: Done[None], key_length: int = 0) -> None:
        """Create a table; with `key_length` > 0 all keys have that length, iterated in order."""
        ...

    def delete_table(self, name: str, *, done: Done[None], must_be_empty: bool = False) -> None:
        """Delete a table. NotATable; TableNotEmpty."""
        ...

    def update_table(
        self,
        name: str,
        entries: Sequence[TableEntry],
        *,
        done: Done[Sequence[int]],
        expected_length: int | None = None,
        durability: Durability | None = None,
    ) -> None:
        """Write entries, all or none; gives their versions in order.

        An entry whose version is not ANY_VERSION is a condition: NOT_EXISTS, or the exact version;
        if one fails, KeyVersionMismatch, which tells the version found, and nothing is written.
        `expected_length` is a condition on the table segment's length (LengthMismatch), looked at
        before the versions. A later entry of the same key wins. Versions of one key grow and are
        never used again for other content. InvalidArgument for a key of 0 or above KEY_BYTES_MAX
        bytes, of the wrong length, or an entry above ENTRY_BYTES_MAX.
        """
        ...

    def remove_keys(
        self,
        name: str,
        keys: Sequence[TableEntry],
        *,
        done: Done[None],
        expected_length: int | None = None,
    ) -> None:
        """Remove keys, all or none (values are not looked at; versions are conditions as above).

        Removing an absent key without a condition is fine; with one, KeyVersionMismatch.
        `expected_length` is a condition as above (LengthMismatch).
        """
        ...

    def read_table(
        self, name: str, keys: Sequence[bytes], *, done: Done[Sequence[TableEntry | None]]
    ) -> None:
        """Look up keys; None where a key is absent. In the order asked.

        InvalidArgument for a key of the wrong length.
        """
        ...

    def iterate_table(
        self,
        name: str,
        *,
        done: Done[TablePage],
        continuation: bytes | None = None,
        count: int = 1000,
        first: bytes | None = None,
        last: bytes | None = None,
    ) -> None:
        """Page through a table: every key that exists throughout the iteration is seen once.

        Fixed-key-length tables come in byte order and honour `first` and `last` (both inclusive);
        others in no promised order (`first`/`last` are then InvalidArgument). `count` ≥ 1.
        """
        ...

    def read_table_delta(
        self, name: str, position: int, *, done: Done[TableDelta], count: int = 1000
    ) -> None:
        """Read the entries written from `position` on (0: from the beginning), oldest first.

        Within one reply a later entry of a key replaces the earlier. A removal need not show:
        write a tombstone value if readers follow the table. PositionOutOfRange past the end.
        """
        ...

    def table_info(self, name: str, *, done: Done[tuple[SegmentInfo, int]]) -> None:
        """Report the table's segment and its number of keys. NotATable."""
        ...


class SegmentStore(Operations, Protocol):
    """The store."""

    @property
    def for_removal(self) -> Operations:
        """These operations, for callers that free space with them.

        On a full disk, what they and the writers opened here write may use the space that is kept
        for deletions, truncations and the removal of keys.
        """
        ...

    def close(self, *, done: Done[None]) -> None:
        """Finish the calls made before, sync all, release the directory. Later: StoreClosed."""
        ...

# cython: language_level=3, annotation_typing=False, nonecheck=True
"""A segment: its state as committed, its state with everything issued, and its waiters."""

from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import Final, NamedTuple, Protocol, TypeAlias

import cython

from store.errors import StoreError
from store.local.state.attributes import Attributes
from store.local.state.data_file import DataFile
from store.local.state.table import Table
from store.local.state.waiters import Waiter, Waiters

Extent: TypeAlias = tuple[int, DataFile]
"""A data file of a segment, behind the byte of the segment that is the file's first byte."""


class Gathered(Protocol):
    """A round, as its segments know it: changes that are committed together.

    Attributes:
        finished: Whether it is over.
    """

    finished: bool

    def call_after(self, call: Callable[[], object]) -> None:
        """Call something once it is finished."""


class Place(NamedTuple):
    """Place of bytes: `size` of them at `position` in the file."""

    file: DataFile
    position: int
    size: int


_base_of = itemgetter(0)
_NO_FILES: Final[AbstractSet[DataFile]] = frozenset()
_EVERY: Final = 1 << 63
"""Above every position."""


@cython.no_gc
@cython.cclass
class SegmentState:
    """State of a segment at one moment; the committed one takes the steps of the issued one.

    Its extents are tuples, which the garbage collector forgets: it does not know data files.
    """

    __slots__ = ("attributes", "extents", "length", "modified_at_ms", "sealed", "start")

    def __init__(self) -> None:
        self.start = 0
        self.length = 0
        self.sealed = False
        self.modified_at_ms = 0
        self.attributes = Attributes()
        self.extents: tuple[Extent, ...] = ()

    def copy(self) -> "SegmentState":
        """Return a state that changes on its own."""
        other = SegmentState()
        other.start = self.start
        other.length = self.length
        other.sealed = self.sealed
        other.modified_at_ms = self.modified_at_ms
        other.attributes = self.attributes.copy()
        other.extents = self.extents
        return other

    def place_of(self, position: int, size: int) -> Place:
        """Return where `position` (start ≤ position < length) is, up to the end of that file."""
        index = bisect_right(self.extents, position, key=_base_of) - 1
        base, file = self.extents[index]
        last = index + 1 == len(self.extents)
        end = self.length if last else self.extents[index + 1][0]
        return Place(file, position - base, min(size, end - position))

    def truncate(self, position: int) -> list[DataFile]:
        """Move the start; gives the files that lie wholly before it. The last file stays."""
        self.start = max(self.start, position)
        count = 0
        while count + 1 < len(self.extents) and self.extents[count + 1][0] <= position:
            count += 1
        dropped = [file for _, file in self.extents[:count]]
        self.extents = self.extents[count:]
        return dropped

    def merge(self, source: "SegmentState") -> None:
        """Take over all bytes of `source`, which starts at 0, with its files."""
        base = self.length
        self.extents += tuple((base + at, file) for at, file in source.extents)
        self.length += source.length


@cython.no_gc
@cython.cclass
class Segment:
    """A segment of the running store. Only the loop's thread touches it.

    There may be a million. Compiled, they are of no interest to the garbage collector, which would
    hold the loop up for long: nothing that a segment refers to refers to it for long.
    """

    __slots__ = (
        "abort_error",
        "aborts",
        "blocked",
        "bulk_files",
        "committed",
        "corrupt",
        "created",
        "dead",
        "failure",
        "gone",
        "inline_bytes",
        "inline_round",
        "is_waking",
        "key_length",
        "name",
        "number",
        "pending",
        "round",
        "table",
        "waiters",
    )

    def __init__(self, number: int, name: str, key_length: int | None) -> None:
        self.number = number
        self.name = name
        self.key_length = key_length
        self.committed = SegmentState()
        self.pending = SegmentState()
        # Life: `created` once the creation is committed, `gone` once a deletion is issued, `dead`
        # once that is committed.
        self.created = False
        self.gone = False
        self.dead = False
        # Why there are no appends for good: a failed write or sync, or bytes that do not check out.
        self.failure: StoreError | None = None
        self.corrupt = False
        # One look for the hot path: appends must take the slow way, where the reason is found.
        self.blocked = False
        # How often what was issued was taken back; a writer's session does not outlive that.
        self.aborts = 0
        self.abort_error: StoreError | None = None
        # The latest round with a change of this segment, and the data that it has in that round.
        self.round: Gathered | None = None
        self.inline_round: Gathered | None = None
        self.inline_bytes = 0
        # Files with data that is neither synced nor in the journal.
        self.bulk_files: AbstractSet[DataFile] = _NO_FILES
        # Reads that wait for bytes, if there were any; and whether more are to be woken soon.
        self.waiters: Waiters | None = None
        self.is_waking = False
        self.table = None if key_length is None else Table(key_length, name)

    @property
    def is_table(self) -> bool:
        return self.key_length is not None

    def block(self) -> None:
        """Work out `blocked` anew."""
        self.blocked = (
            self.gone
            or self.pending.sealed
            or self.corrupt
            or self.failure is not None
            or self.is_table
        )

    def abort(self, error: StoreError) -> None:
        """Take back everything that was issued and is not committed."""
        self.pending = self.committed.copy()
        self.gone = self.dead or not self.created
        self.aborts += 1
        self.abort_error = error
        if self.table is not None:
            self.table.abort()
        self.block()

    def note_bulk(self, file: DataFile) -> None:
        """Note a file with data that is neither synced nor in the journal."""
        if file not in self.bulk_files:
            self.bulk_files = {*self.bulk_files, file}

    def forget_bulk(self, file: DataFile) -> None:
        """Note that a file is synced."""
        if file in self.bulk_files:
            self.bulk_files = (self.bulk_files - {file}) or _NO_FILES

    def wait(self, position: int, waiter: Waiter) -> None:
        """Keep a read that waits for a byte at a position."""
        if self.waiters is None:
            self.waiters = Waiters()
        self.waiters.add(position, waiter)

    def wake(self, most: int) -> bool:
        """Let up to `most` waiters try again that may go on; tells whether there are more."""
        waiters, state = self.waiters, self.committed
        if waiters is None:
            return False
        length = _EVERY if state.sealed or self.dead else max(state.length, state.start)
        still = []
        while most and waiters.is_due(length):
            position, waiter = waiters.take()
            if not waiter.attempt():
                still.append((position, waiter))
            most -= 1
        for position, waiter in still:
            waiters.add(position, waiter)
        return most == 0 and waiters.is_due(length)

    def wake_all(self) -> None:
        """Let all waiters try again."""
        if self.waiters is not None:
            for position, waiter in self.waiters.take_all():
                if not waiter.attempt():
                    self.waiters.add(position, waiter)

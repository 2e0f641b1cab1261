"""The operations on tables."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from store.api import (
    ENTRY_BYTES_MAX,
    KEY_BYTES_MAX,
    TABLE_BATCH_BYTES_MAX,
    Done,
    Durability,
    SegmentInfo,
    TableDelta,
    TableEntry,
    TablePage,
)
from store.errors import (
    InvalidArgument,
    LengthMismatch,
    NotATable,
    PositionOutOfRange,
    StoreError,
    TableNotEmpty,
)
from store.local.catalogue import Catalogue
from store.local.changes import AppendChange, NoChange
from store.local.operations import SegmentOperations, info_of
from store.local.reading import Reading, places_of
from store.local.segment import Place, Segment
from store.local.table import KeyChange, KeyEntry, Table, key_entry_of
from store.local.table_entries import STORED_ENTRY_BYTES_MAX, StoredEntry, bytes_of_entry
from store.local.table_reading import DeltaRange, delta_of, value_of, values_of
from store.local.writing import Staging, blocked_error

# Values of one page of an iteration: it ends early above this, so that a page of large values
# does not take a gigabyte.
PAGE_BYTES_MAX: Final = 4 * 1024 * 1024


# What a delta read decodes on the loop: small entries of so many bytes take about 1 ms.
DELTA_BYTES: Final = 64 * 1024


class TableChange(AppendChange):
    """A batch of entries."""

    __slots__ = ("changes", "committed", "table", "table_done")

    def __init__(
        self,
        catalogue: Catalogue,
        segment: Segment,
        table: Table,
        changes: list[KeyChange],
        done: Callable[[StoreError | None], object],
        committed: Callable[[Segment], object],
        *,
        gives_space: bool,
    ) -> None:
        """`done` gets the error or None; `committed` is called after every commit."""
        super().__init__(catalogue, segment, None, 0)
        self.table = table
        self.changes = changes
        self.table_done = done
        self.committed = committed
        self.gives_space = gives_space

    def apply(self, at_ms: int) -> None:
        super().apply(at_ms)
        self.table.commit(self.changes)

    def report(self, error: StoreError | None) -> None:
        super().report(error)
        self.table_done(error)
        if error is None:
            self.committed(self.segment)


class TableOperations:
    """What the store does with tables."""

    def __init__(
        self,
        staging: Staging,
        reading: Reading,
        segments: SegmentOperations,
        committed: Callable[[Segment], object],
    ) -> None:
        """`committed` is called after every commit of entries."""
        self._staging = staging
        self._rounds = staging.rounds
        self._reading = reading
        self._segments = segments
        self._committed = committed

    def create(self, name: str, key_length: int, done: Done[None]) -> None:
        """Create a table."""
        if not 0 <= key_length <= KEY_BYTES_MAX:
            error = InvalidArgument(f"key length {key_length} is not in 0 … {KEY_BYTES_MAX}")
            self._rounds.after_all(partial(done, error), [name])
        else:
            self._segments.create(name, key_length, done, None)

    def delete(self, name: str, done: Done[None], *, must_be_empty: bool) -> None:
        """Delete a table."""
        found = self._find(name, done)
        if found is None:
            return
        segment, table = found
        if must_be_empty and table.count_issued:
            error = TableNotEmpty(f"table {name!r} has {table.count_issued} keys")
            self._segments.refuse(segment, done, error)
        else:
            self._segments.delete_found(segment, done)

    def update(
        self,
        name: str,
        entries: Sequence[TableEntry],
        done: Done[Sequence[int]],
        expected_length: int | None,
        durability: Durability | None,
        *,
        gives_space: bool,
    ) -> None:
        """Write entries."""
        found = self._find(name, done)
        if found is None:
            return
        segment, table = found
        error = (
            blocked_error(segment)
            or _entries_error(table, entries)
            or _length_error(segment, expected_length)
            or table.check(entries)
        )
        if error is not None:
            self._segments.refuse(segment, done, error)
            return
        stored = [(entry.key, entry.value, None) for entry in entries]
        versions: list[int] = []
        self.write(
            segment,
            stored,
            lambda error: done(error or versions),
            durability,
            versions,
            gives_space=gives_space,
        )

    def remove(self, name: str, keys: Sequence[TableEntry], done: Done[None]) -> None:
        """Remove keys."""
        found = self._find(name, done)
        if found is None:
            return
        segment, table = found
        error = (
            blocked_error(segment)
            or next(filter(None, (_key_error(table, entry.key) for entry in keys)), None)
            or table.check(keys)
        )
        if error is not None:
            self._segments.refuse(segment, done, error)
            return
        present = dict.fromkeys(e.key for e in keys if table.issued(e.key) is not None)
        self.write(segment, [(key, None, None) for key in present], done, gives_space=True)

    def write(
        self,
        segment: Segment,
        entries: Sequence[tuple[bytes, bytes | None, int | None]],
        done: Callable[[StoreError | None], object],
        durability: Durability | None = None,
        versions: list[int] | None = None,
        *,
        gives_space: bool = False,
    ) -> None:
        """Issue checked entries: key, value (None removes), version (None: the position).

        Adds to `versions` what the entries' versions are.
        """
        table = segment.table
        assert table is not None
        if not entries:
            self._staging.repeat(NoChange(segment, done), durability)
            return
        parts: list[bytes] = []
        changes: list[KeyChange] = []
        position = segment.pending.length
        for key, value, version in entries:
            part = bytes_of_entry(table.seed, position, key, value, version)
            stored = StoredEntry(
                position, len(part), key, value, position if version is None else version
            )
            parts.append(part)
            changes.append((key, key_entry_of(stored)))
            position += len(part)
        if versions is not None:
            versions.extend(entry.version for _, entry in changes)
        catalogue = self._staging.catalogue
        change = TableChange(
            catalogue, segment, table, changes, done, self._committed, gives_space=gives_space
        )
        data = b"".join(parts)
        try:
            self._staging.append(change, data, len(data), durability)
        except StoreError as error:
            self._staging.failed(segment, error)
            self._rounds.after(segment, partial(done, error))
            return
        table.issue(changes)

    def read(
        self, name: str, keys: Sequence[bytes], done: Done[Sequence[TableEntry | None]]
    ) -> None:
        """Look keys up."""
        found = self._find(name, done)
        if found is None:
            return
        segment, table = found

        def look_up() -> None:
            error = self._segments.alive(segment)
            if error is not None:
                done(error)
                return
            entries = [table.index.get(key) for key in keys]
            present = [(k, e) for k, e in zip(keys, entries, strict=True) if e is not None]

            def answer(values: list[TableEntry] | StoreError) -> None:
                if isinstance(values, StoreError):
                    done(values)
                    return
                rest = iter(values)
                done([None if entry is None else next(rest) for entry in entries])

            self._with_values(segment, present, answer)

        self._rounds.after(segment, look_up)

    def iterate(
        self,
        name: str,
        done: Done[TablePage],
        continuation: bytes | None,
        count: int,
        first: bytes | None,
        last: bytes | None,
    ) -> None:
        """Give a page of entries; the continuation is the last key of the page."""
        found = self._find(name, done)
        if found is None:
            return
        segment, table = found
        if count < 1 or (table.key_length == 0 and (first is not None or last is not None)):
            error = InvalidArgument(
                f"count {count} is below 1"
                if count < 1
                else "only tables with a key length have an order, and so a first and last key"
            )
            self._segments.refuse(segment, done, error)
            return

        def look_up() -> None:
            error = self._segments.alive(segment)
            if error is not None:
                done(error)
                return
            page, more = _page_of(table, table.keys_from(continuation, first, last), count)
            after = page[-1][0] if more else None

            def answer(entries: list[TableEntry] | StoreError) -> None:
                done(entries if isinstance(entries, StoreError) else TablePage(entries, after))

            self._with_values(segment, page, answer)

        self._rounds.after(segment, look_up)

    def read_delta(self, name: str, position: int, done: Done[TableDelta], count: int) -> None:
        """Read entries in the order they were written."""
        found = self._find(name, done)
        if found is None:
            return
        segment, table = found

        def look_up() -> None:
            state = segment.committed
            error = self._segments.alive(segment)
            if error is None and count < 1:
                error = InvalidArgument(f"count {count} is below 1")
            if error is None and not 0 <= position <= state.length:
                error = PositionOutOfRange(
                    f"position {position} is not in 0 … {state.length} of table {name!r}"
                )
            if error is not None:
                done(error)
                return
            whole = table.whole_from(max(position, state.start), state.length)
            should_clear = position < state.start
            wanted = DeltaRange(whole, state.length, table.seed, count, should_clear=should_clear)
            if not whole:
                done(delta_of(wanted, memoryview(b"")))
                return
            if not self._delta_from_memory(segment, wanted, done):
                size = min(STORED_ENTRY_BYTES_MAX, len(whole))
                places = places_of(segment, whole.start, size)
                self._reading.load(places, partial(delta_of, wanted), done, hot=False)

        self._rounds.after(segment, look_up)

    def _delta_from_memory(
        self, segment: Segment, wanted: DeltaRange, done: Done[TableDelta]
    ) -> bool:
        """Answer at once if the first entries are in memory; tells whether that was so."""
        begin, size = wanted.whole.start, min(DELTA_BYTES, len(wanted.whole))
        try:
            data = self._reading.cached(segment.committed.place_of(begin, size))
            delta = delta_of(wanted, memoryview(data or b""))
        except StoreError as error:
            done(error)
            return True
        if delta.position == begin:
            return False
        done(delta)
        return True

    def info(self, name: str, done: Done[tuple[SegmentInfo, int]]) -> None:
        """Describe a table."""
        found = self._find(name, done)
        if found is not None:
            segment, table = found
            self._rounds.after(
                segment,
                lambda: done(self._segments.alive(segment) or (info_of(segment), len(table.index))),
            )

    def _find(self, name: str, done: Callable[[StoreError], None]) -> tuple[Segment, Table] | None:
        segment = self._segments.find(name, done)
        if segment is None:
            return None
        if segment.table is None:
            self._segments.refuse(segment, done, NotATable(f"segment {name!r} is not a table"))
            return None
        return segment, segment.table

    def _with_values(
        self,
        segment: Segment,
        found: Sequence[KeyChange],
        done: Callable[[list[TableEntry] | StoreError], object],
    ) -> None:
        """Get the values that are not kept in memory, from the page cache or on a thread."""
        try:
            values = [self._value_or_place(segment, key, entry) for key, entry in found]
        except StoreError as error:
            done(error)
            return

        def answer(loaded: list[bytes] | StoreError) -> None:
            if isinstance(loaded, StoreError):
                done(loaded)
                return
            rest = iter(loaded)
            entries = [
                TableEntry(key, value if isinstance(value, bytes) else next(rest), entry.version)
                for (key, entry), value in zip(found, values, strict=True)
            ]
            done(entries)

        cold = [place for place in values if isinstance(place, Place)]
        if cold:
            pairs = zip(found, values, strict=True)
            asked = [each for each, value in pairs if isinstance(value, Place)]
            self._reading.load(cold, partial(values_of, segment, asked), answer, hot=False)
        else:
            answer([])

    def _value_or_place(self, segment: Segment, key: bytes, entry: KeyEntry) -> bytes | Place:
        if entry.value is not None:
            return entry.value
        place = segment.committed.place_of(entry.position, entry.size)
        data = self._reading.cached(place)
        if data is None or len(data) != place.size:
            return place
        return value_of(segment, (key, entry), memoryview(data))


def _page_of(
    table: Table, keys: Iterator[bytes], count: int
) -> tuple[list[tuple[bytes, KeyEntry]], bool]:
    """Take a page; tells whether more follows."""
    page: list[tuple[bytes, KeyEntry]] = []
    size = 0
    for key in keys:
        entry = table.index[key]
        if len(page) == count or (page and size + entry.size > PAGE_BYTES_MAX):
            return page, True
        page.append((key, entry))
        size += entry.size
    return page, False


def _entries_error(table: Table, entries: Sequence[TableEntry]) -> StoreError | None:
    total = 0
    for entry in entries:
        error = _key_error(table, entry.key)
        if error is not None:
            return error
        size = len(entry.key) + len(entry.value)
        if size > ENTRY_BYTES_MAX:
            return InvalidArgument(f"an entry of {size} bytes is above {ENTRY_BYTES_MAX}")
        total += size
    if total > TABLE_BATCH_BYTES_MAX:
        return InvalidArgument(f"entries of {total} bytes are above {TABLE_BATCH_BYTES_MAX}")
    return None


def _key_error(table: Table, key: bytes) -> StoreError | None:
    size = len(key)
    if not 0 < size <= KEY_BYTES_MAX:
        return InvalidArgument(f"a key has 1 to {KEY_BYTES_MAX} bytes, not {size}")
    if table.key_length and size != table.key_length:
        return InvalidArgument(f"a key of this table has {table.key_length} bytes, not {size}")
    return None


def _length_error(segment: Segment, expected: int | None) -> StoreError | None:
    length = segment.pending.length
    if expected is None or expected == length:
        return None
    return LengthMismatch(f"table {segment.name!r} is {length} bytes long, not {expected}", length)

"""The operations on tables."""

from collections.abc import Callable, Sequence
from functools import partial

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
from store.local.operations import SegmentOperations, info_of
from store.local.reads import Reading
from store.local.state.segment import Segment
from store.local.state.table import Table
from store.local.tables.table_reads import DeltaRange, TableReading, page_of
from store.local.tables.table_writes import TableWriting
from store.local.writes import Staging, blocked_error


class TableOperations(SegmentOperations):
    """Operations on tables, beside those on segments.

    Attributes:
        writing: Writes entries that were checked.
    """

    def __init__(
        self,
        staging: Staging,
        reading: Reading,
        call_soon: Callable[..., object],
        writing: TableWriting,
        *,
        gives_space: bool,
    ) -> None:
        super().__init__(staging, reading, call_soon, gives_space=gives_space)
        self.writing = writing
        self._entries = TableReading(reading)

    def create_table(self, name: str, *, done: Done[None], key_length: int = 0) -> None:
        if not 0 <= key_length <= KEY_BYTES_MAX:
            error = InvalidArgument(f"key length {key_length} is not in 0 … {KEY_BYTES_MAX}")
            self.rounds.after_all(partial(done, error), [name])
        else:
            self.create(name, key_length, done, None)

    def delete_table(self, name: str, *, done: Done[None], must_be_empty: bool = False) -> None:
        found = self._find_table(name, done)
        if found is None:
            return
        segment, table = found
        if must_be_empty and table.count_issued:
            error = TableNotEmpty(f"table {name!r} has {table.count_issued} keys")
            self.refuse(segment, done, error)
        else:
            self.delete_found(segment, done)

    def update_table(
        self,
        name: str,
        entries: Sequence[TableEntry],
        *,
        done: Done[Sequence[int]],
        expected_length: int | None = None,
        durability: Durability | None = None,
    ) -> None:
        found = self._find_table(name, done)
        if found is None:
            return
        segment, table = found
        error = (
            blocked_error(segment)
            or _entries_error(table, entries)
            or _length_error(segment, expected_length)
            or _version_error(table, entries)
        )
        if error is not None:
            self.refuse(segment, done, error)
            return
        versions: list[int] = []
        self.writing.write(
            segment,
            ((entry.key, entry.value, None) for entry in entries),
            lambda error: done(error or versions),
            durability,
            versions,
            gives_space=self.gives_space,
        )

    def remove_keys(
        self,
        name: str,
        keys: Sequence[TableEntry],
        *,
        done: Done[None],
        expected_length: int | None = None,
    ) -> None:
        found = self._find_table(name, done)
        if found is None:
            return
        segment, table = found
        error = (
            blocked_error(segment)
            or next(filter(None, (_key_error(table, entry.key) for entry in keys)), None)
            or _length_error(segment, expected_length)
            or _version_error(table, keys)
        )
        if error is not None:
            self.refuse(segment, done, error)
            return
        present = dict.fromkeys(e.key for e in keys if table.issued(e.key) is not None)
        removed = ((key, None, None) for key in present)
        self.writing.write(segment, removed, done, gives_space=True)

    def read_table(
        self, name: str, keys: Sequence[bytes], *, done: Done[Sequence[TableEntry | None]]
    ) -> None:
        found = self._find_table(name, done)
        if found is None:
            return
        segment, table = found

        def look_up() -> None:
            error = self.alive(segment)
            if error is not None:
                done(error)
                return
            wrong = next(filter(None, (_length_of_key_error(table, key) for key in keys)), None)
            if wrong is not None:
                done(wrong)
                return
            entries = [table.index.get(key) for key in keys]
            present = [(k, e) for k, e in zip(keys, entries, strict=True) if e is not None]

            def answer(values: list[TableEntry] | StoreError) -> None:
                if isinstance(values, StoreError):
                    done(values)
                    return
                rest = iter(values)
                done([None if entry is None else next(rest) for entry in entries])

            self._entries.values(segment, present, answer)

        self.rounds.after(segment, look_up)

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
        # The continuation is the last key of the page before.
        found = self._find_table(name, done)
        if found is None:
            return
        segment, table = found
        if count < 1 or (table.key_length == 0 and (first is not None or last is not None)):
            error = InvalidArgument(
                f"count {count} is below 1"
                if count < 1
                else "only tables with a key length have an order, and so a first and last key"
            )
            self.refuse(segment, done, error)
            return

        def look_up() -> None:
            error = self.alive(segment)
            if error is not None:
                done(error)
                return
            page, more = page_of(table, table.keys_from(continuation, first, last), count)
            after = page[-1][0] if more else None

            def answer(entries: list[TableEntry] | StoreError) -> None:
                done(entries if isinstance(entries, StoreError) else TablePage(entries, after))

            self._entries.values(segment, page, answer)

        self.rounds.after(segment, lambda: self._when_in_order(table, look_up))

    def _when_in_order(self, table: Table, call: Callable[[], object]) -> None:
        """Call something when the keys of a table are in order, which may take some turns."""
        table.when_ordered.append(call)
        if len(table.when_ordered) == 1:
            self._put_in_order(table)

    def _put_in_order(self, table: Table) -> None:
        if not table.is_in_order():
            self.call_soon(self._put_in_order, table)
            return
        calls, table.when_ordered = table.when_ordered, []
        for call in calls:
            call()

    def read_table_delta(
        self, name: str, position: int, *, done: Done[TableDelta], count: int = 1000
    ) -> None:
        found = self._find_table(name, done)
        if found is None:
            return
        segment, table = found

        def look_up() -> None:
            state = segment.committed
            error = self.alive(segment)
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
            self._entries.delta(segment, wanted, done)

        self.rounds.after(segment, look_up)

    def table_info(self, name: str, *, done: Done[tuple[SegmentInfo, int]]) -> None:
        found = self._find_table(name, done)
        if found is not None:
            segment, table = found
            self.rounds.after(
                segment,
                lambda: done(self.alive(segment) or (info_of(segment), len(table.index))),
            )

    def _find_table(
        self, name: str, done: Callable[[StoreError], None]
    ) -> tuple[Segment, Table] | None:
        segment = self.find(name, done)
        if segment is None:
            return None
        if segment.table is None:
            self.refuse(segment, done, NotATable(f"segment {name!r} is not a table"))
            return None
        return segment, segment.table


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
    return _length_of_key_error(table, key)


def _length_of_key_error(table: Table, key: bytes) -> StoreError | None:
    wanted = table.key_length
    if wanted and len(key) != wanted:
        return InvalidArgument(f"a key of this table has {wanted} bytes, not {len(key)}")
    return None


def _length_error(segment: Segment, expected: int | None) -> StoreError | None:
    length = segment.pending.length
    if expected is None or expected == length:
        return None
    return LengthMismatch(f"table {segment.name!r} is {length} bytes long, not {expected}", length)


def _version_error(table: Table, entries: Sequence[TableEntry]) -> StoreError | None:
    error = table.check(entries)
    if error is not None:
        error.key_length = table.key_length
    return error

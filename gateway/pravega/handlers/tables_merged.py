"""The merge of a table into another one. No Pravega has ever done it; its page names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.pravega.handlers.table_pages import STEP
from store.api import TABLE_BATCH_BYTES_MAX, Operations, TableEntry
from store.errors import InvalidArgument, SegmentSealed, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from store.api import Done, SegmentInfo, TablePage

ENTRIES_MAX: Final = 100_000
"""Entries of one merge: other connections wait while they are written."""


class TableMerge:
    """One merge: the source is read, sealed, read again, written into the target, deleted.

    It is read before it is sealed, so that one that the target cannot take stays as it was.
    """

    def __init__(self, store: Operations, target: str, source: str, *, done: Done[int]) -> None:
        """`done` gets the target's length."""
        self._store = store
        self._target = target
        self._source = source
        self._answer = done
        self._key_length = 0

    def begin(self) -> None:
        """Do it."""
        if self._target == self._source:
            text = f"table {self._source!r} cannot be merged into itself"
            self._answer(InvalidArgument(text))
            return
        self._store.table_info(self._target, done=self._or_fail(self._target_found))

    def _or_fail(self, then: Callable[[object], object]) -> Callable[[object], None]:
        def done(outcome: object) -> None:
            if isinstance(outcome, StoreError):
                self._answer(outcome)
            else:
                then(outcome)

        return done

    def _target_found(self, found: object) -> None:
        info: SegmentInfo
        info, _ = found  # type: ignore[misc]  # what table_info gives
        if info.sealed:
            self._answer(SegmentSealed(f"table {self._target!r} is sealed"))
            return
        self._key_length = info.key_length
        self._read(self._seal)

    def _seal(self, entries: Sequence[TableEntry]) -> None:
        if self._key_length and any(len(entry.key) != self._key_length for entry in entries):
            text = f"keys of table {self._target!r} have {self._key_length} bytes; those of "
            self._answer(InvalidArgument(f"{text}{self._source!r} have not"))
            return

        def sealed(outcome: int | StoreError) -> None:
            if isinstance(outcome, StoreError) and not isinstance(outcome, SegmentSealed):
                self._answer(outcome)
            else:
                self._read(self._write)

        self._store.seal_segment(self._source, done=sealed)

    def _read(self, then: Callable[[Sequence[TableEntry]], object]) -> None:
        """Read the whole source, unless it is larger than one update may be."""
        entries: list[TableEntry] = []
        size = 0

        def add(outcome: TablePage | StoreError) -> None:
            nonlocal size
            if isinstance(outcome, StoreError):
                self._answer(outcome)
                return
            entries.extend(TableEntry(entry.key, entry.value) for entry in outcome.entries)
            size += sum(len(entry.key) + len(entry.value) for entry in outcome.entries)
            if size > TABLE_BATCH_BYTES_MAX or len(entries) > ENTRIES_MAX:
                most = f"{TABLE_BATCH_BYTES_MAX} bytes or {ENTRIES_MAX} entries"
                text = f"table {self._source!r} has more than {most}, the most that are moved"
                self._answer(InvalidArgument(f"{text} at once"))
            elif outcome.continuation is None:
                then(entries)
            else:
                self._ask(outcome.continuation, add)

        self._ask(None, add)

    def _ask(self, continuation: bytes | None, done: Done[TablePage]) -> None:
        self._store.iterate_table(self._source, continuation=continuation, count=STEP, done=done)

    def _write(self, entries: Sequence[TableEntry]) -> None:
        if entries:
            self._store.update_table(self._target, entries, done=self._or_fail(self._delete))
        else:
            self._delete(None)

    def _delete(self, _: object) -> None:
        self._store.delete_table(self._source, done=self._or_fail(self._tell))

    def _tell(self, _: object) -> None:
        def told(outcome: tuple[SegmentInfo, int] | StoreError) -> None:
            self._answer(outcome if isinstance(outcome, StoreError) else outcome[0].length)

        self._store.table_info(self._target, done=told)

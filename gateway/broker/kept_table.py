"""A small table that is held in memory as well: administrators change it, all connections read it.

A change is one update of the store, all or nothing, whatever it holds; what goes is first written
as empty, since the store has no update that writes and removes. Changes are synced to the disk
whatever the durability of the streams: a deleted user stays deleted.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from gateway.log.derived.tracking import create_table_if_missing
from gateway.pending import Pending
from store.api import Durability, SegmentInfo, SegmentStore, TableEntry, TablePage
from store.errors import CorruptSegment, StoreError

T = TypeVar("T")

log = logging.getLogger(__name__)

_REPAIR: Final = "hutch store check --data DIR --repair"
"""The command that makes a damaged table usable, without the entries that are lost."""

_REMOVED: Final = b""


async def read_whole_table(store: SegmentStore, table: str) -> list[TableEntry]:
    """Return every entry of a table.

    Raises:
        CorruptSegment: The table is damaged: entries may be missing. A server that took the rest
            for all would tell clients that their streams do not exist.
        StoreError: It cannot be read.
    """
    await check_intact(store, table)
    entries: list[TableEntry] = []
    continuation: bytes | None = None
    while True:
        page: Pending[TablePage] = Pending()
        store.iterate_table(table, continuation=continuation, done=page.settle)
        result = await page
        entries.extend(result.entries)
        continuation = result.continuation
        if continuation is None:
            return entries


async def check_intact(store: SegmentStore, table: str) -> None:
    """Raise CorruptSegment if a table is damaged; StoreError if it cannot be asked."""
    described: Pending[tuple[SegmentInfo, int]] = Pending()
    store.table_info(table, done=described.settle)
    info, _ = await described
    if info.is_damaged:
        raise CorruptSegment(f"table {table!r} is damaged: run `{_REPAIR}`")


class KeptTable:
    """Keys to values that are not empty."""

    def __init__(self, store: SegmentStore, table: str) -> None:
        self._store = store
        self._table = table

    async def load(self) -> dict[bytes, bytes]:
        """Create the table if it is missing; return its entries. Raises StoreError."""
        await create_table_if_missing(self._store, self._table)
        entries = await read_whole_table(self._store, self._table)
        await self._sweep([entry.key for entry in entries if entry.value == _REMOVED])
        return {entry.key: entry.value for entry in entries if entry.value != _REMOVED}

    def unpacked(self, key: bytes, unpack: Callable[[bytes], T], value: bytes) -> T:
        """Decode a value. Raises CorruptSegment: what stands there was never written."""
        try:
            return unpack(value)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = f"the entry {key!r} of the table {self._table!r} is damaged"
            raise CorruptSegment(reason) from error

    async def write(
        self, changes: Mapping[bytes, bytes | None], *, gives_space: bool = False
    ) -> None:
        """Write values, and remove keys whose value is None: all or nothing.

        Args:
            changes: By key.
            gives_space: More is removed in consequence.

        Raises:
            StoreError: Nothing was written.
        """
        if not changes:
            return
        entries = [TableEntry(key, value or _REMOVED) for key, value in changes.items()]
        written: Pending[Any] = Pending()
        is_removal = gives_space or not any(changes.values())
        store = self._store.for_removal if is_removal else self._store
        store.update_table(self._table, entries, done=written.settle, durability=Durability.DISK)
        await written
        await self._sweep([key for key, value in changes.items() if not value])

    async def _sweep(self, keys: list[bytes]) -> None:
        """Take keys out that were written as removed."""
        if keys:
            removed: Pending[None] = Pending()
            entries = [TableEntry(key, b"") for key in keys]
            self._store.remove_keys(self._table, entries, done=removed.settle)
            try:
                await removed
            except StoreError as error:  # what is written as removed counts as that
                log.warning("keys not deleted table=%s error=%s", self._table, error)

"""The controller's table in the store."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from gateway.pending import Pending, asked
from gateway.pravega.names import TABLE
from store.api import NOT_EXISTS, Operations, TableEntry, TablePage
from store.errors import SegmentExists

SCOPE: Final = b"scope\0"
STREAM: Final = b"stream\0"
TRANSACTION: Final = b"transaction\0"
ENDED: Final = b"ended\0"
GROUP: Final = b"group\0"
PLACE: Final = b"place\0"
TIMES: Final = b"times\0"
KEY_VALUE_TABLE: Final = b"kvtable\0"
"""First parts of keys."""
UNREADABLE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
)
"""Errors of reading a row that is none of the controller's."""


class RecordTable:
    """Rows by keys, with the version of each: an update that another has overtaken is refused."""

    def __init__(self, store: Operations, removal: Operations) -> None:
        """`removal` is the store for calls that free space."""
        self._store = store
        self._removal = removal
        self._versions: dict[bytes, int] = {}

    async def load(self) -> dict[bytes, bytes]:
        """Return all rows; make the table if there is none. Raises StoreError."""
        with suppress(SegmentExists):
            await self._created()
        rows: dict[bytes, bytes] = {}
        place: bytes | None = None
        while True:
            page = await self._page(place)
            for entry in page.entries:
                rows[entry.key] = entry.value
                self._versions[entry.key] = entry.version
            place = page.continuation
            if place is None:
                return rows

    async def write(self, rows: Mapping[bytes, bytes]) -> None:
        """Write rows, all or none. Raises StoreError."""
        entries = [
            TableEntry(key, value, self._versions.get(key, NOT_EXISTS))
            for key, value in rows.items()
        ]
        versions = await self._written(entries)
        self._versions.update(zip(rows, versions, strict=True))

    async def remove(self, keys: Iterable[bytes]) -> None:
        """Remove rows, all or none. Raises StoreError."""
        entries = [TableEntry(key, b"") for key in keys]
        await self._removed(entries)
        for entry in entries:
            self._versions.pop(entry.key, None)

    # The store

    def _created(self) -> Pending[None]:
        return asked(lambda done: self._store.create_table(TABLE, done=done))

    def _page(self, place: bytes | None) -> Pending[TablePage]:
        return asked(lambda done: self._store.iterate_table(TABLE, done=done, continuation=place))

    def _written(self, entries: Sequence[TableEntry]) -> Pending[Sequence[int]]:
        return asked(lambda done: self._store.update_table(TABLE, entries, done=done))

    def _removed(self, entries: Sequence[TableEntry]) -> Pending[None]:
        return asked(lambda done: self._removal.remove_keys(TABLE, entries, done=done))

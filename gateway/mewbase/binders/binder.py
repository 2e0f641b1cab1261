"""A binder: documents in a table of the store, and their ids, sorted, in memory.

The store promises no order for keys of different lengths, and queries want one. Rows of the table:

    d + id of a document    the document, as BSON
    p + name of projection  generation u64, next position u64   how far the projection has come

The generation is that of the channel's stream: another stream of the name has another one.
"""

import struct
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from gateway.broker.locks import Locks
from gateway.log.derived.tracking import create_table_if_missing
from gateway.pending import Pending
from gateway.settings.mewbase import BINDER_IDS_MAX
from store.api import ANY_VERSION, ENTRY_BYTES_MAX, NOT_EXISTS, SegmentStore, TableEntry, TablePage
from store.errors import CorruptSegment

DOCUMENT: Final = b"d"
PLACE: Final = b"p"
ID_BYTES_MAX: Final = 1_024
"""Longest id: all ids of a binder are in memory."""
_PLACE: Final = struct.Struct(">QQ")


class ProjectionPlace(NamedTuple):
    """Place of a projection: the generation of its channel, and the position of its next event."""

    generation: int
    position: int

    def pack(self) -> bytes:
        """Encode for the table."""
        return _PLACE.pack(*self)

    @classmethod
    def unpack(cls, value: bytes) -> "ProjectionPlace":
        """Undo `pack`. Raises struct.error if it was never packed."""
        return cls(*_PLACE.unpack(value))


def document_key(name: bytes) -> bytes:
    """Return the key of a document."""
    return DOCUMENT + name


def name_in(key: bytes) -> bytes:
    """Return the id of a document in its key."""
    return key[len(DOCUMENT) :]


def place_key(projection: str) -> bytes:
    """Return the key of a projection's place."""
    return PLACE + projection.encode()


def has_room(name: bytes, document: bytes) -> bool:
    """Return whether a document fits into a row."""
    return len(name) + len(document) < ENTRY_BYTES_MAX


_PAGE_ROWS: Final = 100
"""Rows read at once at the start; each may have 1 MiB."""
_INSERTED_MAX: Final = 50
"""New ids up to which each is inserted; more are sorted in at once."""
_TOLD_AT_ONCE: Final = 16
"""Documents that are read at once for open queries before they change; each may have 1 MiB."""
_WRITE: Final = "write"


@dataclass(frozen=True, slots=True)
class Kept:
    """A document as it is stored.

    Attributes:
        content: Its bytes; None if there is none.
        version: Its version, NOT_EXISTS if there is none.
    """

    content: bytes | None = None
    version: int = NOT_EXISTS


@dataclass(frozen=True, slots=True)
class Changed:
    """A document that a projection changes.

    Attributes:
        content: What it becomes.
        version: The version that it must have before; ANY_VERSION if it was not looked at.
    """

    content: bytes
    version: int = ANY_VERSION


class OpenQuery(Protocol):
    """An open query, as its binder sees it."""

    def keep(self, name: bytes, content: bytes | None) -> None:
        """Keep a document that is about to change, as it is now; None if it is new."""
        ...


class Binder:
    """The documents of one binder. Create it with `open_binder`.

    Attributes:
        name: Its name.
        ids_max: The most ids: there is no document under another one.
        readers: The open queries.
    """

    def __init__(self, name: str, store: SegmentStore, table: str, ids_max: int) -> None:
        self.name = name
        self.ids_max = ids_max
        self.readers: set[OpenQuery] = set()
        self._store = store
        self._table = table
        # Keys of the documents, in the order of their ids. They are the very objects that the
        # store keeps for its own index: ids may be long, and many.
        self._keys: list[bytes] = []
        self._locks = Locks()
        self._places: dict[str, tuple[ProjectionPlace, int]] = {}

    def take(self, entry: TableEntry) -> None:
        """Take over a row from before the start. Raises CorruptSegment."""
        kind, rest = entry.key[:1], entry.key[1:]
        if kind == DOCUMENT:
            self._keys.append(entry.key)
            return
        reason = f"the entry {entry.key!r} of the table {self._table!r} is damaged"
        if kind != PLACE:
            raise CorruptSegment(reason)
        try:
            self._places[rest.decode()] = ProjectionPlace.unpack(entry.value), entry.version
        except (ValueError, struct.error) as error:
            raise CorruptSegment(reason) from error

    def sort(self) -> None:
        """Sort the ids that were taken."""
        self._keys.sort()

    # Ids

    def has(self, name: bytes) -> bool:
        """Return whether there is a document under an id."""
        return self._has(document_key(name))

    def _has(self, key: bytes) -> bool:
        at = bisect_left(self._keys, key)
        return at < len(self._keys) and self._keys[at] == key

    @property
    def ids_left(self) -> int:
        """Number of ids that it may still get."""
        return max(self.ids_max - len(self._keys), 0)

    # Reading

    def names_behind(self, name: bytes | None, count: int) -> Sequence[bytes]:
        """Return the next ids behind one, or the first ones, in order."""
        first = 0 if name is None else bisect_right(self._keys, document_key(name))
        return [name_in(key) for key in self._keys[first : first + count]]

    async def read(self, names: Sequence[bytes]) -> list[Kept]:
        """Read documents, as they are now. Raises StoreError."""
        found: Pending[Sequence[TableEntry | None]] = Pending()
        self._store.read_table(self._table, [document_key(n) for n in names], done=found.settle)
        return [Kept() if row is None else Kept(row.value, row.version) for row in await found]

    async def begin(self, reader: OpenQuery) -> None:
        """Open a query, which sees the documents as they are when this returns."""
        async with self._locks.hold(_WRITE):
            self.readers.add(reader)

    # Changing

    async def place_of(self, projection: str) -> ProjectionPlace | None:
        """Return the stored place of a projection; None if it is new."""
        found: Pending[Sequence[TableEntry | None]] = Pending()
        self._store.read_table(self._table, [place_key(projection)], done=found.settle)
        (row,) = await found
        if row is None:
            self._places.pop(projection, None)
            return None
        place = ProjectionPlace.unpack(row.value)
        self._places[projection] = place, row.version
        return place

    async def change(
        self, projection: str, place: ProjectionPlace, changes: Mapping[bytes, Changed]
    ) -> None:
        """Store documents and the place of their projection in one step.

        Raises:
            KeyVersionMismatch: A document, or the place, is not what it was when it was read.
            StoreError: Perhaps they are stored all the same.
        """
        async with self._locks.hold(_WRITE):
            await self._tell_readers(changes)
            _, version = self._places.get(projection, (None, NOT_EXISTS))
            documents = [
                TableEntry(document_key(name), changed.content, changed.version)
                for name, changed in changes.items()
            ]
            entries = [TableEntry(place_key(projection), place.pack(), version), *documents]
            written: Pending[Sequence[int]] = Pending()
            self._store.update_table(self._table, entries, done=written.settle)
            versions = await written
            self._places[projection] = place, versions[0]
            self._add(entry.key for entry in documents)

    async def _tell_readers(self, names: Collection[bytes]) -> None:
        """Let open queries keep documents that are about to change, as they are now."""
        untold = list(names)
        while untold and self.readers:
            some, untold = untold[:_TOLD_AT_ONCE], untold[_TOLD_AT_ONCE:]
            for name, kept in zip(some, await self.read(some), strict=True):
                for reader in list(self.readers):
                    reader.keep(name, kept.content)

    def _add(self, keys: Iterable[bytes]) -> None:
        """Sort keys in that are new."""
        new = [key for key in keys if not self._has(key)]
        if len(new) <= _INSERTED_MAX:
            for key in new:
                insort(self._keys, key)
        else:
            self._keys += new
            self._keys.sort()

    async def close(self) -> None:
        """Wait until the writes under way are stored."""
        await self._locks.all_released()


async def open_binder(
    name: str, store: SegmentStore, table: str, ids_max: int = BINDER_IDS_MAX
) -> Binder:
    """Open a binder; make its table if it is missing. Raises StoreError."""
    await create_table_if_missing(store, table)
    binder = Binder(name, store, table, ids_max)
    continuation: bytes | None = None
    while True:
        page: Pending[TablePage] = Pending()
        store.iterate_table(table, continuation=continuation, count=_PAGE_ROWS, done=page.settle)
        found = await page
        for entry in found.entries:
            binder.take(entry)
        continuation = found.continuation
        if continuation is None:
            break
    binder.sort()
    return binder

"""Stored consumer offsets: in one table of the segment store per virtual host, with snapshots.

StoreOffset has no reply, so offsets are collected while an update is under way, and go as one. A
query waits for offsets that came before it, and answers only what the store has acknowledged.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from gateway.log.derived.offset_references import REFERENCES_MAX, OffsetReferences
from gateway.log.derived.saved import KeptSnapshots, read_values
from gateway.log.names import begun_key, generation_of, tracking_key
from gateway.logs import RateLimitedLog
from gateway.pending import Pending, asked
from store.api import SegmentInfo, SegmentStore, TableEntry, TablePage
from store.errors import CorruptSegment, NoSuchSegment, StoreError

log = logging.getLogger(__name__)

_UPDATE_ENTRIES_MAX: Final = 10_000
_OFFSET_BYTES: Final = 8
_READ_AT_ONCE: Final = 1_000
_PAGE_ENTRIES: Final = 100
"""Entries read at once from the whole table; a part of a snapshot has up to 512 KiB."""


class DurableReader(NamedTuple):
    """A durable reader.

    Attributes:
        place: Offset of the next record for it, which may have been removed since.
        owner: The user that it belongs to; empty if none was noted.
    """

    place: int
    owner: bytes


class Tracking:
    """The tracking table of one virtual host.

    Args:
        store: Holds the table, which exists.
        table: Its name.
        schedule: Calls a function at the end of this turn of the event loop.
        references_max: Most references with a stored offset in one stream.

    Attributes:
        snapshots: Those of logs, in the same table.
    """

    def __init__(
        self,
        store: SegmentStore,
        table: str,
        schedule: Callable[[Callable[[], None]], object],
        references_max: int = REFERENCES_MAX,
    ) -> None:
        self._store = store
        self._table = table
        self._schedule = schedule
        # Key → (number of its first store that waits, the last value); oldest first. None: removed.
        self._waiting: dict[bytes, tuple[int, bytes | None]] = {}
        self._references = OffsetReferences(references_max)
        self._forgotten: list[bytes] = []
        """Keys to be removed with the next update."""
        self._stored_count = 0
        self._settled_count = 0
        self._update: Pending[None] | None = None
        self._is_scheduled = False
        self._not_stored = RateLimitedLog(log, "offsets not stored table=%s error=%s")
        self.snapshots = KeptSnapshots(store, table)

    # Offsets

    def store_offset(self, generation: int, reference: bytes, offset: int) -> None:
        """Store a consumer's offset; the last call wins.

        It is a place and not a record: it stays when the record at it is removed.

        Args:
            generation: The stream's.
            reference: The consumer's.
            offset: Any u64.
        """
        self._put(tracking_key(generation, reference), offset.to_bytes(_OFFSET_BYTES, "big"))
        self._note(generation, reference)

    def begin_reader(
        self, generation: int, reference: bytes, offset: int, owner: bytes = b""
    ) -> None:
        """Note where a durable reader begins: the offset of the first record that it wants.

        Args:
            generation: The stream's.
            reference: The reader's; its stored offset is that of the last record it is done with.
            offset: Any u64.
            owner: The user that it belongs to.
        """
        begun = offset.to_bytes(_OFFSET_BYTES, "big") + owner
        self._put(begun_key(generation, reference), begun)
        self._note(generation, reference)

    async def reader_of(self, generation: int, reference: bytes) -> DurableReader | None:
        """Return a durable reader; None if it never began, or is forgotten.

        Raises:
            StoreError: The table cannot be read.
        """
        await self.settled()
        begun, stored = await self._read(
            [begun_key(generation, reference), tracking_key(generation, reference)]
        )
        if begun is None:
            return None
        place = _offset_in(begun)
        if stored is not None:
            place = max(place, _offset_in(stored) + 1)
        return DurableReader(place, begun[_OFFSET_BYTES:])

    def use_reader(self, generation: int, reference: bytes) -> None:
        """Forget this reference for no other one, until as many calls of `leave_reader`."""
        self._references.use(generation, reference)

    def leave_reader(self, generation: int, reference: bytes) -> None:
        """Undo a `use_reader`."""
        self._references.leave(generation, reference)

    def forget_reader(self, generation: int, reference: bytes) -> None:
        """Remove a reference with its offset, behind all that was stored before."""
        for key in (begun_key(generation, reference), tracking_key(generation, reference)):
            self._put(key, None)
        self._references.remove(generation, reference)

    def _put(self, key: bytes, value: bytes | None) -> None:
        """Have a value stored, or removed, with the next update."""
        self._stored_count += 1
        number = self._waiting[key][0] if key in self._waiting else self._stored_count
        self._waiting[key] = (number, value)
        if self._update is None and not self._is_scheduled:
            self._is_scheduled = True
            self._schedule(self._send)

    async def query_offset(self, generation: int, reference: bytes) -> int | None:
        """Return the offset that was stored last and acknowledged; None if there is none.

        Args:
            generation: The stream's.
            reference: The consumer's.

        Raises:
            StoreError: The table cannot be read.
        """
        await self.settled()
        (value,) = await self._read([tracking_key(generation, reference)])
        return None if value is None else _offset_in(value)

    async def offsets_of(self, generation: int) -> dict[bytes, int]:
        """Return all references of a stream that have an offset, with it."""
        await self.settled()
        found: dict[bytes, int] = {}
        references = self._references.of(generation)
        for begin in range(0, len(references), _READ_AT_ONCE):
            some = references[begin : begin + _READ_AT_ONCE]
            values = await self._read([tracking_key(generation, each) for each in some])
            for reference, value in zip(some, values, strict=True):
                if value is not None:
                    found[reference] = _offset_in(value)
        return found

    def _note(self, generation: int, reference: bytes) -> None:
        """Note that a reference has an offset; the oldest one may be forgotten for it."""
        forgotten = self._references.stored(self._table, generation, reference)
        if forgotten is not None:
            for key in (begun_key(generation, forgotten), tracking_key(generation, forgotten)):
                self._put(key, None)

    async def load(self) -> None:
        """Load the references that have offsets, in the order in which these were stored."""
        stored: list[tuple[int, int, bytes]] = []
        continuation: bytes | None = None
        while True:
            page = await self._page(continuation, _PAGE_ENTRIES)
            for entry in page.entries:
                generation = generation_of(entry.key) or 0
                for prefix in (tracking_key(generation, b""), begun_key(generation, b"")):
                    if entry.key.startswith(prefix):  # it is no part of a snapshot
                        reference = entry.key.removeprefix(prefix)
                        stored.append((entry.version, generation, reference))
            continuation = page.continuation
            if continuation is None:
                break
        for _, generation, reference in sorted(stored):
            self._note(generation, reference)

    async def settled(self) -> None:
        """Wait until everything stored before this call is acknowledged (or refused)."""
        count = self._stored_count
        while self._settled_count < count:
            self._send()
            assert self._update is not None
            await self._update

    def _send(self) -> None:
        self._is_scheduled = False
        if self._update is not None or not self._waiting:
            return
        keys = list(self._waiting)[:_UPDATE_ENTRIES_MAX]
        taken = [(key, self._waiting.pop(key)[1]) for key in keys]
        entries = [TableEntry(key, value) for key, value in taken if value is not None]
        self._forgotten.extend(key for key, value in taken if value is None)
        oldest = next(iter(self._waiting.values()), None)
        settles = self._stored_count if oldest is None else oldest[0] - 1
        update: Pending[None] = Pending()
        self._update = update

        def done(outcome: Sequence[int] | StoreError | None) -> None:
            if isinstance(outcome, StoreError):
                self._not_stored.error(self._table, outcome)
            self._update = None
            self._settled_count = settles
            if self._waiting:
                self._send()
            update.settle(None)

        if entries:
            self._remove_forgotten()  # before the update, which may store it anew
            self._store.update_table(self._table, entries, done=done)
        else:
            self._remove_forgotten(done)

    def _remove_forgotten(self, then: Callable[[None], object] = lambda _none: None) -> None:
        if not self._forgotten:
            then(None)
            return

        def done(outcome: StoreError | None) -> None:
            if isinstance(outcome, StoreError):  # the next start finds it and tries again
                self._not_stored.error(self._table, outcome)
            then(None)

        keys, self._forgotten = self._forgotten, []
        self._store.remove_keys(self._table, [TableEntry(key, b"") for key in keys], done=done)

    async def _page(self, continuation: bytes | None, count: int) -> TablePage:
        page: Pending[TablePage] = Pending()
        self._store.iterate_table(
            self._table, continuation=continuation, count=count, done=page.settle
        )
        return await page

    async def _read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await read_values(self._store, self._table, keys)

    # Deletion

    async def forget(self, *generations: int) -> None:
        """Remove all entries of deleted streams; damaged entries of others do not hinder it."""
        if not generations:
            return
        await self.settled()
        self._references.forget(generations)
        try:
            await self._remove_all(frozenset(generations))
        except CorruptSegment as error:
            log.warning(
                "offsets of deleted streams not removed table=%s error=%s", self._table, error
            )

    async def _remove_all(self, dead_generations: frozenset[int]) -> None:
        continuation: bytes | None = None
        while True:
            result = await self._page(continuation, _READ_AT_ONCE)
            dead = [
                TableEntry(entry.key, b"")
                for entry in result.entries
                if generation_of(entry.key) in dead_generations
            ]
            if dead:
                removed: Pending[None] = Pending()
                self._store.remove_keys(self._table, dead, done=removed.settle)
                await removed
            continuation = result.continuation
            if continuation is None:
                return


def _offset_in(value: bytes) -> int:
    # Values that were stored earlier may be longer; the offset comes first.
    return int.from_bytes(value[:_OFFSET_BYTES], "big")


async def has_table(store: SegmentStore, table: str) -> bool:
    """Return whether a table exists."""
    try:
        await _described(store, table)
    except NoSuchSegment:
        return False
    return True


def _described(store: SegmentStore, table: str) -> Pending[tuple[SegmentInfo, int]]:
    return asked(lambda done: store.table_info(table, done=done))


async def create_table_if_missing(store: SegmentStore, table: str) -> None:
    """Create a table if it does not exist."""
    if not await has_table(store, table):
        created: Pending[None] = Pending()
        store.create_table(table, done=created.settle)
        await created


async def open_tracking(
    store: SegmentStore,
    table: str,
    schedule: Callable[[Callable[[], None]], object],
    references_max: int = REFERENCES_MAX,
) -> Tracking:
    """Open a tracking table, creating it if it is missing."""
    await create_table_if_missing(store, table)
    tracking = Tracking(store, table, schedule, references_max)
    await tracking.load()
    return tracking

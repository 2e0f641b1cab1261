"""Saved data derived from a log's chunks: its snapshots in a table, and how far all of it is."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from gateway.log.derived.filter_pages import FilterNotes, FilterPages
from gateway.log.derived.sequences import UNKNOWN
from gateway.log.derived.snapshot import Snapshot, unpack_head
from gateway.log.names import snapshot_key
from gateway.pending import Pending, nothing
from store.api import Durability, SegmentStore, TableEntry, Writer
from store.errors import CorruptSegment, StoreError

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Saved:
    """Progress of saving one log: its index, its snapshot, its filter values.

    `gateway.log.recovery.persistence` saves.

    Attributes:
        filter_notes: Filter values that are to be stored.
        filter_pages: Pages of those that are stored; None if none are kept.
        index_end: Position before which the stored index is complete.
        snapshot_position: Position that the stored snapshot describes.
        index_writer: Session on the stored index; None: the next save opens one.
        saving: The latest save.
        waiting: Snapshot to be stored after the one under way.
    """

    filter_notes: FilterNotes
    filter_pages: FilterPages | None = None
    index_end: int = 0
    snapshot_position: int = 0
    index_writer: Writer | None = None
    saving: Pending[None] | None = None
    waiting: Snapshot | None = None

    def is_behind(self, start: int) -> bool:
        """Return whether the snapshot lacks chunks before `start`, or the index some of it."""
        return self.snapshot_position < start or self.index_end < self.snapshot_position

    def ask(self, snapshot: Snapshot) -> None:
        """Let a snapshot wait; it replaces one that waits already."""
        if self.waiting is not None and self.waiting.gives_space:
            snapshot = replace(snapshot, gives_space=True)
        self.waiting = snapshot

    def take(self) -> Snapshot | None:
        """Return the snapshot that waits, if there is one."""
        snapshot, self.waiting = self.waiting, None
        return snapshot

    async def stop(self) -> None:
        """Drop the snapshot that waits, and wait for the save under way."""
        self.waiting = None
        if self.saving is not None:
            await self.saving


class KeptSnapshots:
    """The snapshots in one table, which exists."""

    def __init__(self, store: SegmentStore, table: str) -> None:
        self._store = store
        self._table = table

    async def load(
        self, generation: int, found: Callable[[str], object] = nothing
    ) -> Snapshot | None:
        """Return the stored snapshot of a stream, None if there is none.

        A damaged snapshot tells only that there were publishers. `found` is told what is wrong.
        """
        (head,) = await read_values(self._store, self._table, [snapshot_key(generation, 0)])
        if not head:
            return None
        wrong = "its head is damaged"
        decoded = unpack_head(head)
        if decoded is not None:
            snapshot, part_count = decoded
            with suppress(CorruptSegment):  # damaged since the store was opened
                keys = [snapshot_key(generation, n + 1) for n in range(part_count)]
                snapshot.parts.extend(
                    part
                    for part in await read_values(self._store, self._table, keys)
                    if part is not None
                )
            if len(snapshot.parts) == part_count and snapshot.is_of(head):
                return snapshot
            wrong = "its parts are not those of its head"
        found(wrong)
        log.warning("stored snapshot is damaged table=%s generation=%d", self._table, generation)
        return Snapshot(parts=[UNKNOWN])

    def save(
        self,
        generation: int,
        snapshot: Snapshot,
        done: Callable[[Sequence[int] | StoreError], None],
    ) -> None:
        """Store a snapshot, all parts at once."""
        rows = _rows(generation, snapshot)
        store = self._store.for_removal if snapshot.gives_space else self._store
        store.update_table(self._table, rows, done=done)

    async def replace(self, generation: int, snapshot: Snapshot | None) -> None:
        """Store a snapshot durably; None: remove the stored one. Raises StoreError."""
        rows = [TableEntry(snapshot_key(generation, 0), b"")]
        if snapshot is not None:
            rows = _rows(generation, snapshot)
        replaced: Pending[Sequence[int]] = Pending()
        # A stream must be opened on a full disk too, so that it can be truncated.
        self._store.for_removal.update_table(
            self._table, rows, done=replaced.settle, durability=Durability.DISK
        )
        await replaced


def _rows(generation: int, snapshot: Snapshot) -> list[TableEntry]:
    """Return a snapshot as entries of the table."""
    parts = enumerate([snapshot.pack_head(), *snapshot.parts])
    return [TableEntry(snapshot_key(generation, number), part) for number, part in parts]


async def read_values(store: SegmentStore, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
    """Return the value of each key in a table, None if it is not there. Raises StoreError."""
    found: Pending[Sequence[TableEntry | None]] = Pending()
    store.read_table(table, keys, done=found.settle)
    return [None if entry is None else entry.value for entry in await found]

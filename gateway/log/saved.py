"""Progress of saving what is derived from one log's chunks: index, snapshot and filter values."""

from dataclasses import dataclass, replace

from gateway.log.filter_pages import FilterNotes, FilterPages
from gateway.log.snapshot import Snapshot
from gateway.pending import Pending
from store.api import Writer


@dataclass(slots=True)
class Saved:
    """Progress of saving one log. `gateway.log.persisting` saves.

    Attributes:
        filter_notes: Filter values that are to be stored.
        filter_pages: Those that are stored; None where nothing keeps them.
        index_end: Position before which the stored index is complete.
        snapshot_position: Position that the stored snapshot describes.
        index_writer: Session on the stored index; None: the next save opens one.
        saving: The save that was begun last.
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
        """Tell whether no snapshot knows all chunks before `start`, or the index lacks some."""
        return self.snapshot_position < start or self.index_end < self.snapshot_position

    def ask(self, snapshot: Snapshot) -> None:
        """Let a snapshot wait in place of the one that waits."""
        if self.waiting is not None and self.waiting.gives_space:
            snapshot = replace(snapshot, gives_space=True)
        self.waiting = snapshot

    def take(self) -> Snapshot | None:
        """Give the snapshot that waits, if there is one."""
        snapshot, self.waiting = self.waiting, None
        return snapshot

    async def stop(self) -> None:
        """Drop what waits, and wait for what is under way."""
        self.waiting = None
        if self.saving is not None:
            await self.saving

"""Progress of saving the data derived from a log's chunks: index, snapshot, filter values."""

from dataclasses import dataclass, replace

from gateway.log.derived.filter_pages import FilterNotes, FilterPages
from gateway.log.derived.snapshot import Snapshot
from gateway.pending import Pending
from store.api import Writer


@dataclass(slots=True)
class Saved:
    """Progress of saving one log. `gateway.log.recovery.persistence` saves.

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

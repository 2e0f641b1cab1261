# cython: language_level=3, annotation_typing=False, nonecheck=True
"""One commit round: the changes that are committed together, and their outcome."""

from collections.abc import Callable, Iterable

from store.errors import StoreClosed, StoreError
from store.local.changes import Change, Key, Later, gives_space
from store.local.data_file import DataFile


class Round:
    """The changes that are committed together, in the order they were issued."""

    __slots__ = (
        "after",
        "changes",
        "finished",
        "has_later",
        "interval",
        "must_sync",
        "pinned",
        "record_bytes",
        "soon",
        "syncs",
    )

    def __init__(self) -> None:
        self.changes: list[Change] = []
        # Of the changes' records together, at least.
        self.record_bytes = 0
        self.has_later = False
        # Called once the round is finished.
        self.after: list[Callable[[], object]] = []
        # Whether the journal must be synced before the acknowledgement, or soon after it, with
        # these data files.
        self.must_sync = False
        self.interval = False
        self.soon: list[DataFile] = []
        # Data files to sync before the journal is written, with their count of writes.
        self.syncs: dict[DataFile, int] = {}
        self.pinned: list[DataFile] = []
        self.finished = False

    def sync(self, file: DataFile) -> None:
        """Ask for a sync of a data file before the journal is written."""
        if file not in self.syncs:
            self.syncs[file] = 0
            self.pin(file)

    def pin(self, file: DataFile) -> None:
        """Keep a file open until the round is finished."""
        file.pins += 1
        self.pinned.append(file)


class Outcome:
    """Result of a round."""

    __slots__ = ("at_ms", "dropped", "failed", "fatal", "touched")

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms
        # Files whose write or sync failed.
        self.failed: dict[DataFile, StoreError] = {}
        # Changes that are not in the journal, and what they touch.
        self.dropped: dict[Change, StoreError] = {}
        self.touched: dict[Key, StoreError] = {}
        # The journal's failure.
        self.fatal: StoreClosed | None = None

    def fail(self, file: DataFile, error: StoreError) -> None:
        """Note that a file's write or sync failed: nothing of its segment stands."""
        self.failed[file] = error
        self.touched.setdefault(file.owner, error)

    def drop(self, change: Change, error: StoreError) -> None:
        """Leave a change out, with everything that builds upon it."""
        self.dropped[change] = error
        if isinstance(change, Later):
            return
        for key in change.touches():
            self.touched.setdefault(key, error)

    def drop_takers(
        self, changes: Iterable[Change], error: StoreError, *, also_givers: bool
    ) -> list[Change]:
        """Drop the changes that only take space, and what builds upon them; gives the others."""
        left = []
        for change in changes:
            if also_givers or (change.record and not gives_space(change)):
                self.drop(change, error)
            else:
                left.append(change)
        return self.drop_dependent(left)

    def drop_dependent(self, changes: Iterable[Change]) -> list[Change]:
        """Drop the changes that cannot stand; gives the others."""
        kept = []
        for change in changes:
            error = next((self.touched[k] for k in change.touches() if k in self.touched), None)
            if error is None:
                kept.append(change)
            else:
                self.drop(change, error)
        return kept

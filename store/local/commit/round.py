# cython: language_level=3, annotation_typing=False, nonecheck=True
"""One commit round: the changes that are committed together, their writing, and the outcome."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import cython

from store.api import Durability
from store.errors import DiskFull, StoreClosed, StoreError
from store.files import PASSING, Files
from store.local.commit.changes import Change, Key, Later
from store.local.commit.journal import FRAME_BYTES_MAX, Journal
from store.local.reserve import Reserve
from store.local.state.data_file import DATA_DIRECTORY, DataFile, OpenFiles
from store.local.threads import Worker, run_all

# How often, and how far apart, a change that frees space is written again on a full disk. Meanwhile
# the reserve is given up, deleted files are removed, or a checkpoint succeeds.
SPACE_TRIES: Final = 10
SPACE_PAUSE_S: Final = 0.02

# Syncs of several data files overlap in the device's queue; more threads than this gained nothing.
SYNC_HELPERS: Final = 3


@cython.no_gc
@cython.cclass
class Round:
    """The changes that are committed together, in the order they were issued.

    Most rounds have nothing but changes; what is seldom there is None until it is.
    """

    __slots__ = (
        "after",
        "changes",
        "finished",
        "has_later",
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
        self.after: list[Callable[[], object]] | None = None
        # Whether the journal must be synced before the acknowledgement.
        self.must_sync = False
        # Data files to sync with the journal soon after it; None where that need not be.
        self.soon: list[DataFile] | None = None
        # Data files to sync before the journal is written, with their count of writes.
        self.syncs: dict[DataFile, int] | None = None
        self.pinned: list[DataFile] | None = None
        self.finished = False

    def ask(self, durability: Durability) -> None:
        """Ask for the journal's sync that a durability needs."""
        if durability is Durability.DISK:
            self.must_sync = True
        elif durability is Durability.INTERVAL:
            self.sync_soon(())

    def sync(self, file: DataFile) -> None:
        """Ask for a sync of a data file before the journal is written."""
        if self.syncs is None:
            self.syncs = {}
        if file not in self.syncs:
            self.syncs[file] = 0
            self.pin(file)

    def sync_soon(self, files: Iterable[DataFile]) -> None:
        """Ask for a sync of data files soon after the acknowledgement, with the journal's."""
        if self.soon is None:
            self.soon = []
        self.soon.extend(files)

    def call_after(self, call: Callable[[], object]) -> None:
        """Call something once the round is finished."""
        if self.after is None:
            self.after = []
        self.after.append(call)

    def pin(self, file: DataFile) -> None:
        """Keep a file open until the round is finished."""
        file.pins += 1
        if self.pinned is None:
            self.pinned = []
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
        """Drop the changes that only take space, and those upon them; return the others."""
        left = []
        for change in changes:
            if also_givers or (change.record and not change.gives_space):
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


class RoundWriting:
    """Writes rounds, one at a time, on the journal's thread or where it costs nothing on the loop.

    It changes nothing that the loop reads: what became of a round is an Outcome.
    """

    def __init__(
        self,
        files: Files,
        journal: Journal,
        open_files: OpenFiles,
        reserve: Reserve,
        now_ms: Callable[[], int],
    ) -> None:
        self._files = files
        self._journal = journal
        self._open_files = open_files
        self._reserve = reserve
        self._now_ms = now_ms
        self._helpers = Worker("sync", SYNC_HELPERS)

    def stop_threads(self) -> None:
        """End the threads. Not on the loop."""
        self._helpers.stop_threads()

    def perform_and_sync(self, round_: Round) -> Outcome:
        """Write a round, and sync the journal if its callers wait for that."""
        outcome = self.perform(round_)
        if round_.must_sync and outcome.fatal is None:
            self.sync_journal(outcome)
        return outcome

    def sync_journal(self, outcome: Outcome) -> Outcome:
        """Sync the journal; a failure is fatal to the round."""
        try:
            self._journal.sync()
        except StoreClosed as error:
            outcome.fatal = error
        return outcome

    def perform(self, round_: Round) -> Outcome:
        """Write late data, sync data files and write the journal, which is not synced."""
        # Times are stored without a sign: a clock before 1970 tells the first of all.
        now_ms = self._now_ms()
        outcome = Outcome(max(0, now_ms))
        if round_.pinned is not None:
            self._write_late(round_, outcome)
            self._sync_data(round_, outcome)
        kept: Sequence[Change] = round_.changes
        if outcome.failed:
            kept = outcome.drop_dependent(kept)
        try:
            self._write_journal(kept, outcome)
        except StoreClosed as error:
            outcome.fatal = error
        except StoreError as error:
            outcome.fatal = StoreClosed(
                f"the store has stopped because its journal failed: {error}"
            )
        return outcome

    def _write_late(self, round_: Round, outcome: Outcome) -> None:
        for change in round_.changes:
            file = change.file
            if change.late is None or file is None or file in outcome.failed:
                continue
            try:
                self._write_data(change, file, change.late)
            except StoreError as error:
                outcome.fail(file, error)

    def _write_data(self, change: Change, file: DataFile, data: bytes) -> None:
        if not change.gives_space:
            if self._reserve.is_short:
                raise DiskFull("no space left but for deletions")
            self._open_files.open(file, create=True).write_at(data, change.place)
            return
        for _ in range(SPACE_TRIES):
            try:
                self._open_files.open(file, create=True).write_at(data, change.place)
            except DiskFull:
                if not self._reserve.give_up():
                    time.sleep(SPACE_PAUSE_S)
            else:
                return
        self._open_files.open(file, create=True).write_at(data, change.place)

    def _sync_data(self, round_: Round, outcome: Outcome) -> None:
        def sync(file: DataFile) -> None:
            try:
                self._open_files.sync(file)
            except StoreError as error:
                outcome.fail(file, error)

        syncs = round_.syncs or {}
        jobs = [partial(sync, file) for file in syncs if file not in outcome.failed]
        if not jobs:
            return
        run_all(jobs, self._helpers, SYNC_HELPERS)
        fresh = [file for file in syncs if not file.in_directory]
        if not fresh:
            return
        try:
            self._files.sync_directory(DATA_DIRECTORY)
        except StoreError as error:
            for file in fresh:
                outcome.fail(file, error)
            return
        for file in fresh:
            file.in_directory = True

    def _write_journal(self, changes: Sequence[Change], outcome: Outcome) -> None:
        first, count = 0, len(changes)
        while first < count:
            records: list[bytes] = []
            may_use_reserve = True
            size = 0
            next_ = first
            while next_ < count:
                change = changes[next_]
                if size >= FRAME_BYTES_MAX and not change.completes:
                    break
                if change.record:
                    records.append(change.record)
                    may_use_reserve = may_use_reserve and change.gives_space
                    size += len(change.record)
                next_ += 1
            try:
                if records:
                    self._journal.append(records, outcome.at_ms, may_use_reserve)
            except PASSING as error:
                left = outcome.drop_takers(changes[first:], error, also_givers=may_use_reserve)
                self._write_journal(left, outcome)
                return
            first = next_

# cython: language_level=3, annotation_typing=False, nonecheck=True
"""LocalStore: the embedded segment store, one process on one data directory."""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from store.api import (
    Done,
    Durability,
)
from store.errors import StoreClosed, StoreError
from store.files import (
    File,
    Files,
    JournalSync,
    Watch,
    descriptor_limit,
    store_descriptors,
)
from store.local.commit.interval import IntervalSync
from store.local.commit.round import Round, RoundWriting
from store.local.commit.rounds import Rounds
from store.local.damage import Findings
from store.local.disposal import Disposal
from store.local.reads import Reading
from store.local.recovery.checkpoint import Checkpointer, CheckpointWriter
from store.local.recovery.holes import Holes
from store.local.recovery.store_opening import Opening, begin
from store.local.state.data_file import OpenFiles
from store.local.tables.compaction import Compactor
from store.local.tables.table_operations import TableOperations
from store.local.tables.table_writes import TableWriting
from store.local.threads import Worker
from store.local.writes import Staging, WriteSettings

log = logging.getLogger(__name__)

LOCK: Final = "lock"

CHECKPOINT_AGAIN_S: Final = 5.0
"""Time after a checkpoint that failed: its reason, a full disk perhaps, may have gone."""

MIB: Final = 1024 * 1024
GIB: Final = 1024 * MIB


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Sizes that have good defaults; all bytes.

    Attributes:
        data_file_bytes: An append that would make a data file longer begins another one.
        inline_bytes_max: New data of a segment in one round that goes into the journal too.
        journal_file_bytes: Size of a journal file.
        checkpoint_bytes: Journal that leads to a checkpoint.
        checkpoint_data_bytes: Data that leads to one: an opening after a crash checks it again.
        open_files_max: Data files that are kept open; 0: a third of what the process may open.
    """

    data_file_bytes: int = 256 * MIB
    inline_bytes_max: int = 64 * 1024
    journal_file_bytes: int = 8 * MIB
    checkpoint_bytes: int = 64 * MIB
    checkpoint_data_bytes: int = 4 * GIB
    open_files_max: int = 0

    def descriptors(self) -> int:
        """Return how many data files are kept open."""
        return self.open_files_max or store_descriptors(descriptor_limit())

    def begin(self, files: Files, findings: Findings | None) -> Opening:
        """Begin with a directory: see `opening.begin`."""
        return begin(
            files,
            data_file_bytes=self.data_file_bytes,
            journal_file_bytes=self.journal_file_bytes,
            spare_count_max=2 + self.checkpoint_bytes // self.journal_file_bytes,
            findings=findings,
        )


CHECKPOINT_BYTES_COARSE: Final = MIB
"""From so much on, a checkpoint may come a few KiB late."""


class CheckpointDue:
    """Tells when a checkpoint is due: after so much journal or data, or again after a failure."""

    def __init__(self, journal_bytes: int, data_bytes: int, *, has_checkpoint: bool) -> None:
        """Begin to count at an opening.

        Args:
            journal_bytes: Journal between two checkpoints.
            data_bytes: Data between two.
            has_checkpoint: The opening made one. It may have lacked the space, and the first commit
                may make some.
        """
        self._step = (journal_bytes, data_bytes)
        self._limit = self._step
        self._again_at = math.inf if has_checkpoint else -math.inf

    def is_due(self, journal_bytes: int, data_bytes: int) -> bool:
        """Return it, of bytes written since the opening."""
        journal_limit, data_limit = self._limit
        return (
            journal_bytes >= journal_limit
            or data_bytes >= data_limit
            or (self._again_at != math.inf and time.monotonic() >= self._again_at)
        )

    def is_soon(self) -> bool:
        """Return whether it must be asked after every change: something failed, or a test asks."""
        return self._again_at != math.inf or min(self._step) < CHECKPOINT_BYTES_COARSE

    def begun(self, journal_bytes: int, data_bytes: int) -> None:
        """Note that a checkpoint begins, by the bytes written since the opening."""
        self._limit = (journal_bytes + self._step[0], data_bytes + self._step[1])

    def ended(self, error: StoreError | None) -> None:
        """Note how a checkpoint ended."""
        self._again_at = math.inf if error is None else time.monotonic() + CHECKPOINT_AGAIN_S


class LocalStore(TableOperations):
    """The embedded store: its life, and its work between commit rounds. Made by `open`.

    Attributes:
        opened_clean: It was closed in good order before this opening, or is new.
    """

    _closing: Done[None] | None
    _is_released = False

    def __init__(  # noqa: PLR0913 (only `open` calls it)
        self,
        files: Files,
        lock: File,
        opening: Opening,
        *,
        call_soon_threadsafe: Callable[..., object],
        call_soon: Callable[..., object],
        durability: Durability,
        interval_ms: int,
        tuning: Tuning,
        now_ms: Callable[[], int],
        watch: Watch | None,
        failed: Callable[[StoreClosed], object] | None,
    ) -> None:
        recovered, checkpoint_writer, journal, reserve, has_checkpoint = opening
        self._reserve = reserve
        self._files, self._lock = files, lock
        self._journal, self.catalogue = journal, recovered.catalogue
        self.call_soon, self._call_soon_threadsafe = call_soon, call_soon_threadsafe
        self._tuning = tuning
        self._closing = None
        self._failed = failed
        self.opened_clean = recovered.clean
        self._upkeep, self._closer = Worker("upkeep"), Worker("close")
        self._disposal = Disposal(
            files,
            journal,
            recovered.catalogue,
            reserve,
            self._upkeep,
            call_soon_threadsafe=call_soon_threadsafe,
            journal_failed=self._journal_failed,
        )
        self._open_files = OpenFiles(files, tuning.descriptors(), self._disposal.retire)
        catalogue, open_files = recovered.catalogue, self._open_files
        self._make_checkpoints(checkpoint_writer, has_checkpoint=has_checkpoint)
        self._interval = IntervalSync(
            files,
            journal,
            catalogue,
            open_files,
            interval_ms,
            call_soon_threadsafe=call_soon_threadsafe,
            failed=self._journal_failed,
        )
        self._sync = None if watch is None else JournalSync(watch)
        self.rounds = Rounds(
            RoundWriting(files, journal, open_files, reserve, now_ms),
            journal,
            catalogue,
            open_files,
            call_soon=call_soon,
            call_soon_threadsafe=call_soon_threadsafe,
            committed=self._between_rounds,
            failed=self._journal_failed,
            sync=self._sync,
        )
        self._make_operations(durability)
        catalogue.call_soon = call_soon

    def _make_checkpoints(self, writer: CheckpointWriter, *, has_checkpoint: bool) -> None:
        sizes = (self._tuning.checkpoint_bytes, self._tuning.checkpoint_data_bytes)
        self._due = CheckpointDue(*sizes, has_checkpoint=has_checkpoint)
        self._holes = Holes(
            self._files,
            self.catalogue,
            self._open_files,
            self._reserve,
            submit=self._upkeep.submit,
            call_soon_threadsafe=self._call_soon_threadsafe,
            look=self._look_for_checkpoint,
        )
        self._checkpointer = Checkpointer(
            self._files,
            writer,
            self._journal,
            self.catalogue,
            self._open_files,
            self._holes,
            self._call_soon_threadsafe,
        )

    def _make_operations(self, durability: Durability) -> None:
        soon = self._call_soon_threadsafe
        settings = WriteSettings(durability, self._tuning.inline_bytes_max)
        self.staging = Staging(self.rounds, self.catalogue, self._open_files, settings, soon)
        self.staging.ask_for_room = partial(self._reserve.ask, self._upkeep.submit)
        self.staging.is_short = self._reserve.is_short
        self._reserve.told = partial(setattr, self.staging, "is_short")
        reading = Reading(self._open_files, self.call_soon, soon)
        writing = TableWriting(self.staging)
        parts = (self.staging, reading, self.call_soon, writing)
        super().__init__(*parts, gives_space=False)
        self.for_removal = TableOperations(*parts, gives_space=True)
        compactor = Compactor(self.staging, reading, writing, self.truncate_found)
        writing.committed = compactor.consider

    @classmethod
    def open(  # noqa: PLR0913 (what the store needs from outside)
        cls,
        files: Files,
        *,
        call_soon_threadsafe: Callable[..., object],
        call_soon: Callable[..., object],
        durability: Durability,
        interval_ms: int = 100,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        watch: Watch | None = None,
        failed: Callable[[StoreClosed], object] | None = None,
        findings: Findings | None = None,
        **sizes: int,
    ) -> "LocalStore":
        """Open a data directory: lock it, recover its contents, and make them durable.

        Blocks; any thread. All else of the store is called on the loop's thread.

        Args:
            files: The data directory.
            call_soon_threadsafe: Calls a function with arguments on the loop's thread, from any.
            call_soon: The same from the loop's thread; later, and in the order of the calls.
            durability: What an acknowledgement means where the call does not say.
            interval_ms: Time from an acknowledgement in `interval` to its sync.
            now_ms: The time.
            watch: Calls a function on the loop's thread whenever a descriptor can be read; with it
                a sync of the journal comes back faster.
            failed: Told on the loop's thread when the store takes nothing any more by itself.
            findings: Takes the damage that is found.
            sizes: Fields of Tuning by name.

        Raises:
            StoreLocked: Another process has the directory.
            StoreError: The directory cannot be opened; the message says why.
        """
        tuning = Tuning(**sizes)
        files.make_directory("")
        lock = files.lock(LOCK)
        try:
            opening = tuning.begin(files, findings)
        except BaseException:
            files.close()
            lock.close()
            raise
        return cls(
            files,
            lock,
            opening,
            call_soon_threadsafe=call_soon_threadsafe,
            call_soon=call_soon,
            durability=durability,
            interval_ms=interval_ms,
            tuning=tuning,
            now_ms=now_ms,
            watch=watch,
            failed=failed,
        )

    # Life

    def close(self, *, done: Done[None]) -> None:
        if self.rounds.closed is not None and self._closing is not None:
            self.call_soon(done, self.rounds.closed)
            return
        self._closing = done
        self._stop(StoreClosed("the store is closed"))
        self.rounds.when_idle(self._close_when_idle)

    # Between rounds

    def _between_rounds(self, round_: Round) -> bool:
        """Do the work that is due; return whether more may be due after the next round already."""
        if round_.soon is not None:
            self._interval.note(round_.soon)
        if self.catalogue.discarded:
            self._remove_discarded()
        if self._reserve.is_short:
            self.staging.ask_for_room()
        elif self._journal.claim_spare():
            self._upkeep.submit(self._journal.prepare_spare)
        self._open_files.trim()
        self._begin_checkpoint_if_due()
        return self._reserve.is_short or self._holes.is_counting or self._due.is_soon()

    def _look_for_checkpoint(self) -> None:
        """Do the work between rounds, if nothing is on its way: its end comes there."""
        if self.rounds.in_flight is None and self.rounds.closed is None:
            self._begin_checkpoint_if_due()

    def _begin_checkpoint_if_due(self) -> None:
        if self._checkpointer.running:
            return
        journal_bytes, data_bytes = self._journal.written_bytes, self.staging.written_bytes
        if self._due.is_due(journal_bytes, data_bytes) or self._holes.want_checkpoint():
            self._due.begun(journal_bytes, data_bytes)
            self._checkpointer.begin(self._checkpointed)

    def _checkpointed(self, error: StoreError | None) -> None:
        self._due.ended(error)
        self.rounds.looks_soon = True
        self._upkeep.submit(self._journal.trim)
        if self._closing is not None:
            self.rounds.when_idle(self._close_when_idle)
        else:
            self._look_for_checkpoint()

    def _remove_discarded(self) -> None:
        files, self.catalogue.discarded = self.catalogue.discarded, []
        self._open_files.close_dead(files)
        self._disposal.remove(files)

    def _journal_failed(self, error: StoreClosed) -> None:
        self._stop(error)
        self._interval.sync_the_rest()

    def _stop(self, reason: StoreClosed) -> None:
        """Accept nothing more, and tell the reads that wait for data."""
        failed, self._failed = self._failed, None
        if failed is not None and self._closing is None:
            failed(reason)
        self.rounds.stop(reason)
        self.reading.closed = self.rounds.closed
        for segment in list(self.catalogue.segments.values()):
            segment.wake_all()

    def _close_when_idle(self) -> None:
        if self._checkpointer.running:
            return  # its end comes here again
        if self._is_released:
            return  # a checkpoint ended just when the closing began, and both have come here
        if self._journal.failure is not None:
            self._release(self._journal.failure)
        else:
            self._checkpointer.begin(self._release, closed=True)

    def _release(self, error: StoreError | None) -> None:
        self._is_released = True
        if self._sync is not None:
            self._sync.stop()
        self._interval.stop()
        self._holes.stop()
        self._closer.submit(partial(self._release_on_thread, error))

    def _release_on_thread(self, error: StoreError | None) -> None:
        for part in (
            self.reading,
            self._interval,
            self.staging,
            self._holes,
            self._checkpointer,
            self.rounds,
            self._upkeep,
        ):
            part.stop_threads()
        self._call_soon_threadsafe(self._released_all, error)

    def _released_all(self, error: StoreError | None) -> None:
        self._disposal.is_over = True
        self._closer.stop_threads()
        self._open_files.close_all()
        self._journal.close()
        self._files.close()
        self._lock.close()
        done = self._closing
        assert done is not None
        done(error)

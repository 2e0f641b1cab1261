# cython: language_level=3, annotation_typing=False, nonecheck=True
"""LocalStore: the embedded segment store, one process on one data directory."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from store.api import (
    AttributeUpdate,
    Cancel,
    Done,
    Durability,
    Reader,
    ReadResult,
    SegmentInfo,
    TableDelta,
    TableEntry,
    TablePage,
    Writer,
)
from store.errors import StoreClosed, StoreError
from store.local.checkpoint import Checkpointer, CheckpointWriter
from store.local.compaction import Compactor
from store.local.data_file import DATA_DIRECTORY, DataFile, OpenFiles, path_of
from store.local.files import (
    BackgroundSync,
    File,
    Files,
    Watch,
    descriptor_limit,
    store_descriptors,
)
from store.local.holes import Holes
from store.local.interval import IntervalSync
from store.local.opening import Opening, begin
from store.local.operations import SegmentOperations
from store.local.reading import Reading
from store.local.round import Round
from store.local.rounds import Rounds
from store.local.table_operations import TableOperations
from store.local.threads import Worker
from store.local.writing import Staging, WriteSettings

log = logging.getLogger(__name__)

LOCK: Final = "lock"

# After a checkpoint that failed: what was in its way, a full disk perhaps, may have gone.
CHECKPOINT_AGAIN_S: Final = 5.0

MIB: Final = 1024 * 1024
GIB: Final = 1024 * MIB


@dataclass(frozen=True)
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
        """Tell how many data files are kept open."""
        return self.open_files_max or store_descriptors(descriptor_limit())


class LocalStore:
    """The embedded store. Made by `open`; see store.api for what its methods promise."""

    _closing: Done[None] | None

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
        self._journal, self._catalogue = journal, recovered.catalogue
        self._call_soon, self._call_soon_threadsafe = call_soon, call_soon_threadsafe
        self._tuning, self._released, self._closing, self._failed = tuning, False, None, failed
        self.opened_clean = recovered.clean  # closed in good order before this opening, or new
        self._upkeep, self._closer = Worker("upkeep"), Worker("close")
        self._open_files = OpenFiles(files, tuning.descriptors(), self._retire)
        catalogue, open_files = recovered.catalogue, self._open_files
        self._make_checkpoints(checkpoint_writer)
        self._interval = IntervalSync(
            files,
            journal,
            catalogue,
            open_files,
            interval_ms,
            call_soon_threadsafe=call_soon_threadsafe,
            failed=self._journal_failed,
        )
        self._sync = None if watch is None else BackgroundSync(watch)
        self._rounds = Rounds(
            files,
            journal,
            catalogue,
            open_files,
            call_soon=call_soon,
            call_soon_threadsafe=call_soon_threadsafe,
            now_ms=now_ms,
            committed=self._between_rounds,
            failed=self._journal_failed,
            sync=self._sync,
            reserve=reserve,
        )
        self._make_operations(durability)
        self._journal_limit = tuning.checkpoint_bytes
        self._data_limit = tuning.checkpoint_data_bytes
        # The first commit may make room for what the opening had no room for.
        self._checkpoint_again_at = math.inf if has_checkpoint else -math.inf

    def _make_checkpoints(self, writer: CheckpointWriter) -> None:
        self._holes = Holes(
            self._files,
            self._catalogue,
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
            self._catalogue,
            self._open_files,
            self._holes,
            self._call_soon_threadsafe,
        )

    def _make_operations(self, durability: Durability) -> None:
        soon = self._call_soon_threadsafe
        settings = WriteSettings(durability, self._tuning.inline_bytes_max)
        self._staging = Staging(self._rounds, self._catalogue, self._open_files, settings, soon)
        self._staging.ask_for_room = partial(self._reserve.ask, self._upkeep.submit)
        self._staging.is_short = self._reserve.is_short
        self._reserve.told = partial(setattr, self._staging, "is_short")
        reading = self._reading = Reading(self._open_files, self._call_soon, soon)
        self._segments = SegmentOperations(self._staging, reading, self._call_soon)
        compactor = Compactor(self._staging, reading, self._segments)
        consider = compactor.consider
        self._tables = TableOperations(self._staging, reading, self._segments, consider)
        compactor.write = self._tables.write

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
        **sizes: int,
    ) -> "LocalStore":
        """Open a data directory: lock it, recover what it holds, and make that durable.

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
            sizes: Fields of Tuning by name.

        Raises:
            StoreLocked: Another process has the directory.
            StoreError: The directory cannot be opened; the message says why.
        """
        tuning = Tuning(**sizes)
        files.make_directory("")
        lock = files.lock(LOCK)
        try:
            opening = begin(
                files,
                data_file_bytes=tuning.data_file_bytes,
                journal_file_bytes=tuning.journal_file_bytes,
                spare_count_max=2 + tuning.checkpoint_bytes // tuning.journal_file_bytes,
            )
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

    # Segments

    def create_segment(
        self,
        name: str,
        *,
        done: Done[None],
        durability: Durability | None = None,
        gives_space: bool = False,
    ) -> None:
        self._segments.create(name, None, done, durability, gives_space=gives_space)

    def delete_segment(self, name: str, *, done: Done[None]) -> None:
        self._segments.delete(name, done)

    def seal_segment(self, name: str, *, done: Done[int]) -> None:
        self._segments.seal(name, done)

    def truncate_segment(self, name: str, position: int, *, done: Done[None]) -> None:
        self._segments.truncate(name, position, done)

    def merge_segments(
        self,
        target: str,
        source: str,
        *,
        done: Done[int],
        attributes: Sequence[AttributeUpdate] = (),
    ) -> None:
        self._segments.merge(target, source, attributes, done)

    def info(self, name: str, *, done: Done[SegmentInfo]) -> None:
        self._segments.info(name, done)

    def open_writer(self, name: str, writer: UUID, *, done: Done[Writer]) -> None:
        self._segments.open_writer(name, writer, done)

    def open_reader(self, name: str, *, done: Done[Reader]) -> None:
        self._segments.open_reader(name, done)

    def read(
        self, name: str, position: int, size: int, *, done: Done[ReadResult], wait: bool = False
    ) -> Cancel:
        return self._segments.read(name, position, size, done, wait=wait)

    # Attributes

    def get_attribute(self, name: str, attribute: UUID, *, done: Done[int]) -> None:
        self._segments.get_attribute(name, attribute, done)

    def update_attributes(
        self, name: str, updates: Sequence[AttributeUpdate], *, done: Done[None]
    ) -> None:
        self._segments.update_attributes(name, updates, done)

    # Tables

    def create_table(self, name: str, *, done: Done[None], key_length: int = 0) -> None:
        self._tables.create(name, key_length, done)

    def delete_table(self, name: str, *, done: Done[None], must_be_empty: bool = False) -> None:
        self._tables.delete(name, done, must_be_empty=must_be_empty)

    def update_table(
        self,
        name: str,
        entries: Sequence[TableEntry],
        *,
        done: Done[Sequence[int]],
        expected_length: int | None = None,
        durability: Durability | None = None,
        gives_space: bool = False,
    ) -> None:
        self._tables.update(
            name, entries, done, expected_length, durability, gives_space=gives_space
        )

    def remove_keys(self, name: str, keys: Sequence[TableEntry], *, done: Done[None]) -> None:
        self._tables.remove(name, keys, done)

    def read_table(
        self, name: str, keys: Sequence[bytes], *, done: Done[Sequence[TableEntry | None]]
    ) -> None:
        self._tables.read(name, keys, done)

    def iterate_table(
        self,
        name: str,
        *,
        done: Done[TablePage],
        continuation: bytes | None = None,
        count: int = 1000,
        first: bytes | None = None,
        last: bytes | None = None,
    ) -> None:
        self._tables.iterate(name, done, continuation, count, first, last)

    def read_table_delta(
        self, name: str, position: int, *, done: Done[TableDelta], count: int = 1000
    ) -> None:
        self._tables.read_delta(name, position, done, count)

    def table_info(self, name: str, *, done: Done[tuple[SegmentInfo, int]]) -> None:
        self._tables.info(name, done)

    # Life

    def close(self, *, done: Done[None]) -> None:
        if self._rounds.closed is not None and self._closing is not None:
            self._call_soon(done, self._rounds.closed)
            return
        self._closing = done
        self._stop(StoreClosed("the store is closed"))
        self._rounds.when_idle(self._close_when_idle)

    # Between rounds

    def _between_rounds(self, round_: Round) -> None:
        if round_.interval:
            self._interval.note(round_.soon)
        if self._catalogue.discarded:
            self._remove_discarded()
        if self._reserve.is_short:
            self._staging.ask_for_room()
        elif self._journal.claim_spare():
            self._upkeep.submit(self._journal.prepare_spare)
        self._open_files.trim()
        self._begin_checkpoint_if_due()

    def _look_for_checkpoint(self) -> None:
        """Do what comes between rounds, if nothing is on its way: its end comes there."""
        if self._rounds.in_flight is None and self._rounds.closed is None:
            self._begin_checkpoint_if_due()

    def _begin_checkpoint_if_due(self) -> None:
        if not self._checkpointer.running and self._checkpoint_is_due():
            self._journal_limit = self._journal.written_bytes + self._tuning.checkpoint_bytes
            self._data_limit = self._staging.written_bytes + self._tuning.checkpoint_data_bytes
            self._checkpointer.begin(self._checkpointed)

    def _checkpoint_is_due(self) -> bool:
        return (
            self._journal.written_bytes >= self._journal_limit
            or self._staging.written_bytes >= self._data_limit
            or (
                self._checkpoint_again_at != math.inf
                and time.monotonic() >= self._checkpoint_again_at
            )
            or self._holes.want_checkpoint()
        )

    def _checkpointed(self, error: StoreError | None) -> None:
        again_s = math.inf if error is None else CHECKPOINT_AGAIN_S
        self._checkpoint_again_at = time.monotonic() + again_s
        self._upkeep.submit(self._journal.trim)
        if self._closing is not None:
            self._rounds.when_idle(self._close_when_idle)
        else:
            self._look_for_checkpoint()

    def _remove_discarded(self) -> None:
        files, self._catalogue.discarded = self._catalogue.discarded, []
        self._open_files.close_dead(files)
        self._upkeep.submit(partial(self._remove_files, files))

    def _remove_files(self, files: list[DataFile]) -> None:
        try:
            # Before a file goes, the record that gives it up must be durable.
            self._journal.sync()
        except StoreClosed as error:
            self._call_soon_threadsafe(self._journal_failed, error)
            return
        for file in files:
            try:
                self._files.remove(path_of(file.number))
            except StoreError as error:
                # The next opening removes it.
                log.warning("data file was not removed file=%d error=%s", file.number, error)
            else:
                self._call_soon_threadsafe(self._catalogue.loose.discard, file.number)
        self._reserve.take()

    def _retire(self, file: DataFile, handle: File) -> None:
        """Close a handle elsewhere: closing a deleted file gives its space back, which takes time.

        Not before a sync, if there are writes without one: a failure to write them back is told
        through this handle.
        """
        if self._released:
            handle.close()
        else:
            dirty = not file.dead and file.writes != file.synced
            self._upkeep.submit(partial(self._close_handle, file, handle, file.writes, dirty=dirty))

    def _close_handle(self, file: DataFile, handle: File, mark: int, *, dirty: bool) -> None:
        if dirty:
            try:
                file.sync(handle)
                if not file.in_directory:
                    self._files.sync_directory(DATA_DIRECTORY)
                    file.in_directory = True
            except StoreError as error:
                self._call_soon_threadsafe(self._catalogue.file_failed, file, error)
            else:
                self._call_soon_threadsafe(self._catalogue.file_synced, file, mark)
        handle.close()

    def _journal_failed(self, error: StoreClosed) -> None:
        self._stop(error)
        self._interval.sync_the_rest()

    def _stop(self, reason: StoreClosed) -> None:
        """Accept nothing more; who waits for data is told so."""
        failed, self._failed = self._failed, None
        if failed is not None and self._closing is None:
            failed(reason)
        self._rounds.stop(reason)
        self._reading.closed = self._rounds.closed
        for segment in list(self._catalogue.segments.values()):
            segment.wake()

    def _close_when_idle(self) -> None:
        if self._checkpointer.running:
            return  # its end comes here again
        if self._journal.failure is not None:
            self._release(self._journal.failure)
        else:
            self._checkpointer.begin(self._release, closed=True)

    def _release(self, error: StoreError | None) -> None:
        if self._sync is not None:
            self._sync.stop()
        self._interval.stop()
        self._holes.stop()
        self._closer.submit(partial(self._release_on_thread, error))

    def _release_on_thread(self, error: StoreError | None) -> None:
        for part in (
            self._reading,
            self._interval,
            self._staging,
            self._holes,
            self._checkpointer,
            self._rounds,
            self._upkeep,
        ):
            part.stop_threads()
        self._call_soon_threadsafe(self._released_all, error)

    def _released_all(self, error: StoreError | None) -> None:
        self._released = True
        self._closer.stop_threads()
        self._open_files.close_all()
        self._journal.close()
        self._files.close()
        self._lock.close()
        done = self._closing
        assert done is not None
        done(error)

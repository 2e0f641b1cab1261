"""The syncs of `interval` durability: soon after the acknowledgement, on a thread of their own."""

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from store.errors import StoreClosed, StoreError
from store.files import PASSING, Files
from store.local.commit.journal import Journal
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import DATA_DIRECTORY, DataFile, OpenFiles
from store.local.threads import Worker

log = logging.getLogger(__name__)

# The sync begins after this part of the interval, so that it has the rest to be finished in.
_BEGIN_AFTER: Final = 0.5


class IntervalSync:
    """Syncs data that rounds have left unsynced, within an interval of the first of them."""

    def __init__(
        self,
        files: Files,
        journal: Journal,
        catalogue: Catalogue,
        open_files: OpenFiles,
        interval_ms: int,
        *,
        call_soon_threadsafe: Callable[..., object],
        failed: Callable[[StoreClosed], object],
    ) -> None:
        """`failed` is called on the loop when the journal has failed."""
        self._files = files
        self._journal = journal
        self._catalogue = catalogue
        self._open_files = open_files
        self._delay_s = interval_ms / 1000 * _BEGIN_AFTER
        self._call_soon_threadsafe = call_soon_threadsafe
        self._failed = failed
        self._worker = Worker("interval")
        self._stopping = threading.Event()
        self._soon: set[DataFile] = set()
        self._noted = False
        self._running = False
        # What the last try could not sync is tried again, and that was said.
        self._is_late = False

    def note(self, soon: Iterable[DataFile]) -> None:
        """Note a committed round whose files and journal are still to be synced."""
        self._soon.update(soon)
        self._noted = True
        if not self._running:
            self._running = True
            self._worker.submit(self._wait)

    def stop(self) -> None:
        """Begin no further sync. Call it on the loop, where a scheduled begin then sees it."""
        self._stopping.set()

    def stop_threads(self) -> None:
        """End the thread, after the sync that is under way; `stop` was called before."""
        self._worker.stop_threads()

    def sync_the_rest(self) -> None:
        """Sync all that can be synced after the journal has failed: it was acknowledged before."""
        self._worker.submit(partial(self._sync_all, [f for f in self._catalogue.dirty if f.made]))

    def _sync_all(self, files: list[DataFile]) -> None:
        for file in files:
            with suppress(StoreError):
                self._open_files.sync(file)
        with suppress(StoreError):
            self._files.sync_directory(DATA_DIRECTORY)
        self._journal.sync_the_rest()

    def _wait(self) -> None:
        if not self._stopping.wait(self._delay_s):
            self._call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._stopping.is_set():
            return  # the thread may have ended, and the files may be closed
        files = [(file, file.writes) for file in self._soon if not file.dead]
        self._soon.clear()
        self._noted = False
        for file, _ in files:
            file.pins += 1
        self._worker.submit(partial(self._sync, files))

    def _sync(self, files: list[tuple[DataFile, int]]) -> None:
        failures: dict[DataFile, StoreError] = {}
        fatal: StoreClosed | None = None
        for file, _ in files:
            try:
                self._open_files.sync(file)
            except StoreError as error:
                failures[file] = error
        fresh = [file for file, _ in files if not file.in_directory]
        try:
            if fresh:
                self._files.sync_directory(DATA_DIRECTORY)
                for file in fresh:
                    file.in_directory = True
        except StoreError as error:
            failures.update(dict.fromkeys(fresh, error))
        try:
            self._journal.sync()
        except StoreClosed as error:
            fatal = error
        self._call_soon_threadsafe(self._finish, files, failures, fatal)

    def _finish(
        self,
        files: list[tuple[DataFile, int]],
        failures: dict[DataFile, StoreError],
        fatal: StoreClosed | None,
    ) -> None:
        passing = None
        for file, mark in files:
            error = failures.get(file)
            if error is None:
                self._catalogue.file_synced(file, mark)
            elif isinstance(error, PASSING):
                passing = error
                # Later than promised, but it is synced.
                self._soon.add(file)
                self._noted = True
            else:
                self._catalogue.file_failed(file, error)
            self._open_files.unpin(file)
        if passing is not None and not self._is_late:
            log.warning("data is synced later than its interval error=%s", passing)
        self._is_late = passing is not None
        self._running = False
        if fatal is not None:
            self._failed(fatal)
        elif self._noted:
            self.note(())

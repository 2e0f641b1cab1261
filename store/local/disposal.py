"""The end of data files: handles are closed and deleted files removed on a thread, which waits."""

import logging
from collections.abc import Callable
from functools import partial

from store.errors import StoreClosed, StoreError
from store.files import File, Files
from store.local.commit.journal import Journal
from store.local.reserve import Reserve
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import DATA_DIRECTORY, DataFile, path_of
from store.local.threads import Worker

log = logging.getLogger(__name__)


class Disposal:
    """Closes handles and removes files that no segment needs.

    Attributes:
        is_over: The threads have ended; handles are closed at once.
    """

    def __init__(
        self,
        files: Files,
        journal: Journal,
        catalogue: Catalogue,
        reserve: Reserve,
        worker: Worker,
        *,
        call_soon_threadsafe: Callable[..., object],
        journal_failed: Callable[[StoreClosed], object],
    ) -> None:
        self._files = files
        self._journal = journal
        self._catalogue = catalogue
        self._reserve = reserve
        self._worker = worker
        self._call_soon_threadsafe = call_soon_threadsafe
        self._journal_failed = journal_failed
        self.is_over = False

    def remove(self, files: list[DataFile]) -> None:
        """Remove files that were given up, once that is durable."""
        self._worker.submit(partial(self._remove_files, files))

    def retire(self, file: DataFile, handle: File) -> None:
        """Close a handle elsewhere: closing a deleted file gives its space back, which takes time.

        Writes without a sync are synced first: a failure to write them back is told through this
        handle.
        """
        if self.is_over:
            handle.close()
        else:
            dirty = not file.dead and file.writes != file.synced
            self._worker.submit(partial(self._close_handle, file, handle, file.writes, dirty=dirty))

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

"""The store that a server serves from: opened in its data directory, and closed.

The only module that opens a store to serve from.
"""

import asyncio
import logging
from collections.abc import Callable

from gateway.log.clock import wall_ms
from gateway.pending import Pending
from gateway.server.loop.awaiting import settled
from gateway.server.loop.schedule import Schedule
from gateway.serving.data_directory import DataDirectory
from gateway.settings.model import StoreSettings
from store.api import SegmentStore
from store.errors import StoreError, StoreLocked
from store.local.directory import Found, has_data, look_into, remove_store
from store.local.files import DirectoryFiles
from store.local.store import LocalStore

log = logging.getLogger(__name__)


class ServedStore:
    """The embedded store in its data directory.

    Attributes:
        directory: The data directory.
        failure: Why the store takes nothing any more; None while it does.
    """

    def __init__(
        self,
        settings: StoreSettings,
        loop: asyncio.AbstractEventLoop,
        schedule: Schedule,
        stop: asyncio.Event,
    ) -> None:
        """`stop` is set when the store has failed."""
        self.directory = DataDirectory(settings.data_directory)
        self.failure: StoreError | None = None
        self._settings = settings
        self._loop = loop
        self._schedule = schedule
        self._stop = stop
        self._store: LocalStore | None = None

    @property
    def store(self) -> SegmentStore:
        """The store; `open` comes before."""
        assert self._store is not None
        return self._store

    def open(self) -> None:
        """Open the data directory; blocks.

        Raises:
            ConfigError: It can be no data directory, or not of this user.
            StoreError: It is damaged, full, another version's, or another process has it.
        """
        settings, directory = self._settings, self.directory
        files = DirectoryFiles(directory.path)
        try:
            found = look_into(directory.path)
        except OSError as error:
            directory.blame(error)
            raise StoreError(f"cannot be looked into: {error.strerror}") from error
        directory.make(
            files.make_directory,
            has_store=found is Found.STORE,
            is_free=found is Found.NOTHING,
            must_exist=settings.must_exist,
        )
        try:
            self._store = LocalStore.open(
                files,
                call_soon_threadsafe=self._loop.call_soon_threadsafe,
                call_soon=self._schedule.call_soon,
                watch=self._watch,
                failed=self.fatal,
                now_ms=wall_ms,
                durability=settings.durability,
                interval_ms=settings.interval_ms,
                data_file_bytes=settings.data_file_bytes,
            )
        except StoreError as error:
            if isinstance(error, StoreLocked) or has_data(directory.path):
                directory.keep()  # another process has begun a store there meanwhile
            raise
        if directory.is_new:
            log.info("a new store is begun directory=%s", directory.path)
        else:
            log.info("store opened directory=%s", directory.path)

    def _watch(self, fileno: int, readable: Callable[[], object] | None) -> None:
        if readable is None:
            self._loop.remove_reader(fileno)
        else:
            self._loop.add_reader(fileno, readable)

    async def close(self) -> None:
        """Close the store, if it was opened. Raises StoreError."""
        if self._store is not None:
            closed: Pending[None] = Pending()
            self._store.close(done=closed.settle)
            await settled(closed)

    def unmake(self) -> None:
        """Leave nothing behind of a first start that has failed; `close` comes before."""
        self.directory.unmake(remove_store)

    def fatal(self, error: StoreError) -> None:
        """End the process: the store takes nothing any more, and a new start may help."""
        if self.failure is None:
            self.failure = error
            log.critical("the store has failed, stopping error=%s", error)
            self._stop.set()

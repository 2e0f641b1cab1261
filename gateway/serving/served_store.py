"""The store that a server serves from: opened in its data directory, and closed.

The only module that opens a store to serve from.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from gateway.log.clock import wall_ms
from gateway.pending import Pending
from gateway.server.loop.awaiting import settled
from gateway.server.loop.schedule import Schedule
from gateway.server.loop.threads import Threads
from gateway.serving.cluster import Cluster
from gateway.serving.data_directory import DataDirectory
from gateway.settings.cluster import ClusterSettings
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import StoreSettings
from store.api import Durability, SegmentStore
from store.errors import StoreError, StoreLocked
from store.files import DirectoryFiles
from store.local.directory import Found, has_data, look_into, remove_store
from store.local.store import LocalStore
from store.replica.files import ReplicatedFiles
from store.replica.local_copy import JOINING, MEMBER

log = logging.getLogger(__name__)

REPLICAS: Final = (1, 3, 5)
"""An even number survives no more than the one below it."""


class ServedStore:
    """The embedded store in its data directory.

    Attributes:
        directory: The data directory.
        failure: Why the store takes nothing any more; None while it does.
        cluster: The cluster that the directory is a member of; None if it is alone.
    """

    def __init__(
        self,
        settings: StoreSettings,
        cluster: ClusterSettings,
        loop: asyncio.AbstractEventLoop,
        schedule: Schedule,
        stop: asyncio.Event,
        address: str = "",
    ) -> None:
        """Begin.

        Args:
            settings: Of the store.
            cluster: Of the cluster, where there is one.
            loop: The event loop.
            schedule: Calls that the loop makes.
            stop: Is set when the store has failed.
            address: Where clients find this server, for the other members of a cluster.
        """
        self.directory = DataDirectory(settings.data_directory)
        self.failure: StoreError | None = None
        self._settings = settings
        self._loop = loop
        self._schedule = schedule
        self._stop = stop
        self._store: LocalStore | None = None
        self._in_log: ReplicatedFiles | None = None
        self.cluster = Cluster(cluster, self.directory.path, address) if cluster.log else None
        if self.cluster is not None and settings.durability is not Durability.DISK:
            reason = "beside cluster.log a confirm means that the log has it on its disks: disk"
            raise ConfigError(Problem("store.durability", reason))
        if cluster.replicas not in REPLICAS:
            raise ConfigError(Problem("cluster.replicas", f"{cluster.replicas} is not 1, 3 or 5"))
        if cluster.log and cluster.replicas == 1:
            log.warning("the log has one replica: it survives the loss of no machine")

    @property
    def is_fenced(self) -> bool:
        """True if another member of the cluster has taken over from this one."""
        return self.cluster is not None and self.cluster.is_fenced

    @property
    def store(self) -> SegmentStore:
        """The store; `open` comes before."""
        assert self._store is not None
        return self._store

    def take(self) -> None:
        """Take the data directory, and make it if it is not there; blocks.

        Raises:
            ConfigError: It can be no data directory, or not of this user, or of this cluster.
            StoreError: It cannot be made or looked into, or is a member's of a cluster.
        """
        directory = self.directory
        files = DirectoryFiles(directory.path)
        try:
            found = look_into(directory.path)
        except OSError as error:
            directory.blame(error)
            raise StoreError(f"cannot be looked into: {error.strerror}") from error
        directory.make(
            files.make_directory,
            has_store=found is Found.STORE or self._is_a_members(),
            is_free=found is Found.NOTHING,
            must_exist=self._settings.must_exist,
        )
        if self.cluster is not None:
            with self._kept_if_a_members():
                self.cluster.join()
        elif self._is_a_members():
            directory.keep()
            raise StoreError(
                "the directory is that of a member of a cluster: start it with --log, or make it a"
                " plain store with `hutch leave`"
            )

    async def follow(self) -> bool:
        """Follow the log of the cluster, and take over; return False if `stop` came before.

        Raises StoreError: The directory or the log cannot be used.
        """
        assert self.cluster is not None
        with self._kept_if_a_members():
            following = settled(Threads(self._loop, 1, name="following").run(self.cluster.follow))
            followed = self._loop.create_task(following)
            stopped = self._loop.create_task(self._stop.wait())
            await asyncio.wait((followed, stopped), return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if self._stop.is_set():
                self.cluster.leave()
                return False
            self._in_log = await followed
            return True

    def _is_a_members(self) -> bool:
        """Return whether the directory is a member's of a cluster, or is to become one."""
        return any((self.directory.path / name).exists() for name in (MEMBER, JOINING))

    @contextmanager
    def _kept_if_a_members(self) -> Iterator[None]:
        """Keep a directory that is a member's by then: it may be the last copy of the log's."""
        try:
            yield
        finally:
            if self._is_a_members():
                self.directory.keep()

    def open(self) -> None:
        """Open the store in the directory, `take` comes before; blocks.

        Raises:
            StoreError: It is damaged, full, another version's, or another process has it.
        """
        settings, directory = self._settings, self.directory
        try:
            self._store = LocalStore.open(
                self._in_log or DirectoryFiles(directory.path),
                call_soon_threadsafe=self._loop.call_soon_threadsafe,
                call_soon=self._schedule.call_soon,
                watch=self._watch if self._in_log is None else None,
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
        if self.cluster is not None:
            self.cluster.serve(self._fenced)
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
        if self.cluster is not None:
            # Its thread is a daemon: a log that is away does not keep the process.
            await settled(Threads(self._loop, 1, name="leaving").run(self.cluster.close))

    def unmake(self) -> None:
        """Leave nothing behind of a first start that has failed; `close` comes before."""
        self.directory.unmake(remove_store)

    def _fenced(self, error: StoreError) -> None:
        self._loop.call_soon_threadsafe(self.fatal, error)

    def fatal(self, error: StoreError) -> None:
        """End the process: the store takes nothing any more, and a new start may help."""
        if self.failure is None:
            self.failure = error
            log.critical("the store has failed, stopping error=%s", error)
            self._stop.set()

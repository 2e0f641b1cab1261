"""Backend: the store, users, virtual hosts and requests of administrators, behind all protocols.

The only module that opens a store to serve from.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.awaiting import awaited, done_before, settled
from gateway.broker.access.access import Access, open_access
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.password_check import PasswordCheck
from gateway.broker.access.refusals import Refusals
from gateway.broker.access.users_file import first_users
from gateway.broker.commits.limits import Limits, Usage
from gateway.broker.connections import Connections
from gateway.broker.openings import Openings
from gateway.broker.service import About, Resource, Service
from gateway.broker.streams import StreamsPorts
from gateway.broker.virtual_host import open_virtual_host
from gateway.broker.virtual_hosts import VirtualHosts, VirtualHostsPorts, open_virtual_hosts
from gateway.data_directory import DataDirectory
from gateway.log.clock import Clock
from gateway.log.log import StreamLog
from gateway.log.open_chunk import ChunkBuffers
from gateway.log.ports import LogPorts
from gateway.management.administration import Administration
from gateway.management.definitions.reading import ReadDefinitions
from gateway.management.requests.definitions import finish_import
from gateway.management.requests.first_start import FirstStart
from gateway.management.requests.unfinished import Unfinished
from gateway.pending import Pending
from gateway.server.schedule import Schedule
from gateway.server.threads import Threads
from gateway.settings.model import Settings
from gateway.upkeep.space import Space
from store.errors import StoreError, StoreLocked
from store.local.directory import Found, has_data, look_into, remove_store, was_damaged
from store.local.files import DirectoryFiles
from store.local.store import LocalStore

log = logging.getLogger(__name__)

LogFailed = Callable[[StreamLog, StoreError], None]


@dataclass(frozen=True, slots=True)
class Opened:
    """Parts of the broker that an open store gives."""

    access: Access
    authentication: Authentication
    virtual_hosts: VirtualHosts
    administration: Administration


class Backend:
    """Opens and closes all that lies behind the ports.

    Attributes:
        directory: The data directory.
        clients: Every connection.
        service: Alarms, drain and doors.
        failure: Why the store takes nothing any more; None while it does.
    """

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        schedule: Schedule,
        *,
        version: str,
        chunk_bytes_max: int,
        stop: asyncio.Event,
    ) -> None:
        """`version` is that of the server; `stop` is set when the store has failed."""
        self._settings = settings
        self._loop = loop
        self._schedule = schedule
        self._stop = stop
        self.directory = DataDirectory(settings.store.data_directory)
        self.clients = Connections()
        about = About(version, self.directory.path)
        timeout_ms = settings.stream.consumer_update_timeout_ms
        self.service = service = Service(self.clients, timeout_ms, about)
        self.failure: StoreError | None = None
        self._space = Space(loop, service)
        self._buffers = ChunkBuffers(chunk_bytes_max)
        self._clock = Clock()
        pipeline = settings.pipeline
        limits = Limits(pipeline.staged_bytes_max, pipeline.stage_expiry_s, pipeline.sink_expiry_s)
        self._usage = Usage(limits)
        self._store: LocalStore | None = None
        self._openings: Openings | None = None
        self._virtual_hosts: VirtualHosts | None = None

    # The store

    def open_store(self) -> None:
        """Open the data directory; blocks.

        Raises:
            ConfigError: It can be no data directory, or not of this user.
            StoreError: It is damaged, full, or another process has it.
        """
        settings, directory = self._settings.store, self.directory
        files = DirectoryFiles(directory.path)
        found = Found.OTHER
        try:
            found = look_into(directory.path)
        except OSError as error:
            directory.blame(error)
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
                failed=self._fatal,
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

    # Opening

    async def open(self) -> Opened:
        """Open users, virtual hosts and streams in the store. Raises StoreError."""
        assert self._store is not None
        settings = self._settings
        access = await awaited(open_access(self._store, self.clients))
        if not access.is_fresh:
            self.directory.keep()
        elif not self.directory.is_new and was_damaged(self.directory.path):
            raise StoreError(
                "the store was damaged and has no users: restore a backup, or remove set-aside/"
                " to begin with the first user again"
            )
        first = FirstStart(self._store, settings.definitions.file)
        definitions = await awaited(first.begin(is_fresh=access.is_fresh))
        is_without_users = first.is_given_up and not access.users()
        is_first = access.is_fresh or is_without_users
        await awaited(self._seed(access, definitions, is_first=is_first))
        virtual_hosts = await self._open_virtual_hosts(self._store, access)
        in_thread = Threads(self._loop, 1).run
        failed_max = settings.users.failed_logins_a_second_max
        attempts = AttemptLedger(time.monotonic, failed_a_second_max=failed_max)
        administration = Administration(
            access,
            virtual_hosts,
            self.clients,
            self.service,
            in_thread,
            settings.streams.super_stream_partitions_max,
            attempts,
            unfinished := Unfinished(self._store, in_thread),
        )
        if definitions is not None:
            await awaited(first.finish(administration, definitions))
        await awaited(finish_import(administration, unfinished))
        return Opened(access, self._authentication(access, attempts), virtual_hosts, administration)

    async def _open_virtual_hosts(self, store: LocalStore, access: Access) -> VirtualHosts:
        self._openings = openings = Openings(store)
        await awaited(openings.begin())
        settings = self._settings.streams
        ports = StreamsPorts(
            store,
            openings,
            self._log_ports,
            self._schedule,
            self._clock,
            self._fatal,
            references_max=settings.publisher_references_max,
            now_for_age_ms=self._clock.for_age,
            offset_references_max=settings.offset_references_max,
            is_disk_full=lambda: Resource.DISK in self.service.alarms,
            wait=self._wait,
            usage=self._usage,
            refused=self._space.refused,
        )
        partitions_max = settings.super_stream_partitions_max
        self._virtual_hosts = await awaited(
            open_virtual_hosts(
                VirtualHostsPorts(
                    store,
                    lambda name: open_virtual_host(name, ports, partitions_max=partitions_max),
                    access,
                    self.clients,
                )
            )
        )
        await awaited(openings.begun())
        return self._virtual_hosts

    def _wait(self, delay_ms: int) -> Pending[None]:
        pending: Pending[None] = Pending()
        self._loop.call_later(delay_ms / 1_000, pending.settle, None)
        return pending

    async def _seed(
        self, access: Access, definitions: ReadDefinitions | None, *, is_first: bool
    ) -> None:
        """Write the first users on the very first start."""
        settings = self._settings.users
        brings_users = definitions is not None and definitions.definitions.users
        if is_first and brings_users and settings.file is None:
            await access.seed([], [])
        elif is_first:
            await access.seed(*first_users(settings))
        elif settings.file is not None:
            log.warning(
                "users file is ignored, users are kept in the store since the first start file=%s",
                settings.file,
            )

    def _log_ports(self, *, failed: LogFailed, **callbacks: Any) -> LogPorts:  # noqa: ANN401
        def log_failed(stream_log: StreamLog, error: StoreError) -> None:
            self._space.refused(error)
            failed(stream_log, error)

        return LogPorts(
            buffers=self._buffers,
            clock_ms=self._clock,
            schedule=self._schedule,
            failed=log_failed,
            **callbacks,
        )

    def _authentication(self, access: Access, attempts: AttemptLedger) -> Authentication:
        users = self._settings.users
        passwords = PasswordCheck(Threads(self._loop).run, time.monotonic)
        access.users_changed = passwords.forget
        return Authentication(
            access,
            passwords,
            attempts,
            Refusals(time.monotonic),
            guest_loopback_only=users.guest_loopback_only,
            anonymous=users.anonymous,
        )

    # Closing

    def stop_looking(self) -> None:
        """Look for disk space no more."""
        self._space.stop()

    async def close_streams(self) -> None:
        """Wait until everything accepted is stored. Raises StoreError."""
        if self._virtual_hosts is not None:
            await awaited(self._virtual_hosts.close())
        if self._openings is not None:
            await awaited(self._openings.end())

    async def close_store(self) -> None:
        """Close the store, if it was opened. Raises StoreError."""
        if self._store is not None:
            closed: Pending[None] = Pending()
            self._store.close(done=closed.settle)
            await settled(closed)

    async def abandon(self, within_s: float) -> None:
        """Leave nothing behind of a first start that has failed."""
        if self.directory.is_new:
            await done_before(self._loop.time() + within_s, self.close_store())
            self.directory.unmake(remove_store)

    def _fatal(self, error: StoreError) -> None:
        """End the process: the store takes nothing any more, and a new start may help."""
        if self.failure is None:
            self.failure = error
            log.critical("the store has failed, stopping error=%s", error)
            self._stop.set()

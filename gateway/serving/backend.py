"""Backend: users, virtual hosts and administrators' requests, on a store, behind all protocols."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from gateway.server.awaiting import awaited
from gateway.broker.access.access import Access, open_access
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.password_check import PasswordCheck
from gateway.broker.access.refusals import Refusals
from gateway.broker.access.users_file import first_users
from gateway.broker.commits.limits import Limits, Usage
from gateway.broker.connections import Connections
from gateway.broker.first_file import FirstFile
from gateway.broker.openings import Openings
from gateway.broker.service import About, Resource, Service
from gateway.broker.streams import StreamsPorts
from gateway.broker.virtual_host import open_virtual_host
from gateway.broker.virtual_hosts import VirtualHosts, VirtualHostsPorts, open_virtual_hosts
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
from gateway.serving.served_store import ServedStore
from gateway.server.schedule import Schedule
from gateway.server.threads import Threads
from gateway.settings.model import Settings
from gateway.upkeep.space import Space
from store.api import SegmentStore
from store.errors import StoreError
from store.local.directory import was_damaged

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
    """Opens and closes all that lies behind the ports, on the store.

    Attributes:
        served: The store.
        clients: Every connection.
        service: Alarms, drain and doors.
        readers: Ended before the streams are closed: parts of ports that read them by themselves.
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
        self.served = ServedStore(settings.store, loop, schedule, stop)
        self.clients = Connections()
        about = About(version, self.served.directory.path)
        timeout_ms = settings.stream.consumer_update_timeout_ms
        self.service = service = Service(self.clients, timeout_ms, about)
        self._space = Space(loop, service)
        self._buffers = ChunkBuffers(chunk_bytes_max)
        self._clock = Clock()
        pipeline = settings.pipeline
        limits = Limits(pipeline.staged_bytes_max, pipeline.stage_expiry_s, pipeline.sink_expiry_s)
        self._usage = Usage(limits)
        self.readers: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._openings: Openings | None = None
        self._virtual_hosts: VirtualHosts | None = None

    # Opening

    async def open(self) -> Opened:
        """Open users, virtual hosts and streams in the store. Raises StoreError."""
        store, directory, settings = self.served.store, self.served.directory, self._settings
        access = await awaited(open_access(store, self.clients))
        if not access.is_fresh:
            directory.keep()
        elif not directory.is_new and was_damaged(directory.path):
            raise StoreError(
                "the store was damaged and has no users: restore a backup, or remove set-aside/"
                " to begin with the first user again"
            )
        first = FirstStart(store, settings.definitions.file)
        definitions = await awaited(first.begin(is_fresh=access.is_fresh))
        is_without_users = first.is_given_up and not access.users()
        is_first = access.is_fresh or is_without_users
        await awaited(self._seed(store, access, definitions, is_first=is_first))
        virtual_hosts = await self._open_virtual_hosts(store, access)
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
            unfinished := Unfinished(store, in_thread),
        )
        if definitions is not None:
            await awaited(first.finish(administration, definitions))
        await awaited(finish_import(administration, unfinished))
        return Opened(access, self._authentication(access, attempts), virtual_hosts, administration)

    async def _open_virtual_hosts(self, store: SegmentStore, access: Access) -> VirtualHosts:
        self._openings = openings = Openings(store)
        await awaited(openings.begin())
        settings = self._settings.streams
        ports = StreamsPorts(
            store,
            openings,
            self._log_ports,
            self._schedule.add,
            self._clock,
            self.served.fatal,
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
        self,
        store: SegmentStore,
        access: Access,
        definitions: ReadDefinitions | None,
        *,
        is_first: bool,
    ) -> None:
        """Write the first users on the very first start."""
        settings = self._settings.users
        brings_users = definitions is not None and definitions.definitions.users
        if is_first and brings_users and settings.file is None:
            await access.seed([], [])
            return
        file = None if settings.file is None else FirstFile(store, "users.file", settings.file)
        if is_first:
            found = first_users(settings, None if file is None else file.read)
            if file is not None:
                await file.note()
            await access.seed(*found)
        elif file is not None and not await file.is_unchanged():
            log.warning(
                "users file is ignored, it is not the one of the first start, and users are kept in"
                " the store since then: hutch ctl changes them file=%s",
                settings.file,
            )

    def _log_ports(self, *, failed: LogFailed, **callbacks: Any) -> LogPorts[StreamLog]:  # noqa: ANN401
        def log_failed(stream_log: StreamLog, error: StoreError) -> None:
            self._space.refused(error)
            failed(stream_log, error)

        return LogPorts(
            buffers=self._buffers,
            clock_ms=self._clock.now_ms,
            schedule=self._schedule.add,
            failed=log_failed,
            **callbacks,
        )

    def _authentication(self, access: Access, attempts: AttemptLedger) -> Authentication:
        users = self._settings.users
        passwords = PasswordCheck(Threads(self._loop).run, time.monotonic)
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
        for end_reader in self.readers:
            await end_reader()
        if self._virtual_hosts is not None:
            await awaited(self._virtual_hosts.close())
        if self._openings is not None:
            await awaited(self._openings.end())

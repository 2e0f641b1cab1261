"""Users, virtual hosts and administrators' requests on a store, and the ports of such a server."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gateway.broker.access.access import Access, open_access
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.password_check import PasswordCheck
from gateway.broker.access.refusals import Refusals
from gateway.broker.access.users_file import first_users
from gateway.broker.connections import Connections
from gateway.broker.first_file import FirstFile
from gateway.broker.hosts.broker import Broker
from gateway.broker.hosts.virtual_host import open_virtual_host
from gateway.broker.hosts.virtual_hosts import VirtualHosts, VirtualHostsPorts, open_virtual_hosts
from gateway.broker.patience import Patience
from gateway.broker.service import About, ScarceResource, ServiceState
from gateway.broker.streams.openings import Openings
from gateway.broker.streams.staging_limits import StagingLimits, Usage
from gateway.broker.streams.streams import StreamsPorts
from gateway.command_line import own_version
from gateway.log.clock import Clock
from gateway.log.log import StreamLog
from gateway.log.open_chunk import ChunkBuffers
from gateway.log.ports import LogPorts
from gateway.management.admin_socket import CONNECTIONS_MAX as ADMINISTRATORS_MAX
from gateway.management.administration import Administration
from gateway.management.definitions.first_start import FirstStart
from gateway.management.definitions.importing import finish_import
from gateway.management.definitions.reading import ReadDefinitions
from gateway.management.definitions.unfinished import UnfinishedImport
from gateway.management.http.protocol import CONNECTIONS_MAX
from gateway.management.kinds.people import USERS
from gateway.management.port import AdminPort, ManagementPort
from gateway.mewbase.port import MewbasePort
from gateway.network.addresses import shown
from gateway.pravega.controller_port import ControllerPort
from gateway.pravega.early.port import EarlyPort
from gateway.pravega.port import SegmentPort
from gateway.server.connections.shared import Shared
from gateway.server.context import ServerContext
from gateway.server.loop.awaiting import awaited, settled_after
from gateway.server.loop.schedule import Schedule
from gateway.server.loop.threads import Threads
from gateway.server.port import Port
from gateway.server.sockets import Sockets
from gateway.serving.disk_space import Space, keep_retention
from gateway.serving.process import Process
from gateway.serving.served_store import ServedStore
from gateway.serving.token_key import token_key
from gateway.settings.model import Settings
from gateway.stream.advertising import advertised
from gateway.stream.context import chunk_bytes_max
from gateway.stream.port import StreamPort
from store.api import SegmentStore
from store.errors import StoreError
from store.files import descriptor_limit, store_descriptors
from store.local.directory import was_damaged

if TYPE_CHECKING:
    from gateway.pravega.segment_access import SegmentAccess

log = logging.getLogger(__name__)

LogFailed = Callable[[StreamLog, StoreError], None]

_REFUSED_IN_WORDS: Final = 256
"""Connections above the maximum that are let in, so that Open can refuse them in words."""
_OTHER_DESCRIPTORS: Final = 64 + CONNECTIONS_MAX + ADMINISTRATORS_MAX


def sockets_max(connections_max: int, descriptors: int) -> int:
    """Return how many clients there may be, so that the store finds room among `descriptors`."""
    left = descriptors - store_descriptors(descriptors) - _OTHER_DESCRIPTORS
    return min(connections_max + _REFUSED_IN_WORDS, max(left, descriptors // 4))


class Backend:
    """Opens and closes all that lies behind the ports, on the store.

    Attributes:
        served: The store.
        context: State that the ports share.
        service: The state of service.
    """

    def __init__(
        self, settings: Settings, loop: asyncio.AbstractEventLoop, stop: asyncio.Event
    ) -> None:
        """`stop` is set when the store has failed."""
        stream, pipeline = settings.stream, settings.pipeline
        self._settings = settings
        self._loop = loop
        self._schedule = schedule = Schedule(
            loop, busy_poll_us=stream.busy_poll_us, rest_us=stream.rest_us
        )
        address = shown(*advertised(settings, stream.port))
        self.served = ServedStore(settings.store, settings.cluster, loop, schedule, stop, address)
        self._connections = Connections()
        about = About(own_version(), self.served.directory.path)
        timeout_ms = stream.consumer_update_timeout_ms
        self.service = ServiceState(self._connections, timeout_ms, about)
        if (cluster := self.served.cluster) is not None:
            self.service.cluster = cluster
            limit_ms = settings.cluster.request_timeout_s * 1_000
            wait = partial(settled_after, loop)
            self.service.patience = Patience(limit_ms, lambda: cluster.is_paused, wait)
        self._space = Space(loop, self.service)
        self._refusals = Refusals(time.monotonic)
        say, chunk_bytes = self._refusals.say, chunk_bytes_max(stream)
        shared = Shared(
            loop=loop,
            schedule=schedule,
            receive_buffer=bytearray(stream.receive_buffer_bytes),
            scratch=bytearray(chunk_bytes),
            say=say,
        )
        sockets = Sockets(sockets_max(stream.connections_max, descriptor_limit()), say)
        self.context = ServerContext(shared, sockets, self.service.add_listener)
        self._buffers = ChunkBuffers(chunk_bytes)
        self._clock = Clock()
        limits = StagingLimits(
            pipeline.staged_bytes_max, pipeline.stage_expiry_s, pipeline.sink_expiry_s
        )
        self._usage = Usage(limits)
        self._openings: Openings | None = None
        self._virtual_hosts: VirtualHosts | None = None
        self._administration: Administration | None = None
        self._broker: Broker | None = None
        self._segments: SegmentAccess | None = None
        self._retention: asyncio.Task[None] | None = None

    @property
    def broker(self) -> Broker:
        """The broker; `open` comes before."""
        assert self._broker is not None
        return self._broker

    @property
    def administration(self) -> Administration:
        """Everything that administrators see and change; `open` comes before."""
        assert self._administration is not None
        return self._administration

    @property
    def segments(self) -> "SegmentAccess":
        """Access to the segments of the store; `open` comes before."""
        from gateway.serving.segment_users import access_beside_streams  # noqa: PLC0415  # seldom

        if self._segments is None:
            self._segments = access_beside_streams(self.broker, self.administration.scopes)
        return self._segments

    async def token_key(self) -> bytes:
        """Return the key of tokens where no file is named. Raises ConfigError or StoreError."""
        return await awaited(token_key(self.served, self._settings.store.data_directory))

    # Opening

    async def open(self) -> None:
        """Open users, virtual hosts and streams in the store. Raises StoreError."""
        store, directory, settings = self.served.store, self.served.directory, self._settings
        access = await awaited(open_access(store, self._connections))
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
        self._administration = administration = Administration(
            access,
            virtual_hosts,
            self._connections,
            self.service,
            in_thread,
            settings.streams.super_stream_partitions_max,
            attempts,
            unfinished := UnfinishedImport(store, in_thread),
        )
        if definitions is not None:
            await awaited(first.finish(administration, definitions))
        await awaited(finish_import(administration, unfinished))
        self._broker = Broker(
            store=store,
            access=access,
            authentication=self._authentication(access, attempts),
            virtual_hosts=virtual_hosts,
            connections=self._connections,
            service=self.service,
        )

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
            is_disk_full=lambda: ScarceResource.DISK in self.service.alarms,
            wait=partial(settled_after, self._loop),
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
                    self._connections,
                )
            )
        )
        await awaited(openings.begun())
        return self._virtual_hosts

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
        brings_users = definitions is not None and definitions.definitions.of(USERS)
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
            self._refusals,
            guest_loopback_only=users.guest_loopback_only,
            anonymous=users.anonymous,
        )

    # Beside the clients

    def begin(self) -> None:
        """Begin to look for records that may be removed."""
        interval_s = self._settings.streams.retention_interval_s
        keeping = keep_retention(self.broker.virtual_hosts, interval_s, awaited)
        self._retention = self._loop.create_task(keeping)

    def end(self) -> None:
        """Look for them, and for disk space, no more."""
        self._space.stop()
        if self._retention is not None:
            self._retention.cancel()

    async def settle(self) -> None:
        """Wait until everything accepted is stored. Raises StoreError."""
        for end_reader in () if self._broker is None else self._broker.readers:
            await end_reader()
        if self._virtual_hosts is not None:
            await awaited(self._virtual_hosts.close())
        if self._openings is not None:
            await awaited(self._openings.end())


PORTS: Final[tuple[type[Port[Backend]], ...]] = (
    StreamPort,
    ManagementPort,
    AdminPort,
    SegmentPort,
    ControllerPort,
    EarlyPort,
    MewbasePort,
)
"""In the order of the ready line."""


def server(settings: Settings, stop: asyncio.Event) -> Process[Backend]:
    """Return a server of streams; as `Process`."""
    return Process(settings, PORTS, Backend, stop)

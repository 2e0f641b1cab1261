"""The parts put together: settings to a server, its start, and its graceful end.

The only module that knows which store is used.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Coroutine
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, TypeVar

from gateway.broker.access.access import Access, open_access
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.password_check import PasswordCheck
from gateway.broker.access.refusals import Refusals
from gateway.broker.access.users_file import first_users
from gateway.broker.administration.administration import OWNER, Administration, Turn
from gateway.broker.administration.definitions import finish_import
from gateway.broker.administration.first_start import FirstStart
from gateway.broker.administration.requests import answer
from gateway.broker.administration.unfinished import Unfinished
from gateway.broker.administration.wire import Request
from gateway.broker.connections import Connections
from gateway.broker.definitions.reading import ReadDefinitions
from gateway.broker.openings import Openings
from gateway.broker.service import About, Service
from gateway.broker.streams import StreamsPorts
from gateway.broker.virtual_host import open_virtual_host
from gateway.broker.virtual_hosts import VirtualHosts, VirtualHostsPorts, open_virtual_hosts
from gateway.data_directory import DataDirectory
from gateway.log.clock import Clock
from gateway.log.log import LogPorts, StreamLog
from gateway.log.open_chunk import ChunkBuffers
from gateway.management.admin_socket import CONNECTIONS_MAX as ADMINISTRATORS_MAX
from gateway.management.admin_socket import AdminSocket
from gateway.management.http.protocol import CONNECTIONS_MAX
from gateway.management.management import Management
from gateway.network.listening import bind, cannot_listen
from gateway.pending import Pending, run
from gateway.server.certificate_user import naming_of
from gateway.server.deleted_files import let_go_of_deleted
from gateway.server.listener import Listener
from gateway.server.listeners import Listeners
from gateway.server.schedule import Schedule
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets, kept_for_strangers
from gateway.server.threads import Threads
from gateway.server.tls_serving import HostSetting, tls_of
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings
from gateway.stream.front import StreamKind
from gateway.stream.host import Host
from gateway.stream.link import PROTOCOL
from gateway.stream.settings import (
    advertised,
    advertised_over_tls,
    chunk_bytes_max,
    limits_of,
    link_settings_of,
    peer_properties,
)
from gateway.upkeep.retention import keep_retention
from gateway.upkeep.space import Space
from store.errors import StoreError, StoreLocked
from store.local.directory import Found, has_data, look_into, remove_store, was_damaged
from store.local.files import DirectoryFiles, descriptor_limit, store_descriptors
from store.local.store import LocalStore

log = logging.getLogger(__name__)

T = TypeVar("T")
LogFailed = Callable[[StreamLog, StoreError], None]

STORED_BY_S: Final = 5.0
SENT_BY_S: Final = 6.0
CLOSED_BY_S: Final = 9.0
"""When a graceful stop gives up a step and begins the next, from its start: below 10 s in all."""
_REFUSED_IN_WORDS: Final = 256
"""So many connections above the maximum get as far as being refused when they open."""
_OTHER_DESCRIPTORS: Final = 64 + CONNECTIONS_MAX + ADMINISTRATORS_MAX


def own_version() -> str:
    """Return the version of this server."""
    try:
        return version("hutch-streams")
    except PackageNotFoundError:
        return "unknown"


def sockets_max(connections_max: int, descriptors: int) -> int:
    """How many clients there may be, so that the store can open its files among `descriptors`."""
    left = descriptors - store_descriptors(descriptors) - _OTHER_DESCRIPTORS
    return min(connections_max + _REFUSED_IN_WORDS, max(left, descriptors // 4))


def clients_max(connections_max: int, sockets: int) -> int:
    """How many clients may have logged in, so that of all sockets strangers have their share."""
    return min(connections_max, sockets - kept_for_strangers(sockets))


class Server:
    """Everything that runs."""

    def __init__(
        self, settings: Settings, loop: asyncio.AbstractEventLoop, stop: asyncio.Event
    ) -> None:
        self._settings = settings
        self._stop = stop
        self._failure: StoreError | None = None
        self._loop = loop
        self._schedule = Schedule(loop, busy_poll_us=settings.stream.busy_poll_us)
        self._clients = Connections()
        self.directory = DataDirectory(settings.store.data_directory)
        about = About(own_version(), self.directory.path)
        self._service = Service(self._clients, settings.stream.consumer_update_timeout_ms, about)
        self._space = Space(loop, self._service)
        self._attempts = AttemptLedger(
            time.monotonic, failed_a_second_max=settings.users.failed_logins_a_second_max
        )
        self._access: Access | None = None
        self._virtual_hosts: VirtualHosts | None = None
        stream = settings.stream
        self._chunk_bytes_max = chunk_bytes_max(stream)
        self._buffers = ChunkBuffers(self._chunk_bytes_max)
        self.management = Management(settings.management)
        self._socket = self._bind()
        self.tls = tls_of(settings.tls, HostSetting(stream.host, "stream.host"), loop)
        self._store: LocalStore | None = None
        self._openings: Openings | None = None
        self._listeners = Listeners()
        self._clock = Clock()
        self._retention: asyncio.Task[None] | None = None
        self._letting_go: asyncio.Task[None] | None = None
        self._admin: AdminSocket | None = None
        self._importing: Turn | None = None
        self._authenticates: Authentication | None = None
        self._sockets: Sockets | None = None
        self._shared: Shared | None = None

    def _bind(self) -> socket.socket:
        stream = self._settings.stream
        try:
            return bind(stream.host, stream.port)
        except OSError as error:
            self.management.close()
            raise self._cannot_listen(error) from error

    def _cannot_listen(self, error: OSError) -> ConfigError:
        stream = self._settings.stream
        return cannot_listen("stream.host", "stream.port", stream.host, stream.port, error)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port listened on."""
        name = self._socket.getsockname()
        return name[0], name[1]

    @property
    def advertised(self) -> tuple[str, int]:
        """Host and port that clients are told."""
        return advertised(self._settings, self.address[1])

    @property
    def advertised_over_tls(self) -> tuple[str, int]:
        """Host and port that clients over TLS are told."""
        assert self.tls is not None
        return advertised_over_tls(self._settings, self.tls.address[1])

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
                directory.keep()  # somebody else has begun a store there meanwhile
            raise
        if directory.is_new:
            log.info("a new store is begun directory=%s", directory.path)
        else:
            log.info("store opened directory=%s", directory.path)

    async def abandon(self) -> None:
        """Leave nothing behind of a first start that has failed."""
        if self.directory.is_new:
            if self._store is not None:
                end_s = self._loop.time() + CLOSED_BY_S
                await self._before(end_s, self._close_store(self._store))
            self.directory.unmake(remove_store)

    def _watch(self, fileno: int, readable: Callable[[], object] | None) -> None:
        if readable is None:
            self._loop.remove_reader(fileno)
        else:
            self._loop.add_reader(fileno, readable)

    async def start(self) -> None:
        """Open the streams and begin to accept."""
        assert self._store is not None
        self._access = await self._await(open_access(self._store, self._clients))
        if not self._access.is_fresh:
            self.directory.keep()
        elif not self.directory.is_new and was_damaged(self.directory.path):
            raise StoreError(
                "the store was damaged and has no users: restore a backup, or remove set-aside/"
                " to begin with the first user again"
            )
        first = FirstStart(self._store, self._settings.definitions.file)
        definitions = await self._await(first.begin(is_fresh=self._access.is_fresh))
        is_without_users = first.is_given_up and not self._access.users()
        is_first = self._access.is_fresh or is_without_users
        await self._await(self._seed(self._access, definitions, is_first=is_first))
        self._openings = Openings(self._store)
        await self._await(self._openings.begin())
        ports = StreamsPorts(
            self._store,
            self._openings,
            self._log_ports,
            self._schedule,
            self._clock,
            self._fatal,
            self._settings.streams.publisher_references_max,
            self._clock.for_age,
            self._settings.streams.offset_references_max,
        )
        partitions_max = self._settings.streams.super_stream_partitions_max
        self._virtual_hosts = await self._await(
            open_virtual_hosts(
                VirtualHostsPorts(
                    self._store,
                    lambda name: open_virtual_host(name, ports, partitions_max=partitions_max),
                    self._access,
                    self._clients,
                )
            )
        )
        await self._await(self._openings.begun())
        in_thread = Threads(self._loop, 1).run
        administration = Administration(
            self._access,
            self._virtual_hosts,
            self._clients,
            self._service,
            in_thread,
            partitions_max,
            self._attempts,
            unfinished := Unfinished(self._store, in_thread),
        )
        if definitions is not None:
            await self._await(first.finish(administration, definitions))
        await self._await(finish_import(administration, unfinished))
        self._listen()
        await self._admit_administrators(administration)
        interval_s = self._settings.streams.retention_interval_s
        keeping = keep_retention(self._virtual_hosts, interval_s, self._await)
        self._retention = self._loop.create_task(keeping)

    def _listen(self) -> None:
        """Begin to accept. Raises ConfigError."""
        assert self._access is not None
        say = self._authentication(self._access).refusals.say
        self._sockets = Sockets(
            sockets_max(self._settings.stream.connections_max, descriptor_limit()), say
        )
        self._shared = shared = Shared(
            loop=self._loop,
            schedule=self._schedule,
            receive_buffer=bytearray(self._settings.stream.receive_buffer_bytes),
            scratch=bytearray(self._chunk_bytes_max),
            say=say,
        )
        plain = Listener(self._socket, shared, self._stream_kind(self.advertised), self._sockets)
        try:
            self.serve(plain)
        except OSError as error:
            raise self._cannot_listen(error) from error
        self.directory.keep()  # from here on clients may store something
        if self.tls is not None:
            kind = self._stream_kind(self.advertised_over_tls)
            user_of = naming_of(self._settings.tls)
            tls = self.tls.start(shared, kind, self._sockets, user_of)
            self._listeners.add(tls)
            self._service.add_door(tls)
        letting_go = let_go_of_deleted(self._listeners.connections)
        self._letting_go = self._loop.create_task(letting_go)

    def serve(self, listener: Listener) -> None:
        """Let clients come in at a port. Raises OSError: another process listens there by now."""
        self._listeners.add(listener)
        listener.start()
        self._service.add_door(listener)

    async def _admit_administrators(self, administration: Administration) -> None:
        def answered(request: Request) -> Coroutine[Any, Any, object]:
            return self._await(answer(administration, OWNER, request))

        assert self._authenticates is not None
        node = f"rabbit@{self._settings.stream.advertised_host}"
        await self.management.start(
            administration,
            self._authenticates,
            self._await,
            node,
            peer_properties(own_version()),
            self._settings,
        )
        self._admin = AdminSocket(self.directory.path, answered)
        self._importing = administration.importing
        try:
            await self._admin.start()
        except FileExistsError as error:
            reason = f"{self._admin.path} is in the way: {error.strerror}"
            raise ConfigError(Problem("store.data_directory", reason)) from error
        except (
            OSError
        ) as error:  # a file system without sockets; clients can be served all the same
            log.error(  # noqa: TRY400  # a line for the operator
                "administrators cannot reach this server path=%s error=%s", self._admin.path, error
            )

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

    def _stream_kind(self, advertised: tuple[str, int]) -> StreamKind:
        assert self._access is not None
        assert self._authenticates is not None
        assert self._virtual_hosts is not None
        stream = self._settings.stream
        host = Host(
            access=self._access,
            authentication=self._authenticates,
            connections=self._clients,
            virtual_hosts=self._virtual_hosts.find,
            settings=link_settings_of(stream, advertised),
            peer_properties=peer_properties(own_version()),
            has_room=self._has_room,
            service=self._service,
        )
        return StreamKind(host, limits_of(stream))

    def _authentication(self, access: Access) -> Authentication:
        users = self._settings.users
        passwords = PasswordCheck(Threads(self._loop).run, time.monotonic)
        access.users_changed = passwords.forget
        self._authenticates = Authentication(
            access,
            passwords,
            self._attempts,
            Refusals(time.monotonic),
            guest_loopback_only=users.guest_loopback_only,
            anonymous=users.anonymous,
        )
        return self._authenticates

    def _has_room(self) -> bool:
        assert self._sockets is not None
        room = clients_max(self._settings.stream.connections_max, self._sockets.places)
        return self._clients.count_of_protocol(PROTOCOL) < room

    async def stop(self) -> bool:
        """Stop accepting, store what was taken, confirm it, close; True if all of that was done."""
        log.info("stopping")
        for task in filter(None, (self._retention, self._letting_go)):
            task.cancel()
        self._space.stop()
        begun_s = self._loop.time()
        await self.management.stop()
        if self._admin is not None and self._importing is not None:
            await self._before(begun_s + STORED_BY_S, self._await(self._importing.close()))
            await self._admin.stop()
        if self.tls is not None:
            self.tls.stop()
        self._listeners.stop_accepting()
        connections = self._listeners.connections()
        for connection in connections:
            connection.stop_reading()
        is_clean = await self._before(begun_s + STORED_BY_S, self._close_streams())
        for connection in connections:
            connection.stop()
        await self._before(begun_s + SENT_BY_S, self._listeners.all_ended())
        if self._store is not None:
            closing = self._close_store(self._store)
            is_clean = await self._before(begun_s + CLOSED_BY_S, closing) and is_clean
        log.info("stopped clean=%s", is_clean)
        return is_clean

    async def _before(self, end_s: float, step: Coroutine[Any, Any, None]) -> bool:
        """Do a step of the stop; False if it fails or takes too long."""
        try:
            async with asyncio.timeout_at(end_s):
                await step
        except (TimeoutError, StoreError) as error:
            # One line for the operator: what is missing is done by the next opening.
            log.error("stop is not clean, the next start recovers error=%r", error)  # noqa: TRY400
            return False
        except Exception:  # the edge of a step: the next ones must be done all the same
            log.exception("stop is not clean, the next start recovers")
            return False
        return True

    async def _close_streams(self) -> None:
        if self._virtual_hosts is not None:
            await self._await(self._virtual_hosts.close())
        if self._openings is not None:
            await self._await(self._openings.end())

    async def _close_store(self, store: LocalStore) -> None:
        closed: Pending[None] = Pending()
        store.close(done=closed.settle)
        await self._settled(closed)

    def _fatal(self, error: StoreError) -> None:
        """The store takes nothing any more: end, so that whoever started us can start us again."""
        if self._failure is None:
            self._failure = error
            log.critical("the store has failed, stopping error=%s", error)
            self._stop.set()

    def reload(self) -> None:
        """Take changed files: certificates, the only ones that can change while it serves."""
        if self.tls is None:
            log.info("there are no tls files to read again")
        else:
            self.tls.reload()

    async def run(self) -> int:
        """Serve until asked to stop, or until the store fails; return the exit code."""
        await self._stop.wait()
        is_clean = await self.stop()
        return 0 if is_clean and self._failure is None else 1

    async def _await(self, coroutine: Coroutine[Pending[Any], None, T]) -> T:
        """Run one of the broker's coroutines on the event loop."""
        pending: Pending[T] = Pending()
        run(coroutine, pending.settle)
        return await self._settled(pending)

    async def _settled(self, pending: Pending[T]) -> T:
        settled = asyncio.Event()
        pending.when_settled(settled.set)
        await settled.wait()
        return pending.result()

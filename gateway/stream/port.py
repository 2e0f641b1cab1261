"""The parts put together: settings to a server, its start, and its graceful end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gateway.server.awaiting import awaited, done_before
from gateway.serving.backend import Backend, Opened
from gateway.broker.visit import Host as VisitHost
from gateway.log.log import StreamLog
from gateway.management.admin_socket import CONNECTIONS_MAX as ADMINISTRATORS_MAX
from gateway.management.admin_socket import AdminSocket, Answer
from gateway.management.administration import OWNER
from gateway.management.http.protocol import CONNECTIONS_MAX
from gateway.management.management import Management
from gateway.management.requests.answering import answer
from gateway.network.addresses import shown
from gateway.network.listening import Place, Port, take_all
from gateway.server.certificate_user import naming_of
from gateway.server.deleted_files import let_go_of_deleted
from gateway.server.listener import Listener
from gateway.server.listeners import Listeners
from gateway.server.schedule import Schedule
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets, kept_for_strangers
from gateway.server.tls_serving import TlsServing, tls_of
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings
from gateway.stopping import CLOSED_BY_S, SENT_BY_S, STORED_BY_S
from gateway.stream.advertising import Advertising
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
from store.errors import StoreError
from store.local.files import descriptor_limit, store_descriptors

if TYPE_CHECKING:
    from gateway.serving.controller_callers import StreamUser
    from gateway.early_port import EarlyPort
    from gateway.mewbase_ports import MewbasePorts
    from gateway.store_ports import StorePorts

log = logging.getLogger(__name__)

T = TypeVar("T")
Address = tuple[str, int]
LogFailed = Callable[[StreamLog, StoreError], None]

_REFUSED_IN_WORDS: Final = 256
"""Connections above the maximum that are let in, so that Open can refuse them in words."""
_OTHER_DESCRIPTORS: Final = 64 + CONNECTIONS_MAX + ADMINISTRATORS_MAX


def own_version() -> str:
    """Return the version of this server."""
    try:
        return version("hutch-streams")
    except PackageNotFoundError:
        return "unknown"


def sockets_max(connections_max: int, descriptors: int) -> int:
    """Return how many clients there may be, so that the store finds room among `descriptors`."""
    left = descriptors - store_descriptors(descriptors) - _OTHER_DESCRIPTORS
    return min(connections_max + _REFUSED_IN_WORDS, max(left, descriptors // 4))


def clients_max(connections_max: int, sockets: int) -> int:
    """Return how many clients may be logged in, so that sockets are left for others."""
    return min(connections_max, sockets - kept_for_strangers(sockets))


def _store_ports_of(settings: Settings, loop: asyncio.AbstractEventLoop) -> "StorePorts | None":
    """Return the store's own ports, if there are any. Raises ConfigError."""
    wire = settings.wire
    if wire.port is None:
        if wire.controller_port is not None:
            raise ConfigError(Problem("wire.controller_port", "needs wire.port beside it"))
        return None
    if wire.tls and settings.tls.certificate is None:
        raise ConfigError(Problem("wire.tls", "needs tls.certificate beside it"))
    from gateway.store_ports import StorePorts  # noqa: PLC0415  # takes no room while it is off

    return StorePorts(settings, loop, port=wire.port, over_tls=wire.tls, has_users=True)


def _early_port_of(settings: Settings) -> "EarlyPort | None":
    """Return the early dialect's port, if there is one. Raises ConfigError."""
    port = settings.early.port
    if port is None:
        return None
    from gateway.early_port import EarlyPort  # noqa: PLC0415  # as above
    from gateway.pravega.early.host import is_of_the_gateway  # noqa: PLC0415

    early = EarlyPort(settings, port=port, is_closed=is_of_the_gateway)
    early.prepare(beside_tokens=settings.wire.port is not None)
    return early


def _mewbase_ports_of(settings: Settings, loop: asyncio.AbstractEventLoop) -> "MewbasePorts | None":
    """Return mewbase's ports, if there are any. Raises ConfigError."""
    mewbase = settings.mewbase
    if mewbase.port is None and mewbase.tls_port is None:
        return None
    if find_spec("bson") is None or find_spec("pymongo") is None:  # before what imports it
        name = "mewbase.port" if mewbase.port is not None else "mewbase.tls_port"
        raise ConfigError.without_extra(name, "BSON", "mewbase")
    from gateway.mewbase_ports import MewbasePorts  # noqa: PLC0415  # as above

    return MewbasePorts(settings, loop)


def _callers_of(opened: Opened) -> "Callable[[str], StreamUser]":
    """Return what gives the rights of users of the streams at the controller."""
    from gateway.serving.controller_callers import StreamUser  # noqa: PLC0415  # as above

    def caller_of(user: str) -> StreamUser:
        standing = opened.access.standings.of(user)
        return StreamUser(user, opened.access, opened.virtual_hosts, standing)

    return caller_of


def _visits_of(backend: Backend, opened: Opened) -> VisitHost:
    """Return what the connections to the store's own ports share."""
    return VisitHost(
        access=opened.access,
        authentication=opened.authentication,
        connections=backend.clients,
        virtual_hosts=opened.virtual_hosts.find,
        service=backend.service,
        has_room=lambda: True,
    )


def _answered_by(opened: Opened) -> Answer:
    """Return what carries out the requests of administrators."""

    def answered(
        name: str, arguments: Mapping[str, Any], body: bytes
    ) -> Coroutine[Any, Any, object]:
        return awaited(answer(opened.administration, OWNER, name, arguments, body))

    return answered


async def _start(admin: AdminSocket) -> None:
    """Let administrators in, unless the file system has no sockets: clients can be served still."""
    try:
        await admin.start()
    except OSError as error:
        log.error(  # noqa: TRY400  # a line for the operator
            "administrators cannot reach this server path=%s error=%s", admin.path, error
        )


class Server:
    """Everything that runs."""

    def __init__(
        self, settings: Settings, loop: asyncio.AbstractEventLoop, stop: asyncio.Event
    ) -> None:
        self._settings = settings
        self._stop = stop
        self._loop = loop
        self._schedule = Schedule(
            loop, busy_poll_us=settings.stream.busy_poll_us, rest_us=settings.stream.rest_us
        )
        self.backend = Backend(
            settings,
            loop,
            self._schedule,
            version=own_version(),
            chunk_bytes_max=chunk_bytes_max(settings.stream),
            stop=stop,
        )
        self.opened: Opened | None = None
        self.management = Management(settings.management)
        stream = settings.stream
        self._plain = Port(Place(stream.host, stream.port, "stream.host", "stream.port"))
        over_tls = Place(stream.host, settings.tls.port, "stream.host", "tls.port")
        self.tls = tls_of(settings.tls, over_tls, loop)
        self._store_ports = _store_ports_of(settings, loop)
        self._early_port = _early_port_of(settings)
        self._mewbase_ports = _mewbase_ports_of(settings, loop)
        self._listeners = Listeners()
        self._retention: asyncio.Task[None] | None = None
        self._letting_go: asyncio.Task[None] | None = None
        self._admin: AdminSocket | None = None
        self.sockets: Sockets | None = None
        self.shared: Shared | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port listened on, the first of them."""
        return self._plain.address

    @property
    def advertised(self) -> tuple[str, int]:
        """Host and port that clients are told."""
        return advertised(self._settings, self.address[1])

    @property
    def advertised_over_tls(self) -> tuple[str, int]:
        """Host and port that clients over TLS are told."""
        assert self.tls is not None
        return advertised_over_tls(self._settings, self.tls.address[1])

    @property
    def ready(self) -> str:
        """Text of the ready line: the addresses, and where the data is."""
        words = [f"stream={shown(*self.address)} advertised={shown(*self.advertised)}"]
        if self.tls is not None:
            words.append(f"tls={shown(*self.tls.address)}")
            words.append(f"tls_advertised={shown(*self.advertised_over_tls)}")
        if api := self.management.addresses:
            words.append(f"management={shown(*api[0])}")
        others = (self._store_ports, self._early_port, self._mewbase_ports)
        words.extend(ports.ready for ports in others if ports is not None)
        durability = self._settings.store.durability.value
        words.append(f"data={self.backend.served.directory.path} durability={durability}")
        if also := [*self._listeners.further_addresses(), *api[1:]]:
            words.append(f"also={','.join(shown(*each) for each in also)}")
        return " ".join(words)

    def open(self) -> None:
        """Open the data directory; blocks. Raises ConfigError or StoreError."""
        self.backend.served.open()

    async def abandon(self) -> None:
        """Close what a start that has failed has opened; leave nothing behind of a first one."""
        self._plain.close()
        self.management.close()
        if self.opened is not None:
            await done_before(self._loop.time() + STORED_BY_S, self.backend.close_streams())
        await self.backend.served.abandon(CLOSED_BY_S)

    async def start(self) -> None:
        """Open the streams, take the addresses, and begin to accept; `open` comes before."""
        self.opened = opened = await self.backend.open()
        await self._prepare(opened)
        self._bind()
        await self._listen(opened)
        await self._admit_administrators(opened)
        interval_s = self._settings.streams.retention_interval_s
        keeping = keep_retention(opened.virtual_hosts, interval_s, awaited)
        self._retention = self._loop.create_task(keeping)

    async def _prepare(self, opened: Opened) -> None:
        """Do what can show that a setting is wrong, addresses aside. Raises ConfigError."""
        if self._store_ports is not None:
            self._store_ports.prepare(holds_streams=True, standings=opened.access.standings)
        if self._mewbase_ports is not None:
            await self._mewbase_ports.prepare(opened)
        self._admin = AdminSocket(self.backend.served.directory.path, _answered_by(opened))
        with suppress(OSError):  # told when it starts
            self._admin.make_way()

    def _bind(self) -> None:
        """Take the addresses. Raises ConfigError."""
        ports = (self.management, self._plain, self.tls, self._early_port, self._mewbase_ports)
        take_all(each.bind for each in (*ports, self._store_ports) if each is not None)

    async def _listen(self, opened: Opened) -> None:
        """Begin to accept. Raises ConfigError."""
        say = opened.authentication.refusals.say
        most = sockets_max(self._settings.stream.connections_max, descriptor_limit())
        self.sockets = Sockets(most, say)
        self.shared = shared = Shared(
            loop=self._loop,
            schedule=self._schedule,
            receive_buffer=bytearray(self._settings.stream.receive_buffer_bytes),
            scratch=bytearray(chunk_bytes_max(self._settings.stream)),
            say=say,
        )
        advertising = Advertising(self._settings, self._plain.widest_address[0])
        advertising.warn()
        kind = self._stream_kind(opened, self.advertised, advertising)
        plain = Listener(self._plain.sockets, shared, kind, self.sockets)
        with self._plain.place.blamed():
            self.serve(plain)
        if self._ports_of_segments:
            await self._listen_for_segments(opened, shared, self.sockets)
        if self._mewbase_ports is not None:
            mewbase = self._mewbase_ports
            await mewbase.start(opened, self.backend, shared, self.sockets, self._add)
        self.backend.served.directory.keep()  # from here on clients may store something
        if self.tls is not None:
            kind = self._stream_kind(opened, self.advertised_over_tls, advertising)
            user_of = naming_of(self._settings.tls)
            self._add(self.tls.start(shared, kind, self.sockets, user_of))
        within_s = self._settings.stream.deleted_file_timeout_ms / 1000
        letting_go = let_go_of_deleted(self._listeners.connections, within_s)
        self._letting_go = self._loop.create_task(letting_go)

    async def _listen_for_segments(self, opened: Opened, shared: Shared, sockets: Sockets) -> None:
        from gateway.wire_visits import entering  # noqa: PLC0415  # as above

        entered = entering(_visits_of(self.backend, opened))
        parts = (self.backend.served.store, shared, sockets, self._add, entered)
        for port in self._ports_of_segments:
            port.start(*parts)
        if self._store_ports is not None:
            from gateway.serving.controller_callers import log_in_by  # noqa: PLC0415  # as above

            callers = _callers_of(opened)
            log_in = log_in_by(opened.authentication, callers)
            lists = await self._store_ports.start_controller(*parts, log_in=log_in)
            if lists is not None:
                opened.administration.scopes.open(lists, callers)

    def serve(self, listener: Listener) -> None:
        """Let clients come in at a port. Raises OSError: another process listens there by now."""
        self._add(listener)
        listener.start()

    def _add(self, listener: Listener) -> None:
        """Stop a listener with the others, and show it to administrators."""
        self._listeners.add(listener)
        self.backend.service.add_door(listener)

    async def _admit_administrators(self, opened: Opened) -> None:
        assert self.shared is not None
        node = f"rabbit@{self._settings.stream.advertised_host}"
        await self.management.start(
            opened.administration,
            opened.authentication,
            awaited,
            node,
            peer_properties(own_version()),
            self._settings,
            self.shared,
        )
        assert self._admin is not None
        await _start(self._admin)

    def _stream_kind(self, opened: Opened, told: Address, advertising: Advertising) -> StreamKind:
        stream = self._settings.stream
        host = Host(
            access=opened.access,
            authentication=opened.authentication,
            connections=self.backend.clients,
            virtual_hosts=opened.virtual_hosts.find,
            settings=link_settings_of(stream, told),
            advertising=advertising,
            peer_properties=peer_properties(own_version()),
            has_room=self._has_room,
            service=self.backend.service,
        )
        return StreamKind(host, limits_of(stream))

    def _has_room(self) -> bool:
        assert self.sockets is not None
        room = clients_max(self._settings.stream.connections_max, self.sockets.places)
        return self.backend.clients.count_of_protocol(PROTOCOL) < room

    async def stop(self) -> bool:
        """Stop accepting, store what was taken, confirm it, close; True if all of that was done."""
        log.info("stopping")
        for task in filter(None, (self._retention, self._letting_go)):
            task.cancel()
        self.backend.stop_looking()
        begun_s = self._loop.time()
        await self.management.stop()
        is_clean = True
        if self._admin is not None and self.opened is not None:
            importing = self.opened.administration.importing
            is_clean = await done_before(begun_s + STORED_BY_S, awaited(importing.close()))
            await self._admin.stop()
        if self._store_ports is not None:
            stopping = self._store_ports.stop_controller()
            is_clean &= await done_before(begun_s + STORED_BY_S, stopping)
        for tls in self._over_tls:
            tls.stop()
        self._listeners.stop_accepting()
        self._listeners.stop_reading()
        is_clean &= await done_before(begun_s + STORED_BY_S, self.backend.close_streams())
        for port in self._ports_of_segments:
            is_clean &= await done_before(begun_s + STORED_BY_S, port.settled())
        await self._listeners.end(begun_s + SENT_BY_S - self._loop.time())
        is_clean &= await done_before(begun_s + CLOSED_BY_S, self.backend.served.close())
        log.info("stopped clean=%s", is_clean)
        return is_clean

    def reload(self) -> None:
        """Take changed files: certificates, the only ones that can change while it serves."""
        if not self._over_tls:
            log.info("there are no tls files to reload")
        for tls in self._over_tls:
            tls.reload()

    @property
    def _ports_of_segments(self) -> "list[StorePorts | EarlyPort]":
        return [each for each in (self._store_ports, self._early_port) if each is not None]

    @property
    def _over_tls(self) -> list[TlsServing]:
        of_segments = [] if self._store_ports is None else self._store_ports.over_tls
        mewbase = None if self._mewbase_ports is None else self._mewbase_ports.tls
        return [each for each in (self.tls, *of_segments, mewbase) if each is not None]

    async def run(self) -> int:
        """Serve until asked to stop, or until the store fails; return the exit code."""
        await self._stop.wait()
        is_clean = await self.stop()
        return 0 if is_clean and self.backend.served.failure is None else 1

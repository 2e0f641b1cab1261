"""The ports at which clients reach the segment store itself, on a store that is open."""

import asyncio
import logging
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from gateway.awaiting import called
from gateway.log.names import is_of_a_stream, is_own, is_server_scope
from gateway.network.addresses import is_loopback, shown
from gateway.network.listening import Place, Port
from gateway.pravega.entering import Entered, unnoted
from gateway.pravega.front import PROTOCOL, PravegaKind
from gateway.pravega.guard import Guard, Ownership
from gateway.pravega.host import Host
from gateway.pravega.tokens import Tokens
from gateway.pravega.under_way import UnderWay
from gateway.server.certificate_user import naming_of
from gateway.server.front import Limits
from gateway.server.listener import Listener
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets
from gateway.server.tls_serving import TlsServing
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.fields import host_and_port
from gateway.settings.model import Settings
from gateway.settings.wire import WireSettings
from gateway.token_key import made_key, read_key
from store.api import Operations, SegmentStore

if TYPE_CHECKING:
    from gateway.pravega.controller.rights import LogIn
    from gateway.pravega.controller.server import ControllerServer  # imported where its port is on

log = logging.getLogger(__name__)

_NS_A_MS: Final = 1_000_000
_EVERY_ADDRESS: Final = frozenset(("0.0.0.0", "::"))  # noqa: S104  # compared with, not bound

_OF_A_STORE: Final = Ownership(
    owns=lambda scope, _stream: is_server_scope(scope), shows=lambda _scope, _stream: False
)
"""Segments that are the server's own where no streams are served."""
_OF_A_GATEWAY: Final = Ownership(owns=is_own, shows=is_of_a_stream)
"""The same where streams are served."""


class StorePorts:
    """The port of Pravega's wire protocol.

    Attributes:
        tls: What gives it TLS; None for a plain port.
    """

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        *,
        port: int,
        over_tls: bool,
        beside_streams: bool,
    ) -> None:
        """Read the files that the settings name; `prepare`, `bind` and `start` follow.

        Args:
            settings: All of them.
            loop: The event loop.
            port: The port of the wire protocol; 0 lets the system pick one.
            over_tls: Whether clients come over TLS, with the certificate of the settings.
            beside_streams: Whether streams are served from the same store. Then each request needs
                a token, and what belongs to the streams is kept from clients.

        Raises:
            ConfigError: A certificate or the key of tokens is wrong, or a library is missing.
        """
        if settings.wire.controller_port is not None:
            _check_extra()
        self._settings = settings
        self._controller: ControllerServer | None = None
        self._ownership = _OF_A_GATEWAY if beside_streams else _OF_A_STORE
        self._asks_for_tokens = beside_streams or settings.wire.users_file is not None
        self._tokens: Tokens | None = None
        file = settings.wire.token_key_file
        self._key = None if file is None else read_key(file)
        self._under_way = UnderWay()
        place = Place(settings.wire.host, port, "wire.host", "wire.port")
        self.tls = TlsServing(settings.tls, place, loop) if over_tls else None
        self._port: Port | TlsServing = Port(place) if self.tls is None else self.tls

    def prepare(self) -> None:
        """Find the key of tokens, in the data directory too. Raises ConfigError: there is none."""
        if self._key is None and self._asks_for_tokens:
            self._key = made_key(self._settings.store.data_directory)

    def bind(self) -> None:
        """Take the address. Raises ConfigError."""
        self._port.bind()

    @property
    def ready(self) -> str:
        """The addresses as the ready line has them."""
        host, port = self._port.address
        controller = self._controller
        words = "" if controller is None else f" controller={shown(host, controller.port)}"
        return f"store={shown(host, port)}{words}"

    @property
    def advertised(self) -> tuple[str, int]:
        """Host and port at which clients reach the wire protocol."""
        host, port = self._port.address
        reached = "localhost" if host in _EVERY_ADDRESS else host
        told = self._settings.wire.advertise
        told_host, told_port = (None, None) if told is None else host_and_port(told)
        return told_host or reached, told_port or port

    def start(
        self,
        store: Operations,
        shared: Shared,
        sockets: Sockets,
        add: Callable[[Listener], object],
        entering: Callable[[str], Entered] = lambda _protocol: unnoted,
    ) -> None:
        """Accept from now on.

        Args:
            store: The open store.
            shared: Parts that all connections of the process share.
            sockets: The sockets of the process.
            add: Notes a listener, to be stopped with the others.
            entering: Gives what notes the connections of a protocol for administrators.

        Raises:
            ConfigError: Another process listens there by now.
        """
        wire = self._settings.wire
        self._tokens = self._made_tokens()
        host = Host(
            store=store,
            say=shared.say,
            clock_ms=_clock_ms,
            guard=Guard(self._ownership, self._tokens),
            wire=wire,
            under_way=self._under_way,
            entered=entering(PROTOCOL),
        )
        host.transients.begin()
        kind = PravegaKind(host, limits_of(wire))
        if isinstance(self._port, TlsServing):
            add(self._port.start(shared, kind, sockets, naming_of(self._settings.tls)))
            return
        listener = Listener(self._port.socket, shared, kind, sockets)
        add(listener)
        with self._port.place.blamed():
            listener.start()

    async def start_controller(self, store: SegmentStore, log_in: "LogIn | None" = None) -> None:
        """Answer the controller's calls from now on, if there is a port for them; after `start`.

        Args:
            store: The open store.
            log_in: Lets callers in; without it all are let in, and may do everything.

        Raises:
            ConfigError: The port is taken.
            StoreError: The store cannot be read.
        """
        wire = self._settings.wire
        if wire.controller_port is None:
            return
        # They take no room while the port is off.
        from gateway.pravega.controller.rights import minting  # noqa: PLC0415
        from gateway.pravega.controller.server import (  # noqa: PLC0415
            ControllerServer,
            Door,
            anyone,
            no_token,
        )

        tokens = self._tokens
        door = Door(
            caller=anyone if log_in is None else log_in,
            token=no_token if tokens is None else minting(tokens, _clock_ms),
            hides=self._ownership.hides,
        )
        self._controller = ControllerServer(
            store,
            _clock_ms,
            lambda: self.advertised,
            door=door,
            certificate=self._certificate(),
        )
        try:
            await self._controller.start(wire.host, wire.controller_port)
        except OSError as error:
            raise ConfigError(Problem("wire.controller_port", str(error))) from error

    def _certificate(self) -> tuple[bytes, bytes] | None:
        """Return key and certificates in PEM, where clients come over TLS."""
        tls = self._settings.tls
        if self.tls is None or tls.key is None or tls.certificate is None:
            return None
        return tls.key.read_bytes(), tls.certificate.read_bytes()

    async def stop_controller(self) -> None:
        """Take no more calls of the controller, and end those that are under way."""
        if self._controller is not None:
            await self._controller.stop()

    def _made_tokens(self) -> Tokens | None:
        """Return what checks tokens; None if none are asked for."""
        if self._key is not None:
            return Tokens(self._key)
        if not is_loopback(self._port.address[0]):
            log.warning(
                "every client that reaches the store's port may read and change all segments,"
                " --users or --token-key-file shuts it address=%s",
                shown(*self._port.address),
            )
        return None

    async def settled(self) -> None:
        """Wait until every append that was taken is stored."""
        await called(self._under_way.when_none)


def _check_extra() -> None:
    """Raise ConfigError where what the controller needs is not installed."""
    if find_spec("grpc") is None or find_spec("google") is None:
        reason = "needs gRPC, which is not installed: pip install 'hutch-streams[pravega]'"
        raise ConfigError(Problem("wire.controller_port", reason))


def limits_of(wire: WireSettings) -> Limits:
    """Return the limits of each connection."""
    return Limits(
        close_timeout_ms=wire.close_timeout_ms,
        unconfirmed_max=wire.unacknowledged_appends_max,
        unconfirmed_resume=wire.unacknowledged_appends_resume,
        backlog_pause_bytes=wire.send_backlog_pause_bytes,
        backlog_bytes_max=wire.send_backlog_bytes_max,
    )


def _clock_ms() -> int:
    return time.time_ns() // _NS_A_MS

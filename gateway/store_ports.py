"""The ports at which clients reach the segment store itself, on a store that is open."""

import asyncio
import logging
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from gateway.network.addresses import is_loopback, shown
from gateway.network.listening import Place
from gateway.pravega.front import PravegaKind
from gateway.pravega.host import Host
from gateway.pravega.under_way import UnderWay
from gateway.server.certificate_user import naming_of
from gateway.server.front import Limits
from gateway.server.listener import Listener
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets
from gateway.server.tls_serving import TlsServing
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings
from gateway.settings.wire import WireSettings
from store.api import Operations, SegmentStore

if TYPE_CHECKING:
    from gateway.pravega.controller.server import ControllerServer  # imported where its port is on

log = logging.getLogger(__name__)

_NS_A_MS: Final = 1_000_000
_EVERY_ADDRESS: Final = frozenset(("0.0.0.0", "::"))  # noqa: S104  # compared with, not bound


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
    ) -> None:
        """Take the addresses.

        Args:
            settings: All of them.
            loop: The event loop.
            port: The port of the wire protocol; 0 lets the system pick one.
            over_tls: Whether clients come over TLS, with the certificate of the settings.

        Raises:
            ConfigError: An address is taken, or is not of this machine; a certificate is wrong.
        """
        if settings.wire.controller_port is not None:
            _check_extra()
        self._settings = settings
        self._controller: ControllerServer | None = None
        self._under_way = UnderWay()
        self._place = Place(settings.wire.host, port, "wire.host", "wire.port")
        self.tls = TlsServing(settings.tls, self._place, loop) if over_tls else None
        self._socket = self._place.bind() if self.tls is None else None

        if self._socket is not None:
            self._address = self._socket.getsockname()[:2]
        elif self.tls is not None:
            self._address = self.tls.address

    @property
    def ready(self) -> str:
        """The addresses as the ready line has them."""
        host, port = self._address
        controller = self._controller
        words = "" if controller is None else f" controller={shown(host, controller.port)}"
        return f"store={shown(host, port)}{words}"

    @property
    def advertised(self) -> tuple[str, int]:
        """Host and port at which clients reach the wire protocol."""
        host, port = self._address
        reached = "localhost" if host in _EVERY_ADDRESS else host
        wire = self._settings.wire
        return wire.advertised_host or reached, wire.advertised_port or port

    def start(
        self,
        store: Operations,
        shared: Shared,
        sockets: Sockets,
        add: Callable[[Listener], object],
    ) -> None:
        """Accept from now on.

        Args:
            store: The open store.
            shared: Parts that all connections of the process share.
            sockets: The sockets of the process.
            add: Notes a listener, to be stopped with the others.

        Raises:
            ConfigError: Another process listens there by now.
        """
        wire = self._settings.wire
        host = Host(
            store=store, say=shared.say, clock_ms=_clock_ms, wire=wire, under_way=self._under_way
        )
        host.transients.begin()
        kind = PravegaKind(host, limits_of(wire))
        if not is_loopback(self._address[0]):
            line = "clients of the store need no login, and can come from other machines address=%s"
            log.warning(line, shown(*self._address))
        if self.tls is not None:
            add(self.tls.start(shared, kind, sockets, naming_of(self._settings.tls)))
            return
        assert self._socket is not None
        listener = Listener(self._socket, shared, kind, sockets)
        add(listener)
        try:
            listener.start()
        except OSError as error:
            raise self._place.blame(error) from error

    async def start_controller(self, store: SegmentStore) -> None:
        """Answer the controller's calls from now on, if there is a port for them.

        Raises:
            ConfigError: The port is taken.
            StoreError: The store cannot be read.
        """
        wire = self._settings.wire
        if wire.controller_port is None:
            return
        from gateway.pravega.controller.server import ControllerServer  # noqa: PLC0415  # see above

        self._controller = ControllerServer(
            store, _clock_ms, lambda: self.advertised, certificate=self._certificate()
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

    async def settled(self) -> None:
        """Wait until every append that was taken is stored."""
        is_none = asyncio.Event()
        self._under_way.when_none(is_none.set)
        await is_none.wait()


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

"""The ports at which clients reach the segment store itself, on a store that is open."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

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
from gateway.settings.model import Settings
from gateway.settings.wire import WireSettings
from store.api import Operations

log = logging.getLogger(__name__)

_NS_A_MS: Final = 1_000_000


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
        self._settings = settings
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
        return f"store={shown(*self._address)}"

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

    async def settled(self) -> None:
        """Wait until every append that was taken is stored."""
        is_none = asyncio.Event()
        self._under_way.when_none(is_none.set)
        await is_none.wait()


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

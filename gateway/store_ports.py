"""The ports at which clients reach the segment store itself, on a store that is open."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from gateway.network.addresses import shown
from gateway.network.listening import bind, cannot_listen
from gateway.pravega.front import PravegaKind
from gateway.pravega.host import Host
from gateway.pravega.under_way import UnderWay
from gateway.server.front import Limits
from gateway.server.listener import Listener
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets
from gateway.settings.errors import ConfigError
from gateway.settings.wire import WireSettings
from store.api import Operations

_NS_A_MS: Final = 1_000_000


class StorePorts:
    """The port of Pravega's wire protocol."""

    def __init__(self, wire: WireSettings, *, port: int) -> None:
        """Take the addresses.

        Args:
            wire: The settings.
            port: The port of the wire protocol; 0 lets the system pick one.

        Raises:
            ConfigError: An address is taken, or is not of this machine.
        """
        self._wire = wire
        self._under_way = UnderWay()
        self._port = port
        try:
            self._socket = bind(wire.host, port)
        except OSError as error:
            raise self._cannot_listen(error) from error
        self._address = self._socket.getsockname()[:2]

    def _cannot_listen(self, error: OSError) -> ConfigError:
        return cannot_listen("wire.host", "wire.port", self._wire.host, self._port, error)

    @property
    def ready(self) -> str:
        """The addresses as the ready line has them."""
        host, port = self._address
        return f"store={shown(host, port)}"

    def start(
        self,
        store: Operations,
        shared: Shared,
        sockets: Sockets,
        serve: Callable[[Listener], object],
    ) -> None:
        """Accept from now on.

        Args:
            store: The open store.
            shared: Parts that all connections of the process share.
            sockets: The sockets of the process.
            serve: Starts a listener, and stops it with the others.

        Raises:
            ConfigError: Another process listens there by now.
        """
        host = Host(
            store=store,
            say=shared.say,
            clock_ms=_clock_ms,
            wire=self._wire,
            under_way=self._under_way,
        )
        kind = PravegaKind(host, limits_of(self._wire))
        try:
            serve(Listener(self._socket, shared, kind, sockets))
        except OSError as error:
            raise self._cannot_listen(error) from error

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

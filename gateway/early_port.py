"""The port of the early dialect of Pravega's wire protocol, on a store that is open."""

import logging
from collections.abc import Callable
from typing import Final

from gateway.awaiting import called
from gateway.network.addresses import is_loopback, shown
from gateway.network.listening import Place
from gateway.pravega.early.front import EARLY_PROTOCOL, EarlyKind
from gateway.pravega.early.host import EarlyHost
from gateway.pravega.entering import Entered, unnoted
from gateway.pravega.under_way import UnderWay
from gateway.server.listener import Listener
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets
from gateway.settings.model import Settings
from gateway.store_ports import limits_of
from store.api import Operations

log: Final = logging.getLogger(__name__)


class EarlyPort:
    """The port, from the taking of its address on."""

    def __init__(self, settings: Settings, *, port: int, is_closed: Callable[[str], bool]) -> None:
        """Take the address.

        Args:
            settings: All of them.
            port: The port; 0 lets the system pick one.
            is_closed: Tells of a segment's name that this port may not touch it.

        Raises:
            ConfigError: The address is taken, or is not of this machine.
        """
        self._settings = settings
        self._is_closed = is_closed
        self._under_way = UnderWay()
        self._place = Place(settings.early.host, port, "early.host", "early.port")
        self._socket = self._place.bind()
        host = self._socket.getsockname()[0]
        if not is_loopback(host):
            log.warning(
                "clients of the early dialect need no login, and can come from other machines "
                "address=%s",
                shown(*self._socket.getsockname()[:2]),
            )

    @property
    def ready(self) -> str:
        """The address as the ready line has it."""
        return f"early={shown(*self._socket.getsockname()[:2])}"

    def start(
        self,
        store: Operations,
        shared: Shared,
        sockets: Sockets,
        add: Callable[[Listener], object],
        entering: Callable[[str], Entered] = lambda _protocol: unnoted,
    ) -> None:
        """Accept from now on; see `StorePorts.start`. Raises ConfigError."""
        host = EarlyHost(
            store=store,
            say=shared.say,
            is_closed=self._is_closed,
            settings=self._settings.early,
            wire=self._settings.wire,
            under_way=self._under_way,
            entered=entering(EARLY_PROTOCOL),
        )
        kind = EarlyKind(host, limits_of(self._settings.wire))
        listener = Listener(self._socket, shared, kind, sockets)
        add(listener)
        with self._place.blamed():
            listener.start()

    async def settled(self) -> None:
        """Wait until every append that was taken is stored."""
        await called(self._under_way.when_none)

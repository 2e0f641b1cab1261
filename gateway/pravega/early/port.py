"""The port of the early dialect of Pravega's wire protocol, on a store that is open."""

import logging
from collections.abc import Callable
from typing import Final

from gateway.server.awaiting import called
from gateway.network.addresses import is_loopback, shown
from gateway.network.listening import Place, Port
from gateway.pravega.early.front import EARLY_PROTOCOL, EarlyKind
from gateway.pravega.early.host import EarlyHost
from gateway.pravega.entering import Entered, unnoted
from gateway.pravega.host import limits_of
from gateway.pravega.under_way import UnderWay
from gateway.server.listener import Listener, listen
from gateway.server.shared import Shared
from gateway.server.sockets import WITHOUT_LOGIN_PART, Quota, Sockets
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings
from store.api import Operations

log: Final = logging.getLogger(__name__)


class EarlyPort:
    """The port."""

    def __init__(self, settings: Settings, *, port: int, is_closed: Callable[[str], bool]) -> None:
        """Describe the port; `prepare`, `bind` and `start` follow.

        Args:
            settings: All of them.
            port: The port; 0 lets the system pick one.
            is_closed: Tells of a segment's name that this port may not touch it.
        """
        self._settings = settings
        self._is_closed = is_closed
        self._under_way = UnderWay()
        self._port = Port(Place(settings.early.host, port, "early.host", "early.port"))

    def prepare(self, *, beside_tokens: bool) -> None:
        """Check that the port may be opened.

        Args:
            beside_tokens: Whether another port asks for tokens for the same segments.

        Raises:
            ConfigError: It does, and the settings do not allow that this one asks for none.
        """
        if beside_tokens and not self._settings.early.trusts_everyone:
            reason = (
                "opens segments to every client that reaches the port, for which the store's port "
                "asks for tokens; early.trusts_everyone = true allows that"
            )
            raise ConfigError(Problem("early.port", reason))

    def bind(self) -> None:
        """Take the addresses. Raises ConfigError."""
        self._port.bind()
        widest = self._port.widest_address
        if not is_loopback(widest[0]):
            log.warning(
                "clients of the early dialect need no login, and can come from other machines "
                "address=%s",
                shown(*widest),
            )

    @property
    def ready(self) -> str:
        """The address as the ready line has it."""
        return f"early={shown(*self._port.address)}"

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
        quota = Quota(sockets, max(1, sockets.places // WITHOUT_LOGIN_PART))
        listen(self._port, shared, kind, quota, add)

    async def settled(self) -> None:
        """Wait until every append that was taken is stored."""
        await called(self._under_way.when_none)

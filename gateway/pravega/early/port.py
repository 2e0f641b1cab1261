"""The port of the early dialect of Pravega's wire protocol."""

import logging
from typing import Final, Self

from gateway.network.addresses import is_loopback, shown
from gateway.network.listening import ListenPlace
from gateway.pravega.port import asks_for_tokens
from gateway.pravega.segment_access import SegmentBackend
from gateway.pravega.traffic import AppendsUnderWay
from gateway.server.endpoint import PortEndpoint
from gateway.server.loop.awaiting import called
from gateway.server.port import Port
from gateway.server.sockets import WITHOUT_LOGIN_PART, Quota
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings

log: Final = logging.getLogger(__name__)


class EarlyPort(Port[SegmentBackend]):
    """The port."""

    def __init__(self, settings: Settings, port: int) -> None:
        """As of `configured`; 0 lets the system pick the port."""
        self._endpoint = PortEndpoint(
            ListenPlace(settings.early.host, port, "early.host", "early.port")
        )
        super().__init__([self._endpoint])
        self._settings = settings
        self._under_way = AppendsUnderWay()

    @classmethod
    def configured(cls, settings: Settings) -> Self | None:
        """Return the port, if there is one."""
        port = settings.early.port
        return None if port is None else cls(settings, port)

    async def prepare(self, backend: SegmentBackend) -> None:  # noqa: ARG002  # its ports count
        """Check that the port may be opened beside one that asks for tokens. Raises ConfigError."""
        if asks_for_tokens(self.context) and not self._settings.early.trusts_everyone:
            reason = (
                "opens segments to every client that reaches the port, for which the store's port "
                "asks for tokens; early.trusts_everyone = true allows that"
            )
            raise ConfigError(Problem("early.port", reason))

    @property
    def ready(self) -> str:
        """The address."""
        return f"early={shown(*self._endpoint.address)}"

    async def serve(self, backend: SegmentBackend) -> None:
        """Let clients come in. Raises ConfigError."""
        # They take no room while the port is off.
        from gateway.pravega.context import limits_of  # noqa: PLC0415
        from gateway.pravega.early.context import EarlyContext  # noqa: PLC0415
        from gateway.pravega.early.front import EARLY_PROTOCOL, EarlyKind  # noqa: PLC0415

        widest = self._endpoint.widest_address
        if not is_loopback(widest[0]):
            log.warning(
                "clients of the early dialect need no login, and can come from other machines "
                "address=%s",
                shown(*widest),
            )
        access, context, sockets = backend.segments, self.context, self.context.sockets
        shared = EarlyContext(
            store=access.store,
            say=context.shared.say,
            is_closed=access.is_closed,
            settings=self._settings.early,
            wire=self._settings.wire,
            under_way=self._under_way,
            list_connection=access.listing_of(EARLY_PROTOCOL),
        )
        quota = Quota(sockets, max(1, sockets.places // WITHOUT_LOGIN_PART))
        self._endpoint.listen(context, EarlyKind(shared, limits_of(self._settings.wire)), quota)

    async def settle(self) -> None:
        """Wait until every append that was taken is stored."""
        await called(self._under_way.when_none)

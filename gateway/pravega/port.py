"""The port of Pravega's wire protocol."""

import logging
from typing import Final, Self

from gateway.network.addresses import is_loopback, shown
from gateway.network.listening import Address, ListenPlace
from gateway.pravega.access.token_key import read_key
from gateway.pravega.access.tokens import Tokens
from gateway.pravega.segment_access import SegmentBackend, clock_ms
from gateway.pravega.traffic import AppendsUnderWay, Traffic
from gateway.server.context import ServerContext
from gateway.server.endpoint import endpoint
from gateway.server.loop.awaiting import called
from gateway.server.port import Port
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.fields import host_and_port
from gateway.settings.model import Settings

log = logging.getLogger(__name__)

_EVERY_ADDRESS: Final = frozenset(("0.0.0.0", "::"))  # noqa: S104  # compared with, not bound


class SegmentPort(Port[SegmentBackend]):
    """The port.

    Attributes:
        tokens: Checks the tokens of requests; None if none are asked for. `prepare` comes before.
        traffic: Counts what clients write.
    """

    def __init__(self, settings: Settings, port: int) -> None:
        """As of `configured`; 0 lets the system pick the port."""
        wire = settings.wire
        place = ListenPlace(wire.host, port, "wire.host", "wire.port")
        self._endpoint = endpoint(place, settings.tls if wire.tls else None)
        super().__init__([self._endpoint])
        self.traffic: Final = Traffic()
        self.tokens: Tokens | None = None
        self._settings = settings
        self._under_way = AppendsUnderWay()
        self._key = None if wire.token_key_file is None else read_key(wire.token_key_file)

    @classmethod
    def configured(cls, settings: Settings) -> Self | None:
        """Return the port, if there is one. Raises ConfigError."""
        wire = settings.wire
        if wire.port is None:
            return None
        if wire.tls and settings.tls.certificate is None:
            raise ConfigError(Problem("wire.tls", "needs tls.certificate beside it"))
        return cls(settings, wire.port)

    async def prepare(self, backend: SegmentBackend) -> None:
        """Find the key of tokens, in the data directory too. Raises ConfigError."""
        access = backend.segments
        if self._key is None and (access.holds_streams or access.has_users):
            self._key = await backend.token_key()
        if self._key is not None:
            self.tokens = Tokens(self._key, access.standings.of)

    @property
    def ready(self) -> str:
        """The address."""
        return f"store={shown(*self._endpoint.address)}"

    @property
    def advertised(self) -> Address:
        """Host and port at which clients reach the wire protocol."""
        host, port = self._endpoint.address
        reached = "localhost" if host in _EVERY_ADDRESS else host
        told = self._settings.wire.advertise
        told_host, told_port = (None, None) if told is None else host_and_port(told)
        return told_host or reached, told_port or port

    async def serve(self, backend: SegmentBackend) -> None:
        """Let clients come in. Raises ConfigError."""
        # They take no room while the port is off.
        from gateway.pravega.access.guard import Guard  # noqa: PLC0415
        from gateway.pravega.context import PROTOCOL, WireContext, limits_of  # noqa: PLC0415
        from gateway.pravega.front import PravegaKind  # noqa: PLC0415

        self._warn()
        wire, access = self._settings.wire, backend.segments
        shared = WireContext(
            store=access.store,
            say=self.context.shared.say,
            clock_ms=clock_ms,
            guard=Guard(access.ownership, self.tokens),
            standings=access.standings,
            wire=wire,
            under_way=self._under_way,
            list_connection=access.listing_of(PROTOCOL),
            traffic=self.traffic,
        )
        shared.transients.begin()
        self._endpoint.listen(self.context, PravegaKind(shared, limits_of(wire)))

    def _warn(self) -> None:
        widest = self._endpoint.widest_address
        if self.tokens is None and not is_loopback(widest[0]):
            log.warning(
                "every client that reaches the store's port may read and change all segments,"
                " --users or --token-key-file shuts it address=%s",
                shown(*widest),
            )

    async def settle(self) -> None:
        """Wait until every append that was taken is stored."""
        await called(self._under_way.when_none)


def asks_for_tokens(context: ServerContext) -> bool:
    """Return whether the wire protocol is served, and each of its requests needs a token."""
    port = context.port(SegmentPort)
    return port is not None and port.tokens is not None

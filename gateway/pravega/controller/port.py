"""The port at which Pravega's clients find scopes and streams, on a store that is open."""

import asyncio
import logging
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from gateway.log.seldom import Seldom
from gateway.network.addresses import shown
from gateway.network.listening import Place, Port
from gateway.pravega.entering import Entered, unnoted
from gateway.pravega.host import limits_of
from gateway.pravega.traffic import Traffic
from gateway.server.certificate_user import naming_of
from gateway.server.listener import Listener, listen
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets
from gateway.server.tls_serving import TlsServing
from gateway.settings.errors import ConfigError
from gateway.settings.model import Settings
from store.api import SegmentStore

if TYPE_CHECKING:
    # where its port is on
    from gateway.pravega.controller.lists.lists import Lists
    from gateway.pravega.controller.service import ControllerService, Door

log = logging.getLogger(__name__)
_unreadable = Seldom(log, "the state of a group of readers cannot be read group=%s reason=%s")

PROTOCOL: Final = "controller"
_HTTP2: Final = "h2"
"""Name of HTTP/2 in the greeting of TLS, which clients of gRPC demand."""
_NS_A_MS: Final = 1_000_000


class ControllerPort:
    """The port.

    Attributes:
        tls: What gives it TLS; None for a plain port.
        traffic: Counts what clients of the wire protocol write.
    """

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        *,
        port: int,
        over_tls: bool,
    ) -> None:
        """Describe the port; `bind` and `start` follow.

        Args:
            settings: All of them.
            loop: The event loop.
            port: The port; 0 lets the system pick one.
            over_tls: Whether clients come over TLS, with the certificate of the settings.

        Raises:
            ConfigError: The certificate is wrong, or a library is missing.
        """
        _check_extra()
        self.traffic: Final = Traffic()
        self._settings = settings
        place = Place(settings.wire.host, port, "wire.host", "wire.controller_port")
        self.tls = TlsServing(settings.tls, place, loop, speaks=_HTTP2) if over_tls else None
        self._port: Port | TlsServing = Port(place) if self.tls is None else self.tls
        self._service: ControllerService | None = None

    def bind(self) -> None:
        """Take the address. Raises ConfigError."""
        self._port.bind()

    @property
    def ready(self) -> str:
        """The address as the ready line has it."""
        return f"controller={shown(*self._port.address)}"

    async def start(
        self,
        store: SegmentStore,
        shared: Shared,
        sockets: Sockets,
        add: Callable[[Listener], object],
        entering: Callable[[str], Entered] = lambda _protocol: unnoted,
        *,
        advertised: Callable[[], tuple[str, int]],
        door: "Door",
    ) -> "Lists":
        """Answer calls from now on; return lists of what there is.

        Args:
            store: The open store.
            shared: Parts that all connections of the process share.
            sockets: The sockets of the process.
            add: Notes a listener, to be stopped with the others.
            entering: Gives what notes the connections of a protocol for administrators.
            advertised: Gives host and port at which clients reach the wire protocol.
            door: Says which callers are let in.

        Raises:
            ConfigError: The port is taken.
            StoreError: The store cannot be read.
        """
        # They take no room while the port is off.
        from gateway.grpc.front import GrpcKind  # noqa: PLC0415
        from gateway.pravega.controller.lists.lists import Lists  # noqa: PLC0415
        from gateway.pravega.controller.service import ControllerService, Rounds  # noqa: PLC0415

        wire = self._settings.wire
        self._service = ControllerService(
            store,
            clock_ms,
            advertised,
            door=door,
            traffic=self.traffic,
            rounds=Rounds(
                retention_s=wire.retention_interval_s,
                watermarks_s=wire.watermark_interval_s,
                scaling_minute_ms=wire.scaling_minute_ms,
            ),
        )
        await self._service.open()
        kind = GrpcKind(
            PROTOCOL,
            self._service,
            limits_of(wire),
            say=shared.say,
            login_timeout_ms=wire.first_frame_timeout_ms,
            entered=entering(PROTOCOL),
        )
        if isinstance(self._port, TlsServing):
            add(self._port.start(shared, kind, sockets, naming_of(self._settings.tls)))
        else:
            listen(self._port, shared, kind, sockets, add)
        return Lists(self._service.controller, _unreadable.warning)

    async def stop(self) -> None:
        """Take no more calls, and wait for those that are under way."""
        if self._service is not None:
            await self._service.stop()


def _check_extra() -> None:
    """Raise ConfigError where what the controller needs is not installed."""
    if find_spec("h2") is None or find_spec("google") is None:
        raise ConfigError.without_extra("wire.controller_port", "gRPC", "pravega")


def clock_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // _NS_A_MS

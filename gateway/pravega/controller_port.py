"""The port at which Pravega's clients find scopes and streams."""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Self

from gateway.logs import RateLimitedLog
from gateway.network.addresses import shown
from gateway.network.listening import ListenPlace, is_on_loopback
from gateway.pravega.port import SegmentPort
from gateway.pravega.segment_access import SegmentAccess, SegmentBackend, clock_ms
from gateway.server.endpoint import endpoint
from gateway.server.port import Port
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings

if TYPE_CHECKING:
    # loaded where the port is on
    from gateway.pravega.controller.service import CallerAccess, ControllerService

log = logging.getLogger(__name__)
_unreadable = RateLimitedLog(
    log, "the state of a group of readers cannot be read group=%s reason=%s"
)

PROTOCOL: Final = "controller"
_HTTP2: Final = "h2"
"""Name of HTTP/2 in the greeting of TLS, which clients of gRPC demand."""


class ControllerPort(Port[SegmentBackend]):
    """The port, beside that of the wire protocol, which it tells clients of."""

    def __init__(self, settings: Settings, port: int) -> None:
        """As of `configured`; 0 lets the system pick the port."""
        wire = settings.wire
        place = ListenPlace(wire.host, port, "wire.host", "wire.controller_port")
        self._endpoint = endpoint(place, settings.tls if wire.tls else None, speaks=_HTTP2)
        super().__init__([self._endpoint])
        self._settings = settings
        self._service: ControllerService | None = None

    @classmethod
    def configured(cls, settings: Settings) -> Self | None:
        """Return the port, if there is one. Raises ConfigError."""
        port = settings.wire.controller_port
        if port is None:
            return None
        if settings.wire.port is None:
            raise ConfigError(Problem("wire.controller_port", "needs wire.port beside it"))
        if find_spec("h2") is None or find_spec("google") is None:
            raise ConfigError.without_extra("wire.controller_port", "gRPC", "pravega")
        return cls(settings, port)

    async def prepare(self, backend: SegmentBackend) -> None:
        """Raise ConfigError where passwords in clear could be heard, unless that is allowed."""
        if backend.segments.has_users and not self._settings.wire.tls:
            _check_passwords(self._settings)

    @property
    def ready(self) -> str:
        """The address."""
        return f"controller={shown(*self._endpoint.address)}"

    async def serve(self, backend: SegmentBackend) -> None:
        """Answer calls, and show the lists to administrators. Raises ConfigError, StoreError."""
        # They take no room while the port is off.
        from gateway.grpc.front import GrpcKind  # noqa: PLC0415
        from gateway.pravega.context import limits_of  # noqa: PLC0415
        from gateway.pravega.controller.lists import ScopeLists  # noqa: PLC0415
        from gateway.pravega.controller.service import ControllerService, RoundIntervals  # noqa: PLC0415

        segments = self.context.port(SegmentPort)
        assert segments is not None
        wire, access, context = self._settings.wire, backend.segments, self.context
        self._service = ControllerService(
            access.store,
            clock_ms,
            lambda: segments.advertised,
            access=_caller_access(access, segments),
            traffic=segments.traffic,
            rounds=RoundIntervals(
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
            say=context.shared.say,
            login_timeout_ms=wire.first_frame_timeout_ms,
            list_connection=access.listing_of(PROTOCOL),
        )
        self._endpoint.listen(context, kind)
        access.show(ScopeLists(self._service.controller, _unreadable.warning))

    async def settle(self) -> None:
        """Take no more calls, and wait for those that are under way."""
        if self._service is not None:
            await self._service.stop()


def _caller_access(access: SegmentAccess, segments: SegmentPort) -> "CallerAccess":
    """Return the rules by which callers are let in."""
    from gateway.pravega.controller.rights import minting  # noqa: PLC0415  # as above
    from gateway.pravega.controller.service import CallerAccess, anyone, no_token  # noqa: PLC0415

    tokens = segments.tokens
    return CallerAccess(
        caller=access.log_in or anyone,
        token=no_token if tokens is None else minting(tokens, clock_ms),
        hides=access.ownership.hides,
    )


def _check_passwords(settings: Settings) -> None:
    if settings.wire.allow_plain_passwords:
        return
    if settings.tls.certificate is not None:
        where = "beside tls.certificate"
    elif not is_on_loopback(settings.wire.host):
        where = f"at {settings.wire.host}, which other machines reach"
    else:
        return
    reason = (
        f"takes passwords in clear {where}: tls.certificate with wire.tls = true gives it TLS, "
        "wire.allow_plain_passwords = true allows it"
    )
    raise ConfigError(Problem("wire.controller_port", reason))

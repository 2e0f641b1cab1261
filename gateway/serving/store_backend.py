"""The backend of a segment store alone: no streams, no management, and users only in a file."""

import asyncio
import time
from typing import Final

from gateway.broker.access.access_table import TABLE as ACCESS_TABLE
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.password_check import PasswordCheck
from gateway.broker.access.refusals import Refusals
from gateway.broker.access.standings import NO_USERS
from gateway.log.derived.tracking import has_table
from gateway.log.names import is_of_a_stream, is_own, is_server_scope
from gateway.pravega.access.callers import LogIn
from gateway.pravega.access.guard import Ownership
from gateway.pravega.controller_port import ControllerPort
from gateway.pravega.early.context import is_of_the_gateway, is_of_the_server
from gateway.pravega.early.port import EarlyPort
from gateway.pravega.port import SegmentPort
from gateway.pravega.segment_access import SegmentAccess
from gateway.server.connections.shared import Shared
from gateway.server.context import ServerContext
from gateway.server.loop.awaiting import awaited
from gateway.server.loop.schedule import Schedule
from gateway.server.loop.threads import Threads
from gateway.server.port import Port
from gateway.server.sockets import Sockets
from gateway.serving.controller_callers import log_in_by
from gateway.serving.process import Process
from gateway.serving.served_store import ServedStore
from gateway.serving.store_users import SETTING, StoreUsers, read_users
from gateway.serving.token_key import token_key
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings
from gateway.settings.wire import WireSettings
from store.files import descriptor_limit, store_descriptors

PORT: Final = 12345
_OTHER_DESCRIPTORS: Final = 64
_SCRATCH_BYTES: Final = 64 * 1024


def settings_of_a_store(settings: Settings) -> Settings:
    """Return the settings with which a store alone is served.

    Its port is open even if no setting names one, and has TLS where there is a certificate.
    """
    wire = settings.wire
    changes = {
        "port": PORT if wire.port is None else wire.port,
        "tls": settings.tls.certificate is not None,
    }
    return settings.model_copy(update={"wire": wire.model_copy(update=changes)})


class StoreBackend:
    """The store, and the users of a file.

    Attributes:
        served: The store.
        context: State that the ports share.
    """

    def __init__(
        self, settings: Settings, loop: asyncio.AbstractEventLoop, stop: asyncio.Event
    ) -> None:
        """Read the users; `stop` is set when the store has failed. Raises ConfigError."""
        stream = settings.stream
        schedule = Schedule(loop, busy_poll_us=stream.busy_poll_us, rest_us=stream.rest_us)
        self._settings = settings
        self._users = _users_of(settings.wire)
        self._refusals = Refusals(time.monotonic)
        self._segments: SegmentAccess | None = None
        self.served = ServedStore(settings.store, settings.cluster, loop, schedule, stop)
        shared = Shared(
            loop=loop,
            schedule=schedule,
            receive_buffer=bytearray(stream.receive_buffer_bytes),
            scratch=bytearray(_SCRATCH_BYTES),
            say=self._refusals.say,
        )
        descriptors = descriptor_limit()
        left = descriptors - store_descriptors(descriptors) - _OTHER_DESCRIPTORS
        sockets = Sockets(max(left, descriptors // 4), self._refusals.say)
        self.context = ServerContext(shared, sockets)

    @property
    def segments(self) -> SegmentAccess:
        """Access to the segments; `open` comes before."""
        assert self._segments is not None
        return self._segments

    async def open(self) -> None:
        """Find out whose the segments are. Raises ConfigError or StoreError."""
        store, users = self.served.store, self._users
        holds_streams = await awaited(has_table(store, ACCESS_TABLE))
        if holds_streams and self._settings.wire.controller_port is not None and users is None:
            raise _needs_users("the directory holds streams")
        self._segments = SegmentAccess(
            store=store,
            holds_streams=holds_streams,
            ownership=_OF_STREAMS if holds_streams else _OF_A_STORE,
            is_closed=is_of_the_gateway if holds_streams else is_of_the_server,
            standings=NO_USERS if users is None else users.standings,
            log_in=None if users is None else self._log_in(users),
        )

    async def token_key(self) -> bytes:
        """Return the key of tokens where no file is named. Raises ConfigError or StoreError."""
        return await awaited(token_key(self.served, self._settings.store.data_directory))

    def _log_in(self, users: StoreUsers) -> LogIn:
        failed_max = self._settings.users.failed_logins_a_second_max
        authentication = Authentication(
            users,
            PasswordCheck(Threads(self.context.loop).run, time.monotonic),
            AttemptLedger(time.monotonic, failed_a_second_max=failed_max),
            self._refusals,
            guest_loopback_only=False,
            users_file=SETTING,
        )
        return log_in_by(authentication, users.caller)

    def begin(self) -> None:
        """Begin nothing: the store looks after itself."""

    def end(self) -> None:
        """End nothing."""

    async def settle(self) -> None:
        """Wait for nothing: the ports have waited for the appends."""


_OF_A_STORE: Final = Ownership(
    owns=lambda scope, _stream: is_server_scope(scope), shows=lambda _scope, _stream: False
)
"""Segments that are the server's own where no streams are kept."""
_OF_STREAMS: Final = Ownership(owns=is_own, shows=is_of_a_stream)


def _needs_users(why: str) -> ConfigError:
    return ConfigError(
        Problem("wire.controller_port", f"needs wire.users_file beside it, where {why}")
    )


def _users_of(wire: WireSettings) -> StoreUsers | None:
    """Read the users, if there are any. Raises ConfigError."""
    has_controller = wire.controller_port is not None
    if wire.users_file is None:
        if has_controller and wire.token_key_file is not None:
            raise _needs_users("wire.token_key_file asks for tokens")
        return None
    if not has_controller:
        reason = "needs wire.controller_port beside it: users log in there"
        raise ConfigError(Problem(SETTING, reason))
    return read_users(wire.users_file)


STORE_PORTS: Final[tuple[type[Port[StoreBackend]], ...]] = (SegmentPort, ControllerPort, EarlyPort)


def store_server(settings: Settings, stop: asyncio.Event) -> Process[StoreBackend]:
    """Return a server of a store alone; as `Process`."""
    return Process(settings_of_a_store(settings), STORE_PORTS, StoreBackend, stop)

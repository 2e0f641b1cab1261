"""The ports at which clients reach the segment store itself, on a store that is open."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.server.awaiting import called
from gateway.broker.access.standings import NO_USERS, Standings
from gateway.controller_port import ControllerPort, clock_ms
from gateway.log.names import is_of_a_stream, is_own, is_server_scope
from gateway.network.addresses import is_loopback, shown
from gateway.network.listening import Place, Port, is_on_loopback, take_all
from gateway.pravega.entering import Entered, unnoted
from gateway.pravega.front import PravegaKind
from gateway.pravega.guard import Guard, Ownership
from gateway.pravega.host import PROTOCOL, Host, limits_of
from gateway.pravega.tokens import Tokens
from gateway.pravega.traffic import Traffic
from gateway.pravega.under_way import UnderWay
from gateway.server.certificate_user import naming_of
from gateway.server.listener import Listener, listen
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets
from gateway.server.tls_serving import TlsServing
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.fields import host_and_port
from gateway.settings.model import Settings
from gateway.pravega.token_key import made_key, read_key
from store.api import Operations, SegmentStore

if TYPE_CHECKING:
    # imported where its port is on
    from gateway.pravega.controller.lists.lists import Lists
    from gateway.pravega.controller.rights import LogIn

log = logging.getLogger(__name__)

_EVERY_ADDRESS: Final = frozenset(("0.0.0.0", "::"))  # noqa: S104  # compared with, not bound

_OF_A_STORE: Final = Ownership(
    owns=lambda scope, _stream: is_server_scope(scope), shows=lambda _scope, _stream: False
)
"""Segments that are the server's own where no streams are served."""
_OF_A_GATEWAY: Final = Ownership(owns=is_own, shows=is_of_a_stream)
"""The same where streams are kept."""


class StorePorts:
    """The port of Pravega's wire protocol.

    Attributes:
        controller: The controller's port; None if there is none.
        tls: What gives it TLS; None for a plain port.
    """

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        *,
        port: int,
        over_tls: bool,
        has_users: bool,
    ) -> None:
        """Read the files that the settings name; `prepare`, `bind` and `start` follow.

        Args:
            settings: All of them.
            loop: The event loop.
            port: The port of the wire protocol; 0 lets the system pick one.
            over_tls: Whether clients come over TLS, with the certificate of the settings.
            has_users: Whether users log in to the controller, which gives them tokens.

        Raises:
            ConfigError: A certificate or the key of tokens is wrong, or a library is missing.
        """
        if settings.wire.controller_port is not None and has_users and not over_tls:
            _check_passwords(settings)
        self._settings = settings
        controller = settings.wire.controller_port
        self.controller = (
            None
            if controller is None
            else ControllerPort(settings, loop, port=controller, over_tls=over_tls)
        )
        self._ownership = _OF_A_STORE
        self._has_users = has_users
        self._standings = NO_USERS
        self._tokens: Tokens | None = None
        file = settings.wire.token_key_file
        self._key = None if file is None else read_key(file)
        self._under_way = UnderWay()
        place = Place(settings.wire.host, port, "wire.host", "wire.port")
        self.tls = TlsServing(settings.tls, place, loop) if over_tls else None
        self._port: Port | TlsServing = Port(place) if self.tls is None else self.tls

    def prepare(self, *, holds_streams: bool, standings: Standings) -> None:
        """Find out whose the segments are, and the key of tokens, in the data directory too.

        Args:
            holds_streams: Whether streams are kept in the store, served or not. Then each
                request needs a token, and what belongs to the streams is kept from clients.
            standings: What the tokens of users rest on.

        Raises:
            ConfigError: There is no key.
        """
        self._standings = standings
        if holds_streams:
            self._ownership = _OF_A_GATEWAY
        if self._key is None and (holds_streams or self._has_users):
            self._key = made_key(self._settings.store.data_directory)

    @property
    def asks_for_tokens(self) -> bool:
        """True if each request needs a token; `prepare` comes before."""
        return self._key is not None

    def bind(self) -> None:
        """Take the addresses. Raises ConfigError."""
        controller = [] if self.controller is None else [self.controller.bind]
        take_all([self._port.bind, *controller])

    @property
    def ready(self) -> str:
        """The addresses as the ready line has them."""
        words = [f"store={shown(*self._port.address)}"]
        if self.controller is not None:
            words.append(self.controller.ready)
        return " ".join(words)

    @property
    def over_tls(self) -> list[TlsServing]:
        """The listeners of the ports that have TLS."""
        both = (self.tls, None if self.controller is None else self.controller.tls)
        return [each for each in both if each is not None]

    @property
    def advertised(self) -> tuple[str, int]:
        """Host and port at which clients reach the wire protocol."""
        host, port = self._port.address
        reached = "localhost" if host in _EVERY_ADDRESS else host
        told = self._settings.wire.advertise
        told_host, told_port = (None, None) if told is None else host_and_port(told)
        return told_host or reached, told_port or port

    def start(
        self,
        store: Operations,
        shared: Shared,
        sockets: Sockets,
        add: Callable[[Listener], object],
        entering: Callable[[str], Entered] = lambda _protocol: unnoted,
    ) -> None:
        """Accept from now on.

        Args:
            store: The open store.
            shared: Parts that all connections of the process share.
            sockets: The sockets of the process.
            add: Notes a listener, to be stopped with the others.
            entering: Gives what notes the connections of a protocol for administrators.

        Raises:
            ConfigError: Another process listens there by now.
        """
        wire = self._settings.wire
        self._tokens = self._made_tokens()
        host = Host(
            store=store,
            say=shared.say,
            clock_ms=clock_ms,
            guard=Guard(self._ownership, self._tokens),
            standings=self._standings,
            wire=wire,
            under_way=self._under_way,
            entered=entering(PROTOCOL),
            traffic=Traffic() if self.controller is None else self.controller.traffic,
        )
        host.transients.begin()
        kind = PravegaKind(host, limits_of(wire))
        if isinstance(self._port, TlsServing):
            add(self._port.start(shared, kind, sockets, naming_of(self._settings.tls)))
        else:
            listen(self._port, shared, kind, sockets, add)

    async def start_controller(
        self,
        store: SegmentStore,
        shared: Shared,
        sockets: Sockets,
        add: Callable[[Listener], object],
        entering: Callable[[str], Entered] = lambda _protocol: unnoted,
        *,
        log_in: "LogIn | None" = None,
    ) -> "Lists | None":
        """Answer the controller's calls from now on, if there is a port for them; after `start`.

        The arguments are those of `ControllerPort.start`, and so is what is returned; without
        `log_in` all callers are let in, and may do everything. Raises ConfigError, StoreError.
        """
        if self.controller is None:
            return None
        # They take no room while the port is off.
        from gateway.pravega.controller.rights import minting  # noqa: PLC0415
        from gateway.pravega.controller.service import Door, anyone, no_token  # noqa: PLC0415

        tokens = self._tokens
        door = Door(
            caller=anyone if log_in is None else log_in,
            token=no_token if tokens is None else minting(tokens, clock_ms),
            hides=self._ownership.hides,
        )
        return await self.controller.start(
            store, shared, sockets, add, entering, advertised=lambda: self.advertised, door=door
        )

    async def stop_controller(self) -> None:
        """Take no more calls of the controller, and wait for those that are under way."""
        if self.controller is not None:
            await self.controller.stop()

    def _made_tokens(self) -> Tokens | None:
        """Return what checks tokens; None if none are asked for."""
        if self._key is not None:
            return Tokens(self._key, self._standings.of)
        widest = self._port.widest_address
        if not is_loopback(widest[0]):
            log.warning(
                "every client that reaches the store's port may read and change all segments,"
                " --users or --token-key-file shuts it address=%s",
                shown(*widest),
            )
        return None

    async def settled(self) -> None:
        """Wait until every append that was taken is stored."""
        await called(self._under_way.when_none)


def _check_passwords(settings: Settings) -> None:
    """Raise ConfigError where passwords in clear could be heard, unless the settings allow it."""
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

"""Endpoints of a port: where clients connect, plain or over TLS, and the listener there."""

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import Final

from gateway.network import certificate
from gateway.network.addresses import is_loopback
from gateway.network.certificate import Naming
from gateway.network.listening import Address, ListenPlace, address_of
from gateway.server.context import ServerContext
from gateway.server.front import FrontKind
from gateway.server.listener import Listener
from gateway.server.sockets import SocketPlaces
from gateway.server.tls.tls_files import TlsContexts, TlsFiles
from gateway.server.tls.tls_listener import TlsListener
from gateway.settings.tls import LoginFrom, PortTlsSettings

log = logging.getLogger(__name__)

_MS_A_SECOND: Final = 1000


class PortEndpoint:
    """A plain endpoint: its place, its sockets once they are taken, and its listener.

    Attributes:
        place: Host and port to listen on, and the settings that they come from.
        addresses: Hosts and ports that were taken; `bind` comes before.
    """

    def __init__(self, place: ListenPlace) -> None:
        self.place = place
        self.addresses: list[Address] = []
        self._sockets: list[socket.socket] = []
        self._listener: Listener | None = None

    def bind(self) -> None:
        """Take the addresses. Raises ConfigError."""
        self._sockets = self.place.bind()
        self.addresses = [address_of(each) for each in self._sockets]

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """The sockets, one an address; `bind` comes before."""
        assert self._sockets
        return self._sockets

    @property
    def address(self) -> Address:
        """Host and port that were taken, the first of them."""
        return self.addresses[0]

    @property
    def widest_address(self) -> Address:
        """The first address that other machines reach; if there is none, the first."""
        reached = (each for each in self.addresses if not is_loopback(each[0]))
        return next(reached, self.address)

    def listen(
        self, context: ServerContext, kind: FrontKind, places: SocketPlaces | None = None
    ) -> None:
        """Let clients come in; `bind` comes before.

        Args:
            context: State that the ports of the process share.
            kind: Protocol that is spoken here.
            places: The sockets that clients may take, all of the process if left out.

        Raises:
            ConfigError: Another process listens there by now.
        """
        room = context.sockets if places is None else places
        self._listener = self._listener_of(context, kind, room)
        context.add(self._listener)
        with self.place.blamed():
            self._listener.start()

    def _listener_of(
        self, context: ServerContext, kind: FrontKind, places: SocketPlaces
    ) -> Listener:
        return Listener(self.sockets, context.shared, kind, places)

    def stop_accepting(self) -> None:
        """Refuse new connections."""
        if self._listener is not None:
            self._listener.stop_accepting()

    def close(self) -> None:
        """Release the addresses, if they were taken."""
        self.stop_accepting()
        for each in self._sockets:
            each.close()


class TlsEndpoint(PortEndpoint):
    """An endpoint over TLS, with its certificates."""

    def __init__(self, place: ListenPlace, tls: PortTlsSettings, speaks: str = "") -> None:
        """Read the files; blocks. On the event loop.

        Args:
            place: As of `PortEndpoint`.
            tls: The settings, with a certificate.
            speaks: As of `TlsFiles`.

        Raises:
            ConfigError: A file cannot be used.
        """
        super().__init__(place)
        assert tls.certificate is not None
        assert tls.key is not None
        self._tls = tls
        files = TlsFiles(tls.certificate, tls.key, tls.ca, tls.require_client_certificate, speaks)
        self._contexts = TlsContexts(files, asyncio.get_running_loop())

    def listen(
        self, context: ServerContext, kind: FrontKind, places: SocketPlaces | None = None
    ) -> None:
        """Let clients come in, and look for changed files; as of `PortEndpoint`."""
        super().listen(context, kind, places)
        if self._tls.reload_interval_s:
            self._contexts.watch(self._tls.reload_interval_s)

    def _listener_of(
        self, context: ServerContext, kind: FrontKind, places: SocketPlaces
    ) -> Listener:
        return TlsListener(
            self.sockets,
            context.shared,
            kind,
            places,
            contexts=self._contexts,
            user_of=naming_of(self._tls),
            handshakes_max=self._tls.handshakes_max,
            handshake_timeout_s=self._tls.handshake_timeout_ms / _MS_A_SECOND,
        )

    def reload(self) -> None:
        """Read the files again, for new connections."""
        log.info("reloading the tls files")
        self._contexts.reload()

    def stop_accepting(self) -> None:
        """Refuse new connections, and look for changed files no more."""
        self._contexts.stop()
        super().stop_accepting()


def endpoint(place: ListenPlace, tls: PortTlsSettings | None, speaks: str = "") -> PortEndpoint:
    """Return the endpoint of a place: over TLS if there are settings for it. As `TlsEndpoint`."""
    return PortEndpoint(place) if tls is None else TlsEndpoint(place, tls, speaks)


def naming_of(settings: PortTlsSettings) -> Naming:
    """Return the function that finds the user in a client's certificate."""
    match settings.login_from:
        case LoginFrom.DISTINGUISHED_NAME:
            return certificate.distinguished_name
        case LoginFrom.COMMON_NAME:
            return certificate.common_name
        case LoginFrom.SUBJECT_ALTERNATIVE_NAME:
            kind = certificate.AlternativeName[settings.login_san_type.name]
            return certificate.alternative_name(kind, settings.login_san_index)

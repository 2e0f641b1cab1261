"""TLS put together: settings to a listener beside the plain one."""

import asyncio
import logging
from typing import Final

from gateway.network.listening import Address, Place, Port
from gateway.server.front import Kind
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets
from gateway.server.tls_files import TlsContexts, TlsFiles
from gateway.server.tls_listener import TlsListener, UserOf
from gateway.settings.tls import TlsSettings

log = logging.getLogger(__name__)

_MS_A_SECOND: Final = 1000


class TlsServing:
    """The TLS listener of a server, with its certificates."""

    def __init__(
        self,
        tls: TlsSettings,
        place: Place,
        loop: asyncio.AbstractEventLoop,
        speaks: str = "",
    ) -> None:
        """Read the files; blocks.

        Args:
            tls: The settings, with a certificate.
            place: Address to listen on.
            loop: The event loop.
            speaks: As of `TlsFiles`.

        Raises:
            ConfigError: A file cannot be used.
        """
        assert tls.certificate is not None
        assert tls.key is not None
        self._tls = tls
        self._port = Port(place)
        files = TlsFiles(tls.certificate, tls.key, tls.ca, tls.require_client_certificate, speaks)
        self._contexts = TlsContexts(files, loop)
        self._listener: TlsListener | None = None

    @property
    def address(self) -> Address:
        """Host and port listened on, the first of them."""
        return self._port.address

    @property
    def widest_address(self) -> Address:
        """As of `Port`."""
        return self._port.widest_address

    def bind(self) -> None:
        """Take the addresses. Raises ConfigError."""
        self._port.bind()

    def start(self, shared: Shared, kind: Kind, sockets: Sockets, user_of: UserOf) -> TlsListener:
        """Accept from now on; return what does.

        Args:
            shared: What all connections have in common.
            kind: What is spoken here.
            sockets: Those of the process.
            user_of: Finds the user that a client's certificate names.

        Raises:
            ConfigError: Another process listens there by now.
        """
        tls = self._tls
        self._listener = TlsListener(
            self._port.sockets,
            shared,
            kind,
            sockets,
            contexts=self._contexts,
            user_of=user_of,
            handshakes_max=tls.handshakes_max,
            handshake_timeout_s=tls.handshake_timeout_ms / _MS_A_SECOND,
        )
        with self._port.place.blamed():
            self._listener.start()
        if tls.reload_interval_s:
            self._contexts.watch(tls.reload_interval_s)
        return self._listener

    def reload(self) -> None:
        """Read the files again, for new connections."""
        log.info("reloading the tls files")
        self._contexts.reload()

    def stop(self) -> None:
        """Take no more clients."""
        self._contexts.stop()
        if self._listener is not None:
            self._listener.stop_accepting()


def tls_of(tls: TlsSettings, place: Place, loop: asyncio.AbstractEventLoop) -> TlsServing | None:
    """Return the TLS listener if the settings ask for one. Raises ConfigError; blocks."""
    return None if tls.certificate is None else TlsServing(tls, place, loop)

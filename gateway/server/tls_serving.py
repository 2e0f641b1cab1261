"""TLS put together: settings to a listener beside the plain one."""

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gateway.network import certificate
from gateway.network.certificate import Naming
from gateway.network.listening import bind, cannot_listen
from gateway.server.connection import Connection
from gateway.server.listener import Listener
from gateway.server.shared import Shared
from gateway.server.tls_files import TlsContexts, TlsFiles
from gateway.server.tls_listener import TlsListener
from gateway.settings.errors import ConfigError
from gateway.settings.model import Settings
from gateway.settings.tls import LoginFrom, TlsSettings

log = logging.getLogger(__name__)

_MS_A_SECOND: Final = 1000


def naming_of(settings: TlsSettings) -> Naming:
    """Return what finds the user in a client's certificate."""
    match settings.login_from:
        case LoginFrom.DISTINGUISHED_NAME:
            return certificate.distinguished_name
        case LoginFrom.COMMON_NAME:
            return certificate.common_name
        case LoginFrom.SUBJECT_ALTERNATIVE_NAME:
            kind = certificate.AlternativeName[settings.login_san_type.name]
            return certificate.alternative_name(kind, settings.login_san_index)


class TlsServing:
    """The TLS listener of a server, with its certificates."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        """Read the files and take the address; blocks.

        Raises:
            ConfigError: A file cannot be used, or the address is taken.
        """
        tls = settings.tls
        assert tls.certificate is not None
        assert tls.key is not None
        self._settings = settings
        self._loop = loop
        files = TlsFiles(tls.certificate, tls.key, tls.ca, tls.require_client_certificate)
        self._contexts = TlsContexts(files, loop)
        self._socket = self._bind()
        self._address = self._socket.getsockname()[:2]
        self._listener: TlsListener | None = None

    def _bind(self) -> socket.socket:
        host, port = self._settings.stream.host, self._settings.tls.port
        try:
            return bind(host, port)
        except OSError as error:
            raise self._cannot_listen(error) from error

    def _cannot_listen(self, error: OSError) -> ConfigError:
        host, port = self._settings.stream.host, self._settings.tls.port
        return cannot_listen("stream.host", "tls.port", host, port, error)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port listened on."""
        host, port = self._address
        return host, port

    @property
    def advertised(self) -> tuple[str, int]:
        """Host and port that clients over TLS are told."""
        tls = self._settings.tls
        host = tls.advertised_host or self._settings.stream.advertised_host
        return host, tls.advertised_port or self.address[1]

    def start(self, plain: Listener, shared: Shared, sockets_max: int) -> Listener:
        """Accept from now on; return what does.

        Args:
            plain: The listener whose connections and sockets count together with these.
            shared: What the connections of that one share.
            sockets_max: How many sockets there may be.

        Raises:
            ConfigError: Somebody else listens there by now.
        """
        tls = self._settings.tls
        host, port = self.advertised
        link_settings = replace(shared.host.settings, advertised_host=host, advertised_port=port)

        def shared_of(closed: Callable[[Connection], object]) -> Shared:
            return replace(shared, host=replace(shared.host, settings=link_settings), closed=closed)

        self._listener = TlsListener(
            self._loop,
            self._socket,
            shared_of,
            sockets_max=sockets_max,
            beside=plain,
            contexts=self._contexts,
            naming=naming_of(tls),
            handshakes_max=tls.handshakes_max,
            handshake_timeout_s=tls.handshake_timeout_ms / _MS_A_SECOND,
        )
        try:
            self._listener.start()
        except OSError as error:
            raise self._cannot_listen(error) from error
        if tls.reload_interval_s:
            self._contexts.watch(tls.reload_interval_s)
        return self._listener

    def reload(self) -> None:
        """Read the files again, for new connections."""
        log.info("reading the tls files again")
        self._contexts.reload()

    def stop(self) -> None:
        """Take no more clients."""
        self._contexts.stop()
        if self._listener is not None:
            self._listener.stop_accepting()


def tls_of(settings: Settings, loop: asyncio.AbstractEventLoop) -> TlsServing | None:
    """Return the TLS listener if the settings ask for one. Raises ConfigError; blocks."""
    return None if settings.tls.certificate is None else TlsServing(settings, loop)

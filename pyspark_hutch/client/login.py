"""From an address to an open connection: socket, TLS, and the steps of the handshake."""

import platform
import socket
import ssl
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Protocol, TypeVar

from pyspark_hutch.client.errors import BadAnswer, ClientError, Refused, ServerGone, in_words
from pyspark_hutch.options.settings import (
    ConnectionSettings,
    Endpoint,
    TlsSettings,
    password_of,
)
from pyspark_hutch.shared.wire import messages as m
from pyspark_hutch.shared.wire.codes import ResponseCode

HEARTBEAT_S: Final = 60
"""A server gives up a connection after two or three of these without a byte from it."""

M = TypeVar("M", bound=m.Message)


class Asking(Protocol):
    """The part of a connection that the handshake needs."""

    def ask(self, kind: type[M], name: str, message: m.Message) -> M:
        """Send a request and return its answer, which is of this class."""

    def tune(self) -> m.Tune:
        """Return the limits that the server proposes."""

    def send(self, name: str, message: m.Message) -> None:
        """Send a command that is not answered."""


def connect(endpoint: Endpoint, settings: ConnectionSettings) -> socket.socket:
    """Make a connection, over TLS if the settings say so.

    Raises:
        ServerGone: The server is not there, or ends the connection.
        ClientError: Another try would not help: no such address, TLS that does not fit.
    """
    timeout_s = settings.connect_timeout_ms / 1000
    try:
        connected = socket.create_connection((endpoint.host, endpoint.port), timeout_s)
    except OSError as error:
        raise ServerGone(f"cannot connect to {endpoint}: {error.strerror or error}") from None
    except (OverflowError, ValueError) as error:  # a server may name any address as a leader's
        raise ClientError(f"cannot connect to {endpoint}: {error}") from None
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connected if settings.tls is None else _wrap(connected, endpoint, settings)
    except BaseException:
        connected.close()
        raise


def _wrap(
    connected: socket.socket, endpoint: Endpoint, settings: ConnectionSettings
) -> socket.socket:
    tls = settings.tls
    assert tls is not None
    context = _context(tls)
    try:
        return context.wrap_socket(connected, server_hostname=tls.server_name or endpoint.host)
    except ssl.SSLCertVerificationError as error:
        raise ClientError(f"no TLS with {endpoint}: {error.verify_message}") from None
    except OSError as error:
        raise ServerGone(f"no TLS with {endpoint}: {error}") from None
    except ValueError as error:  # a name that cannot be a server's
        raise ClientError(f"no TLS with {endpoint}: {error}") from None


def _context(tls: TlsSettings) -> ssl.SSLContext:
    named = f"option tls.ca={tls.ca}"
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        context.check_hostname = tls.verify_hostname
        if tls.cert is not None:
            named = f"option tls.cert={tls.cert}" + (f", tls.key={tls.key}" if tls.key else "")
            context.load_cert_chain(tls.cert, tls.key)
    except OSError as error:
        raise ClientError(f"{named}: cannot be used here: {error.strerror or error}") from None
    return context


def shake_hands(
    connection: Asking, endpoint: Endpoint, settings: ConnectionSettings, name: str
) -> str:
    """Go through all steps up to an open virtual host.

    Returns:
        The product that the server says it is.

    Raises:
        Refused: User, password or virtual host are wrong; the text says which.
    """
    properties = _properties(settings, name)
    hello = connection.ask(
        m.PeerPropertiesReply, "peer_properties", m.PeerProperties(properties)
    ).properties
    offer = connection.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake()).mechanisms
    _log_in(connection, endpoint, settings, offer)
    tune = connection.tune()
    connection.send("tune", m.Tune(tune.frame_bytes_max, HEARTBEAT_S))
    code = connection.ask(m.OpenReply, "open", m.Open(settings.vhost)).code
    if code != ResponseCode.OK:
        raise Refused(f"{endpoint}: virtual host {settings.vhost!r} {in_words(code)}", code)
    return hello.get("product", "")


def _log_in(
    connection: Asking, endpoint: Endpoint, settings: ConnectionSettings, offer: tuple[str, ...]
) -> None:
    secret = b"\0" + settings.username.encode() + b"\0" + password_of(settings).encode()
    request = m.SaslAuthenticate("PLAIN", secret)
    if request.mechanism not in offer:
        raise BadAnswer(f"{endpoint} offers no {request.mechanism}, only {offer!r:.200}")
    code = connection.ask(m.SaslAuthenticateReply, "sasl_authenticate", request).code
    if code != ResponseCode.OK:
        raise Refused(f"{endpoint} refused user {settings.username!r}: {in_words(code)}", code)


def _properties(settings: ConnectionSettings, name: str) -> dict[str, str]:
    try:
        ours = version("hutch-streams")
    except PackageNotFoundError:  # from an archive of sources
        ours = "unknown"
    return dict(settings.client_properties) | {
        "product": "hutch pyspark",
        "version": ours,
        "platform": f"Python {platform.python_version()}",
        "connection_name": name,
    }

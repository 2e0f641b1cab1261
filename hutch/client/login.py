"""Addresses, credentials, and the way to a connected socket."""

import platform
import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import SplitResult, unquote, urlsplit

from hutch.client.errors import ClientError, ServerGone

PORT: Final = 5552
TLS_PORT: Final = 5551
HEARTBEAT_S: Final = 60
"""A server gives up a connection after two or three of these without a byte from it."""

_SCHEMES: Final = {"rabbitmq-stream": PORT, "rabbitmq-stream+tls": TLS_PORT}


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An address of a server; an IPv6 address stands without its brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def described(product: str, connection_name: str) -> dict[str, str]:
    """Return a client's properties, which administrators see beside the connection."""
    return {
        "product": product,
        "version": _version(),
        "platform": f"Python {platform.python_version()}",
        "connection_name": connection_name,
    }


def _version() -> str:
    """Return the version of this package; `unknown` if it comes from an archive."""
    # To look into an archive takes half a second, and Spark's workers have some on their path.
    folders = [place for place in sys.path if Path(place).is_dir()]
    found = next(iter(distributions(name="hutch-streams", path=folders)), None)
    return "unknown" if found is None else found.version


@dataclass(frozen=True, slots=True)
class Login:
    """Credentials of a user, and the virtual host to enter.

    Attributes:
        user: Its name. With EXTERNAL the server takes it from the certificate of the TLS context.
        password: For PLAIN.
        virtual_host: Its name.
        mechanism: The SASL mechanism. EXTERNAL sends no password.
        heartbeat_s: The most seconds between two signs of life, unless the server wants it
            shorter; 0: none are needed.
        properties: Shown to administrators; see `described`.
        asks_for_pipeline: Whether to ask for the commands of pipelines, which Hutch alone serves;
            `Connection.has_pipeline` then tells if it does.
    """

    user: str = "guest"
    password: str = field(default="guest", repr=False)
    virtual_host: str = "/"
    mechanism: Literal["PLAIN", "EXTERNAL"] = "PLAIN"
    heartbeat_s: int = HEARTBEAT_S
    properties: Mapping[str, str] = field(
        default_factory=lambda: described("hutch client", "hutch client")
    )
    asks_for_pipeline: bool = False

    @property
    def secret(self) -> bytes:
        """Bytes that SaslAuthenticate carries."""
        if self.mechanism == "EXTERNAL":
            return b""
        return b"\0" + self.user.encode() + b"\0" + self.password.encode()


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """A URL in its parts: `rabbitmq-stream[+tls]://user:password@host:port/virtual%2fhost`."""

    endpoint: Endpoint
    login: Login
    is_tls: bool

    @classmethod
    def of(cls, url: str) -> Self:
        """Take a URL apart; a part that is missing is as in `Login`, the host is `localhost`.

        Raises:
            ValueError: It is no URL of a stream server. The text does not show it, since a
                password may be in it.
        """
        try:
            parts = urlsplit(url)
            usual_port = _SCHEMES[parts.scheme]
            port = parts.port or usual_port
        except (KeyError, ValueError):
            schemes = " or ".join(f"{scheme}://" for scheme in _SCHEMES)
            raise ValueError(f"a server's URL begins with {schemes} and has a port") from None
        endpoint = Endpoint(parts.hostname or "localhost", port)
        return cls(endpoint, _login_in(parts), parts.scheme.endswith("+tls"))


def _login_in(parts: SplitResult) -> Login:
    plain = Login()
    return Login(
        plain.user if parts.username is None else unquote(parts.username),
        plain.password if parts.password is None else unquote(parts.password),
        unquote(parts.path.removeprefix("/")) or plain.virtual_host,
    )


def connect(
    endpoint: Endpoint,
    timeout_s: float,
    *,
    tls: ssl.SSLContext | None = None,
    server_name: str | None = None,
) -> socket.socket:
    """Make a connection, over TLS if there is a context for it.

    Args:
        endpoint: Where to.
        timeout_s: The longest wait for it.
        tls: None for plain TCP.
        server_name: The name that the server's certificate is to have, if not that of the host.

    Raises:
        ServerGone: The server is not there, or ends the connection.
        ClientError: Another try would not help: no such address, TLS that does not fit.
    """
    try:
        connected = socket.create_connection((endpoint.host, endpoint.port), timeout_s)
    except OSError as error:
        raise ServerGone(f"cannot connect to {endpoint}: {error.strerror or error}") from None
    except (OverflowError, ValueError) as error:  # a server may name any address as a leader's
        raise ClientError(f"cannot connect to {endpoint}: {error}") from None
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if tls is None:
            return connected
        return _wrap(connected, endpoint, tls, server_name or endpoint.host)
    except BaseException:
        connected.close()
        raise


def _wrap(
    connected: socket.socket, endpoint: Endpoint, tls: ssl.SSLContext, server_name: str
) -> socket.socket:
    try:
        return tls.wrap_socket(connected, server_hostname=server_name)
    except ssl.SSLCertVerificationError as error:
        raise ClientError(f"no TLS with {endpoint}: {error.verify_message}") from None
    except OSError as error:
        raise ServerGone(f"no TLS with {endpoint}: {error}") from None
    except ValueError as error:  # a name that cannot be a server's
        raise ClientError(f"no TLS with {endpoint}: {error}") from None

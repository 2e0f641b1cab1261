"""Connections by the settings of a read or a write."""

import ssl

from hutch.client.connection import Connection
from hutch.client.errors import ClientError
from hutch.client.login import Endpoint, Login, described
from pyspark_hutch.options.connection_settings import ConnectionSettings, TlsSettings
from pyspark_hutch.options.passwords import password_of


def opened(endpoint: Endpoint, settings: ConnectionSettings, name: str) -> Connection:
    """Connect and log in.

    Args:
        endpoint: Where to.
        settings: User, password, virtual host, TLS, time limits.
        name: Shown to administrators of the server.

    Raises:
        ClientError: In one line, why not.
    """
    tls = settings.tls
    return Connection.to(
        endpoint,
        login_of(settings, name),
        timeout_s=settings.request_timeout_ms / 1000,
        connect_timeout_s=settings.connect_timeout_ms / 1000,
        tls=None if tls is None else _context(tls),
        server_name=None if tls is None else tls.server_name,
    )


def login_of(settings: ConnectionSettings, name: str) -> Login:
    """Return the user of the settings, with the password read here and now."""
    shown = described("hutch pyspark", name)
    return Login(
        settings.username,
        password_of(settings.password),
        settings.vhost,
        properties=dict(settings.client_properties) | shown,
        asks_for_pipeline=True,
    )


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

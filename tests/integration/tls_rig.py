"""Servers over TLS for tests, and clients that greet them."""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

from compat.certificates import CLIENT_NAME, Certificates, Pair
from hutch.stream import messages as m
from tests.client import CLIENT_PROPERTIES, Client
from tests.integration.administrator import ctl
from tests.integration.conftest import assert_no_traceback
from tests.integration.server import Endpoint, HutchServer

HOST = "localhost"


def tls_arguments(made: Certificates, *, asks_clients: bool = True) -> tuple[str, ...]:
    """The flags of a server that shows these certificates."""
    pair = made.server
    shown = ("--tls-port", "0", "--tls-cert", str(pair.certificate), "--tls-key", str(pair.key))
    return (*shown, "--tls-ca", str(made.ca)) if asks_clients else shown


@contextlib.contextmanager
def certified_server(
    data: Path, made: Certificates, environment: dict[str, str] | None = None
) -> Iterator[HutchServer]:
    """A server that asks for certificates, with the user that the client's names."""
    with HutchServer(data, *tls_arguments(made), environment=environment) as server:
        ctl(server, "add_user", CLIENT_NAME, stdin=b"secret\n")
        ctl(server, "set_permissions", CLIENT_NAME, ".*", ".*", ".*")
        yield server
        server.terminate()
        assert_no_traceback(server)


def tls_endpoint(server: HutchServer) -> Endpoint:
    """Where the server listens for TLS."""
    found = re.search(r" tls=(\S+):(\d+)", server.ready_line)
    assert found is not None, server.ready_line
    return Endpoint(found[1], int(found[2]))


def context_of(
    ca: Path, shown: Pair | None = None, version: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    """A client's side: believes the authority, shows a certificate, speaks one version only."""
    context = ssl.create_default_context(cafile=str(ca))
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    if version is not None:
        context.minimum_version = version
        context.maximum_version = version
    return context


def greeted(endpoint: Endpoint, tls: ssl.SSLContext) -> Client:
    """A client that has TLS and has been told the mechanisms."""
    client = Client(*endpoint, tls=tls)
    try:
        client.request("peer_properties", m.PeerProperties(CLIENT_PROPERTIES))
        offer = client.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake())
    except BaseException:
        client.disconnect()
        raise
    client.mechanisms = offer.mechanisms
    return client


def external_code(client: Client, data: bytes | None = None) -> int:
    """Log in by EXTERNAL; gives the code of the answer."""
    return client.code_of("sasl_authenticate", m.SaslAuthenticate("EXTERNAL", data))

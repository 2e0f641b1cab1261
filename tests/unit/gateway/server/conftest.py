"""A server without sockets, and a client of it that is open."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.property.gateway.conversations import HANDSHAKE
from tests.unit.gateway.server.connection_rig import Client, Server

MakeServer = Callable[..., Server]


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    servers: list[Server] = []

    def make(**settings: Any) -> Server:  # noqa: ANN401 - those of Server
        servers.append(Server(tmp_path, **settings))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def server(make_server: MakeServer) -> Server:
    return make_server()


def opened(server: Server) -> Client:
    """A client that has gone through the handshake (no heartbeats), with the stream `s`."""
    client = server.connect()
    client.send(HANDSHAKE)
    client.frames()
    return client


@pytest.fixture
def client(server: Server) -> Client:
    return opened(server)

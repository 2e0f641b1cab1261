"""Who owns a connection's edge, and what is told of those who are at the wrong port."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.network.first_bytes import Match, Protocol
from gateway.server.connections.edge import Owner
from gateway.server.connections.first_look import FirstLook, Look
from tests.first_bytes import SAID
from tests.unit.gateway.server.connection_rig import Client, Server, names

LINES: list[tuple[Any, ...]] = []


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path)
    client = Client(server)
    client.edge.owner = None
    yield client
    server.close()


def look() -> Look:
    LINES.clear()
    return Look("stream", {"http": ("127.0.0.1", 1)}, lambda *line: LINES.append(line[1:]))


def said(owner: Owner, data: bytes) -> None:
    """Read bytes as an edge does."""
    place = owner.place()
    place[: len(data)] = data
    owner.received(len(data))


def test_a_foreign_client_is_answered_and_sent_away(client: Client) -> None:
    said(FirstLook(client.connection, look()), SAID["HTTP"][0])

    client.loop.run_all()
    assert bytes(client.edge.sent).startswith(b"HTTP/1.1 400 ")
    assert client.edge.is_closed
    ((host, line, *arguments),) = LINES
    assert host == "127.0.0.1"
    assert line % tuple(arguments) == (
        "client speaks another protocol peer=127.0.0.1:50000 speaks=HTTP port=stream"
        " wanted=127.0.0.1:1"
    )


@pytest.mark.parametrize("size", [1, 3, 5, 200])
def test_the_ports_own_client_gets_through_whatever_the_pieces(client: Client, size: int) -> None:
    first, data = FirstLook(client.connection, look()), SAID["stream"][0]
    owner: Owner = first
    for place in range(0, len(data), size):
        said(owner, data[place : place + size])
        owner = client.edge.owner or first

    assert owner is client.connection
    client.loop.run_all()
    assert names(client) == ["peer_properties"]
    assert LINES == []


def test_the_look_before_a_handshake_wants_tls() -> None:
    before = Look("stream/ssl", {}, lambda *_: None)

    assert before.foreign(SAID["TLS"][0]) is Match.NO
    assert isinstance(before.foreign(SAID["stream"][0]), Protocol)

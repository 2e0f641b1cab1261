"""A client at a port that is not its own is named, with the port that it wants, and told."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from compat.certificates import Certificates
from gateway.network.first_bytes import ALLOWED, PORT_OF_TLS
from tests.first_bytes import SAID
from tests.integration.server import Endpoint, HutchServer
from tests.integration.tls_rig import HOST, context_of, tls_arguments
from tests.waiting import HANG_S

_ADDRESS = re.compile(r"\b(\w+)=(127\.0\.0\.1:(\d+))")
WORDS = {"stream": "stream", "management": "http", "mewbase": "mewbase", "early": "pravega-early"}
WORDS |= {"store": "pravega", "controller": "controller"}
OVER_TLS = {"tls": "stream/ssl", "mewbase_tls": "mewbase/ssl"}
"""Words of the ready line, and of the ports in log lines."""
ALL_ON = (
    *("--mewbase-port", "0", "--mewbase-tls-port", "0", "--store-port", "0"),
    *("--store-controller-port", "0", "--store-early-port", "0"),
)
TRUSTING = {"HUTCH_EARLY__TRUSTS_EVERYONE": "true", "HUTCH_WIRE__ALLOW_PLAIN_PASSWORDS": "true"}
OWN = {"http": {"HTTP", "text"}, "controller": {"HTTP/2"}, "pravega": {"pravega", "pravega-early"}}
WANTED = {"HTTP": "management", "HTTP/2": "controller", "stream": "stream", "mewbase": "mewbase"}
WANTED |= {"pravega": "store", "pravega-early": "early"}


def server_of(data: Path, made: Certificates) -> Iterator[HutchServer]:
    """A server with all its ports."""
    arguments = (*ALL_ON, *tls_arguments(made, asks_clients=False), "--durability", "os")
    with HutchServer(data, *arguments, environment=TRUSTING) as server:
        yield server
        assert "Traceback" not in server.logs


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, made: Certificates) -> Iterator[HutchServer]:
    """The server at which every pair is tried: nearly as many lines as it writes in a period."""
    yield from server_of(tmp_path_factory.mktemp("first") / "data", made)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, made: Certificates) -> Iterator[HutchServer]:
    yield from server_of(tmp_path_factory.mktemp("other") / "data", made)


def ports_of(server: HutchServer) -> Mapping[str, Endpoint]:
    return {
        word: Endpoint("127.0.0.1", int(p)) for word, _, p in _ADDRESS.findall(server.ready_line)
    }


class Stranger:
    """A client from an address of its own, so that no limit of log lines holds for it."""

    _count = 0

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None = None) -> None:
        Stranger._count += 1
        address = f"127.0.{1 + Stranger._count // 250}.{1 + Stranger._count % 250}"
        self.socket = socket.create_connection(endpoint, HANG_S, source_address=(address, 0))
        self.peer = f"{address}:{self.socket.getsockname()[1]}"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=HOST)

    def told(self, said: bytes) -> bytes:
        """Say something; return the answer, which ends the connection."""
        answer = b""
        with self.socket, suppress(ConnectionError):
            self.socket.sendall(said)
            while data := self.socket.recv(4_096):
                answer += data
        return answer


def line_about(server: HutchServer, peer: str) -> str:
    server.wait_for_log(f"peer={peer} speaks=")
    (line,) = [each for each in server.logs.splitlines() if f"peer={peer} " in each]
    return line.partition("client speaks another protocol ")[2]


def test_the_table_has_every_port() -> None:
    assert ALLOWED.keys() == {*WORDS.values(), PORT_OF_TLS}


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("word", [*WORDS, *OVER_TLS])
def test_a_client_at_another_port_is_named_with_the_port_that_it_wants(
    server: HutchServer, word: str, name: str
) -> None:
    ports = ports_of(server)
    here = (WORDS | OVER_TLS)[word]
    if name in OWN.get(here, {here}) or (name == "TLS" and word in OVER_TLS):
        return
    stranger = Stranger(ports[word])

    answer = stranger.told(SAID[name][0])

    wanted = wanted_by(name, word, ports)
    assert line_about(server, stranger.peer) == (
        f"peer={stranger.peer} speaks={name} port={here} wanted={wanted}"
    )
    if name == "HTTP":
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert wanted.encode() in answer


def wanted_by(name: str, word: str, ports: Mapping[str, Endpoint]) -> str:
    """Return the address that a client of a protocol wants, or why there is none."""
    over_tls = {"stream": "tls", "mewbase": "mewbase_tls"}
    found = over_tls.get(word) if name == "TLS" else WANTED.get(name)
    if found is not None:
        host, port = ports[found]
        return f"{host}:{port}"
    if name == "TLS" and word in {"store", "controller"}:
        return "none is open, see wire.tls"
    return "none, it is not spoken here"


@pytest.mark.parametrize("name", ["HTTP", "AMQP-0-9-1", "text", "HTTP/2", "mewbase"])
def test_another_protocol_inside_tls_is_named_too(
    other: HutchServer, made: Certificates, name: str
) -> None:
    stranger = Stranger(ports_of(other)["tls"], context_of(made.ca))
    stranger.told(SAID[name][0])
    assert f" speaks={name} port=stream " in line_about(other, stranger.peer)


@pytest.mark.parametrize("word", [*WORDS, *OVER_TLS])
def test_first_bytes_that_come_one_by_one_are_named_too(other: HutchServer, word: str) -> None:
    stranger = Stranger(ports_of(other)[word])
    stranger.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    said = SAID["AMQP-0-9-1"][0]
    for place in range(5):
        stranger.socket.sendall(said[place : place + 1])

    assert stranger.told(said[5:]) == b"AMQP\0\0\0\0"
    assert " speaks=AMQP-0-9-1 " in line_about(other, stranger.peer)


@pytest.mark.parametrize("word", WORDS)
def test_a_client_of_tls_gets_an_alert(other: HutchServer, made: Certificates, word: str) -> None:
    with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"):
        Stranger(ports_of(other)[word], context_of(made.ca))

"""Guest comes from the server's own machine, however that is written, and from nowhere else."""

import socket
from pathlib import Path

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import Client, plain
from tests.integration.server import HutchServer, run_serve
from tests.loopbacks import needs_ipv6, taken_at_ipv6
from tests.waiting import HANG_S

OK, LOOPBACK_ONLY = ResponseCode.OK, ResponseCode.AUTHENTICATION_FAILURE_LOOPBACK


def own_address(family: socket.AddressFamily, somewhere: str) -> str:
    """This machine's address towards another one; nothing is sent."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((somewhere, 9))
        except OSError:
            pytest.skip("this machine has no address but its own")
        address: str = probe.getsockname()[0]
        return address


def log_in(host: str, port: int, user: str = "guest") -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with Client(host, port, family=family) as client:
        client.must("peer_properties", m.PeerProperties({}))
        client.must("sasl_handshake", m.SaslHandshake())
        answer = client.request("sasl_authenticate", plain(user, "guest"))
        assert isinstance(answer, m.SaslAuthenticateReply)
        return answer.code


@pytest.fixture
def everywhere(tmp_path: Path) -> HutchServer:
    """A server that listens on every address there is, of IPv6 and of IPv4 by way of it."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    return HutchServer(tmp_path / "data", "--host", "::")


def test_guest_comes_from_this_machine_in_every_spelling(everywhere: HutchServer) -> None:
    with everywhere:
        # 127.0.0.1 arrives as ::ffff:127.0.0.1, since the socket is one of IPv6.
        for host in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "127.0.0.2"):
            assert log_in(host, everywhere.port) == OK, host


@pytest.mark.parametrize(
    ("family", "somewhere"),
    [(socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8::1")],
    ids=["IPv4", "IPv6"],
)
def test_guest_does_not_come_from_the_network(
    everywhere: HutchServer, family: socket.AddressFamily, somewhere: str
) -> None:
    with everywhere:
        assert log_in(own_address(family, somewhere), everywhere.port) == LOOPBACK_ONLY


def test_a_listener_of_ipv4_tells_them_apart_too(tmp_path: Path) -> None:
    address = own_address(socket.AF_INET, "198.51.100.1")
    with HutchServer(tmp_path / "data", "--host", "0.0.0.0") as server:
        assert log_in("127.0.0.1", server.port) == OK
        assert log_in(address, server.port) == LOOPBACK_ONLY


def test_what_a_proxy_would_say_of_the_peer_is_not_believed(tmp_path: Path) -> None:
    """A header of the PROXY protocol is no frame: the connection ends, and nobody is logged in."""
    address = own_address(socket.AF_INET, "198.51.100.1")
    with (
        HutchServer(tmp_path / "data", "--host", "0.0.0.0") as server,
        socket.create_connection((address, server.port), timeout=HANG_S) as connection,
    ):
        connection.sendall(b"PROXY TCP4 127.0.0.1 127.0.0.1 5 5552\r\n")
        assert connection.recv(100) == b""


@needs_ipv6
def test_brackets_may_stand_around_the_host(tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data", "--host", "[::1]") as server:
        assert f" stream=[::1]:{server.port} " in server.ready_line
        assert log_in("::1", server.port) == OK
        with pytest.raises(OSError, match="refused"):
            log_in("127.0.0.1", server.port)


@needs_ipv6
def test_a_port_taken_at_one_loopback_stops_the_start_with_its_address(tmp_path: Path) -> None:
    with taken_at_ipv6() as port:
        done = run_serve(tmp_path / "data", "--port", str(port))
    assert done.returncode == 2
    assert f"hutch: --port: cannot listen on [::1]:{port}: " in done.stderr

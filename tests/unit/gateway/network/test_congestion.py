"""Within one machine nothing is paced; between machines the system's choice stands."""

import socket

import pytest

from gateway.network import congestion

TCP_CONGESTION = getattr(socket, "TCP_CONGESTION", None)
pytestmark = pytest.mark.skipif(TCP_CONGESTION is None, reason="the system has one algorithm only")


def algorithm_of(connected: socket.socket) -> bytes:
    assert TCP_CONGESTION is not None
    return connected.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0")


def test_an_accepted_connection_has_what_its_listener_has_until_it_is_restored() -> None:
    with socket.socket() as listening, socket.socket() as client:
        systems = algorithm_of(client)
        congestion.begin(listening)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        client.connect(listening.getsockname())
        accepted, _ = listening.accept()
        with accepted:
            assert algorithm_of(accepted) == b"reno"
            congestion.restore(accepted)
            assert algorithm_of(accepted) == systems


def test_a_socket_without_congestion_control_is_left_alone() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        congestion.begin(ours)
        congestion.restore(ours)

"""Sends on a socket, compiled and interpreted."""

import socket
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.property.gateway.kernel_builds import BUILDS, load


@pytest.fixture(params=BUILDS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load("gateway.server.kernel.sending", request.param)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0)
        yield ours, theirs


def test_bytes_arrive(kernel: ModuleType, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair

    assert kernel.send_bytes(ours.fileno(), b"hello") == 5

    assert theirs.recv(10) == b"hello"


def test_a_full_socket_takes_a_part_and_then_nothing(
    kernel: ModuleType, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, _ = pair
    data = bytes(1 << 24)

    assert 0 < kernel.send_bytes(ours.fileno(), data) < len(data)
    while (sent := kernel.send_bytes(ours.fileno(), b"x" * 1_000)) > 0:
        pass

    assert sent == -1


def test_a_peer_that_is_gone_is_an_error(
    kernel: ModuleType, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    theirs.close()

    with pytest.raises(BrokenPipeError):
        kernel.send_bytes(ours.fileno(), b"x")

"""Sends and receives on a socket, compiled and interpreted."""

import socket
import struct
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.property.gateway.kernel_builds import BUILDS, load
from tests.waiting import HANG_S


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


def test_bytes_are_received_as_far_as_there_is_room(
    kernel: ModuleType, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    room = bytearray(8)
    theirs.sendall(b"hello")

    assert kernel.receive_into(ours.fileno(), memoryview(room)[1:4]) == 3
    assert kernel.receive_into(ours.fileno(), memoryview(room)[4:]) == 2

    assert room == b"\0hello\0\0"


def test_an_empty_socket_gives_nothing_and_a_closed_one_its_end(
    kernel: ModuleType, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    room = memoryview(bytearray(8))

    assert kernel.receive_into(ours.fileno(), room) == -1
    theirs.close()
    assert kernel.receive_into(ours.fileno(), room) == 0


def test_a_connection_that_was_reset_is_an_error(kernel: ModuleType) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        with ours:
            ours.settimeout(HANG_S)
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            theirs.close()
            with pytest.raises(ConnectionResetError):
                kernel.receive_into(ours.fileno(), memoryview(bytearray(8)))

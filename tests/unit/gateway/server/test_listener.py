"""Accepting connections, and what stands against it."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gateway.broker.access.refusals import LINES_OF_ONE
from gateway.network.listening import bind, bind_all
from gateway.server import listener as listener_module
from gateway.server.listener import Listener
from gateway.server.sockets import Sockets
from hutch.stream import messages as m
from hutch.stream.codec import encode_request
from tests.client import plain
from tests.loopbacks import needs_ipv6
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.server.connection_rig import Server
from tests.waiting import HANG_S

SOCKETS_MAX = 24
HERE, THERE, ELSEWHERE = "127.0.0.1", "127.0.0.2", "127.0.0.3"
LOGIN = (
    frame_of("peer_properties", m.PeerProperties({}))
    + frame_of("sasl_handshake", m.SaslHandshake())
    + frame_of("sasl_authenticate", plain("guest", "guest"))
)
TUNE = encode_request("tune", m.Tune(1 << 20, 60), correlation_id=None)


@pytest_asyncio.fixture
async def listener(tmp_path: Path) -> AsyncIterator[Listener]:
    """A listener on a port of the system's choice; its connections are real."""
    server = Server(tmp_path)
    shared = replace(server.shared, loop=asyncio.get_running_loop())
    sockets = Sockets(SOCKETS_MAX, shared.say)
    made = Listener([bind("127.0.0.1", 0)], shared, server.kind, sockets)
    made.start()
    yield made
    made.stop_accepting()
    for connection in list(made.connections):
        connection.abort()
    server.close()


async def connect(listener: Listener, address: str = "127.0.0.1") -> socket.socket:
    client = socket.socket()
    client.setblocking(False)  # noqa: FBT003 - the standard library's signature
    client.bind((address, 0))
    loop = asyncio.get_running_loop()
    await asyncio.wait_for(loop.sock_connect(client, listener.address), HANG_S)
    return client


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not is_so():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)


async def test_a_listener_knows_the_connections_that_are_alive(listener: Listener) -> None:
    clients = [await connect(listener) for _ in range(3)]
    await until(lambda: len(listener.connections) == 3)

    clients[0].close()
    await until(lambda: len(listener.connections) == 2)

    addresses = {connection.peer for connection in listener.connections}
    assert addresses == {f"127.0.0.1:{client.getsockname()[1]}" for client in clients[1:]}
    assert all(connection.peer_is_loopback for connection in listener.connections)
    for client in clients:
        client.close()


async def test_who_comes_after_the_end_is_refused(listener: Listener) -> None:
    listener_address = listener.address
    listener.stop_accepting()
    listener.stop_accepting()

    with pytest.raises(OSError, match="refused"):
        socket.create_connection(listener_address, HANG_S)


async def answer_of(client: socket.socket) -> bytes:
    """What comes next; nothing if the connection was ended."""
    try:
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 4096), HANG_S)
    except ConnectionResetError:
        return b""


async def log_in(client: socket.socket) -> None:
    await asyncio.get_running_loop().sock_sendall(client, LOGIN)
    received = b""
    while not received.endswith(TUNE):
        received += (piece := await answer_of(client))
        assert piece


async def until_there_are(count: int, listener: Listener) -> None:
    await until(lambda: len(listener.connections) == count)


async def filled(listener: Listener) -> list[socket.socket]:
    """Strangers of two addresses that have every socket, the older half first."""
    clients = []
    for address in (HERE, THERE):
        clients += [await connect(listener, address) for _ in range(SOCKETS_MAX // 2)]
        await until_there_are(len(clients), listener)
    return clients


def closed(clients: list[socket.socket]) -> None:
    for client in clients:
        client.close()


async def test_sockets_that_are_saying_farewell_count_and_give_way(listener: Listener) -> None:
    loop = asyncio.get_running_loop()
    clients = await filled(listener)
    for client in clients:
        await loop.sock_sendall(client, b"\xff\xff\xff\xff")  # too large: ends the connection
        assert await answer_of(client) == b""
    assert not listener.connections
    assert len(listener.sockets) == SOCKETS_MAX

    with await connect(listener, ELSEWHERE):
        await until(lambda: len(listener.connections) == 1)
        assert len(listener.sockets) == SOCKETS_MAX
        closed(clients)
        await until(lambda: len(listener.sockets) == 1)
    await until(lambda: not len(listener.sockets))


def test_who_comes_before_the_start_is_refused() -> None:
    with bind("127.0.0.1", 0) as bound, pytest.raises(OSError, match="refused"):
        socket.create_connection(bound.getsockname(), HANG_S)


async def test_without_descriptors_it_rests_for_a_moment_and_then_goes_on(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (real,) = listener._listening
    failures = [errno.EMFILE, errno.ENOBUFS] * 20
    monkeypatch.setattr(listener_module, "_PAUSE_S", 0.001)

    class Poor:
        """A listening socket for which the system has no room at first."""

        def accept(self) -> Any:  # noqa: ANN401 - what a socket gives
            if failures:
                raise OSError(failures.pop(), "no room")
            return real.accept()

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what a socket has
            return getattr(real, name)

    monkeypatch.setattr(listener, "_listening", [Poor()])
    listener._watch()
    client = await connect(listener)

    await until(lambda: len(listener.connections) == 1)

    assert failures == []
    assert caplog.text.count("cannot accept") == LINES_OF_ONE, "not a line each time"
    client.close()


async def test_strangers_that_have_every_socket_keep_no_client_out(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    clients = await filled(listener)

    for address in (ELSEWHERE, HERE, THERE):
        with await connect(listener, address) as client:
            await log_in(client)

    assert await answer_of(clients[0]) == b"", "the oldest goes first"
    assert "gives way to another address=127.0.0." in caplog.text
    closed(clients)


async def test_who_has_logged_in_gives_way_to_no_stranger(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    clients = await filled(listener)
    for client in clients:
        await log_in(client)

    for _ in range(3):
        with await connect(listener) as late:
            assert await answer_of(late) == b""
    assert caplog.text.count("every socket there may be is taken") == 3
    assert len(listener.connections) == SOCKETS_MAX

    clients.pop().close()
    await until(lambda: len(listener.connections) == SOCKETS_MAX - 1)
    with await connect(listener) as last:
        await log_in(last)
    closed(clients)


async def test_one_address_has_half_of_the_sockets_at_most_for_strangers(
    listener: Listener,
) -> None:
    flood = [await connect(listener, HERE) for _ in range(3 * SOCKETS_MAX)]
    for client in flood[: -SOCKETS_MAX // 2]:
        assert await answer_of(client) == b""

    assert len(listener.sockets) == SOCKETS_MAX // 2
    others = [await connect(listener, THERE) for _ in range(SOCKETS_MAX // 2)]
    await until(lambda: len(listener.connections) == SOCKETS_MAX)
    closed(flood + others)


async def test_a_client_that_gives_up_at_once_does_no_harm(listener: Listener) -> None:
    for _ in range(20):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes.fromhex("01000000 00000000"))
        with contextlib.suppress(BlockingIOError):
            client.connect(listener.address)
        client.close()

    last = await connect(listener)
    await until(lambda: len(listener.connections) == 1)
    last.close()


async def test_a_door_is_shut_and_opened_at_the_same_address(listener: Listener) -> None:
    loop = asyncio.get_running_loop()
    host, port = listener.address
    with await connect(listener) as inside:
        await until(lambda: len(listener.connections) == 1)
        assert {each.local for each in listener.connections} == {f"{host}:{port}"}

        listener.shut()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((host, port), HANG_S)
        assert len(listener.connections) == 1

        listener.reopen()
        with await connect(listener) as late:
            await until(lambda: len(listener.connections) == 2)
            assert late.getpeername() == (host, port)
            assert listener.cut() == 2
            for client in (inside, late):
                assert await asyncio.wait_for(loop.sock_recv(client, 1), HANG_S) == b""


async def test_a_door_whose_address_was_taken_meanwhile_stays_shut(listener: Listener) -> None:
    listener.shut()
    with socket.socket() as other:
        other.bind(listener.address)
        other.listen()

        with pytest.raises(OSError, match="in use"):
            listener.reopen()

        was_shut = listener.is_shut
    listener.reopen()
    assert (was_shut, listener.is_shut) == (True, False)


@needs_ipv6
async def test_a_door_of_two_addresses_is_shut_and_opened_at_both(tmp_path: Path) -> None:
    server = Server(tmp_path)
    shared = replace(server.shared, loop=asyncio.get_running_loop())
    listener = Listener(
        bind_all("localhost", 0), shared, server.kind, Sockets(SOCKETS_MAX, shared.say)
    )
    listener.start()
    assert [host for host, _ in listener.addresses] == ["127.0.0.1", "::1"]
    for _ in range(2):
        for address in listener.addresses:
            reader, writer = await asyncio.open_connection(*address)
            await until(lambda: len(listener.connections) == 1)
            listener.cut()
            assert await asyncio.wait_for(reader.read(), HANG_S) == b""
            writer.close()
        listener.shut()
        for address in listener.addresses:
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(address, HANG_S)
        with bind("::1", listener.addresses[1][1]) as other:
            other.listen()
            with pytest.raises(OSError, match="in use"):
                listener.reopen()
            assert listener.is_shut
        listener.reopen()
    listener.stop_accepting()
    server.close()

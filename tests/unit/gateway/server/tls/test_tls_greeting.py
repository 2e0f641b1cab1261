"""Handshakes: done, refused, given up, and never on the event loop."""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from gateway.server.loop.threads import Threads
from tests.unit.gateway.server.tls_rig import (
    Owner,
    Peer,
    begun,
    connected_pair,
    server_context,
)
from tests.waiting import HANG_S

HELLO = bytes.fromhex("16030100c8010000c40303")


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    connected, client = connected_pair()
    yield connected, client
    client.close()
    connected.close()


def threads() -> Threads:
    return Threads(asyncio.get_running_loop(), 1, name="tls-test")


async def test_the_arithmetic_is_not_done_on_the_event_loop(
    sockets: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    shake = ssl.SSLObject.do_handshake

    def watched(tls: ssl.SSLObject) -> None:
        if tls.server_side:
            names.append(threading.current_thread().name)
        shake(tls)

    monkeypatch.setattr(ssl.SSLObject, "do_handshake", watched)
    _, outcome = begun(sockets[0], server_context(), threads())
    await Peer(sockets[1]).greet()
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.edge is not None
    assert set(names) == {"tls-test-0"}
    outcome.edge.abort()
    assert outcome.free_count == 1


async def test_what_comes_with_the_last_of_the_handshake_is_counted_and_not_lost(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    _, outcome = begun(sockets[0], server_context(), threads())
    await Peer(sockets[1]).greet(b"at once")
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.edge is not None
    assert outcome.edge.received_bytes >= len(b"at once")
    owner = Owner(edge=outcome.edge)
    outcome.edge.start(owner)
    assert await owner.until(7) == b"at once"
    outcome.edge.abort()


async def test_the_handshake_itself_is_not_counted(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    _, outcome = begun(sockets[0], server_context(), threads())
    await Peer(sockets[1]).greet()
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.edge is not None
    assert outcome.edge.received_bytes == 0
    outcome.edge.abort()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x09\0\x11\0\x01", HELLO * 40])
async def test_what_is_no_handshake_is_refused(
    sockets: tuple[socket.socket, socket.socket], data: bytes
) -> None:
    _, outcome = begun(sockets[0], server_context(), threads())
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sockets[1], data)
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.edge is None
    assert bool(outcome.reason) is (data[0] == 0x16), "what else they speak is told by the look"
    assert outcome.farewell is not None, "it holds the descriptor for a while"
    while await asyncio.wait_for(loop.sock_recv(sockets[1], 1_000), HANG_S):
        pass  # an alert may come first
    sockets[1].close()
    async with asyncio.timeout(HANG_S):
        while not outcome.free_count:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("data", [b"", HELLO])
async def test_a_handshake_has_its_time(
    sockets: tuple[socket.socket, socket.socket], data: bytes
) -> None:
    _, outcome = begun(sockets[0], server_context(), threads(), within_s=0.1)
    await asyncio.get_running_loop().sock_sendall(sockets[1], data)
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.reason == "it took too long"
    assert outcome.free_count == 1


async def test_a_client_may_go_in_the_middle_of_it(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    _, outcome = begun(sockets[0], server_context(), threads())
    sockets[1].close()
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.reason == "the client went away"


def reset(client: socket.socket) -> None:
    """Close a connection so that the other side gets an error."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


async def test_a_client_may_break_the_connection_in_the_middle_of_it(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    _, outcome = begun(sockets[0], server_context(), threads())
    reset(sockets[1])
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert "Connection reset by peer" in outcome.reason
    assert (outcome.edge, outcome.farewell, outcome.free_count) == (None, None, 1)


async def test_a_client_may_be_gone_when_it_is_answered(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    busy = threads()
    release = threading.Event()
    busy.run(lambda: release.wait(HANG_S))
    greeting, outcome = begun(sockets[0], server_context(), busy)
    greeted = asyncio.create_task(Peer(sockets[1]).greet())
    async with asyncio.timeout(HANG_S):
        while greeting._reader:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)
    greeted.cancel()
    with suppress(asyncio.CancelledError):
        await greeted
    reset(sockets[1])
    release.set()
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.reason.startswith("[Errno ")
    assert (outcome.edge, outcome.farewell, outcome.free_count) == (None, None, 1)


async def test_a_client_that_takes_no_answer_has_its_time_too(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    connected = sockets[0]
    connected.setblocking(False)  # noqa: FBT003 - the standard library's signature
    for _ in range(20):  # until the system takes no more, also after a while
        with suppress(BlockingIOError):
            while connected.send(bytes(65_536)):
                pass
        await asyncio.sleep(0.01)
    hello = Peer(sockets[1])
    with pytest.raises(ssl.SSLWantReadError):
        hello.tls.do_handshake()
    greeting, outcome = begun(connected, server_context(), threads(), within_s=0.5)
    await hello.send_sealed(hello.outgoing.read())
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.reason == "it took too long"
    assert len(greeting._sealed) > 0, "the answer waits"
    assert outcome.free_count == 1


async def test_a_wake_up_for_nothing_changes_nothing(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    greeting, outcome = begun(sockets[0], server_context(), threads())
    greeting._readable()
    assert not outcome.over.is_set()
    await Peer(sockets[1]).greet()
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.edge is not None
    outcome.edge.abort()


async def test_one_that_gives_way_to_another_client_is_ended_once(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    greeting, outcome = begun(sockets[0], server_context(), threads())
    greeting.abort()
    greeting.end("again")
    assert outcome.reason == "it gave way to another client"
    assert (outcome.farewell, outcome.free_count) == (None, 1)


async def test_one_that_is_ended_while_a_thread_works_on_it_stays_ended(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    busy = threads()
    release = threading.Event()
    busy.run(lambda: release.wait(HANG_S))
    greeting, outcome = begun(sockets[0], server_context(), busy)
    greeted = asyncio.create_task(Peer(sockets[1]).greet())
    async with asyncio.timeout(HANG_S):
        while greeting._reader:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)
    greeting.end("enough")
    release.set()
    with pytest.raises((ConnectionError, AssertionError, ssl.SSLError)):
        await greeted
    greeting.end("again")
    assert (outcome.reason, outcome.edge, outcome.free_count) == ("enough", None, 1)

"""The end of all connections together, on real sockets."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.network.listening import bind
from gateway.server.context import Listeners
from gateway.server.listener import Listener
from gateway.server.sockets import Sockets
from tests.unit.gateway.server.connection_rig import Server
from tests.waiting import HANG_S

QUEUED_BYTES = 8 * 1024 * 1024
"""More than the buffers of both systems take."""
CUT_OFF = "client does not read, cut off"
TAKEN_BYTES_MAX = 64 * 1024
"""More than the buffer of a client that does not read."""
TIMEOUT_MS = 1_500
Address = tuple[str, int]


@pytest_asyncio.fixture
async def listening(tmp_path: Path) -> AsyncIterator[tuple[Listeners, Address]]:
    server = Server(tmp_path, backlog_bytes_max=2 * QUEUED_BYTES, end_timeout_ms=TIMEOUT_MS)
    shared = replace(server.shared, loop=asyncio.get_running_loop())
    listener = Listener([bind("127.0.0.1", 0)], shared, server.kind, Sockets(24, shared.say))
    made = Listeners()
    made.add(listener)
    listener.start()
    yield made, listener.address
    listener.stop_accepting()
    server.close()


@contextlib.contextmanager
def came(address: Address) -> Iterator[socket.socket]:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(address)
        client.setblocking(False)  # noqa: FBT003 - the standard library's signature
        yield client


async def queue(listeners: Listeners, count: int) -> None:
    async with asyncio.timeout(HANG_S):
        while len(listeners.connections()) < count:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.001)
    for connection in listeners.connections():
        connection.send(bytes(QUEUED_BYTES))


async def read_to_the_end(client: socket.socket, pause_s: float = 0.0) -> int:
    """Return how many bytes come until the server ends the connection."""
    count, loop = 0, asyncio.get_running_loop()
    while piece := await loop.sock_recv(client, 1024 * 1024):
        count += len(piece)
        await asyncio.sleep(pause_s)
    return count


async def test_one_that_does_not_read_is_cut_off_and_one_that_does_gets_all(
    listening: tuple[Listeners, Address], caplog: pytest.LogCaptureFixture
) -> None:
    listeners, address = listening
    with came(address) as silent, came(address) as reading:
        peer = "{}:{}".format(*silent.getsockname())
        await queue(listeners, 2)
        read = asyncio.create_task(read_to_the_end(reading))
        async with asyncio.timeout(HANG_S):
            await listeners.end()
            assert await read == QUEUED_BYTES
        [line] = [each.message for each in caplog.records if CUT_OFF in each.message]
        named, _, left_bytes = line.rpartition(" left_bytes=")
        assert named == f"{CUT_OFF} peer={peer}"
        assert QUEUED_BYTES - TAKEN_BYTES_MAX <= int(left_bytes) <= QUEUED_BYTES


async def test_one_that_reads_for_ever_is_cut_off_in_time(
    listening: tuple[Listeners, Address], caplog: pytest.LogCaptureFixture
) -> None:
    listeners, address = listening
    with caplog.at_level(logging.WARNING), came(address) as client:
        await queue(listeners, 1)
        read = asyncio.create_task(read_to_the_end(client, pause_s=TIMEOUT_MS / 4_000))
        async with asyncio.timeout(HANG_S):
            await listeners.end()
        assert not listeners.connections()
        read.cancel()
    assert CUT_OFF in caplog.text


async def test_without_clients_there_is_nothing_to_wait_for(
    listening: tuple[Listeners, Address],
) -> None:
    listeners, _ = listening
    async with asyncio.timeout(HANG_S):
        await listeners.end()

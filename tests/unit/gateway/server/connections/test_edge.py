"""A socket at the edge of a connection: what goes in and out, and how it ends."""

import asyncio
import os
import select
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.server.connections import edge as edge_module
from gateway.server.connections.edge import PlainEdge
from store.api import FileRegion
from tests.waiting import HANG_S


@dataclass(eq=False)
class Owner(edge_module.Owner):
    """What an edge reports to; has a buffer as the connection has."""

    buffer: bytearray = field(default_factory=lambda: bytearray(100_000))
    data: bytearray = field(default_factory=bytearray)
    writable_count: int = 0
    lost_count: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def place(self) -> memoryview:
        return memoryview(self.buffer)

    def received(self, size: int) -> None:
        self.data += self.buffer[:size]
        self.changed.set()

    def writable(self) -> None:
        self.writable_count += 1
        self.changed.set()

    def lost(self) -> None:
        self.lost_count += 1
        self.changed.set()

    async def wait(self) -> None:
        await asyncio.wait_for(self.changed.wait(), HANG_S)
        self.changed.clear()


@dataclass
class Line:
    """An edge, who it reports to, and the peer's socket."""

    edge: PlainEdge
    owner: Owner
    peer: socket.socket

    async def peer_reads(self, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        data = b""
        while len(data) < size:
            piece = await asyncio.wait_for(loop.sock_recv(self.peer, 1 << 20), HANG_S)
            if not piece:
                break
            data += piece
        return data

    async def until_readable(self) -> None:
        """Wait until something can be read, and for the turns in which it would be."""
        async with asyncio.timeout(HANG_S):
            while not select.select([self.edge.connected], [], [], 0)[0]:  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)

    async def peer_sees_the_end(self) -> bool:
        """Whether a FIN comes; False for a reset."""
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.wait_for(loop.sock_recv(self.peer, 1), HANG_S) == b""
        except ConnectionError:
            return False


@pytest_asyncio.fixture
async def line() -> AsyncIterator[Line]:
    """A TCP connection on this machine with small buffers."""
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", 0))
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    peer.connect(listening.getsockname())
    peer.setblocking(False)  # noqa: FBT003 - the standard library's signature
    connected, _ = listening.accept()
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
    listening.close()
    made = Line(PlainEdge(loop, connected), Owner(), peer)
    made.edge.start(made.owner)
    yield made
    made.edge.abort()
    peer.close()


def region_of(path: Path, data: bytes, released: list[int], start: int = 3) -> FileRegion:
    path.write_bytes(b"***" + data + b"***")
    fileno = os.open(path, os.O_RDONLY)

    def release() -> None:
        released.append(1)
        os.close(fileno)

    return FileRegion(fileno, start, len(data), release)


LARGE = bytes(range(256)) * 8_192  # 2 MiB: more than both buffers take


async def test_bytes_come_in(line: Line) -> None:
    line.peer.send(b"hello")
    await line.owner.wait()

    assert line.owner.data == b"hello"
    assert line.edge.received_bytes == 5


async def test_while_it_is_paused_nothing_comes_in(line: Line) -> None:
    line.edge.pause_reading()
    line.edge.pause_reading()
    line.peer.send(b"hello")
    await line.until_readable()
    assert line.owner.data == b""

    line.edge.resume_reading()
    line.edge.resume_reading()
    await line.owner.wait()

    assert line.owner.data == b"hello"


async def test_frames_go_out_in_order_when_they_are_flushed(line: Line) -> None:
    for number in range(200):
        line.edge.write(b"%03d " % number)
    was_drained = line.edge.is_drained

    assert line.edge.flush()

    assert (was_drained, line.edge.is_drained) == (False, True)
    assert line.edge.sent_bytes == 800
    assert await line.peer_reads(800) == b"".join(b"%03d " % number for number in range(200))


async def test_what_the_socket_does_not_take_is_sent_when_it_does(line: Line) -> None:
    line.edge.write(b"first")
    line.edge.write(LARGE)
    line.edge.write(b"last")

    assert not line.edge.flush()
    assert not line.edge.flush()
    data = await line.peer_reads(len(LARGE) + 9)
    await line.owner.wait()

    assert data == b"first" + LARGE + b"last"
    assert (line.owner.writable_count, line.edge.is_drained) == (1, True)


async def test_empty_frames_do_no_harm(line: Line) -> None:
    for frame in (b"", b"a", b"", b"", b"b", b""):
        line.edge.write(frame)

    assert line.edge.flush()

    assert await line.peer_reads(2) == b"ab"


async def test_a_region_of_a_file_goes_out_between_frames(line: Line, tmp_path: Path) -> None:
    released: list[int] = []
    line.edge.write(b"head")
    line.edge.write_region(region_of(tmp_path / "data", b"body", released))
    line.edge.write(b"tail")

    assert line.edge.flush()

    assert await line.peer_reads(12) == b"headbodytail"
    assert released == [1]


async def test_a_large_region_is_sent_in_pieces_as_the_socket_takes_them(
    line: Line, tmp_path: Path
) -> None:
    released: list[int] = []
    line.edge.write_region(region_of(tmp_path / "data", LARGE, released))
    line.edge.write(b"tail")

    assert not line.edge.flush()
    assert released == []

    assert await line.peer_reads(len(LARGE) + 4) == LARGE + b"tail"
    assert released == [1]
    assert line.edge.sent_bytes == len(LARGE) + 4


async def test_a_region_that_its_file_does_not_hold_ends_the_connection(
    line: Line, tmp_path: Path
) -> None:
    released: list[int] = []
    line.edge.write_region(region_of(tmp_path / "data", b"body", released, start=1_000))

    assert not line.edge.flush()

    assert (line.owner.lost_count, released) == (1, [1])


async def test_the_end_of_the_peer_is_told_once(line: Line) -> None:
    line.peer.close()
    await line.owner.wait()
    line.edge.abort()

    assert line.owner.lost_count == 1


async def test_regions_that_are_not_sent_are_released(line: Line, tmp_path: Path) -> None:
    released: list[int] = []
    line.edge.write(LARGE)
    line.edge.write_region(region_of(tmp_path / "one", b"body", released))
    line.edge.flush()

    line.edge.abort()
    line.edge.write_region(region_of(tmp_path / "other", b"body", released))

    assert released == [1, 1]
    assert line.owner.lost_count == 1
    assert line.edge.flush() is False


async def test_closing_sends_what_is_queued_and_then_a_fin(line: Line) -> None:
    line.edge.write(LARGE)
    line.edge.flush()
    line.edge.write(b"last words")
    line.edge.close_when_sent()
    line.edge.close_when_sent()
    assert line.owner.lost_count == 0

    data = await line.peer_reads(len(LARGE) + 10)

    assert data.endswith(b"last words")
    assert await line.peer_sees_the_end()
    assert line.owner.lost_count == 1


async def test_a_peer_that_goes_on_sending_still_gets_the_last_words(line: Line) -> None:
    line.peer.send(b"x" * 1_000)
    await line.owner.wait()
    line.edge.write(b"last words")
    line.edge.close_when_sent()
    line.edge.flush()
    for _ in range(20):
        line.peer.send(b"x" * 1_000)
        await asyncio.sleep(0.001)

    assert await line.peer_reads(10) == b"last words"
    assert await line.peer_sees_the_end()
    assert len(line.owner.data) == 1_000, "nothing is handled after the end"


async def test_after_the_fin_a_silent_peer_is_not_waited_for_long(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_module, "_LINGER_S", 0.05)
    line.edge.close_when_sent()
    assert await line.peer_sees_the_end()

    for _ in range(100):
        await asyncio.sleep(0.01)
        if line.edge.connected.fileno() < 0:
            break

    assert line.edge.connected.fileno() < 0


async def test_a_reset_by_the_peer_while_sending_ends_it(line: Line) -> None:
    line.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes.fromhex("01000000 00000000"))
    line.edge.write(LARGE)
    line.edge.flush()
    line.peer.close()
    await line.owner.wait()

    assert line.owner.lost_count == 1
    assert line.edge.is_drained


async def test_who_takes_nothing_of_a_deleted_file_is_stuck_and_who_takes_some_is_not(
    line: Line, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    region = region_of(path, LARGE * 8, [])
    assert not line.edge.is_stuck_on_deleted()
    line.edge.write_region(region)
    line.edge.flush()
    assert [line.edge.is_stuck_on_deleted() for _ in range(2)] == [False, False]

    path.unlink()
    assert [line.edge.is_stuck_on_deleted() for _ in range(2)] == [False, True]
    line.peer.setblocking(True)  # noqa: FBT003  # the standard library's signature
    taken = 0
    while taken < len(LARGE):
        taken += len(await asyncio.to_thread(line.peer.recv, 1 << 20))
    assert not line.edge.is_stuck_on_deleted()

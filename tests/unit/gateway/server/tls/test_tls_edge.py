"""A TLS connection at the edge: what goes in and out, in which pieces, and how it ends."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.server.loop.threads import Threads
from gateway.server.tls.tls_edge import TlsEdge
from store.api import FileRegion
from tests.unit.gateway.server.tls_rig import (
    Owner,
    Peer,
    begun,
    connected_pair,
    server_context,
)
from tests.waiting import HANG_S

LARGE = bytes(range(256)) * 8_192  # 2 MiB: more than both buffers take


@dataclass
class Line:
    edge: TlsEdge
    owner: Owner
    peer: Peer


@pytest_asyncio.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def line(request: pytest.FixtureRequest) -> AsyncIterator[Line]:
    """A connection after the handshake, in each version."""
    connected, client = connected_pair()
    threads = Threads(asyncio.get_running_loop(), 1)
    _, outcome = begun(connected, server_context(), threads)
    peer = Peer(client, request.param)
    await peer.greet()
    await asyncio.wait_for(outcome.over.wait(), HANG_S)
    assert outcome.edge is not None, outcome.reason
    owner = Owner(edge=outcome.edge)
    outcome.edge.start(owner)
    yield Line(outcome.edge, owner, peer)
    outcome.edge.abort()
    client.close()


async def test_bytes_come_in_and_go_out(line: Line) -> None:
    await line.peer.send(b"hello")
    assert await line.owner.until(5) == b"hello"

    line.edge.write(b"and ")
    line.edge.write(memoryview(b"back"))
    assert line.edge.flush()
    assert line.edge.is_drained
    assert await line.peer.reads(8) == b"and back"
    assert line.edge.received_bytes > 5
    assert line.edge.sent_bytes > 8


async def test_records_of_one_read_come_as_one(line: Line) -> None:
    frames = [b"%04d" % number for number in range(200)]
    await line.peer.send_sealed(line.peer.seal(*frames))
    assert await line.owner.until(800) == b"".join(frames)
    assert len(line.owner.sizes) < 10


async def test_a_record_that_trickles_in_is_waited_for(line: Line) -> None:
    sealed = line.peer.seal(b"one", b"two")
    for position in range(len(sealed)):
        await line.peer.send_sealed(sealed[position : position + 1])
        await asyncio.sleep(0)
    assert await line.owner.until(6) == b"onetwo"


async def test_more_than_the_place_takes_comes_in_pieces(line: Line) -> None:
    line.owner.buffer = bytearray(1_000)
    data = LARGE[:50_000]
    await line.peer.send(data)
    assert await line.owner.until(len(data)) == data
    assert max(line.owner.sizes) == 1_000


@pytest.mark.parametrize("place_bytes", [700, 100_000])
async def test_what_is_not_read_stays_and_comes_in_order(line: Line, place_bytes: int) -> None:
    line.owner.buffer = bytearray(place_bytes)
    line.owner.pause_at = 1
    sending = asyncio.create_task(line.peer.send(LARGE))
    await line.owner.until(1)
    await asyncio.sleep(0.05)
    assert len(line.owner.data) <= place_bytes
    assert not sending.done(), "the peer is held up"

    line.owner.pause_at = 1 << 62
    line.edge.resume_reading()
    assert await line.owner.until(len(LARGE)) == LARGE
    await sending


async def test_what_came_before_a_pause_comes_after_it_without_another_byte(line: Line) -> None:
    line.owner.buffer = bytearray(10)
    line.owner.pause_at = 10
    await line.peer.send(b"0123456789 and so on")
    await line.owner.until(10)
    line.owner.pause_at = 1 << 62
    line.edge.resume_reading()
    assert await line.owner.until(20) == b"0123456789 and so on"


async def test_a_peer_that_does_not_read_costs_one_batch(line: Line) -> None:
    for _ in range(32):
        line.edge.write(LARGE[: 1 << 16])
    assert not line.edge.flush()
    assert not line.edge.is_drained
    assert len(line.edge._sealed) <= 66_000, "the rest is not sealed yet"
    queued = sum(len(each) for each in line.edge.queue if isinstance(each, bytes | memoryview))
    assert queued > 1_000_000

    assert await line.peer.reads(len(LARGE)) == LARGE[: 1 << 16] * 32
    async with asyncio.timeout(HANG_S):
        while not line.owner.writable_count:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)
    assert line.edge.is_drained


async def test_empty_frames_are_nothing(line: Line) -> None:
    for frame in (b"", b"a", b"", b""):
        line.edge.write(frame)
    assert line.edge.flush()
    assert await line.peer.reads(1) == b"a"


def region_of(path: Path, data: bytes, released: list[int], size: int | None = None) -> FileRegion:
    path.write_bytes(b"***" + data)
    fileno = os.open(path, os.O_RDONLY)

    def release() -> None:
        released.append(1)
        os.close(fileno)

    return FileRegion(fileno, 3, len(data) if size is None else size, release)


async def test_regions_of_files_go_between_frames(line: Line, tmp_path: Path) -> None:
    released: list[int] = []
    line.edge.write(b"head")
    line.edge.write_region(region_of(tmp_path / "a", LARGE, released))
    line.edge.write(b"between")
    line.edge.write_region(region_of(tmp_path / "b", b"small", released))
    line.edge.flush()
    expected = b"head" + LARGE + b"betweensmall"
    assert await line.peer.reads(len(expected)) == expected
    assert len(released) == 2


async def test_regions_that_are_not_sent_are_released(line: Line, tmp_path: Path) -> None:
    released: list[int] = []
    line.edge.write_region(region_of(tmp_path / "a", LARGE, released))
    line.edge.write_region(region_of(tmp_path / "b", b"small", released))
    assert not line.edge.flush()
    line.edge.abort()
    assert len(released) == 2


async def test_a_file_that_ends_too_early_ends_the_connection(line: Line, tmp_path: Path) -> None:
    released: list[int] = []
    line.edge.write_region(region_of(tmp_path / "a", b"short", released, size=100))
    assert not line.edge.flush()
    assert (line.owner.lost_count, len(released)) == (1, 1)


async def test_the_end_comes_after_all_that_was_queued(line: Line) -> None:
    line.edge.write(LARGE)
    line.edge.flush()
    line.edge.close_when_sent()
    assert await line.peer.reads(len(LARGE)) == LARGE
    assert await line.peer.sees_the_end(), "TLS is closed, not only TCP"
    assert line.owner.lost_count == 1


async def test_the_peer_may_say_that_it_ends(line: Line) -> None:
    await line.peer.send(b"last words")
    with pytest.raises(ssl.SSLWantReadError):
        line.peer.tls.unwrap()
    await line.peer.send_sealed(line.peer.outgoing.read())
    await line.owner.until_lost()
    assert line.owner.data == b"last words"


async def test_the_peer_may_just_go(line: Line) -> None:
    line.peer.socket.close()
    await line.owner.until_lost()
    assert line.owner.lost_count == 1


async def test_a_record_that_was_tampered_with_ends_it(line: Line) -> None:
    good, bad = line.peer.seal(b"good"), bytearray(line.peer.seal(b"bad"))
    bad[-1] ^= 1
    await line.peer.send_sealed(good + bytes(bad))
    await line.owner.until_lost()
    assert line.owner.data == b"good"


async def test_garbage_after_the_handshake_ends_it(line: Line) -> None:
    await line.peer.send_sealed(bytes(1_000))
    await line.owner.until_lost()
    assert line.owner.data == b""


async def test_after_an_abort_nothing_is_taken_or_sent(line: Line) -> None:
    line.edge.write(LARGE)
    line.edge.flush()
    line.edge.abort()
    line.edge.write(b"more")
    assert not line.edge.flush()
    assert line.owner.lost_count == 1

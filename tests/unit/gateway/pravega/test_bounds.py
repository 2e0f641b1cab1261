"""Bounds of a connection, and clients that go to them, beside one that behaves."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from gateway.settings.wire import WireSettings
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega.codec import HEAD, encode
from tests.pravega_client import WireClient, end
from tests.pravega_rig import WireServer, serving
from tests.waiting import wait_until

MIB = 1 << 20


@contextmanager
def with_bounds(directory: Path, **bounds: int) -> Iterator[tuple[WireServer, WireClient]]:
    """A server with these settings, and a client with a writer on the segment `s`."""
    settings = WireSettings.model_validate(bounds)
    with serving(directory, wire=settings) as server, server.client() as client:
        client.create("s")
        client.set_up("s")
        yield server, client


def behaves(server: WireServer) -> None:
    """Check that a client of the same server is served."""
    with server.client() as neighbour:
        neighbour.hello()
        neighbour.create("neighbour")
        neighbour.set_up("neighbour")
        neighbour.append(1, b"fine")
        assert neighbour.content("neighbour") == b"fine"
        neighbour.ask(m.DeleteSegment(1, "neighbour", ""), m.SegmentDeleted)


# Reads


def test_with_too_many_reads_waiting_the_client_is_not_read_until_some_are_answered(
    tmp_path: Path,
) -> None:
    with with_bounds(tmp_path, reads_max=10) as (server, client):
        reads = [m.ReadSegment("s", n, 8, "", n) for n in range(10)]
        client.send(*reads, m.KeepAlive())
        with server.client() as other:
            other.set_up("s", UUID(int=9))
            other.append(1, b"12345", writer=UUID(int=9))
        answers = [client.receive() for _ in range(6)]
        assert answers.count(m.KeepAlive()) == 1
        positions = sorted(each.offset for each in answers if isinstance(each, m.SegmentRead))
        assert positions == [0, 1, 2, 3, 4]
        behaves(server)


def test_a_thousand_reads_may_wait_on_one_connection(server: WireServer) -> None:
    with server.client() as client:
        client.create("s")
        client.send(*(m.ReadSegment("s", 0, 8, "", n) for n in range(999)))
        client.ask(m.KeepAlive(), m.KeepAlive)
        behaves(server)
        with server.client() as other:
            other.set_up("s")
            other.append(1, b"all")
        ids = {client.must(m.SegmentRead).request_id for _ in range(999)}
        assert ids == set(range(999))


def test_answers_wait_for_a_client_that_does_not_take_them(server: WireServer) -> None:
    """A hundred answers of 2 MiB are more than the queue of a client may hold."""
    with server.client() as client:
        client.create("s")
        client.set_up("s")
        client.append(1, bytes(2 * MIB))
        client.send(*(m.ReadSegment("s", 0, 2 * MIB, "", n) for n in range(100)))
        behaves(server)
        assert sum(len(client.must(m.SegmentRead).data) for _ in range(100)) == 200 * MIB


# Writers


def test_one_more_writer_than_allowed_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    with with_bounds(tmp_path, set_ups_max=3) as (server, client):
        for number in (1, 2):
            client.set_up("s", UUID(int=number))
        refused = client.ask(m.SetupAppend(7, UUID(int=3), "s", ""), e.ErrorMessage)
        assert (refused.request_id, refused.segment) == (7, "s")
        client.set_up("s", UUID(int=2))
        client.append(1, b"still", writer=UUID(int=1))
        behaves(server)


# Bytes


def test_a_frame_above_the_bound_of_unfinished_bytes_ends_the_connection(tmp_path: Path) -> None:
    with with_bounds(tmp_path, unfinished_bytes_max=MIB) as (server, client):
        client.socket.sendall(HEAD.pack(4, MIB))
        assert client.is_ended()
        assert any("not finished" in line for line in server.lines)
        behaves(server)


def test_a_block_counts_until_its_end_has_come(tmp_path: Path) -> None:
    with with_bounds(tmp_path, unfinished_bytes_max=MIB) as (_, client):
        half = 600_000
        client.send(m.AppendBlock(UUID(bytes=bytes(range(16))), bytes(half)))
        client.ask(m.KeepAlive(), m.KeepAlive)
        client.send(end(1, b"", whole=half))
        client.must(m.DataAppended)
        client.send(m.AppendBlock(UUID(bytes=bytes(range(16))), bytes(half)))
        client.socket.sendall(HEAD.pack(4, half))
        assert client.is_ended()


def test_half_a_frame_that_is_held_open_delays_no_other(server: WireServer) -> None:
    with server.client() as client:
        client.create("s")
        client.set_up("s")
        frame = encode(end(1, bytes(3 * MIB)))
        client.socket.sendall(frame[: 2 * MIB])
        behaves(server)
        client.socket.sendall(frame[2 * MIB :])
        assert client.must(m.DataAppended).current_segment_write_offset == 3 * MIB


def test_a_client_that_says_nothing_is_ended(tmp_path: Path) -> None:
    settings = WireSettings(first_frame_timeout_ms=50)
    with serving(tmp_path, wire=settings) as server, server.client() as client:
        assert client.is_ended()
        wait_until(lambda: not server.listener.connections)


@pytest.mark.parametrize(
    "sent",
    [
        bytes.fromhex("00000004ffffffff"),
        bytes.fromhex("0000000400fffff8"),
        bytes.fromhex("0000000000000000"),
        bytes.fromhex("fffffffe00000000"),
        bytes.fromhex("0000000700000000"),
        bytes.fromhex("7fffffff00000000"),
        HEAD.pack(76, 15) + bytes(8) + b"\0\x01s\0\0\0\0",
        HEAD.pack(70, 10) + bytes(8) + b"\xff\xff",
    ],
    ids=[
        "a negative length",
        "a length that no frame has",
        "an event by itself",
        "a partial event by itself",
        "a reply",
        "an unknown command",
        "a payload that is cut short",
        "a string that is longer than its frame",
    ],
)
def test_what_is_malformed_ends_its_connection_with_a_line_and_harms_no_other(
    server: WireServer, sent: bytes
) -> None:
    with server.client() as client:
        client.socket.sendall(sent)
        assert client.is_ended()
    assert [line for line in server.lines if line.startswith("protocol error peer=127.0.0.1:")]
    behaves(server)

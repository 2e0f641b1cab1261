"""One connection: signs of life that it sends, and that it expects."""

from hutch.stream import messages as m
from tests.property.gateway.conversations import HANDSHAKE, frame_of
from tests.unit.gateway.server.conftest import MakeServer
from tests.unit.gateway.server.connection_rig import Client, Server

HEARTBEAT = bytes.fromhex("0017 0001")
METADATA = frame_of("metadata", m.Metadata(("s",)))


def tuned(server: Server, heartbeat_s: int) -> Client:
    """A client that has just agreed on a heartbeat."""
    client = server.connect()
    tune = frame_of("tune", m.Tune(0, heartbeat_s))
    client.send(HANDSHAKE.replace(frame_of("tune", m.Tune(0, 0)), tune))
    client.frames()
    return client


def test_a_silent_client_is_closed_after_three_heartbeats(server: Server) -> None:
    client = tuned(server, 10)

    server.loop.pass_time(29.9)
    assert not client.is_over()
    server.loop.pass_time(0.2)

    assert client.edge.is_aborted
    assert set(client.frames()) == {HEARTBEAT}


def test_a_client_that_says_anything_stays(server: Server) -> None:
    client = tuned(server, 10)

    for _ in range(10):
        server.loop.pass_time(15)
        client.send(b"\0")
        server.loop.pass_time(1)
        client.send(b"\0\0\4" + HEARTBEAT)

    assert not client.is_over()


def test_without_heartbeats_silence_is_no_reason_to_close(client: Client) -> None:
    client.loop.pass_time(100_000)

    assert not client.is_over()
    assert client.frames() == []


def test_when_open_does_not_come_by_the_first_heartbeat_the_connection_ends(
    server: Server,
) -> None:
    client = server.connect()
    start = HANDSHAKE[: HANDSHAKE.index(frame_of("tune", m.Tune(0, 0)))]
    client.send(start + frame_of("tune", m.Tune(0, 2)))

    server.loop.pass_time(0.9)
    assert not client.is_over()
    server.loop.pass_time(0.2)

    assert client.is_over()


# Where the peer is not read


def test_a_peer_that_neither_reads_nor_is_read_is_dead_after_two_looks(
    make_server: MakeServer,
) -> None:
    client = tuned(make_server(backlog_pause_bytes=1_000), 10)
    client.edge.room = 0
    client.feed(METADATA * 100)
    assert not client.is_read()

    client.loop.pass_time(41)

    assert client.edge.is_aborted


def test_a_peer_that_reads_slowly_lives(make_server: MakeServer) -> None:
    client = tuned(make_server(backlog_pause_bytes=1_000), 10)
    client.edge.room = 0
    client.feed(METADATA * 100)

    for _ in range(30):
        client.loop.pass_time(10)
        client.edge.reads(10)
        assert not client.is_read()

    assert not client.is_over()


def test_a_peer_that_is_not_read_for_our_sake_lives(make_server: MakeServer) -> None:
    client = tuned(make_server(), 10)
    client.connection.stop_reading()

    client.loop.pass_time(1_000)

    assert not client.is_over()

"""One connection: when it is read, when it is closed, and what time does to it."""

import pytest

from gateway.stream import dispatch as dispatch_module
from gateway.stream.handlers.table import HANDLERS
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import plain
from tests.property.gateway.conversations import HANDSHAKE, frame_of
from tests.unit.gateway.server.conftest import MakeServer, opened
from tests.unit.gateway.server.connection_rig import MIB, Client, Server, declare, names, publish

UNKNOWN_FRAME = bytes.fromhex("00000004 00ff 0001")
CLOSE_13 = bytes.fromhex("0016 0001 00000001 000d 000d") + b"unknown frame"
CLOSE_14 = bytes.fromhex("0016 0001 00000001 000e 000f") + b"frame too large"
CLOSE_ANSWER = bytes.fromhex("0000000a 8016 0001 00000001 0001")
METADATA = frame_of("metadata", m.Metadata(("s",)))


# The handshake's time limits


@pytest.mark.parametrize("steps", range(5))
def test_every_step_of_the_handshake_has_ten_seconds_of_its_own(server: Server, steps: int) -> None:
    client = server.connect()
    frames = [
        frame_of("peer_properties", m.PeerProperties({})),
        frame_of("sasl_handshake", m.SaslHandshake()),
        frame_of("sasl_authenticate", plain("guest", "guest")),
        frame_of("tune", m.Tune(0, 0)),
    ]
    for frame in frames[:steps]:
        server.loop.pass_time(9.9)
        client.send(frame)

    server.loop.pass_time(9.9)
    assert not client.is_over()
    server.loop.pass_time(0.2)

    assert client.is_over()
    assert not client.edge.is_aborted, "a FIN, not a reset"
    assert server.closed == [client.connection]


def test_what_is_said_within_a_step_does_not_prolong_it(server: Server) -> None:
    client = server.connect()
    for _ in range(4):
        client.send(frame_of("heartbeat", m.Heartbeat()) + b"\0")
        server.loop.pass_time(2.4)
        client.send(b"\0\0\x04\0\x17\0\1")
    assert not client.is_over()

    server.loop.pass_time(0.5)

    assert client.is_over()


def test_an_open_connection_has_no_time_limit(client: Client) -> None:
    client.send(METADATA)
    client.loop.pass_time(100_000)

    client.send(METADATA)

    assert names(client) == ["metadata", "metadata"]


def test_a_frame_that_is_begun_ends_within_a_minute(client: Client) -> None:
    for _ in range(3):
        client.send(METADATA[:7])
        client.loop.pass_time(55)
        client.send(METADATA[7:])
    assert names(client) == ["metadata"] * 3
    client.send(METADATA[:7])
    client.loop.pass_time(55)
    assert not client.is_over()

    client.send(METADATA[7:9])
    client.loop.pass_time(7)

    assert client.is_over()


# Sizes


def test_before_open_a_frame_above_the_limit_ends_the_connection_without_a_word(
    server: Server,
) -> None:
    for size in (8193, 2**32 - 1):
        client = server.connect()
        client.send(size.to_bytes(4))
        assert (client.is_over(), client.frames()) == (True, [])
    client = server.connect()
    client.send((8192).to_bytes(4) + bytes(100))
    assert not client.is_over()


def test_the_limit_before_open_is_not_lifted_by_tune(server: Server) -> None:
    client = server.connect()
    start = HANDSHAKE[: HANDSHAKE.index(frame_of("open", m.Open("/")))]
    client.send(start)

    client.send((8193).to_bytes(4))

    assert client.is_over()


def test_after_open_a_frame_above_the_limit_gets_a_close_and_its_bytes_are_skipped(
    client: Client,
) -> None:
    client.send((MIB + 1).to_bytes(4))
    assert client.frames() == [CLOSE_14]
    assert not client.is_over()

    client.feed(bytes(MIB + 1))
    client.send(METADATA)
    assert client.frames() == []
    client.send(CLOSE_ANSWER)

    assert client.is_over()


def test_a_frame_of_exactly_the_limit_is_taken(client: Client) -> None:
    declare(client)
    size = MIB - 9 - 12

    client.feed(publish((1, bytes(size))))
    client.loop.run_all()

    assert names(client) == ["publish_confirm"]


@pytest.mark.parametrize("shared_bytes", [8192, 8193, 100_000])
def test_large_and_small_frames_take_turns_in_a_small_receive_buffer(
    make_server: MakeServer, shared_bytes: int
) -> None:
    client = opened(make_server(receive_buffer_bytes=shared_bytes))
    declare(client)
    frames = [publish((number, bytes(size))) for number, size in enumerate((5, 9_000, 0, 70_000))]

    client.feed(b"".join(frames), [3_000] * 100)
    client.loop.run_all()

    confirmed = [each.message for each in client.received()]
    ids = [each for confirm in confirmed for each in getattr(confirm, "publishing_ids", ())]
    assert ids == [0, 1, 2, 3]


# A handler that waits


def test_a_refused_login_is_answered_after_three_seconds_and_nothing_else_is_looked_at(
    server: Server,
) -> None:
    client = server.connect()
    client.send(frame_of("peer_properties", m.PeerProperties({})))
    client.send(frame_of("sasl_handshake", m.SaslHandshake()))
    client.frames()
    client.send(frame_of("sasl_authenticate", plain("guest", "wrong")) + UNKNOWN_FRAME)
    assert not client.is_read()
    client.loop.pass_time(2.9)
    assert client.frames() == []

    client.loop.pass_time(0.2)

    (answer,) = client.received()
    assert answer.message == m.SaslAuthenticateReply(ResponseCode.AUTHENTICATION_FAILURE)
    assert client.is_over()


def test_a_client_that_vanishes_while_a_login_is_refused_is_gone(server: Server) -> None:
    client = server.connect()
    client.send(frame_of("peer_properties", m.PeerProperties({})))
    client.send(frame_of("sasl_authenticate", plain("guest", "wrong")))

    client.edge.abort()
    client.loop.pass_time(10)

    assert server.closed == [client.connection]
    assert server.loop.timer_count == 0


def test_frames_behind_one_that_waits_are_handled_after_it_in_order(client: Client) -> None:
    client.feed(frame_of("create_stream", m.CreateStream("t", {})) + METADATA + METADATA)
    assert not client.is_read()

    client.loop.run_all()

    assert names(client) == ["create_stream", "metadata", "metadata"]
    assert client.is_read()


def test_a_size_that_nobody_has_judged_reserves_no_memory(client: Client) -> None:
    client.feed(frame_of("create_stream", m.CreateStream("t", {})) + b"\xff\xff\xff\xff\0\0")
    assert client.connection.inbox._large is None

    client.loop.run_all()

    assert client.frames()[-1] == CLOSE_14


def test_a_bug_of_ours_costs_one_connection_and_no_other(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client, neighbour = opened(server), opened(server)

    async def fail(_link: object, _request: object) -> None:
        raise KeyError("our bug")

    monkeypatch.setattr(dispatch_module, "HANDLERS", {**HANDLERS, "metadata": fail})
    client.send(METADATA)
    monkeypatch.undo()
    neighbour.send(METADATA)

    assert client.edge.is_aborted
    assert "handler failed" in caplog.text
    assert names(neighbour) == ["metadata"]


# What is unconfirmed


def test_a_client_with_too_much_unconfirmed_is_not_read_until_enough_is_confirmed(
    make_server: MakeServer,
) -> None:
    server = make_server(unconfirmed_max=10, unconfirmed_resume=5)
    client = opened(server)
    declare(client)
    frames = publish(*((number, b"x") for number in range(10)))

    client.feed(frames[:-1])
    assert client.is_read()
    client.edge.owner and client.edge.owner.place()
    client.feed(frames[-1:])
    assert not client.is_read()
    client.loop.run_all()

    assert client.is_read()
    assert names(client) == ["publish_confirm"]
    assert client.connection._unconfirmed_count == 0


@pytest.mark.parametrize("version", [1, 2])
def test_a_publish_frame_of_nothing_is_fine(client: Client, version: int) -> None:
    declare(client)

    client.send(bytes.fromhex(f"00000009 0002 000{version} 00 00000000") + METADATA)

    assert names(client) == ["metadata"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_publish_frame_without_its_count_is_malformed(client: Client, version: int) -> None:
    declare(client)

    client.send(bytes.fromhex(f"00000008 0002 000{version} 00 000000") + METADATA)

    assert client.frames() == [CLOSE_13]


def test_frames_that_came_with_too_many_are_taken_later(make_server: MakeServer) -> None:
    server = make_server(unconfirmed_max=3, unconfirmed_resume=1)
    client = opened(server)
    declare(client)

    client.feed(publish((1, b"a"), (2, b"b"), (3, b"c")) + METADATA + publish((4, b"d")))
    assert client.frames() == []
    client.loop.run_all()

    assert names(client) == ["publish_confirm", "metadata", "publish_confirm"]


def test_what_a_deleted_publisher_left_unconfirmed_is_no_longer_waited_for(
    make_server: MakeServer,
) -> None:
    server = make_server(unconfirmed_max=10, unconfirmed_resume=1)
    client = opened(server)
    declare(client)

    client.send(
        publish(*((number, b"x") for number in range(9)))
        + frame_of("delete_publisher", m.DeletePublisher(0))
    )

    assert client.connection._unconfirmed_count == 0
    assert names(client) == ["delete_publisher"]


# A client that does not read


def test_a_client_that_does_not_read_is_not_read_either_until_it_does(
    make_server: MakeServer,
) -> None:
    client = opened(make_server(backlog_pause_bytes=1_000, backlog_bytes_max=100_000))
    client.edge.room = 0

    asked = client.feed(METADATA * 100) // len(METADATA)
    client.loop.run_all()
    assert not client.is_read()
    assert client.connection._backlog_bytes < 10_000

    client.edge.reads(1 << 30)
    client.loop.run_all()

    assert client.is_read()
    assert names(client) == ["metadata"] * asked


def test_a_client_that_never_reads_is_cut_off(
    make_server: MakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = opened(make_server(backlog_pause_bytes=1_000, backlog_bytes_max=2_000))
    client.edge.room = 0
    declare_frame = frame_of("declare_publisher", m.DeclarePublisher(0, "", "s"))
    client.feed(declare_frame)

    client.feed(publish(*((number, b"x") for number in range(500))))
    client.loop.run_all()

    assert client.edge.is_aborted
    assert "client does not read" in caplog.text
    assert " left_bytes=" in caplog.text


# Many commands at once


def test_many_commands_in_one_read_leave_turns_to_the_others(server: Server) -> None:
    client, other = opened(server), opened(server)

    client.feed(METADATA * 1_000)
    before = len(client.frames())
    other.send(METADATA)

    assert 0 < before < 1_000
    assert names(other) == ["metadata"]
    client.loop.run_all()
    assert before + len(client.frames()) == 1_000


def test_a_client_that_gives_commands_is_read_in_smaller_pieces_than_one_that_publishes(
    make_server: MakeServer,
) -> None:
    client = opened(make_server(receive_buffer_bytes=1 << 20))
    declare(client)
    after_a_command = len(client.connection.place())
    client.feed(publish((1, b"x")))

    assert after_a_command == len(client.connection.place()) // 2


# The server stops


def test_a_connection_that_stops_takes_nothing_more_but_confirms_what_it_took(
    client: Client,
) -> None:
    declare(client)
    client.feed(publish((1, b"x")))
    client.connection.stop_reading()
    assert not client.is_read()

    client.loop.run_all()
    client.connection.stop()

    assert names(client) == ["publish_confirm"]
    assert client.is_over()
    assert not client.edge.is_aborted
    assert client.server.closed == [client.connection]


def test_a_connection_that_is_cut_is_told_once(client: Client) -> None:
    client.connection.abort()
    client.connection.abort()
    client.connection.lost()

    assert client.server.closed == [client.connection]

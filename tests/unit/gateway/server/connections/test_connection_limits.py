"""One connection: what a peer cannot make the server keep, wait for or do."""

import time
import tracemalloc
from collections.abc import Callable

import pytest

from gateway.broker.service import ScarceResource
from hutch.stream import messages as m
from hutch.stream.codec import encode_reply
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST, NONE
from tests.property.gateway.conversations import HANDSHAKE, frame_of
from tests.unit.gateway.server.conftest import MakeServer, opened
from tests.unit.gateway.server.connection_rig import MIB, Client, Server, publish

OPEN = frame_of("open", m.Open("/"))
UNKNOWN_FRAME = bytes.fromhex("00000004 00ff 0001")
CLOSE_13 = bytes.fromhex("0016 0001 00000001 000d 000d") + b"unknown frame"
CLOSE = frame_of("close", m.Close(1, "bye"))
METADATA = frame_of("metadata", m.Metadata(("s",)))


# Time limits of the end


def test_a_wrong_frame_right_behind_open_gets_the_time_limit_of_any_other(server: Server) -> None:
    client = server.connect()
    client.send(HANDSHAKE[: HANDSHAKE.index(OPEN) + len(OPEN)] + UNKNOWN_FRAME)
    assert client.frames()[-1] == CLOSE_13

    client.loop.pass_time(9.9)
    assert not client.is_over()
    client.loop.pass_time(0.2)

    assert client.is_over()


def test_a_peer_that_says_close_and_does_not_read_is_cut_off_after_ten_seconds(
    client: Client,
) -> None:
    client.edge.room = 10
    client.send(METADATA + CLOSE)

    client.loop.pass_time(9.9)
    assert not client.is_over()
    client.loop.pass_time(0.2)

    assert client.edge.is_aborted
    assert client.server.closed == [client.connection]
    assert client.loop.timer_count == 0


def test_a_peer_that_does_not_read_the_servers_close_is_cut_off_in_the_end(client: Client) -> None:
    client.edge.room = 10
    client.send(METADATA + UNKNOWN_FRAME)

    client.loop.pass_time(19.9)
    assert not client.is_over()
    client.loop.pass_time(0.2)

    assert client.edge.is_aborted


def test_a_peer_that_reads_in_time_gets_the_last_words_and_a_fin(server: Server) -> None:
    client = opened(server)
    client.edge.room = 10
    client.send(METADATA + CLOSE)
    client.loop.pass_time(9)

    client.edge.reads(1_000)
    client.loop.pass_time(9)

    assert [frame.command.name for frame in client.received()] == ["metadata", "close"]
    assert (client.is_over(), client.edge.is_aborted) == (True, False)


# Frames of a publisher that nobody knows


def test_refused_frames_in_one_read_leave_turns_to_the_others(server: Server) -> None:
    client = opened(server)
    client.feed(publish((1, b"x"), publisher_id=9) * 1_000)

    refused_a_turn: list[int] = [len(client.frames())]
    while refused_a_turn[-1]:
        server.loop.turn()
        refused_a_turn.append(len(client.frames()))

    assert sum(refused_a_turn) == 1_000
    assert max(refused_a_turn) <= 64


def test_refusing_a_large_frame_makes_no_object_of_each_entry(client: Client) -> None:
    count = 60_000
    frame = publish(*((number, b"") for number in range(count)), publisher_id=9)
    tracemalloc.start()
    try:
        client.feed(frame)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    (answer,) = client.frames()
    assert answer == b"\0\x04\0\1\x09" + count.to_bytes(4) + b"".join(
        number.to_bytes(8) + b"\0\x12" for number in range(count)
    )
    assert peak_bytes < 100 * count


# Names without end


def test_a_frame_full_of_names_leaves_turns_to_the_others(server: Server) -> None:
    asking, other = opened(server), opened(server)
    names = tuple(f"none-{number}" for number in range(20_000))
    asking.feed(frame_of("metadata", m.Metadata(names)))
    other.connection.place()[: len(METADATA)] = METADATA
    other.connection.received(len(METADATA))

    assert (len(asking.frames()), len(other.frames())) == (0, 1)
    server.loop.run_all()

    (answer,) = asking.received()
    assert isinstance(answer.message, m.MetadataReply)
    assert {each.stream for each in answer.message.streams} == set(names)


def test_the_largest_frame_of_names_is_never_worked_on_for_long(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading, looking up and answering: each turn is of some of the names alone."""
    turns: list[float] = []
    call_later = server.loop.call_later

    def timed(delay_s: float, action: Callable[..., object], *given: object) -> object:
        def act() -> None:
            begun = time.thread_time()
            action(*given)
            turns.append(time.thread_time() - begun)

        return call_later(delay_s, act)

    client = opened(server)
    monkeypatch.setattr(server.loop, "call_later", timed)
    names = tuple(f"{number:x}" for number in range(140_000))
    frame = frame_of("metadata", m.Metadata(names))
    assert MIB * 0.8 < len(frame) < MIB
    begun = time.thread_time()
    client.feed(frame)
    turns.append(time.thread_time() - begun)
    server.loop.run_all()

    (answer,) = client.received()
    assert isinstance(answer.message, m.MetadataReply)
    assert {each.stream for each in answer.message.streams} == set(names)
    assert len(turns) > 250
    turns.sort()
    # One or two may meet the collector of garbage.
    assert turns[-5] < 0.05
    assert sum(turns) / len(turns) < 0.02


def test_many_names_are_listed_once_each_and_a_wrong_one_ends_the_connection(
    server: Server,
) -> None:
    names = [f"none-{number}" for number in range(3_000)]
    client, wrong = opened(server), opened(server)
    frame = frame_of("metadata", m.Metadata((*names, *names)))

    client.feed(frame)
    cut = frame[4:-1]
    wrong.feed(len(cut).to_bytes(4) + cut)
    server.loop.run_all()

    (answer,) = client.received()
    assert isinstance(answer.message, m.MetadataReply)
    assert [each.stream for each in answer.message.streams] == names
    (close,) = wrong.received()
    assert isinstance(close.message, m.Close)
    assert close.message.code == ResponseCode.UNKNOWN_FRAME


def test_a_client_that_leaves_while_its_names_are_looked_up_leaves_nothing(server: Server) -> None:
    client = opened(server)
    client.feed(frame_of("metadata", m.Metadata(tuple(map(str, range(20_000))))))

    client.edge.abort()
    server.loop.run_all()

    assert server.loop.timer_count == 0
    assert server.closed == [client.connection]


# Time limits of single active consumers

JOIN = frame_of(
    "subscribe", m.Subscribe(1, "s", FIRST, 10, {"single-active-consumer": "true", "name": "app"})
)


def update_answer(correlation_id: int) -> bytes:
    return encode_reply("consumer_update", correlation_id, m.ConsumerUpdateReply(1, NONE))


def told(client: Client) -> list[bytes]:
    return [frame for frame in client.frames() if frame.startswith(b"\x00\x1a")]


def test_who_does_not_answer_a_consumer_update_gets_a_bare_fin_and_the_next_is_asked(
    make_server: MakeServer,
) -> None:
    server = make_server(consumer_update_timeout_ms=5_000)
    slow, other = opened(server), server.connect()
    other.send(HANDSHAKE)
    slow.send(JOIN)
    other.send(JOIN)
    assert len(told(slow)) == 1
    assert told(other) == []

    server.loop.pass_time(4.9)
    assert not slow.is_over()
    server.loop.pass_time(0.2)

    assert (slow.is_over(), slow.edge.is_aborted, slow.frames()) == (True, False, [])
    assert told(other) == [bytes.fromhex("001a 0001 00000000 01 01")]
    other.send(update_answer(0))
    server.loop.pass_time(100)
    assert not other.is_over()


def test_who_answers_in_time_is_left_alone_and_leaves_no_timer(make_server: MakeServer) -> None:
    client = opened(make_server(consumer_update_timeout_ms=5_000))
    client.send(JOIN)
    client.loop.pass_time(4.9)
    client.send(update_answer(0))
    assert client.loop.timer_count == 0

    client.loop.pass_time(100)

    assert not client.is_over()


def test_a_connection_that_ends_takes_the_time_limits_of_its_questions_along(
    client: Client,
) -> None:
    client.send(JOIN)
    assert client.loop.timer_count == 1

    client.edge.abort()

    assert client.loop.timer_count == 0


# Alarms


def test_who_publishes_is_not_read_while_the_disk_alarm_is_set_and_loses_nothing(
    server: Server, client: Client
) -> None:
    reader = opened(server)
    client.send(frame_of("declare_publisher", m.DeclarePublisher(0, "", "s")))
    client.frames()
    server.broker.service.set_alarm(ScarceResource.DISK)

    client.feed(publish((1, b"held")))
    client.loop.pass_time(1_000)
    assert not client.is_read()
    assert client.frames() == []
    assert not client.is_over(), "its heartbeats cannot be seen"
    assert reader.is_read()

    server.broker.service.clear_alarm(ScarceResource.DISK)
    client.send(publish((1, b"held")))
    assert [frame[:4] for frame in client.frames()] == [bytes.fromhex("0003 0001")]


def test_an_alarm_does_not_wake_who_is_not_read_for_another_reason(
    server: Server, client: Client
) -> None:
    client.send(frame_of("declare_publisher", m.DeclarePublisher(0, "", "s")))
    server.broker.service.set_alarm(ScarceResource.DISK)
    client.connection.stop_reading()

    server.broker.service.clear_alarm(ScarceResource.DISK)

    assert not client.is_read()

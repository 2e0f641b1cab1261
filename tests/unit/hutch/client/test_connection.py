import socket
import time
from collections.abc import Iterator

import pytest

from hutch.client import channel as channel_module
from hutch.client import frames
from hutch.client.connection import Connection, DeliveredChunk
from hutch.client.errors import (
    BadAnswer,
    ClientError,
    Refused,
    ServerBusy,
    ServerGone,
    ServerSilent,
)
from hutch.client.login import Endpoint, Login, described
from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream import pipeline as p
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import at_offset
from tests.fake_server import FakeServer, Handler, Talk, chunks


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams["s"] = chunks(2, 3)
        yield fake


@pytest.fixture
def connection(server: FakeServer) -> Iterator[Connection]:
    made = connect(server)
    yield made
    made.disconnect()


def connect(server: FakeServer, login: Login | None = None, timeout_s: float = 1.0) -> Connection:
    endpoint = Endpoint(server.host, server.port)
    login = login or Login(properties=described("a product", "app/task 1"))
    return Connection.to(endpoint, login, timeout_s=timeout_s)


def soon(seconds: float = 5) -> float:
    return time.monotonic() + seconds


def stats(stream: str = "s") -> tuple[str, m.Message]:
    return "stream_stats", m.StreamStats(stream)


def test_a_connection_shows_its_name_and_who_it_is(
    server: FakeServer, connection: Connection
) -> None:
    shown = server.talks[0].properties

    assert shown["connection_name"] == "app/task 1"
    assert shown["product"] == "a product"
    assert connection.peer_properties["product"] == "fake"
    assert connection.frame_bytes_max == 1 << 20


def test_many_requests_go_out_before_the_first_answer(
    server: FakeServer, connection: Connection
) -> None:
    names = [f"s{number}" for number in range(1_000)]
    server.streams = {name: chunks(number % 7) for number, name in enumerate(names)}
    before = server.reads

    answers = list(connection.requests([stats(name) for name in names]))

    ends = [answer.statistics["committed_offset"] + 1 for answer in answers]  # type: ignore[attr-defined]
    assert ends == [number % 7 for number in range(1_000)]
    assert server.reads - before < 60


def test_answers_are_given_in_the_order_of_the_requests(
    server: FakeServer, connection: Connection
) -> None:
    held: list[Decoded] = []

    def turned_round(talk: Talk, asked: Decoded) -> None:
        held.append(asked)
        if len(held) == 3:
            for one in reversed(held):
                assert isinstance(one.message, m.StreamStats)
                talk.reply(one, m.StreamStatsReply(1, {"n": int(one.message.stream)}))

    server.handlers["stream_stats"] = turned_round

    answers = connection.requests([stats("1"), stats("2"), stats("3")])

    assert [answer.statistics["n"] for answer in answers] == [1, 2, 3]  # type: ignore[attr-defined]


def twice(talk: Talk, asked: Decoded) -> None:
    talk.reply(asked, m.StreamStatsReply(1, {}))
    talk.reply(asked, m.StreamStatsReply(1, {}))


def never_asked(talk: Talk, asked: Decoded) -> None:
    talk.reply(asked._replace(correlation_id=99_999), m.StreamStatsReply(1, {}))


def nonsense(talk: Talk, _asked: Decoded) -> None:
    talk.send(b"\0\0\0\6\x7f\xff\0\1ab")


def cut_short(talk: Talk, _asked: Decoded) -> None:
    talk.send(b"\0\0\0\3\0\1\0")


def lie_in_size(talk: Talk, _asked: Decoded) -> None:
    talk.send(b"\xff\xff\xff\xffabc")


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (never_asked, "answered a question that was not asked"),
        (nonsense, "broke the protocol"),
        (cut_short, "broke the protocol"),
        (lie_in_size, "announced a frame of 4294967295 bytes"),
    ],
)
def test_an_answer_that_cannot_be_is_told_in_one_line_that_names_the_server(
    server: FakeServer, connection: Connection, handler: Handler, words: str
) -> None:
    server.handlers["stream_stats"] = handler

    with pytest.raises(BadAnswer, match=words) as caught:
        connection.request(*stats())

    assert f"127.0.0.1:{server.port}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert connection.is_broken


def test_a_second_answer_to_a_request_is_refused(
    server: FakeServer, connection: Connection
) -> None:
    server.handlers["stream_stats"] = twice
    connection.request(*stats())

    with pytest.raises(BadAnswer, match="answered a question that was not asked"):
        connection.request(*stats())


def test_an_answer_that_does_not_come_ends_at_the_time_limit(
    server: FakeServer, connection: Connection
) -> None:
    server.handlers["stream_stats"] = lambda _talk, _asked: None
    begun = time.monotonic()

    with pytest.raises(ServerSilent, match="did not answer in time"):
        connection.request(*stats())

    assert 0.9 < time.monotonic() - begun < 20


def test_heartbeats_without_end_do_not_put_off_the_time_limit(
    server: FakeServer, connection: Connection
) -> None:
    def beat(talk: Talk, _asked: Decoded) -> None:
        for _ in range(3_000):
            talk.push("heartbeat", m.Heartbeat())
            time.sleep(0.01)

    server.handlers["stream_stats"] = beat
    begun = time.monotonic()

    with pytest.raises(ServerSilent):
        connection.request(*stats())

    assert time.monotonic() - begun < 20


def test_a_close_of_the_server_is_answered_and_its_reason_told_on_one_line(
    server: FakeServer, connection: Connection
) -> None:
    closed: list[bool] = []
    server.handlers["stream_stats"] = lambda talk, _asked: talk.push(
        "close", m.Close(ResponseCode.UNKNOWN_FRAME, "no\nmore")
    )
    server.handlers["close"] = lambda _talk, asked: closed.append(asked.is_response)

    with pytest.raises(ServerGone, match=r"closed the connection: 'no\\nmore'"):
        connection.request(*stats())

    end = soon()
    while not closed and time.monotonic() < end:
        time.sleep(0.01)
    assert closed == [True]
    assert connection.is_broken


def test_chunks_that_overtake_an_answer_are_kept_and_come_next(
    server: FakeServer, connection: Connection
) -> None:
    connection.subscribe(1, "s", at_offset(0))

    connection.request(*stats())
    assert len(connection.inbox) > 0
    found = [connection.pushed(soon()) for _ in range(2)]

    assert [bytes(one.chunk) for one in found if isinstance(one, DeliveredChunk)] == [
        one.data for one in server.streams["s"]
    ]


def test_what_is_pushed_instead_of_an_answer_has_a_bound(
    server: FakeServer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "INBOX_BYTES_MAX", 100_000)
    connection.subscribe(1, "s", at_offset(100), credit=1)

    def flood(talk: Talk, _asked: Decoded) -> None:
        for _ in range(200):
            talk.deliver(1, bytes(1_000))

    server.handlers["stream_stats"] = flood

    with pytest.raises(BadAnswer, match="pushes more than it may"):
        connection.request(*stats())

    assert connection.is_broken


def test_late_chunks_of_a_subscription_that_has_ended_are_dropped(
    server: FakeServer, connection: Connection
) -> None:
    server.streams["t"] = chunks(4)
    connection.subscribe(1, "s", at_offset(0))
    connection.subscribe(2, "t", at_offset(0))
    connection.request(*stats())

    def late(talk: Talk, asked: Decoded) -> None:
        talk.deliver(1, b"late")
        talk.reply(asked, m.OK)
        talk.deliver(1, b"later")

    server.handlers["unsubscribe"] = late

    connection.unsubscribe(1)

    assert len(connection.inbox) == 1
    pushed = connection.pushed(soon())
    assert isinstance(pushed, DeliveredChunk)
    assert (pushed.subscription_id, bytes(pushed.chunk)) == (2, server.streams["t"][0].data)
    with pytest.raises(ServerSilent):
        connection.pushed(soon(0.1))


def test_ids_of_subscriptions_go_round_and_leave_out_those_in_use(
    connection: Connection,
) -> None:
    connection.subscribe(1, "s", at_offset(100))

    assert [connection.new_subscription_id() for _ in range(256)] == [*range(2, 256), 0, 2]


def test_subscriptions_have_a_bound_and_closed_ones_make_room(connection: Connection) -> None:
    connection.subscribed.update(range(256))

    with pytest.raises(ClientError, match="at most 256 subscriptions"):
        connection.new_subscription_id()
    connection.subscribed.discard(7)

    assert connection.new_subscription_id() == 7


def test_a_refused_subscription_names_the_stream_and_the_server(
    server: FakeServer, connection: Connection
) -> None:
    with pytest.raises(Refused, match=f"127.0.0.1:{server.port}: stream 'none' does not exist"):
        connection.subscribe(1, "none", at_offset(0))


def test_waiting_for_a_chunk_ends_at_the_deadline_and_the_connection_goes_on(
    connection: Connection,
) -> None:
    connection.subscribe(1, "s", at_offset(100))

    with pytest.raises(ServerSilent):
        connection.pushed(soon(0.05))

    assert not connection.is_broken
    connection.request(*stats())


def test_heartbeats_are_sent_while_a_long_wait_lasts(
    server: FakeServer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "BEATS", 60 / 0.05)

    with pytest.raises(ServerSilent):
        connection.pushed(soon(0.5))

    assert 3 <= server.talks[0].heartbeats <= 12


@pytest.mark.parametrize(
    ("wish_s", "servers_s", "agreed_s"), [(60, 7, 7), (7, 60, 7), (60, 0, 60), (0, 60, 0)]
)
def test_the_shorter_heartbeat_is_agreed_and_a_client_may_want_none(
    server: FakeServer, wish_s: int, servers_s: int, agreed_s: int
) -> None:
    told: list[m.Message] = []

    def authenticate(talk: Talk, asked: Decoded) -> None:
        talk.reply(asked, m.SaslAuthenticateReply(1, b""))
        talk.push("tune", m.Tune(1_000, servers_s))

    server.handlers["sasl_authenticate"] = authenticate
    server.handlers["tune"] = lambda _talk, asked: told.append(asked.message)

    with connect(server, Login(heartbeat_s=wish_s)) as made:
        assert made.heartbeat_s == agreed_s

    assert told == [m.Tune(1_000, agreed_s)]


def test_a_dead_connection_is_noticed_before_it_is_used_again(
    server: FakeServer, connection: Connection
) -> None:
    assert connection.is_alive()

    server.cut()

    end = soon()
    while connection.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    assert not connection.is_alive()
    with pytest.raises(ServerGone):
        connection.request(*stats())


def test_a_server_that_never_stops_talking_is_not_looked_at_for_ever(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "_LOOKS_S", 0.2)
    frame = b"\0\0\0\7\0\x10\0\1\0\6\0\0"
    monkeypatch.setattr(connection, "frame", lambda _deadline: memoryview(frame))
    begun = time.monotonic()

    assert not connection.is_alive()
    assert time.monotonic() - begun < 20


def test_a_connection_is_closed_in_order(server: FakeServer, connection: Connection) -> None:
    connection.close()

    assert server.count("close") == 1
    assert connection.is_broken


def test_closing_a_connection_whose_server_has_gone_is_no_error(
    server: FakeServer, connection: Connection
) -> None:
    server.cut()

    connection.close()

    assert connection.is_broken


@pytest.mark.parametrize(
    "command", ["peer_properties", "sasl_handshake", "sasl_authenticate", "open"]
)
def test_a_server_that_is_silent_in_the_handshake_is_given_up_in_time(
    server: FakeServer, command: str
) -> None:
    server.handlers[command] = lambda _talk, _asked: None
    begun = time.monotonic()

    with pytest.raises(ServerSilent, match="did not answer in time"):
        connect(server, timeout_s=0.2)

    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    ("command", "answer", "words"),
    [
        (
            "sasl_authenticate",
            m.SaslAuthenticateReply(ResponseCode.AUTHENTICATION_FAILURE, b""),
            "refused user 'guest': user name or password is wrong",
        ),
        (
            "open",
            m.OpenReply(ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE, {}),
            "virtual host '/' does not exist, or the user has no access to it",
        ),
        ("sasl_handshake", m.SaslHandshakeReply(1, ("EXTERNAL",)), "offers no PLAIN"),
    ],
)
def test_a_refused_log_in_says_why(
    server: FakeServer, command: str, answer: m.Message, words: str
) -> None:
    server.handlers[command] = lambda talk, asked: talk.reply(asked, answer)

    with pytest.raises(ClientError, match=words):
        connect(server)


def test_a_server_that_did_not_compare_the_password_is_worth_another_try(
    server: FakeServer,
) -> None:
    answer = m.SaslAuthenticateReply(ResponseCode.STREAM_NOT_AVAILABLE, b"")
    server.handlers["sasl_authenticate"] = lambda talk, asked: talk.reply(asked, answer)

    with pytest.raises(ServerBusy, match="is busy, and did not compare the password"):
        connect(server)


@pytest.mark.parametrize(
    "endpoint",
    [Endpoint("127.0.0.1", 70_000), Endpoint("a" * 300, 1), Endpoint("a\0b", 1)],
    ids=["port", "long", "nul"],
)
def test_an_address_that_cannot_be_is_an_error_in_one_line(endpoint: Endpoint) -> None:
    with pytest.raises(ClientError, match="cannot connect to"):
        Connection.to(endpoint, Login(), timeout_s=1.0)


def test_nothing_that_listens_is_told_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(ServerGone, match=f"cannot connect to 127.0.0.1:{port}: Connection refused"):
        Connection.to(Endpoint("127.0.0.1", port), Login(), timeout_s=1.0)


# ---- commands for pipelines -------------------------------------------------------------------

PIPELINED = Login(asks_for_pipeline=True)


def serve_pipeline(server: FakeServer) -> None:
    """Let the server speak the commands of pipelines, and refuse stage 9."""

    def greet(talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.PeerProperties)
        talk.table = pipeline.table_of(asked.message.properties)
        said = pipeline.PROPERTIES if talk.table is pipeline.TABLE else {}
        talk.reply(asked, m.PeerPropertiesReply(ResponseCode.OK, said))

    def discard(talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, p.DiscardStages)
        is_refused = asked.message.stages == (9,)
        answer = p.Outcome(17, "stage 9 is in use") if is_refused else p.Outcome(1, None)
        talk.reply(asked, answer)

    server.handlers["peer_properties"] = greet
    server.handlers["discard_stages"] = discard


def test_commands_of_pipelines_can_be_sent_after_a_login_that_asks_for_them(
    server: FakeServer,
) -> None:
    serve_pipeline(server)

    with connect(server, PIPELINED) as connection:
        assert connection.has_pipeline
        one = connection.ask(p.Outcome, "discard_stages", p.DiscardStages((1,)))
        many = list(connection.requests([("discard_stages", p.DiscardStages((2,)))] * 3))
        with pytest.raises(Refused, match=r"discard_stages was .*: stage 9 is in use") as caught:
            connection.must("discard_stages", p.DiscardStages((9,)))

    assert one == p.Outcome(ResponseCode.OK, None)
    assert many == [one] * 3
    assert caught.value.code == ResponseCode.PRECONDITION_FAILED


def test_a_server_without_them_is_used_as_any_other(server: FakeServer) -> None:
    with connect(server, PIPELINED) as connection:
        assert server.talks[0].properties["hutch.pipeline"] == "1"
        assert not connection.has_pipeline
        with pytest.raises(ClientError, match="does not serve discard_stages"):
            connection.request("discard_stages", p.DiscardStages((1,)))
        assert not connection.is_broken


def test_a_login_that_does_not_ask_gets_none_of_them(server: FakeServer) -> None:
    serve_pipeline(server)

    with connect(server) as connection:
        assert not connection.has_pipeline
        with pytest.raises(ClientError, match="does not serve discard_stages"):
            list(connection.requests([("discard_stages", p.DiscardStages((1,)))]))

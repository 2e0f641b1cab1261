"""The stream protocol as a connection sees it: frames in, and what becomes of the connection."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from gateway.network.transport import Transport
from gateway.server.front import ConnectionLimits, WriteBacklog
from gateway.stream import dispatch
from gateway.stream.front import CLOSE_ANSWER_MS, StreamFront, StreamKind
from gateway.stream.handlers.table import HANDLERS
from hutch.stream import messages as m
from hutch.stream.codec import decode_reply, encode_reply
from hutch.stream.codes import ResponseCode
from hutch.stream.errors import UnexpectedCommand
from hutch.stream.offsets import FIRST
from tests.chunks import filtered_body, publish_body
from tests.property.gateway.conversations import HANDSHAKE, frame_of
from tests.unit.gateway.stream.link_rig import Broker, Ports

LIMITS = ConnectionLimits(
    close_timeout_ms=1,
    unconfirmed_max=2,
    unconfirmed_resume=1,
    backlog_pause_bytes=1,
    backlog_bytes_max=2,
)
CLOSE_ANSWER = encode_reply("close", 1, m.Status(ResponseCode.OK))
HEARTBEAT = frame_of("heartbeat", m.Heartbeat())
OPENING = HANDSHAKE[: HANDSHAKE.index(frame_of("create_stream", m.CreateStream("s", {})))]
UNKNOWN = b"\0\0\0\x08\0\xff\0\x01\0\0\0\x01"


@dataclass(eq=False)
class Connection(Ports):
    """A connection as its front sees it; it remembers what it was told."""

    transport: Transport = field(default_factory=lambda: Transport(100, 200))
    limits: list[tuple[int, str]] = field(default_factory=list)
    is_busy: bool = False
    is_finished: bool = False
    is_logged_in: bool = False
    is_admitted: bool = False
    runs: list[tuple[int, WriteBacklog | None]] = field(default_factory=list)
    heartbeats: tuple[int, Callable[[], object]] | None = None

    def limit(self, delay_ms: int, step: str) -> None:
        self.limits.append((delay_ms, step))

    def beat(self, interval_s: int, send: Callable[[], object]) -> None:
        self.heartbeats = (interval_s, send)

    def begin_command(self) -> None:
        assert not self.is_busy
        self.is_busy = True

    def count_command(self) -> None:
        assert not self.is_busy

    def end_command(self) -> None:
        self.is_busy = False

    def logged_in(self) -> None:
        self.is_logged_in = True

    def admitted(self) -> None:
        self.is_admitted = True

    def finish(self) -> None:
        self.is_finished = True

    def taken(self, count: int, backlog: WriteBacklog | None) -> None:
        self.runs.append((count, backlog))


class Client:
    """A front, spoken to in bytes as the server does."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.connection = Connection()
        self.front: StreamFront = StreamKind(broker.host, LIMITS).meet(self.connection)
        self.front.start()

    def send(self, data: bytes) -> bytes:
        """Hand in bytes as the server does; gives what the front left."""
        buffer = bytearray(data)
        position = 0
        while not self.connection.is_finished:
            taken = self.front.take(buffer, position, len(buffer))
            if taken == position:
                break
            position = taken
            self.broker.loop.run_until(lambda: not self.connection.is_busy)
        return data[position:]

    def names(self) -> list[str]:
        """The commands of all frames that were sent to the client; they are taken away."""
        found = [decode_reply(frame[4:]).command.name for frame in self.connection.frames]
        self.connection.frames.clear()
        return found


@pytest.fixture
def stranger(broker: Broker) -> Client:
    return Client(broker)


@pytest.fixture
def client(stranger: Client) -> Client:
    """A client that is logged in, with the stream `s` and a publisher 1 of it."""
    assert stranger.send(HANDSHAKE) == b""
    stranger.send(frame_of("declare_publisher", m.DeclarePublisher(1, "", "s")))
    stranger.names()
    return stranger


def publish(*entries: tuple[int, bytes]) -> bytes:
    body = b"\0\2\0\1" + publish_body(1, entries)
    return len(body).to_bytes(4) + body


def test_each_step_of_the_login_has_a_time_limit_until_the_last(stranger: Client) -> None:
    step_ms = stranger.broker.host.settings.handshake_step_timeout_ms
    assert [each for each, _ in stranger.connection.limits] == [step_ms]

    stranger.send(OPENING)

    steps = [step for _, step in stranger.connection.limits]
    assert len(steps) == len(set(steps)) == 5, steps
    assert stranger.connection.is_logged_in
    assert stranger.connection.is_admitted


def test_a_client_is_known_only_after_its_password(stranger: Client) -> None:
    first, second = (
        frame_of("peer_properties", m.PeerProperties({})),
        frame_of("sasl_handshake", m.SaslHandshake()),
    )
    stranger.send(first + second)
    assert not stranger.connection.is_logged_in

    stranger.send(OPENING[OPENING.index(second) + len(second) :])
    assert stranger.connection.is_logged_in


@pytest.mark.parametrize("size", range(len(HEARTBEAT)))
def test_an_incomplete_frame_is_left_and_its_size_told_once_it_is_there(
    client: Client, size: int
) -> None:
    part = bytearray(HEARTBEAT[:size])

    assert client.send(bytes(part)) == part
    expected = len(HEARTBEAT) if size >= 4 else 0
    assert client.front.frame_bytes(part, 0, len(part)) == expected


def test_a_run_of_publish_frames_is_taken_at_once(client: Client) -> None:
    frames = bytearray(publish((1, b"a"), (2, b"b")) + publish((3, b"c")) + HEARTBEAT)

    position = client.front.take(frames, 0, len(frames))

    assert frames[position:] == HEARTBEAT
    assert client.connection.runs == [(3, client.broker.log("s"))]
    client.broker.settle("s")
    assert client.connection.settled_count == 3


def test_a_publish_with_filter_values_is_taken(client: Client) -> None:
    body = b"\0\2\0\2" + filtered_body(1, [(1, "v", b"a")])

    assert client.send(len(body).to_bytes(4) + body) == b""
    assert client.connection.runs == [(1, client.broker.log("s"))]


@pytest.mark.parametrize("version", [1, 2])
def test_a_publish_cut_short_breaks_the_protocol(client: Client, version: int) -> None:
    client.send(b"\0\0\0\x08\0\2\0" + bytes((version,)) + b"\x01\0\0\0")

    assert client.names() == ["close"]
    assert client.connection.runs == []


@pytest.mark.parametrize("credit", [1, -3, 32767, -32768])
def test_credit_goes_to_its_subscription(client: Client, credit: int) -> None:
    client.send(frame_of("subscribe", m.Subscribe(7, "s", FIRST, 5, {})))
    client.names()

    assert client.send(frame_of("credit", m.Credit(7, credit)) * 2) == b""

    assert client.front.link.subscriptions[7].credit == 5 + 2 * credit
    assert client.names() == []


@pytest.mark.parametrize("end", [-1, 1])
def test_credit_that_is_too_short_or_too_long_breaks_the_protocol(client: Client, end: int) -> None:
    client.send(frame_of("subscribe", m.Subscribe(7, "s", FIRST, 5, {})))
    client.names()
    body = (frame_of("credit", m.Credit(7, 1)) + b"\0")[4 : 12 + end - 1]

    client.send(len(body).to_bytes(4) + body)

    assert client.names() == ["close"]


def test_credit_of_a_subscription_that_is_not_there_is_refused(client: Client) -> None:
    client.send(frame_of("credit", m.Credit(7, 1)))

    assert client.names() == ["credit"]


def test_heartbeats_between_other_frames_are_not_answered(client: Client) -> None:
    frames = HEARTBEAT * 3 + publish((1, b"a")) + HEARTBEAT

    assert client.send(frames) == b""

    assert [count for count, _ in client.connection.runs] == [1]
    assert client.names() == []


def test_a_heartbeat_that_is_too_long_breaks_the_protocol(client: Client) -> None:
    body = HEARTBEAT[4:] + b"\0"

    client.send(len(body).to_bytes(4) + body)

    assert client.names() == ["close"]


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_is_published_before_the_login(stranger: Client, version: int) -> None:
    body = b"\0\2\0" + bytes((version,)) + publish_body(1, [(1, b"a")])
    stranger.send(len(body).to_bytes(4) + body)

    assert stranger.connection.is_finished
    assert stranger.connection.runs == []


def test_breaking_the_protocol_before_the_login_is_not_answered(stranger: Client) -> None:
    stranger.send(UNKNOWN)

    assert stranger.connection.is_finished
    assert stranger.connection.frames == []


def test_breaking_it_after_the_login_is_answered_by_a_close_with_a_time_limit(
    client: Client,
) -> None:
    client.send(UNKNOWN)

    assert client.names() == ["close"]
    assert not client.connection.is_finished
    assert client.connection.limits[-1] == (CLOSE_ANSWER_MS, "OPEN")


def test_after_a_close_everything_is_skipped_up_to_its_answer(client: Client) -> None:
    client.send(UNKNOWN)
    client.names()

    client.send(HEARTBEAT + publish((1, b"a")) + UNKNOWN)
    assert not client.connection.is_finished
    assert client.names() == []
    assert client.connection.runs == []

    client.send(CLOSE_ANSWER)
    assert client.connection.is_finished


@pytest.mark.parametrize("piece", [1, 3, 7])
def test_what_is_skipped_may_come_in_pieces(client: Client, piece: int) -> None:
    client.send(UNKNOWN)
    stream = publish((1, CLOSE_ANSWER)) + HEARTBEAT + CLOSE_ANSWER

    head_end = len(stream) - len(CLOSE_ANSWER) + 8  # its size, key and version
    left = b""
    for end in range(piece, head_end + piece, piece):
        left = client.send(left + stream[end - piece : end])
        assert client.connection.is_finished == (end >= head_end)


def test_of_a_frame_that_is_too_large_nothing_has_to_be_kept(client: Client) -> None:
    size = client.broker.frame_bytes_max + 1
    head = size.to_bytes(4) + b"\0\2\0\1"

    assert client.send(head) == b""
    assert client.names() == ["close"]
    assert client.front.frame_bytes(bytearray(head), 0, len(head)) == 0

    rest = bytes(size - 4)
    assert client.send(rest[:-1]) == b""
    assert not client.connection.is_finished
    client.send(rest[-1:] + CLOSE_ANSWER)
    assert client.connection.is_finished


def test_a_frame_of_the_largest_size_is_awaited(client: Client) -> None:
    head = client.broker.frame_bytes_max.to_bytes(4) + b"\0\2\0\1"

    assert client.send(head) == head
    assert client.names() == []


def test_a_client_that_closes_gets_its_answer_and_the_end(client: Client) -> None:
    client.send(frame_of("close", m.Close(1, "bye")))

    assert client.names() == ["close"]
    assert client.connection.is_finished


def test_a_heartbeat_is_sent_to_a_client_that_is_there(client: Client) -> None:
    assert client.connection.heartbeats is not None
    interval_s, send = client.connection.heartbeats
    assert interval_s == 0, "what the handshake asked for"

    send()
    assert client.connection.frames == [HEARTBEAT]

    client.send(UNKNOWN)
    client.names()
    send()
    assert client.connection.frames == [], "nothing follows the server's Close"
    assert not client.connection.is_aborted


def test_a_client_that_is_due_a_heartbeat_before_it_opens_is_cut_off(stranger: Client) -> None:
    tuned = OPENING[: OPENING.index(frame_of("open", m.Open("/")))]
    stranger.send(tuned)
    stranger.names()
    assert stranger.connection.heartbeats is not None

    stranger.connection.heartbeats[1]()

    assert stranger.connection.frames == []
    assert stranger.connection.is_aborted


def test_an_error_of_ours_ends_the_connection_and_is_logged(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(dispatch, "HANDLERS", {**HANDLERS, "create_stream": broken})
    buffer = bytearray(frame_of("create_stream", m.CreateStream("t", {})))
    client.front.take(buffer, 0, len(buffer))

    assert client.connection.is_aborted
    assert "handler failed peer=127.0.0.1:50000" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_what_a_handler_finds_wrong_is_answered_like_a_wrong_frame(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wrong(*_: object) -> None:
        raise UnexpectedCommand("create_stream", "OPEN")

    monkeypatch.setattr(dispatch, "HANDLERS", {**HANDLERS, "create_stream": wrong})
    client.send(frame_of("create_stream", m.CreateStream("t", {})))

    assert client.names() == ["close"]
    assert not client.connection.is_aborted


def test_a_lost_connection_owns_nothing_any_more(client: Client) -> None:
    assert client.front.link.publishers
    client.front.lost()

    assert client.front.link.publishers == {}
    assert list(client.broker.connections) == []


def test_a_command_that_ends_after_the_connection_says_nothing(client: Client) -> None:
    buffer = bytearray(frame_of("create_stream", m.CreateStream("t", {})))
    client.front.take(buffer, 0, len(buffer))
    assert client.connection.is_busy
    client.front.lost()
    client.broker.loop.run_until(lambda: "t" in client.broker.streams.names())

    assert client.connection.is_busy, "the server takes no more of a connection that is over"
    assert not client.connection.is_aborted


def test_there_is_no_farewell(client: Client) -> None:
    client.front.farewell()

    assert client.connection.frames == []


def test_a_port_knows_the_protocol_and_its_limits(broker: Broker) -> None:
    kind = StreamKind(broker.host, LIMITS)

    assert (kind.name, kind.limits) == ("stream", LIMITS)

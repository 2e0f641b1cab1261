"""A connection: the tokens that it rests on, what it refuses, and how it ends."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.pravega.access.guard import EXPIRED, REFUSED, Guard
from gateway.pravega.access.tokens import EVERYTHING, READ_UPDATE, USER_CHANGED, Tokens
from gateway.pravega.handlers.table import HANDLERS
from gateway.pravega.refusals import ILLEGAL_ARGUMENT, OTHER
from gateway.server.connections.unfinished import STRANGER_BYTES_MAX
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.codec import encode
from hutch.pravega.error_messages import AuthTokenCheckFailed, ErrorMessage
from hutch.pravega.layout import TooLong, WireMessage
from hutch.pravega.wire_types import ANY_VERSION, KeyAndValue, TableKey
from store.errors import NoSuchSegment
from tests.pravega_client import WRITER, WireClient
from tests.pravega_rig import NOTHING, WireServer, serving
from tests.unit.gateway.pravega.connection_rig import ConnectionRig

SEGMENT = "s/t/0.#epoch.0"
SOON_MS = 3_000
TOKENS = Tokens(b"k" * 64)
LASTING = TOKENS.mint({EVERYTHING: READ_UPDATE}, now_ms=0)


def token_for(lifetime_ms: int) -> str:
    now_ms = time.time_ns() // 1_000_000
    return TOKENS.mint({EVERYTHING: READ_UPDATE}, now_ms=now_ms, lifetime_ms=lifetime_ms)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[WireServer]:
    """A server that asks for tokens, with a segment."""
    with serving(tmp_path, guard=Guard(NOTHING, TOKENS)) as server:
        with server.client() as client:
            client.token = LASTING
            client.create(SEGMENT)
        yield server


def writing(server: WireServer, token: str) -> WireClient:
    client = server.client()
    client.token = token
    client.set_up(SEGMENT)
    return client


def test_a_writers_connection_ends_when_its_token_expires(guarded: WireServer) -> None:
    with writing(guarded, token_for(SOON_MS)) as client:
        client.append(1, b"in time")
        assert client.is_ended()
    assert any("the token of a writer has expired" in line for line in guarded.lines)


def test_a_set_up_with_a_newer_token_goes_on(guarded: WireServer) -> None:
    with writing(guarded, token_for(SOON_MS)) as renewed, guarded.client() as other:
        renewed.token = LASTING
        last = renewed.set_up(SEGMENT).last_event_number
        other.token = token_for(SOON_MS)
        other.create("other")
        other.set_up("other")
        assert other.is_ended()  # so the first token has expired as well
        renewed.append(max(last, 0) + 1, b"later")


def test_a_set_up_with_an_expired_token_ends_the_connection(guarded: WireServer) -> None:
    with guarded.client() as client:
        request = m.SetupAppend(3, WRITER, SEGMENT, token_for(-SOON_MS))
        refused = client.ask(request, AuthTokenCheckFailed)
        assert (refused.request_id, refused.error_code) == (3, EXPIRED)
        assert client.is_ended()


def test_another_request_with_an_expired_token_is_refused_alone(guarded: WireServer) -> None:
    with guarded.client() as client:
        request = m.GetStreamSegmentInfo(4, SEGMENT, token_for(-SOON_MS))
        assert client.ask(request, AuthTokenCheckFailed).error_code == EXPIRED
        client.token = LASTING
        assert client.content(SEGMENT) == b""


# The first request, where it is large


LARGE = tuple(
    KeyAndValue(TableKey(bytes([number]), ANY_VERSION), bytes(STRANGER_BYTES_MAX // 10))
    for number in range(12)
)


def large_update(token: str) -> t.UpdateTableEntries:
    return t.UpdateTableEntries(1, "t", token, LARGE)


def test_a_large_first_request_is_taken_with_a_right_token(guarded: WireServer) -> None:
    with guarded.client() as client:
        client.ask(t.CreateTableSegment(1, "t", LASTING), m.SegmentCreated)
    with guarded.client() as client:
        versions = client.ask(large_update(LASTING), t.TableEntriesUpdated).versions
        assert len(versions) == len(LARGE)


@pytest.mark.parametrize(
    "token", ["", "x.y.z", Tokens(b"o" * 64).mint({EVERYTHING: READ_UPDATE}, now_ms=0)]
)
def test_a_large_first_request_with_another_token_ends_the_connection(
    guarded: WireServer, token: str
) -> None:
    with guarded.client() as client:
        client.socket.sendall(encode(large_update(token))[: STRANGER_BYTES_MAX // 2])
        refused = client.must(AuthTokenCheckFailed)
        assert (refused.request_id, refused.error_code) == (1, REFUSED)
        assert client.is_ended()
    assert any("a large request without a right token" in line for line in guarded.lines)


def test_the_head_of_a_request_is_enough_to_be_trusted(tmp_path: Path) -> None:
    rig = ConnectionRig(tmp_path, is_guarded=True)
    payload = memoryview(encode(large_update(rig.token())))[8:]
    kind = t.UpdateTableEntries
    trusted = [rig.connection.admits_by_head(kind, payload[:size]) for size in (0, 12, 40)]
    trusted.append(rig.connection.is_trusted)
    trusted.append(rig.connection.admits_by_head(kind, payload[:1_000]))
    trusted.append(rig.connection.is_trusted)
    assert trusted == [False, False, False, False, True, True]
    assert rig.replies() == []
    rig.close()


# Users


def asked(rig: ConnectionRig, request: WireMessage) -> None:
    """Hand in a request as the front does, and see it through if it is admitted."""
    ended = rig.ports.ended_count
    if rig.connection.admits(request):
        HANDLERS[type(request)](rig.connection, request)
        if not rig.connection.is_held:
            rig.ports.end_command()
        rig.turn_until(lambda: rig.ports.ended_count > ended)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ConnectionRig]:
    """A connection that asks for tokens, with the segment `s`."""
    rig = ConnectionRig(tmp_path, is_guarded=True)
    rig.create("s")
    yield rig
    rig.close()


def change(rig: ConnectionRig, user: str) -> None:
    rig.users[user] = b"another password"
    rig.standings.look_again([user])


def test_a_user_that_changes_ends_the_connections_that_rest_on_its_token(
    rig: ConnectionRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    asked(rig, m.SetupAppend(3, WRITER, "s", rig.token("app")))
    rig.turn_until(lambda: rig.ports.frames)
    assert [type(each) for each in rig.replies()] == [m.AppendSetup]
    asked(rig, m.ReadSegment("s", 0, 100, rig.token("app"), 5))
    rig.turn_until(lambda: rig.connection.reads.open_requests == [5])

    change(rig, "app")

    told = [AuthTokenCheckFailed(number, USER_CHANGED, EXPIRED) for number in (3, 5)]
    assert rig.replies() == told
    assert (rig.connection.is_over, rig.ports.is_finished) == (True, True)
    assert any("user='app' reason=the user was changed" in line for line in caplog.messages)
    assert rig.lines == []
    change(rig, "app")
    assert rig.replies() == []


def test_another_user_that_changes_ends_nothing(rig: ConnectionRig) -> None:
    rig.users["other"] = b"a password"
    other = rig.token("other")
    asked(rig, m.SetupAppend(3, WRITER, "s", rig.token("app")))
    assert rig.connection.user == "app"

    change(rig, "other")

    assert not rig.connection.is_over
    asked(rig, m.GetStreamSegmentInfo(4, "s", other))
    refused = [each for each in rig.replies() if isinstance(each, AuthTokenCheckFailed)]
    assert [(each.request_id, each.error_code) for each in refused] == [(4, EXPIRED)]
    assert not rig.connection.is_over


# Refusals


def test_a_request_with_a_list_that_is_too_long_is_refused_by_its_number(
    rig: ConnectionRig,
) -> None:
    asked(rig, TooLong(3, "s", "a list of 5 items is above 4"))
    refused = ErrorMessage(3, "s", "a list of 5 items is above 4", ILLEGAL_ARGUMENT)
    assert rig.replies() == [refused]
    assert not rig.connection.is_over


def test_a_reply_that_no_frame_has_room_for_becomes_a_refusal(rig: ConnectionRig) -> None:
    def created_of(size: int) -> m.SegmentCreated:
        return m.SegmentCreated(6, "x" * size)

    done = rig.connection.answering(6, "s", created_of)
    done(3)
    done(1 << 16)
    done(NoSuchSegment("no segment"))

    created, too_large, refused = rig.replies()
    assert created == m.SegmentCreated(6, "xxx")
    assert isinstance(too_large, ErrorMessage)
    assert (too_large.request_id, too_large.segment, too_large.error_code) == (6, "s", OTHER)
    assert type(refused).__name__ == "NoSuchSegment"


def test_a_mistake_in_work_of_several_steps_is_not_answered_and_holds_up_nothing(
    rig: ConnectionRig,
) -> None:
    async def work() -> None:
        raise KeyError("a mistake")

    answers: list[object] = []
    with pytest.raises(KeyError, match="a mistake"):
        rig.connection.hold_for(work(), answers.append)

    assert answers == []
    assert not rig.connection.is_held
    assert rig.ports.ended_count == 1


# The end


def test_a_connection_is_closed_once_with_one_line(rig: ConnectionRig) -> None:
    rig.connection.close("first")
    rig.connection.close("second")
    assert rig.lines == ["protocol error peer=127.0.0.1:50000 error=first"]
    rig.connection.reply(m.KeepAlive())
    assert rig.replies() == []

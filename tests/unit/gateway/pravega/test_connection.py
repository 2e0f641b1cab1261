"""The connection of a connection: tokens of writers, which bring none with their appends."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.pravega.access.guard import EXPIRED, Guard
from gateway.pravega.access.tokens import EVERYTHING, READ_UPDATE, Tokens
from hutch.pravega import messages as m
from hutch.pravega.error_messages import AuthTokenCheckFailed
from tests.pravega_client import WRITER, WireClient
from tests.pravega_rig import NOTHING, WireServer, serving

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

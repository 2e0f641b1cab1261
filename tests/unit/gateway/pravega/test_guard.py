"""Rights of clients of the wire protocol."""

import pytest

from gateway.log.names import data_segment, index_segment, is_of_a_stream, is_own
from gateway.pravega.guard import EXPIRED, NEEDS, OWNED, REFUSED, Guard, Ownership
from gateway.pravega.tokens import Right, Tokens, resource_of
from store.wire import messages as m
from store.wire import table_messages as t
from store.wire.commands import COMMANDS, Sender
from store.wire.layout import Message, layout_of

NOW_MS = 1_700_000_000_000
TOKENS = Tokens(b"k" * 64)
GATEWAY = Guard(Ownership(owns=is_own, shows=is_of_a_stream))
CHUNKS = data_segment("/", "orders", 3)
TABLE = "rmq-.2f/_meta_kvtable/0.#epoch.0"
USERS = "hutch/_access_kvtable/0.#epoch.0"


def code_of(guard: Guard, request: Message, now_ms: int = NOW_MS) -> int | None:
    refusal = guard.verdict(request, now_ms).refusal
    return None if refusal is None else refusal.error_code


def reading(segment: str, token: str = "") -> m.ReadSegment:
    return m.ReadSegment(segment, 0, 8, token, 5)


def sealing(segment: str, token: str = "") -> m.SealSegment:
    return m.SealSegment(5, segment, token)


def test_every_request_with_a_token_has_a_row() -> None:
    with_token = {
        row.message
        for row in COMMANDS
        if row.sender & Sender.CLIENT and "token" in dict(layout_of(row.message).fields)
    }
    assert with_token == set(NEEDS)


@pytest.mark.parametrize("segment", [CHUNKS, index_segment("/", "orders", 3)])
def test_a_streams_chunks_and_index_are_read_and_never_changed(segment: str) -> None:
    assert code_of(GATEWAY, reading(segment)) is None
    assert code_of(GATEWAY, sealing(segment)) == OWNED


@pytest.mark.parametrize(
    "segment",
    [
        TABLE,
        USERS,
        "hutch",
        "hutch/anything",
        "/hutch/x",
        "a/../hutch/_access_kvtable/0.#epoch.0",
        "./hutch/_access_kvtable/0.#epoch.0",
        "rmq-.2f/./_meta_kvtable/0.#epoch.0",
        TABLE + "#transaction.00",
        "rmq-.2f/_..stage-7/0.#epoch.0",
        "rmq-.2f/_..unit-7-1/0.#epoch.0",
    ],
)
def test_the_servers_own_segments_are_neither_read_nor_changed(segment: str) -> None:
    assert code_of(GATEWAY, reading(segment)) == OWNED
    assert code_of(GATEWAY, t.ReadTable(1, segment, "", ())) == OWNED
    assert (
        code_of(GATEWAY, t.DeleteTableSegment(1, segment, must_be_empty=False, token="")) == OWNED
    )


def test_a_merge_is_no_way_round() -> None:
    for target, source in (("s/t/0", CHUNKS), (CHUNKS, "s/t/0"), ("s/t/0", USERS)):
        assert code_of(GATEWAY, m.MergeSegments(1, target, source, "")) == OWNED
        assert code_of(GATEWAY, m.MergeSegmentsBatch(1, target, ("s/t/1", source), "")) == OWNED
        assert code_of(GATEWAY, t.MergeTableSegments(1, target, source, "")) == OWNED


def test_segments_of_clients_are_theirs() -> None:
    for segment in ("s/t/0.#epoch.0", "plain", "rmq-.2f/stream/0", "hutchinson/t/0"):
        assert code_of(GATEWAY, reading(segment)) is None
        assert code_of(GATEWAY, sealing(segment)) is None


def test_a_token_must_give_the_right_on_each_segment() -> None:
    guard = Guard(Ownership(owns=is_own, shows=is_of_a_stream), TOKENS)
    rights = {resource_of("s", "t"): Right.READ, resource_of("s", "u"): Right.READ_UPDATE}
    token = TOKENS.mint(rights, now_ms=NOW_MS, lifetime_ms=1_000)
    assert code_of(guard, reading("s/t/0", token)) is None
    assert code_of(guard, sealing("s/t/0", token)) == REFUSED
    assert code_of(guard, sealing("s/u/0", token)) is None
    assert code_of(guard, m.MergeSegments(1, "s/u/0", "s/t/0", token)) == REFUSED
    assert code_of(guard, reading("s/t/0")) == REFUSED
    assert code_of(guard, reading("s/t/0", token), NOW_MS + 1_000) == EXPIRED


def test_no_token_opens_what_is_the_servers_own() -> None:
    guard = Guard(Ownership(owns=is_own, shows=is_of_a_stream), TOKENS)
    token = TOKENS.mint({"*": Right.READ_UPDATE}, now_ms=NOW_MS)
    assert code_of(guard, sealing(CHUNKS, token)) == OWNED
    assert code_of(guard, reading(USERS, token)) == OWNED
    assert code_of(guard, reading(CHUNKS, token)) is None

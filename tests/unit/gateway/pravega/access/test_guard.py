"""Rights of clients of the wire protocol."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from gateway.broker.access.model import Right
from gateway.log.names import data_segment, index_segment, is_of_a_stream, is_own
from gateway.pravega.access.guard import EXPIRED, NEEDS, OWNED, REFUSED, Guard, Ownership
from gateway.pravega.access.tokens import READ, READ_UPDATE, Tokens, resource_of, words_of
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.commands import COMMANDS, CommandSender
from hutch.pravega.layout import WireMessage, layout_of

NOW_MS = 1_700_000_000_000
TOKENS = Tokens(b"k" * 64)
GATEWAY = Guard(Ownership(owns=is_own, shows=is_of_a_stream))
CHUNKS = data_segment("/", "orders", 3)
TABLE = "rmq-.2f/_meta_kvtable/0.#epoch.0"
USERS = "hutch/_access_kvtable/0.#epoch.0"


def code_of(guard: Guard, request: WireMessage, now_ms: int = NOW_MS) -> int | None:
    refusal = guard.verdict(request, now_ms).refusal
    return None if refusal is None else refusal.error_code


def reading(segment: str, token: str = "") -> m.ReadSegment:
    return m.ReadSegment(segment, 0, 8, token, 5)


def sealing(segment: str, token: str = "") -> m.SealSegment:
    return m.SealSegment(5, segment, token)


def test_every_request_has_a_row_and_those_with_a_token_need_a_right() -> None:
    requests = {row.message for row in COMMANDS if row.sender & CommandSender.CLIENT}
    assert requests == set(NEEDS)
    with_token = {each for each in requests if "token" in dict(layout_of(each).fields)}
    assert with_token == {each for each, need in NEEDS.items() if need.fields}


READ_ALONE = {
    *(m.ReadSegment, m.LocateOffset, t.ReadTable, t.ReadTableKeys, t.ReadTableEntries),
    t.ReadTableEntriesDelta,
}
WRITE_ALONE = {
    *(m.SetupAppend, m.CreateTransientSegment, m.UpdateSegmentAttribute),
    *(t.UpdateTableEntries, t.RemoveTableKeys),
}
CONFIGURE_ALONE = {
    *(m.CreateSegment, m.DeleteSegment, m.UpdateSegmentPolicy),
    *(t.CreateTableSegment, t.DeleteTableSegment),
}
CUTTING = {m.TruncateSegment, m.SealSegment, t.SealTableSegment}
ANY = {m.GetStreamSegmentInfo, m.GetSegmentAttribute, t.GetTableSegmentInfo}
STREAM, GROUP, TABLE_OF_A_CLIENT = "stream", "_RGgroup", "state_kvtable"


def allowed(
    rights: tuple[Right, ...], stream: str, source: str = "", target: str = ""
) -> set[type[WireMessage]]:
    """Return the requests that a user with some rights to a stream may make on its segments."""
    guard = Guard(Ownership(owns=is_own, shows=is_of_a_stream), TOKENS)
    token = TOKENS.mint({resource_of("s", stream): words_of(rights)}, now_ms=NOW_MS)
    name = f"s/{stream}/0.#epoch.0"
    found = set()
    for kind in (each for each, need in NEEDS.items() if need.fields):
        fields = SimpleNamespace(request_id=1, token=token, segment=name, parent=name)
        fields.target, fields.source = target or name, source or f"s/{stream}/1.#epoch.0"
        fields.sources = (fields.source,)
        if guard.verdict_of(kind, fields, NOW_MS).refusal is None:
            found.add(kind)
    return found


MERGES = {m.MergeSegments, m.MergeSegmentsBatch, t.MergeTableSegments}


def test_a_user_does_on_the_wire_what_its_right_is_and_no_more() -> None:
    assert allowed((Right.READ,), STREAM) == READ_ALONE | ANY
    assert allowed((Right.WRITE,), STREAM) == WRITE_ALONE | ANY
    assert allowed((Right.CONFIGURE,), STREAM) == CONFIGURE_ALONE | CUTTING | ANY
    assert allowed(tuple(Right), STREAM) == {each for each, need in NEEDS.items() if need.fields}


@pytest.mark.parametrize("stream", [GROUP, TABLE_OF_A_CLIENT])
def test_to_write_a_clients_own_state_is_to_read_and_cut_it_and_not_to_make_it(stream: str) -> None:
    assert allowed((Right.WRITE,), stream) == READ_ALONE | WRITE_ALONE | CUTTING | ANY
    assert allowed((Right.READ,), stream) == READ_ALONE | ANY


@pytest.mark.parametrize(
    "source",
    [
        "s/stream/0.#epoch.0#transaction.000102030405060708090a0b0c0d0e0f",
        "s/stream/0.#epoch.0#transient.000102030405060708090a0b0c0d0e0f",
    ],
)
def test_a_part_of_a_segment_is_merged_into_it_by_who_may_write(source: str) -> None:
    assert allowed((Right.WRITE,), STREAM, source) == WRITE_ALONE | ANY | MERGES
    assert not allowed((Right.READ, Right.CONFIGURE), STREAM, source) & MERGES


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("s/stream/1.#epoch.0", ""),
        ("s/stream/1.#epoch.0#transaction.00", ""),
        ("s/stream/0.#epoch.0", "s/stream/0."),
    ],
)
def test_another_segment_is_merged_by_who_may_read_and_delete_it_too(
    source: str, target: str
) -> None:
    assert allowed(tuple(Right), STREAM, source, target) >= MERGES
    for missing in Right:
        rights = tuple(right for right in Right if right is not missing)
        assert not allowed(rights, STREAM, source, target) & MERGES


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
    rights = {resource_of("s", "t"): READ, resource_of("s", "u"): READ_UPDATE}
    token = TOKENS.mint(rights, now_ms=NOW_MS, lifetime_ms=1_000)
    assert code_of(guard, reading("s/t/0", token)) is None
    assert code_of(guard, sealing("s/t/0", token)) == REFUSED
    assert code_of(guard, sealing("s/u/0", token)) is None
    assert code_of(guard, m.MergeSegments(1, "s/u/0", "s/t/0", token)) == REFUSED
    assert code_of(guard, reading("s/t/0")) == REFUSED
    assert code_of(guard, reading("s/t/0", token), NOW_MS + 1_000) == EXPIRED


def test_no_token_opens_what_is_the_servers_own() -> None:
    guard = Guard(Ownership(owns=is_own, shows=is_of_a_stream), TOKENS)
    token = TOKENS.mint({"*": READ_UPDATE}, now_ms=NOW_MS)
    assert code_of(guard, sealing(CHUNKS, token)) == OWNED
    assert code_of(guard, reading(USERS, token)) == OWNED
    assert code_of(guard, reading(CHUNKS, token)) is None


MARKS = "scope/_MARKstream/0.#epoch.0"


def test_marks_are_made_by_clients_where_no_token_is_asked_for_and_written_by_none() -> None:
    made = m.CreateSegment(5, MARKS, 0, 0, "", 0)
    assert code_of(GATEWAY, made) is None
    assert code_of(GATEWAY, m.DeleteSegment(5, MARKS, "")) is None
    assert code_of(GATEWAY, m.SetupAppend(5, UUID(int=1), MARKS, "")) == OWNED
    assert code_of(GATEWAY, sealing(MARKS)) == OWNED
    of_chunks = f"{CHUNKS.partition('/')[0]}/_MARK{CHUNKS.split('/')[1]}/0.#epoch.0"
    assert code_of(GATEWAY, m.CreateSegment(5, of_chunks, 0, 0, "", 0)) == OWNED

    token = TOKENS.mint({resource_of("scope", "_MARKstream"): READ_UPDATE}, now_ms=NOW_MS)
    asking = Guard(Ownership(owns=is_own, shows=is_of_a_stream), TOKENS)
    assert code_of(asking, m.CreateSegment(5, MARKS, 0, 0, token, 0)) == OWNED

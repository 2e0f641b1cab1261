"""Merges of tables over the wire."""

from gateway.pravega.handlers.tables_merged import ENTRIES_MAX
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.wire_types import KeyAndValue, TableKey
from tests.pravega_client import WireClient


def entries(**values: str) -> tuple[KeyAndValue, ...]:
    return tuple(
        KeyAndValue(TableKey(key.encode()), value.encode()) for key, value in values.items()
    )


def table(client: WireClient, name: str, *found: KeyAndValue) -> None:
    client.ask(t.CreateTableSegment(1, name, ""), m.SegmentCreated)
    client.ask(t.UpdateTableEntries(1, name, "", found), t.TableEntriesUpdated)


def values_in(client: WireClient, name: str) -> dict[bytes, bytes]:
    page = client.ask(t.ReadTableEntries(1, name, "", 1_000, b""), t.TableEntriesRead)
    return {entry.key.key: entry.value for entry in page.entries}


def test_a_tables_entries_win_over_those_it_is_merged_into(client: WireClient) -> None:
    table(client, "t", *entries(a="old", b="kept"))
    table(client, "u", *entries(a="new", c="more"))
    client.ask(t.MergeTableSegments(1, "t", "u", ""), m.SegmentsMerged)
    assert values_in(client, "t") == {b"a": b"new", b"b": b"kept", b"c": b"more"}
    client.ask(t.GetTableSegmentInfo(1, "u", ""), e.NoSuchSegment)


def test_a_merge_of_tables_that_was_cut_off_is_completed_by_the_next(client: WireClient) -> None:
    table(client, "t", *entries(a="new"))
    table(client, "u", *entries(a="new", c="more"))
    client.ask(t.SealTableSegment(1, "u", ""), m.SegmentSealed)
    client.ask(t.MergeTableSegments(1, "t", "u", ""), m.SegmentsMerged)
    assert values_in(client, "t") == {b"a": b"new", b"c": b"more"}


def test_a_table_above_one_update_is_refused_whole(client: WireClient) -> None:
    table(client, "t", *entries(a="old"))
    table(client, "u")
    for number in range(17):
        large = KeyAndValue(TableKey(b"%d" % number), bytes((1 << 20) - 10))
        client.ask(t.UpdateTableEntries(1, "u", "", (large,)), t.TableEntriesUpdated)
    client.ask(t.MergeTableSegments(1, "t", "u", ""), e.ErrorMessage)
    assert values_in(client, "t") == {b"a": b"old"}
    client.ask(t.UpdateTableEntries(1, "u", "", entries(x="y")), t.TableEntriesUpdated)


def test_a_table_of_too_many_entries_is_refused_whole(client: WireClient) -> None:
    table(client, "t", *entries(a="old"))
    table(client, "u")
    many = [KeyAndValue(TableKey(b"%d" % number), b"") for number in range(ENTRIES_MAX + 1)]
    for first in range(0, len(many), 5_000):
        part = tuple(many[first : first + 5_000])
        client.ask(t.UpdateTableEntries(1, "u", "", part), t.TableEntriesUpdated)
    refused = client.ask(t.MergeTableSegments(1, "t", "u", ""), e.ErrorMessage)
    assert "10000 entries" in refused.message
    client.ask(t.RemoveTableKeys(1, "u", "", (many[0].key,)), t.TableKeysRemoved)
    client.ask(t.MergeTableSegments(1, "t", "u", ""), m.SegmentsMerged)


def test_a_merge_of_tables_needs_two_that_are_open(client: WireClient) -> None:
    table(client, "t", *entries(a="old"))
    table(client, "u")
    client.create("s")
    client.ask(t.MergeTableSegments(1, "t", "t", ""), e.ErrorMessage)
    client.ask(t.MergeTableSegments(1, "t", "s", ""), e.ErrorMessage)
    client.ask(t.MergeTableSegments(1, "s", "t", ""), e.ErrorMessage)
    client.ask(t.SealTableSegment(1, "u", ""), m.SegmentSealed)
    client.ask(t.MergeTableSegments(1, "u", "t", ""), e.SegmentIsSealed)
    assert values_in(client, "t") == {b"a": b"old"}
    client.ask(t.UpdateTableEntries(1, "t", "", entries(x="y")), t.TableEntriesUpdated)


def test_a_table_whose_keys_the_target_cannot_take_is_refused_whole(client: WireClient) -> None:
    client.ask(t.CreateTableSegment(1, "t", "", key_length=8), m.SegmentCreated)
    table(client, "u", *entries(a="kept"))
    client.ask(t.MergeTableSegments(1, "t", "u", ""), e.ErrorMessage)
    client.ask(t.UpdateTableEntries(1, "u", "", entries(x="y")), t.TableEntriesUpdated)
    assert values_in(client, "u") == {b"a": b"kept", b"x": b"y"}

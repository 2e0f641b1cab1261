"""Tables over the wire."""

from collections.abc import Iterator

import pytest

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.wire_types import ANY_VERSION, NO_KEY, KeyAndValue, TableKey
from tests.pravega_client import WireClient

MIB = 1 << 20


def update(*entries: tuple[bytes, bytes], version: int = ANY_VERSION) -> t.UpdateTableEntries:
    pairs = tuple(KeyAndValue(TableKey(key, version), value) for key, value in entries)
    return t.UpdateTableEntries(1, "t", "", pairs)


def keys(*names: bytes) -> tuple[TableKey, ...]:
    return tuple(TableKey(name) for name in names)


def put(client: WireClient, *entries: tuple[bytes, bytes]) -> tuple[int, ...]:
    return client.ask(update(*entries), t.TableEntriesUpdated).versions


def values_of(client: WireClient, *names: bytes) -> list[bytes | None]:
    read = client.ask(t.ReadTable(1, "t", "", keys(*names)), t.TableRead)
    return [None if each.key.version == NO_KEY else each.value for each in read.entries]


def pages_of(client: WireClient, count: int, prefix: bytes = b"") -> Iterator[tuple[bytes, ...]]:
    continuation = b""
    while True:
        request = t.ReadTableEntries(1, "t", "", count, continuation, prefix)
        page = client.ask(request, t.TableEntriesRead)
        if not page.entries:
            return
        yield tuple(entry.key.key for entry in page.entries)
        continuation = page.continuation


@pytest.fixture
def table(client: WireClient) -> WireClient:
    """A client of a server that has the table `t`."""
    client.ask(t.CreateTableSegment(1, "t", ""), m.SegmentCreated)
    return client


def test_entries_are_read_with_the_versions_of_their_update(table: WireClient) -> None:
    versions = put(table, (b"a", b"1"), (b"b", b"2"))
    read = table.ask(t.ReadTable(1, "t", "", keys(b"b", b"x", b"a")), t.TableRead)
    assert [(each.key, each.value) for each in read.entries] == [
        (TableKey(b"b", versions[1]), b"2"),
        (TableKey(b"x", NO_KEY), b""),
        (TableKey(b"a", versions[0]), b"1"),
    ]


def test_a_condition_that_fails_is_told_apart_and_changes_nothing(table: WireClient) -> None:
    (version,) = put(table, (b"a", b"1"))
    table.ask(update((b"b", b"2"), (b"a", b"2"), version=NO_KEY), e.TableKeyBadVersion)
    table.ask(update((b"c", b"2"), version=version), e.TableKeyDoesNotExist)
    assert values_of(table, b"a", b"b", b"c") == [b"1", None, None]
    table.ask(update((b"a", b"2"), version=version), t.TableEntriesUpdated)


def test_a_wrong_length_of_the_table_is_told_with_the_right_one(table: WireClient) -> None:
    put(table, (b"a", b"1"))
    info = table.ask(t.GetTableSegmentInfo(1, "t", ""), t.TableSegmentInfo)
    for request in (
        t.UpdateTableEntries(1, "t", "", (), 5),
        t.RemoveTableKeys(1, "t", "", keys(b"a"), 5),
    ):
        refused = table.ask(request, e.SegmentIsTruncated)
        assert (refused.start_offset, refused.offset) == (info.length, 5)
    request = t.RemoveTableKeys(1, "t", "", keys(b"a"), info.length)
    table.ask(request, t.TableKeysRemoved)
    assert values_of(table, b"a") == [None]


def test_the_offset_of_older_clients_demands_no_length(table: WireClient) -> None:
    entries = (KeyAndValue(TableKey(b"a"), b"1"),)
    for offset in (-1, ANY_VERSION):
        request = t.UpdateTableEntries(1, "t", "", entries, offset)
        table.ask(request, t.TableEntriesUpdated)
        assert values_of(table, b"a") == [b"1"]
        table.ask(t.RemoveTableKeys(1, "t", "", keys(b"a"), offset), t.TableKeysRemoved)
    assert values_of(table, b"a") == [None]


@pytest.mark.parametrize("count", [-1, 0, 1, 7, 1_000_000])
def test_an_iteration_gives_each_entry_once_then_an_empty_page(
    table: WireClient, count: int
) -> None:
    names = {b"key%d" % number for number in range(40)}
    put(table, *((name, b"v") for name in names))
    pages = list(pages_of(table, count))
    assert sorted(name for page in pages for name in page) == sorted(names)
    assert all(len(page) <= max(count, 1) for page in pages)


@pytest.mark.parametrize("count", [1, 7, 1_000])
def test_an_iteration_over_keys_with_a_prefix_gives_each_of_them_once(
    table: WireClient, count: int
) -> None:
    for number in range(0, 400, 100):
        put(table, *((b"%03d" % each, b"v") for each in range(number, number + 100)))
    put(table, *((b"family%d" % number, b"v") for number in range(20)))

    found = [name for page in pages_of(table, count, b"family") for name in page]

    assert sorted(found) == sorted(b"family%d" % number for number in range(20))
    assert sum(map(len, pages_of(table, count, b"39"))) == 10
    assert list(pages_of(table, count, b"none")) == []


def test_pages_are_cut_so_that_they_fit_into_a_frame(table: WireClient) -> None:
    for number in range(20):
        put(table, (b"key%d" % number, bytes(MIB - 10)))
    assert sum(map(len, pages_of(table, 1_000))) == 20
    delta = table.ask(t.ReadTableEntriesDelta(1, "t", "", 0, 1_000), t.TableEntriesDeltaRead)
    assert 0 < len(delta.entries) < 16
    assert not delta.reached_end


def test_a_look_up_whose_answer_would_not_fit_is_refused_in_words(table: WireClient) -> None:
    put(table, (b"large", bytes(MIB - 10)))
    request = t.ReadTable(1, "t", "", keys(*[b"large"] * 10_000))
    assert "frame" in table.ask(request, e.ErrorMessage).message
    assert values_of(table, b"x") == [None]


def test_a_continuation_that_was_never_given_ends_the_connection(table: WireClient) -> None:
    table.send(t.ReadTableKeys(1, "t", "", 5, b"\xff\xff"))
    assert table.is_ended()


def test_a_delta_goes_on_where_the_last_one_ended(table: WireClient) -> None:
    put(table, (b"a", b"1"), (b"b", b"1"))
    put(table, (b"a", b"2"))
    first = table.ask(t.ReadTableEntriesDelta(1, "t", "", 0, 10), t.TableEntriesDeltaRead)
    assert [(each.key.key, each.value) for each in first.entries] == [(b"b", b"1"), (b"a", b"2")]
    assert first.reached_end
    assert not first.should_clear
    put(table, (b"c", b"3"))
    request = t.ReadTableEntriesDelta(1, "t", "", first.last_position, 10)
    second = table.ask(request, t.TableEntriesDeltaRead)
    assert [each.key.key for each in second.entries] == [b"c"]


def test_keys_of_a_fixed_length_are_ordered_and_held_to_it(client: WireClient) -> None:
    client.ask(t.CreateTableSegment(1, "t", "", key_length=2), m.SegmentCreated)
    put(client, (b"cc", b"3"), (b"aa", b"1"), (b"bb", b"2"))
    request = t.ReadTableKeys(1, "t", "", 9, from_key=b"b0", continuation=b"")
    found = client.ask(request, t.TableKeysRead)
    assert [key.key for key in found.keys] == [b"bb", b"cc"]
    client.ask(update((b"abc", b"")), e.ErrorMessage)
    client.ask(t.ReadTable(1, "t", "", keys(b"abc")), e.ErrorMessage)
    client.ask(t.RemoveTableKeys(1, "t", "", keys(b"abc")), e.ErrorMessage)
    client.ask(update((b"xx", b""), version=1), e.TableKeyBadVersion)
    wrong_way = t.ReadTableKeys(1, "t", "", 9, from_key=b"bb", to_key=b"aa", continuation=b"")
    client.ask(wrong_way, e.ErrorMessage)


def test_only_an_empty_table_is_deleted_where_that_is_asked(table: WireClient) -> None:
    put(table, (b"a", b"1"))
    table.ask(t.DeleteTableSegment(1, "t", must_be_empty=True, token=""), e.TableSegmentNotEmpty)
    table.ask(t.DeleteTableSegment(1, "t", must_be_empty=False, token=""), m.SegmentDeleted)
    table.ask(t.GetTableSegmentInfo(1, "t", ""), e.NoSuchSegment)


def test_a_sealed_table_is_read_and_not_changed(table: WireClient) -> None:
    put(table, (b"a", b"1"))
    table.ask(t.SealTableSegment(1, "t", ""), m.SegmentSealed)
    table.ask(update((b"a", b"2")), e.SegmentIsSealed)
    assert values_of(table, b"a") == [b"1"]


def test_a_segment_is_not_sealed_as_a_table(client: WireClient) -> None:
    client.create("s")
    client.ask(t.SealTableSegment(1, "s", ""), e.ErrorMessage)
    info = client.ask(m.GetStreamSegmentInfo(1, "s", ""), m.StreamSegmentInfo)
    assert not info.is_sealed

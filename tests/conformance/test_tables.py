"""Tables: updates, removals, look-ups and their conditions."""

from uuid import UUID

import pytest

from store.api import (
    ENTRY_BYTES_MAX,
    KEY_BYTES_MAX,
    NOT_EXISTS,
    TABLE_BATCH_BYTES_MAX,
    TableEntry,
)
from store.errors import (
    InvalidArgument,
    KeyVersionMismatch,
    LengthMismatch,
    NoSuchSegment,
    NotATable,
    SegmentExists,
    SegmentSealed,
    TableNotEmpty,
)
from tests.conformance.harness import Rig
from tests.conformance.promise import promise

WRITER = UUID(int=1)


def table(rig: Rig, *entries: tuple[bytes, bytes], key_length: int = 0) -> list[int]:
    """Create table t with these entries and give their versions."""
    rig.do(rig.store.create_table, "t", key_length=key_length)
    return update(rig, *(TableEntry(key, value) for key, value in entries)) if entries else []


def update(rig: Rig, *entries: TableEntry) -> list[int]:
    return list(rig.do(rig.store.update_table, "t", entries))


def look_up(rig: Rig, *keys: bytes) -> list[bytes | None]:
    entries = rig.do(rig.store.read_table, "t", keys)
    assert [entry.key for entry in entries if entry] == [
        key for key, entry in zip(keys, entries, strict=True) if entry
    ]
    return [entry and entry.value for entry in entries]


@promise("SegmentStore.create_table")
@promise("SegmentStore.table_info")
def test_a_new_table_is_empty(rig: Rig) -> None:
    table(rig)
    info, count = rig.do(rig.store.table_info, "t")
    assert (info.name, info.is_table, info.sealed, count) == ("t", True, False, 0)
    assert rig.do(rig.store.info, "t").is_table
    assert look_up(rig, b"k") == [None]


@promise("SegmentStore.info")
@promise("SegmentStore.table_info")
def test_info_tells_the_length_of_the_keys(rig: Rig) -> None:
    table(rig, key_length=3)
    rig.do(rig.store.create_table, "any")
    rig.create("plain")
    for _ in range(2):
        infos = [rig.do(rig.store.info, name) for name in ("t", "any", "plain")]
        assert [info.key_length for info in infos] == [3, 0, 0]
        assert rig.do(rig.store.table_info, "t")[0].key_length == 3
        rig.reopen()


@promise("SegmentStore.create_table")
def test_create_table_refuses_a_name_that_is_taken(rig: Rig) -> None:
    table(rig, (b"k", b"v"))
    rig.refused(SegmentExists, rig.store.create_table, "t")
    rig.create("a")
    rig.refused(SegmentExists, rig.store.create_table, "a")
    assert look_up(rig, b"k") == [b"v"]


@promise("SegmentStore.update_table")
@promise("SegmentStore.read_table")
def test_look_ups_come_in_the_order_asked(rig: Rig) -> None:
    versions = table(rig, (b"a", b"1"), (b"b", b"2"), (b"c", b""))
    assert look_up(rig, b"c", b"x", b"a", b"b", b"a") == [b"", None, b"1", b"2", b"1"]
    entries = rig.do(rig.store.read_table, "t", [b"a", b"b", b"c"])
    assert [entry.version for entry in entries] == versions
    rig.reopen()
    assert list(rig.do(rig.store.read_table, "t", [b"a", b"b", b"c"])) == list(entries)
    assert look_up(rig) == []


@promise("SegmentStore.table_info")
def test_table_info_counts_keys(rig: Rig) -> None:
    table(rig, (b"a", b"1"), (b"b", b"2"))
    update(rig, TableEntry(b"a", b"3"))
    assert rig.do(rig.store.table_info, "t")[1] == 2
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"a", b"")])
    assert rig.do(rig.store.table_info, "t")[1] == 1
    rig.reopen()
    assert rig.do(rig.store.table_info, "t")[1] == 1


@promise("SegmentStore.update_table")
def test_versions_of_a_key_grow_and_are_not_used_again(rig: Rig) -> None:
    seen = table(rig, (b"k", b"0"))
    for number in range(1, 30):
        if number % 5 == 0:
            rig.do(rig.store.remove_keys, "t", [TableEntry(b"k", b"")])
        if number % 7 == 0:
            rig.reopen()
        (version,) = update(rig, TableEntry(b"k", b"%d" % number))
        assert version > seen[-1]
        seen.append(version)
    assert all(version >= 0 for version in seen)


@promise("SegmentStore.update_table")
def test_a_later_entry_of_the_same_key_wins(rig: Rig) -> None:
    table(rig)
    versions = update(rig, TableEntry(b"k", b"1"), TableEntry(b"o", b"x"), TableEntry(b"k", b"2"))
    assert len(versions) == 3
    for _ in range(2):
        (entry,) = rig.do(rig.store.read_table, "t", [b"k"])
        assert (entry.value, entry.version) == (b"2", versions[2])
        assert rig.do(rig.store.table_info, "t")[1] == 2
        rig.reopen()


@promise("SegmentStore.update_table")
def test_an_insert_demands_that_the_key_does_not_exist(rig: Rig) -> None:
    table(rig)
    update(rig, TableEntry(b"k", b"1", NOT_EXISTS))
    error = rig.refused(
        KeyVersionMismatch, rig.store.update_table, "t", [TableEntry(b"k", b"2", NOT_EXISTS)]
    )
    (entry,) = rig.do(rig.store.read_table, "t", [b"k"])
    assert (error.key, error.version, entry.value) == (b"k", entry.version, b"1")
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"k", b"")])
    update(rig, TableEntry(b"k", b"3", NOT_EXISTS))
    assert look_up(rig, b"k") == [b"3"]


@promise("SegmentStore.update_table", KeyVersionMismatch)
def test_an_exact_version_must_match(rig: Rig) -> None:
    (first,) = table(rig, (b"k", b"1"))
    (second,) = update(rig, TableEntry(b"k", b"2", first))
    for wrong in (first, second + 1, 0 if first else 2**40):
        entry = TableEntry(b"k", b"x", wrong)
        error = rig.refused(KeyVersionMismatch, rig.store.update_table, "t", [entry])
        assert (error.key, error.version) == (b"k", second)
    missing = TableEntry(b"none", b"x", second)
    error = rig.refused(KeyVersionMismatch, rig.store.update_table, "t", [missing])
    assert (error.key, error.version) == (b"none", NOT_EXISTS)
    assert look_up(rig, b"k", b"none") == [b"2", None]
    rig.reopen()
    update(rig, TableEntry(b"k", b"3", second))
    assert look_up(rig, b"k") == [b"3"]


@promise("SegmentStore.update_table", KeyVersionMismatch)
def test_if_one_condition_fails_nothing_is_written(rig: Rig) -> None:
    (version,) = table(rig, (b"k", b"1"))
    entries = [
        TableEntry(b"free", b"x"),
        TableEntry(b"k", b"2", version),
        TableEntry(b"first", b"x", 99),
        TableEntry(b"second", b"x", 99),
    ]
    error = rig.refused(KeyVersionMismatch, rig.store.update_table, "t", entries)
    assert error.key == b"first"
    for _ in range(2):
        assert look_up(rig, b"free", b"k", b"first", b"second") == [None, b"1", None, None]
        assert rig.do(rig.store.table_info, "t")[1] == 1
        rig.reopen()


@promise("SegmentStore.update_table")
def test_of_two_inserts_at_once_the_first_wins(rig: Rig) -> None:
    table(rig)
    first = rig.start(rig.store.update_table, "t", [TableEntry(b"k", b"1", NOT_EXISTS)])
    second = rig.start(rig.store.update_table, "t", [TableEntry(b"k", b"2", NOT_EXISTS)])
    rig.wait(first, second)
    second.error(KeyVersionMismatch)
    (entry,) = rig.do(rig.store.read_table, "t", [b"k"])
    assert entry == TableEntry(b"k", b"1", first.value[0])


@promise("SegmentStore.update_table", LengthMismatch)
@promise("SegmentStore.remove_keys", LengthMismatch)
@pytest.mark.parametrize(("method", "left"), [("update_table", [b"2"]), ("remove_keys", [None])])
def test_a_change_can_demand_the_length_of_the_table(
    rig: Rig, method: str, left: list[bytes | None]
) -> None:
    table(rig, (b"k", b"1"))
    length = rig.do(rig.store.table_info, "t")[0].length
    assert length > 0
    entries = [TableEntry(b"k", b"2")]
    for wrong in (0, length - 1, length + 1):
        change = getattr(rig.store, method)
        error = rig.refused(LengthMismatch, change, "t", entries, expected_length=wrong)
        assert error.length == length
        assert look_up(rig, b"k") == [b"1"]
    rig.do(getattr(rig.store, method), "t", entries, expected_length=length)
    assert look_up(rig, b"k") == left
    assert rig.do(rig.store.table_info, "t")[0].length > length


@promise("SegmentStore.update_table", LengthMismatch)
@promise("SegmentStore.remove_keys", LengthMismatch)
@pytest.mark.parametrize("method", ["update_table", "remove_keys"])
def test_the_length_of_a_table_is_looked_at_before_versions_and_with_what_is_issued(
    rig: Rig, method: str
) -> None:
    (version,) = table(rig, (b"k", b"1"))
    length = rig.do(rig.store.table_info, "t")[0].length
    stale = [TableEntry(b"k", b"x", version + 1)]
    change = getattr(rig.store, method)
    rig.refused(LengthMismatch, change, "t", stale, expected_length=length + 1)
    rig.refused(KeyVersionMismatch, change, "t", stale, expected_length=length)
    first = rig.start(change, "t", [TableEntry(b"k", b"2")], expected_length=length)
    second = rig.start(change, "t", [TableEntry(b"k", b"3")], expected_length=length)
    rig.wait(first, second)
    first.value  # noqa: B018 (raises an error)
    assert second.error(LengthMismatch).length == rig.do(rig.store.info, "t").length


@promise("SegmentStore.update_table", InvalidArgument)
def test_a_key_has_1_to_8192_bytes(rig: Rig) -> None:
    table(rig)
    for key in (b"", b"k" * (KEY_BYTES_MAX + 1)):
        entries = [TableEntry(b"good", b"x"), TableEntry(key, b"x")]
        rig.refused(InvalidArgument, rig.store.update_table, "t", entries)
    longest = b"k" * KEY_BYTES_MAX
    update(rig, TableEntry(longest, b"v"), TableEntry(b"k", b"w"))
    assert look_up(rig, longest, b"k", b"good") == [b"v", b"w", None]


@promise("SegmentStore.update_table", InvalidArgument)
def test_an_entry_has_at_most_1_mib(rig: Rig) -> None:
    table(rig)
    value = b"v" * (ENTRY_BYTES_MAX - 3)
    too_large = [TableEntry(b"key", value + b"x")]
    rig.refused(InvalidArgument, rig.store.update_table, "t", too_large)
    update(rig, TableEntry(b"key", value))
    assert look_up(rig, b"key") == [value]
    rig.reopen()
    assert look_up(rig, b"key") == [value]


@promise("SegmentStore.update_table")
def test_a_batch_has_at_most_16_mib(rig: Rig) -> None:
    table(rig)
    size = ENTRY_BYTES_MAX - 3
    entries = [TableEntry(b"k%02d" % n, b"v" * size, NOT_EXISTS) for n in range(16)]
    assert sum(len(entry.key + entry.value) for entry in entries) == TABLE_BATCH_BYTES_MAX
    too_many = [*entries, TableEntry(b"x", b"")]
    rig.refused(InvalidArgument, rig.store.update_table, "t", too_many)
    assert rig.do(rig.store.table_info, "t")[1] == 0
    rig.do(rig.store.update_table, "t", entries)
    assert rig.do(rig.store.table_info, "t")[1] == 16


@promise("SegmentStore.create_table")
@promise("SegmentStore.update_table", InvalidArgument)
def test_a_fixed_key_length_refuses_other_keys(rig: Rig) -> None:
    table(rig, (b"key", b"1"), key_length=3)
    for _ in range(2):
        for wrong in (b"ke", b"keys"):
            rig.refused(InvalidArgument, rig.store.update_table, "t", [TableEntry(wrong, b"x")])
        assert look_up(rig, b"key") == [b"1"]
        rig.reopen()


@promise("SegmentStore.read_table", InvalidArgument)
def test_a_look_up_of_a_key_of_the_wrong_length_is_refused(rig: Rig) -> None:
    table(rig, (b"key", b"1"), key_length=3)
    for wrong in (b"ke", b"keys"):
        rig.refused(InvalidArgument, rig.store.read_table, "t", [b"key", wrong])
    assert look_up(rig, b"key") == [b"1"]


@promise("SegmentStore.remove_keys")
def test_removed_keys_are_gone(rig: Rig) -> None:
    table(rig, (b"a", b"1"), (b"b", b"2"), (b"c", b"3"))
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"a", b"not looked at"), TableEntry(b"c", b"")])
    for _ in range(2):
        assert look_up(rig, b"a", b"b", b"c") == [None, b"2", None]
        rig.reopen()
    update(rig, TableEntry(b"a", b"4"))
    assert look_up(rig, b"a") == [b"4"]


@promise("SegmentStore.remove_keys")
def test_removing_an_absent_key_is_fine(rig: Rig) -> None:
    table(rig, (b"a", b"1"))
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"none", b""), TableEntry(b"a", b"")])
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"a", b"")])
    assert rig.do(rig.store.table_info, "t")[1] == 0


@promise("SegmentStore.remove_keys", KeyVersionMismatch)
def test_a_removal_can_be_conditional_and_is_all_or_none(rig: Rig) -> None:
    first, second = table(rig, (b"a", b"1"), (b"b", b"2"))
    for keys, culprit, found in (
        ([TableEntry(b"b", b""), TableEntry(b"a", b"", second)], b"a", first),
        ([TableEntry(b"b", b"", second), TableEntry(b"none", b"", first)], b"none", NOT_EXISTS),
    ):
        error = rig.refused(KeyVersionMismatch, rig.store.remove_keys, "t", keys)
        assert (error.key, error.version) == (culprit, found)
        assert look_up(rig, b"a", b"b") == [b"1", b"2"]
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"a", b"", first), TableEntry(b"b", b"")])
    assert look_up(rig, b"a", b"b") == [None, None]


@promise("SegmentStore.delete_table")
def test_a_deleted_table_is_gone_and_its_name_free(rig: Rig) -> None:
    table(rig, (b"k", b"1"))
    rig.start(rig.store.delete_table, "t")
    table(rig)
    assert look_up(rig, b"k") == [None]
    rig.do(rig.store.delete_table, "t", must_be_empty=True)
    rig.reopen()
    rig.refused(NoSuchSegment, rig.store.delete_table, "t")
    rig.refused(NoSuchSegment, rig.store.table_info, "t")


@promise("SegmentStore.delete_table", TableNotEmpty)
def test_a_table_with_keys_can_refuse_its_deletion(rig: Rig) -> None:
    table(rig, (b"k", b"1"))
    rig.refused(TableNotEmpty, rig.store.delete_table, "t", must_be_empty=True)
    assert look_up(rig, b"k") == [b"1"]
    rig.start(rig.store.remove_keys, "t", [TableEntry(b"k", b"")])
    rig.do(rig.store.delete_table, "t", must_be_empty=True)


@promise("SegmentStore.delete_table", NotATable)
@promise("SegmentStore.table_info", NotATable)
def test_a_plain_segment_is_not_a_table(rig: Rig) -> None:
    rig.create("a", b"abc")
    store = rig.store
    rig.refused(NotATable, store.delete_table, "a")
    rig.refused(NotATable, store.table_info, "a")
    rig.refused(NotATable, store.update_table, "a", [TableEntry(b"k", b"v")])
    rig.refused(NotATable, store.remove_keys, "a", [TableEntry(b"k", b"")])
    rig.refused(NotATable, store.read_table, "a", [b"k"])
    rig.refused(NotATable, store.iterate_table, "a")
    rig.refused(NotATable, store.read_table_delta, "a", 0)
    assert rig.content("a") == b"abc"


def test_table_operations_on_nothing(rig: Rig) -> None:
    store = rig.store
    rig.refused(NoSuchSegment, store.delete_table, "none")
    rig.refused(NoSuchSegment, store.table_info, "none")
    rig.refused(NoSuchSegment, store.update_table, "none", [TableEntry(b"k", b"v")])
    rig.refused(NoSuchSegment, store.remove_keys, "none", [TableEntry(b"k", b"")])
    rig.refused(NoSuchSegment, store.read_table, "none", [b"k"])
    rig.refused(NoSuchSegment, store.iterate_table, "none")
    rig.refused(NoSuchSegment, store.read_table_delta, "none", 0)


@promise("SegmentStore.seal_segment")
def test_a_sealed_table_refuses_updates_and_can_be_read(rig: Rig) -> None:
    table(rig, (b"k", b"1"))
    rig.do(rig.store.seal_segment, "t")
    rig.refused(SegmentSealed, rig.store.update_table, "t", [TableEntry(b"k", b"2")])
    rig.refused(SegmentSealed, rig.store.remove_keys, "t", [TableEntry(b"k", b"")])
    assert look_up(rig, b"k") == [b"1"]


def test_table_operations_take_effect_in_the_order_of_the_calls(rig: Rig) -> None:
    table(rig)
    pending = []
    for number in range(200):
        entry = TableEntry(b"k%d" % (number % 7), b"%d" % number)
        pending.append(rig.start(rig.store.update_table, "t", [entry]))
        if number % 11 == 0:
            pending.append(rig.start(rig.store.remove_keys, "t", [entry]))
    found = rig.start(rig.store.read_table, "t", [b"k%d" % n for n in range(7)])
    rig.wait(*pending, found)
    expected: dict[int, bytes | None] = {}
    for number in range(200):
        expected[number % 7] = None if number % 11 == 0 else b"%d" % number
    values = [entry and entry.value for entry in found.value]
    assert values == [expected[n] for n in range(7)]


def test_a_table_of_many_entries_survives_opening(rig: Rig) -> None:
    table(rig)
    expected = {}
    for first in range(0, 3_000, 250):
        entries = [TableEntry(b"key %d" % n, b"value %d" % n) for n in range(first, first + 250)]
        expected.update({entry.key: entry.value for entry in entries})
        update(rig, *entries)
    gone = [b"key %d" % n for n in range(0, 3_000, 3)]
    rig.do(rig.store.remove_keys, "t", [TableEntry(key, b"") for key in gone])
    expected = {key: value for key, value in expected.items() if key not in set(gone)}
    for _ in range(2):
        assert rig.do(rig.store.table_info, "t")[1] == len(expected)
        assert look_up(rig, *expected) == list(expected.values())
        assert not any(look_up(rig, *gone))
        rig.reopen()

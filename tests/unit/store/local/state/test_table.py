import gc

import pytest

from gateway.kernels import uncompiled
from store.api import ANY_VERSION, NOT_EXISTS, TableEntry
from store.local.state.table import KEPT_VALUE_BYTES_MAX, KeyEntry, Table, key_entry
from store.local.state.table_entries import StoredEntry

COMPILED = "store.local.state.table" not in uncompiled()


def entry(position: int, *, removed: bool = False) -> KeyEntry:
    return KeyEntry(position, position, 30, None if removed else b"v", removed=removed)


def keys_of(table: Table, bounds: tuple[bytes | None, bytes | None, bytes | None]) -> list[bytes]:
    while not table.is_in_order():
        pass
    return list(table.keys_from(*bounds))


def version_of(found: KeyEntry | None) -> int | None:
    return None if found is None else found.version


def table_of(*keys: bytes) -> Table:
    table = Table(0, "t")
    table.commit((key, entry(index)) for index, key in enumerate(keys))
    table.count_issued = len(keys)
    return table


def test_what_is_issued_is_seen_by_conditions_and_not_by_readers() -> None:
    table = table_of(b"a")
    table.issue([(b"a", entry(50)), (b"b", entry(80))])
    assert [version_of(table.issued(key)) for key in (b"a", b"b")] == [50, 80]
    assert [version_of(each) for each in table.index.values()] == [0]
    assert table.count_issued == 2


def test_a_commit_makes_it_visible_and_keeps_what_came_later() -> None:
    table = table_of()
    first, removal, last = entry(0), entry(30, removed=True), entry(60)
    for each in (first, removal, last):
        table.issue([(b"a", each)])
    table.commit([(b"a", first)])
    assert table.issued(b"a") is last
    table.commit([(b"a", removal)])
    assert (table.index, table.issued(b"a")) == ({}, last)
    table.commit([(b"a", last)])
    assert (table.index, table.overlay) == ({b"a": last}, {})


def test_of_two_removals_on_their_way_the_first_leaves_the_second() -> None:
    table = table_of(b"a")
    changes = [entry(30, removed=True), entry(60), entry(90, removed=True)]
    for each in changes:
        table.issue([(b"a", each)])
    table.commit([(b"a", changes[0])])
    table.commit([(b"a", changes[1])])
    assert table.index == {b"a": changes[1]}
    assert table.issued(b"a") is None


def test_what_is_taken_back_is_forgotten() -> None:
    table = table_of(b"a")
    table.issue([(b"a", entry(30, removed=True)), (b"b", entry(60))])
    table.abort()
    assert [version_of(table.issued(key)) for key in (b"a", b"b")] == [0, None]
    assert table.count_issued == 1


def test_conditions() -> None:
    table = table_of(b"a", b"b")

    def fails(key: bytes, version: int) -> bool:
        return table.check([TableEntry(b"z", b""), TableEntry(key, b"", version)]) is not None

    assert not fails(b"a", ANY_VERSION)
    assert not fails(b"b", 1)
    assert not fails(b"c", NOT_EXISTS)
    assert fails(b"b", 0)
    assert fails(b"b", NOT_EXISTS)
    assert fails(b"c", 0)


def test_keys_come_in_order_between_bounds() -> None:
    table = table_of(b"d", b"b", b"a", b"c")
    assert keys_of(table, (None, None, None)) == [b"a", b"b", b"c", b"d"]
    assert keys_of(table, (None, b"b", b"c")) == [b"b", b"c"]
    assert keys_of(table, (b"b", b"a", None)) == [b"c", b"d"]
    assert keys_of(table, (b"b", b"d", None)) == [b"d"]


def test_keys_that_come_and_go_between_pages_are_in_order_once() -> None:
    table = table_of(b"d", b"b")
    assert keys_of(table, (None, None, None)) == [b"b", b"d"]
    table.commit([(b"b", entry(90, removed=True)), (b"a", entry(120)), (b"c", entry(150))])
    table.commit([(b"b", entry(180))])
    assert keys_of(table, (None, None, None)) == [b"a", b"b", b"c", b"d"]
    table.commit([(b"c", entry(210, removed=True))])
    assert keys_of(table, (b"a", None, None)) == [b"b", b"d"]


def test_many_removed_keys_are_let_go() -> None:
    table = table_of(*(b"%05d" % number for number in range(3_000)))
    assert len(keys_of(table, (None, None, None))) == 3_000
    table.commit((b"%05d" % number, entry(0, removed=True)) for number in range(2_999))
    assert keys_of(table, (None, None, None)) == [b"02999"]
    assert table._order is not None
    assert len(table._order) == 1


def test_garbage_is_what_no_key_refers_to() -> None:
    table = table_of(b"a", b"b")
    assert table.garbage_bytes(100) == 40
    table.commit([(b"a", entry(100, removed=True))])
    assert table.garbage_bytes(130) == 100


def test_small_values_are_kept_and_large_ones_are_not() -> None:
    small = key_entry(10, 10, 300, b"v" * KEPT_VALUE_BYTES_MAX)
    found = key_entry(4, 10, 300, b"v" * (KEPT_VALUE_BYTES_MAX + 1))
    assert small.value == b"v" * 256
    assert (found.version, found.position, found.size) == (4, 10, 300)
    assert (found.value, found.removed) == (None, False)


def test_a_loaded_table_counts_its_keys() -> None:
    table = Table(0, "t")
    table.load([StoredEntry(0, 20, b"a", b"1", 0), StoredEntry(20, 18, b"a", None, 20)])
    assert (table.index, table.count_issued, table.live_bytes) == ({}, 0, 0)


def test_what_is_read_on_its_way_ends_before_damage_and_goes_on_behind_it() -> None:
    table = table_of()
    assert table.whole_from(5, 100) == range(5, 100)
    table.damaged = [range(10, 20), range(20, 30), range(50, 60)]
    assert table.whole_from(5, 100) == range(5, 10)
    assert table.whole_from(5, 8) == range(5, 8)
    assert table.whole_from(10, 100) == range(30, 50)
    assert table.whole_from(55, 100) == range(60, 100)
    assert not table.whole_from(50, 60)


def test_damage_before_the_start_does_not_count() -> None:
    table = table_of()
    assert not table.is_damaged(0)
    table.damaged = [range(10, 20)]
    assert table.is_damaged(0)
    assert table.is_damaged(19)
    assert not table.is_damaged(20)


@pytest.mark.compiled
@pytest.mark.skipif(not COMPILED, reason="the table is not compiled")
def test_entries_are_of_no_interest_to_the_collector() -> None:
    table = table_of(b"a", b"b")
    assert [each for each in table.index.values() if gc.is_tracked(each)] == []

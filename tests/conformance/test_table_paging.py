"""Iterating over a table, and following it by delta reads."""

import random
from collections.abc import Iterator

import pytest

from store.api import TableDelta, TableEntry, TablePage
from store.errors import InvalidArgument, KeyVersionMismatch, PositionOutOfRange
from tests.conformance.harness import Rig
from tests.conformance.promise import promise


def _table(rig: Rig, values: dict[bytes, bytes], key_length: int = 0) -> None:
    rig.do(rig.store.create_table, "t", key_length=key_length)
    _write(rig, values)


def _write(rig: Rig, values: dict[bytes, bytes]) -> list[int]:
    entries = [TableEntry(key, value) for key, value in values.items()]
    return list(rig.do(rig.store.update_table, "t", entries))


def _pages(rig: Rig, count: int, **bounds: bytes) -> Iterator[TablePage]:
    continuation = None
    while True:
        page = rig.do(
            rig.store.iterate_table, "t", continuation=continuation, count=count, **bounds
        )
        assert len(page.entries) <= count
        yield page
        continuation = page.continuation
        if continuation is None:
            return
        assert isinstance(continuation, bytes)


def _iterate(rig: Rig, count: int = 1_000, **bounds: bytes) -> list[TableEntry]:
    return [entry for page in _pages(rig, count, **bounds) for entry in page.entries]


KEYS = {b"%03d" % number: b"v%d" % number for number in range(0, 300, 3)}


@promise("SegmentStore.iterate_table")
@pytest.mark.parametrize("key_length", [0, 3])
@pytest.mark.parametrize("count", [1, 7, 100, 101, 5_000])
def test_an_iteration_sees_every_key_once(rig: Rig, key_length: int, count: int) -> None:
    rig.do(rig.store.create_table, "t", key_length=key_length)
    versions = dict(zip(KEYS, _write(rig, KEYS), strict=True))
    entries = _iterate(rig, count)
    assert len(entries) == len(KEYS)
    assert {entry.key: entry.value for entry in entries} == KEYS
    assert {entry.key: entry.version for entry in entries} == versions


@promise("SegmentStore.iterate_table")
@pytest.mark.parametrize("key_length", [0, 3])
def test_an_iteration_of_an_empty_table_ends_at_once(rig: Rig, key_length: int) -> None:
    _table(rig, KEYS, key_length)
    rig.do(rig.store.remove_keys, "t", [TableEntry(key, b"") for key in KEYS])
    assert _iterate(rig) == []


@promise("SegmentStore.iterate_table")
@promise("SegmentStore.create_table")
def test_a_table_of_fixed_key_length_comes_in_byte_order(rig: Rig) -> None:
    keys = [bytes([a, b]) for a in (0, 1, 127, 128, 255) for b in (0, 9, 128, 255)]
    shuffled = keys.copy()
    random.Random(5).shuffle(shuffled)
    _table(rig, dict.fromkeys(shuffled, b"v"), key_length=2)
    for _ in range(2):
        assert [entry.key for entry in _iterate(rig, 3)] == keys
        rig.reopen()


@promise("SegmentStore.iterate_table")
@pytest.mark.parametrize(
    ("first", "last"),
    [
        (b"000", b"999"),
        (b"003", b"009"),
        (b"004", b"010"),
        (b"150", b"150"),
        (b"151", b"152"),
        (b"200", b"100"),
        (None, b"050"),
        (b"250", None),
        (b"", b"\xff\xff\xff"),
    ],
)
def test_first_and_last_are_both_inclusive(
    rig: Rig, first: bytes | None, last: bytes | None
) -> None:
    _table(rig, KEYS, key_length=3)
    bounds = {name: key for name, key in (("first", first), ("last", last)) if key is not None}
    expected = [key for key in KEYS if (first or b"") <= key <= (last or b"\xff" * 3)]
    for count in (2, 1_000):
        assert [entry.key for entry in _iterate(rig, count, **bounds)] == expected


@promise("SegmentStore.iterate_table", InvalidArgument)
def test_bounds_make_no_sense_without_an_order(rig: Rig) -> None:
    _table(rig, KEYS)
    for bounds in ({"first": b"000"}, {"last": b"999"}, {"first": b"0", "last": b"9"}):
        rig.refused(InvalidArgument, rig.store.iterate_table, "t", **bounds)


@promise("SegmentStore.iterate_table")
@pytest.mark.parametrize("count", [0, -1])
def test_a_page_has_room_for_an_entry(rig: Rig, count: int) -> None:
    _table(rig, KEYS)
    rig.refused(InvalidArgument, rig.store.iterate_table, "t", count=count)


@promise("SegmentStore.iterate_table")
@pytest.mark.parametrize("key_length", [0, 3])
def test_keys_that_stay_are_seen_once_whatever_changes_between_the_pages(
    rig: Rig, key_length: int
) -> None:
    _table(rig, KEYS, key_length)
    chance = random.Random(9)
    staying = set(chance.sample(sorted(KEYS), 40))
    going = sorted(KEYS.keys() - staying)
    seen: list[bytes] = []
    for page in _pages(rig, 6):
        seen += [entry.key for entry in page.entries]
        for _ in range(4):
            key = chance.choice(going)
            rig.do(rig.store.remove_keys, "t", [TableEntry(key, b"")])
        _write(rig, {b"%03d" % chance.randrange(1_000): b"new" for _ in range(5)})
        _write(rig, dict.fromkeys(chance.sample(sorted(staying), 5), b"newer"))
    assert {key: seen.count(key) for key in staying} == dict.fromkeys(staying, 1)


def _delta(rig: Rig, position: int, count: int = 1_000) -> TableDelta:
    delta = rig.do(rig.store.read_table_delta, "t", position, count=count)
    assert isinstance(delta, TableDelta)
    assert len(delta.entries) <= count
    return delta


@promise("SegmentStore.read_table_delta")
def test_a_delta_from_0_tells_all_entries_oldest_first(rig: Rig) -> None:
    rig.do(rig.store.create_table, "t")
    versions = _write(rig, {b"z": b"1", b"a": b"2", b"m": b"3"})
    delta = _delta(rig, 0)
    assert [(entry.key, entry.value) for entry in delta.entries] == [
        (b"z", b"1"), (b"a", b"2"), (b"m", b"3"),
    ]  # fmt: skip
    assert [entry.version for entry in delta.entries] == versions
    assert delta.reached_end
    assert not delta.should_clear


@promise("SegmentStore.read_table_delta")
def test_a_delta_goes_on_where_the_last_one_ended(rig: Rig) -> None:
    rig.do(rig.store.create_table, "t")
    position = _delta(rig, 0).position
    for number in range(5):
        _write(rig, {b"k%d" % number: b"v"})
        if number == 2:
            rig.reopen()
        delta = _delta(rig, position)
        assert [entry.key for entry in delta.entries] == [b"k%d" % number]
        assert delta.position > position
        position = delta.position
    again = _delta(rig, position)
    assert (list(again.entries), again.reached_end, again.position) == ([], True, position)


@promise("SegmentStore.read_table_delta")
@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_delta_comes_in_pieces_of_count(rig: Rig, count: int) -> None:
    rig.do(rig.store.create_table, "t")
    for number in range(15):
        _write(rig, {b"k%02d" % number: b"v"})
    position, keys = 0, []
    while True:
        delta = _delta(rig, position, count)
        keys += [entry.key for entry in delta.entries]
        position = delta.position
        if delta.reached_end:
            break
        assert delta.entries
    assert keys == [b"k%02d" % number for number in range(15)]


@promise("SegmentStore.read_table_delta")
def test_within_a_reply_a_later_entry_of_a_key_replaces_the_earlier(rig: Rig) -> None:
    rig.do(rig.store.create_table, "t")
    _write(rig, {b"a": b"1", b"b": b"1"})
    _write(rig, {b"a": b"2"})
    delta = _delta(rig, 0)
    assert sorted((entry.key, entry.value) for entry in delta.entries) == [
        (b"a", b"2"), (b"b", b"1"),
    ]  # fmt: skip


@promise("SegmentStore.read_table_delta", PositionOutOfRange)
def test_a_delta_past_the_end_is_out_of_range(rig: Rig) -> None:
    _table(rig, KEYS)
    end = _delta(rig, 0).position
    rig.refused(PositionOutOfRange, rig.store.read_table_delta, "t", end + 1)
    rig.refused(PositionOutOfRange, rig.store.read_table_delta, "t", 2**62)
    rig.refused(PositionOutOfRange, rig.store.read_table_delta, "t", -1)


@promise("SegmentStore.read_table_delta")
def test_a_removal_need_not_show_but_what_was_written_does(rig: Rig) -> None:
    rig.do(rig.store.create_table, "t")
    _write(rig, {b"a": b"1", b"b": b"1"})
    position = _delta(rig, 0).position
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"a", b"")])
    _write(rig, {b"c": b"1"})
    for _ in range(2):
        everything = [entry.key for entry in _delta(rig, 0).entries]
        assert everything in ([b"b", b"c"], [b"a", b"b", b"c"])
        assert [entry.key for entry in _delta(rig, position).entries] == [b"c"]
        assert _delta(rig, position).reached_end
        rig.reopen()


Known = dict[bytes, bytes]


def _follow(rig: Rig, position: int, known: Known, count: int = 1_000) -> tuple[Known, int]:
    """Bring what is known up to date from a position on; gives where the next time goes on."""
    known = dict(known)
    while True:
        delta = _delta(rig, position, count)
        if delta.should_clear:
            known.clear()
        known.update({entry.key: entry.value for entry in delta.entries})
        position = delta.position
        if delta.reached_end:
            return known, position


@promise("SegmentStore.read_table_delta")
@pytest.mark.parametrize("value_bytes", [10, 1_000, 20_000])
def test_who_follows_a_table_with_tombstones_knows_it(rig: Rig, value_bytes: int) -> None:
    # Large values of few keys: so compactions come, also behind the follower's back.
    chance = random.Random(value_bytes)
    rig.do(rig.store.create_table, "t")
    table: dict[bytes, bytes] = {}
    known: dict[bytes, bytes] = {}
    position = 0
    for number in range(150):
        batch = {
            b"k%d" % chance.randrange(12): b""
            if chance.random() < 0.3
            else b"%05d" % number * (value_bytes // 5)
            for _ in range(chance.randrange(1, 6))
        }
        _write(rig, batch)
        table.update(batch)
        if chance.random() < 0.02:
            rig.reopen()
        if chance.random() < 0.3:
            continue
        known, position = _follow(rig, position, known, chance.choice([1, 3, 1_000]))
        assert known == table


@promise("SegmentStore.update_table")
@promise("SegmentStore.read_table_delta")
def test_a_table_that_is_written_over_and_over_stays_what_it_is(rig: Rig) -> None:
    rig.do(rig.store.create_table, "t")
    old = dict(zip(KEYS, _write(rig, KEYS), strict=True))
    position = _delta(rig, 0).position
    last: list[int] = []
    for number in range(60):
        last = _write(rig, {b"a": b"%02d" % number * 25_000, b"b": b"%02d" % number * 25_000})
    for _ in range(2):
        entries = {entry.key: entry for entry in _iterate(rig, 17)}
        assert {key: entries[key].version for key in KEYS} == old
        assert {key: entries[key].value for key in KEYS} == KEYS
        assert [entries[key].version for key in (b"a", b"b")] == last
        assert rig.do(rig.store.table_info, "t")[1] == len(KEYS) + 2
        values = {key: entry.value for key, entry in entries.items()}
        assert _follow(rig, 0, {})[0] == values
        assert _follow(rig, position, KEYS)[0] == values
        rig.reopen()
    # The versions are conditions as before.
    rig.refused(
        KeyVersionMismatch, rig.store.update_table, "t", [TableEntry(b"a", b"", last[0] - 1)]
    )
    rig.do(rig.store.update_table, "t", [TableEntry(b"000", b"new", old[b"000"])])
    assert rig.do(rig.store.read_table, "t", [b"000"])[0].value == b"new"

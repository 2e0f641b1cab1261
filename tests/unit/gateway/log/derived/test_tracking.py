"""Stored offsets and snapshots in a table of a real store."""

import tracemalloc
from dataclasses import replace

import pytest
from annotated_types import Le

from gateway.log.derived import tracking as tracking_module
from gateway.log.derived.sequences import UNKNOWN, PublisherSequences
from gateway.log.derived.snapshot import Snapshot
from gateway.log.derived.tracking import DurableReader, Tracking, open_tracking
from gateway.pending import Pending, start
from gateway.settings.model import field_of
from store.api import TableEntry
from store.errors import NoSuchSegment
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import TABLE, LogRig

SNAPSHOT = Snapshot(
    position=100,
    next_offset=7,
    timestamp_ms=1_000,
    last_chunk_id=6,
    last_chunk_position=40,
    parts=[b"\1a" + bytes(8), b"\1b" + bytes(8)],
)


def query(rig: LogRig, generation: int, reference: bytes) -> int | None:
    return rig.run(rig.tracking.query_offset(generation, reference))


def save(rig: LogRig, generation: int, snapshot: Snapshot) -> None:
    saved: Pending[object] = Pending()
    rig.tracking.snapshots.save(generation, snapshot, saved.settle)
    rig.loop.run_until(lambda: saved.is_settled)
    saved.result()


def keys(rig: LogRig) -> set[bytes]:
    page = rig.do(rig.store.iterate_table, TABLE, count=10_000)
    return {entry.key for entry in page.entries}


# Offsets


def test_a_query_sees_the_store_before_it(rig: LogRig) -> None:
    rig.tracking.store_offset(1, b"ref", 42)

    assert query(rig, 1, b"ref") == 42


@pytest.mark.parametrize("offset", [0, 2**63, 2**64 - 1])
def test_the_last_store_wins_whatever_its_number(rig: LogRig, offset: int) -> None:
    rig.tracking.store_offset(1, b"ref", 7)
    rig.tracking.store_offset(1, b"ref", offset)

    assert query(rig, 1, b"ref") == offset


def test_what_was_never_stored_is_none(rig: LogRig) -> None:
    rig.tracking.store_offset(1, b"ref", 7)

    assert query(rig, 1, b"other") is None
    assert query(rig, 2, b"ref") is None
    assert query(rig, 11, b"ref") is None


@pytest.mark.parametrize("reference", [b"", b"\x00", b"\x01", b"\xff" * 255])
def test_any_bytes_are_a_reference(rig: LogRig, reference: bytes) -> None:
    rig.tracking.store_offset(1, reference, 7)

    assert query(rig, 1, reference) == 7


def test_a_store_while_an_update_is_under_way_is_seen_by_the_query_after_it(rig: LogRig) -> None:
    rig.tracking.store_offset(1, b"ref", 1)
    first = start(rig.tracking.query_offset(1, b"ref"))
    rig.tracking.store_offset(1, b"ref", 2)
    second = start(rig.tracking.query_offset(1, b"ref"))
    rig.tracking.store_offset(1, b"ref", 3)

    rig.loop.run_until(lambda: first.is_settled and second.is_settled)

    assert first.result() in (1, 2, 3)
    assert second.result() in (2, 3)
    assert query(rig, 1, b"ref") == 3


def test_a_query_sees_the_store_before_it_behind_more_than_one_update(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking_module, "_UPDATE_ENTRIES_MAX", 10)
    for number in range(35):
        rig.tracking.store_offset(1, b"%d" % number, number)

    assert query(rig, 1, b"34") == 34


def test_stores_of_one_turn_are_one_update(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    update_table = rig.store.update_table

    def watch(name: str, entries: list[TableEntry], **options: object) -> None:
        sizes.append(len(entries))
        update_table(name, entries, **options)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(rig.store, "update_table", watch)
    for number in range(100):
        rig.tracking.store_offset(1, b"%d" % (number % 50), number)
    rig.run(rig.tracking.settled())

    assert sizes == [50]


def test_stores_are_sent_without_a_query(rig: LogRig) -> None:
    rig.tracking.store_offset(1, b"ref", 7)
    rig.loop.run_until(lambda: rig.tracking._update is not None)
    rig.tracking.store_offset(1, b"other", 8)
    rig.loop.run_until(lambda: rig.tracking._update is None and not rig.tracking._waiting)

    other = Tracking(rig.store, TABLE, rig.loop.call_soon)
    assert rig.run(other.query_offset(1, b"ref")) == 7
    assert rig.run(other.query_offset(1, b"other")) == 8


def test_what_a_query_answered_is_there_after_a_restart(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.tracking.store_offset(1, b"ref", 42)
    assert query(rig, 1, b"ref") == 42
    copy = rig.crash_copy(rig.directory.with_name("copy"))

    assert query(make_rig(copy), 1, b"ref") == 42


def test_a_query_is_told_when_the_table_is_gone(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.do(rig.store.delete_table, TABLE)
    rig.tracking.store_offset(1, b"ref", 42)

    with pytest.raises(NoSuchSegment):
        query(rig, 1, b"ref")

    assert "offsets not stored" in caplog.text


def test_a_table_that_exists_is_opened_as_it_is(rig: LogRig) -> None:
    rig.tracking.store_offset(1, b"ref", 42)
    rig.run(rig.tracking.settled())

    again = rig.run(open_tracking(rig.store, TABLE, rig.loop.call_soon))

    assert rig.run(again.query_offset(1, b"ref")) == 42


# As many references as may be


def stored(rig: LogRig, tracking: Tracking, count: int, generation: int = 1) -> dict[bytes, int]:
    for number in range(count):
        tracking.store_offset(generation, b"ref-%d" % number, number)
    return rig.run(tracking.offsets_of(generation))


def test_the_offset_that_was_stored_longest_ago_is_forgotten(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    tracking = rig.run(open_tracking(rig.store, TABLE, rig.loop.call_soon, 3))
    assert len(stored(rig, tracking, 3)) == 3
    tracking.store_offset(1, b"ref-0", 100)
    assert caplog.text == ""

    tracking.store_offset(1, b"another", 5)

    assert rig.run(tracking.offsets_of(1)) == {b"ref-0": 100, b"ref-2": 2, b"another": 5}
    assert rig.run(tracking.query_offset(1, b"ref-1")) is None
    assert keys(rig) == {b"1\0ref-0", b"1\0ref-2", b"1\0another"}
    assert "stored offset forgotten" in caplog.text
    assert "ref-1" in caplog.text


def test_one_that_is_stored_again_as_it_is_forgotten_stays(rig: LogRig) -> None:
    tracking = rig.run(open_tracking(rig.store, TABLE, rig.loop.call_soon, 2))
    for offset, reference in enumerate((b"a", b"b", b"c", b"a", b"b", b"a")):
        tracking.store_offset(1, reference, offset)

    assert rig.run(tracking.offsets_of(1)) == {b"b": 4, b"a": 5}
    assert rig.run(tracking.query_offset(1, b"c")) is None


def test_each_stream_has_a_bound_of_its_own_and_a_flood_is_few_lines(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    tracking = rig.run(open_tracking(rig.store, TABLE, rig.loop.call_soon, 10))
    tracking.store_offset(2, b"other", 7)

    assert set(stored(rig, tracking, 5_000)) == {b"ref-%d" % n for n in range(4_990, 5_000)}
    assert rig.run(tracking.offsets_of(2)) == {b"other": 7}
    assert len(keys(rig)) == 11
    assert caplog.text.count("stored offset forgotten") == 1


def test_the_order_is_known_after_a_restart_and_what_is_too_much_goes(rig: LogRig) -> None:
    tracking = rig.run(open_tracking(rig.store, TABLE, rig.loop.call_soon, 1_000))
    stored(rig, tracking, 300)
    save(rig, 1, SNAPSHOT)
    tracking.store_offset(1, b"ref-7", 70)
    rig.run(tracking.settled())

    again = rig.run(open_tracking(rig.store, TABLE, rig.loop.call_soon, 2))

    assert rig.run(again.offsets_of(1)) == {b"ref-299": 299, b"ref-7": 70}
    assert len(keys(rig)) == 2 + 3, "and the snapshot"
    assert rig.run(again.snapshots.load(1)) == SNAPSHOT


def test_a_deleted_stream_leaves_nothing_behind(rig: LogRig) -> None:
    tracking = rig.run(open_tracking(rig.store, TABLE, rig.loop.call_soon, 5))
    stored(rig, tracking, 5)

    rig.run(tracking.forget(1))

    assert rig.run(tracking.offsets_of(1)) == {}
    assert keys(rig) == set()


# Snapshots


def test_a_snapshot_comes_back_with_all_its_parts(rig: LogRig) -> None:
    save(rig, 1, SNAPSHOT)

    assert rig.run(rig.tracking.snapshots.load(1)) == SNAPSHOT
    assert rig.run(rig.tracking.snapshots.load(2)) is None


def test_a_snapshot_of_as_many_and_as_long_references_as_can_be_is_stored(rig: LogRig) -> None:
    field = field_of(("streams", "publisher_references_max"))
    assert field is not None
    (limit,) = [each.le for each in field.metadata if isinstance(each, Le)]
    assert isinstance(limit, int)
    sequences = PublisherSequences("orders", limit)
    for number in range(limit):
        sequences.record(number.to_bytes(255), number)
    snapshot = replace(SNAPSHOT, parts=sequences.pack())

    save(rig, 1, snapshot)

    assert rig.run(rig.tracking.snapshots.load(1)) == snapshot


def test_a_later_snapshot_with_fewer_parts_replaces_the_earlier(rig: LogRig) -> None:
    save(rig, 1, SNAPSHOT)
    later = Snapshot(
        position=200,
        next_offset=8,
        timestamp_ms=1_000,
        last_chunk_id=7,
        last_chunk_position=140,
        parts=[b"\1c" + bytes(8)],
    )
    save(rig, 1, later)

    assert rig.run(rig.tracking.snapshots.load(1)) == later


def test_of_a_snapshot_that_is_not_whole_only_the_publishers_are_remembered(rig: LogRig) -> None:
    save(rig, 1, SNAPSHOT)
    (missing,) = [key for key in keys(rig) if key.endswith(b"\x01\x02") or key == b"1\x012"]
    rig.do(rig.store.remove_keys, TABLE, [TableEntry(missing, b"")])

    assert rig.run(rig.tracking.snapshots.load(1)) == Snapshot(parts=[UNKNOWN])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_parts_of_two_snapshots_are_not_taken_for_one(rig: LogRig, number: int) -> None:
    key = b"1\x01%d" % number
    save(rig, 1, SNAPSHOT)
    (old,) = rig.do(rig.store.read_table, TABLE, [key])
    later = replace(SNAPSHOT, position=150, parts=[b"\1c" + bytes(8), b"\1d" + bytes(8)])
    save(rig, 1, later)
    rig.do(rig.store.update_table, TABLE, [TableEntry(key, old.value)])

    assert rig.run(rig.tracking.snapshots.load(1)) == Snapshot(parts=[UNKNOWN])


@pytest.mark.parametrize("head", [b"what is this", SNAPSHOT.pack_head()[:44]])
def test_of_a_snapshot_with_a_damaged_head_only_the_publishers_are_remembered(
    rig: LogRig, head: bytes
) -> None:
    save(rig, 1, SNAPSHOT)
    rig.do(rig.store.update_table, TABLE, [TableEntry(b"1\x010", head)])

    assert rig.run(rig.tracking.snapshots.load(1)) == Snapshot(parts=[UNKNOWN])


@pytest.mark.parametrize("bit", range(32))
def test_any_count_of_parts_is_read_in_no_time_and_no_memory(rig: LogRig, bit: int) -> None:
    save(rig, 1, SNAPSHOT)
    head = bytearray(SNAPSHOT.pack_head())
    head[-5 - bit // 8] ^= 1 << bit % 8
    rig.do(rig.store.update_table, TABLE, [TableEntry(b"1\x010", bytes(head))])

    tracemalloc.start()
    try:
        rig.run(rig.tracking.snapshots.load(1))
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most_bytes < 1_000_000


# Deletion


def test_forgetting_a_stream_removes_all_of_it_and_nothing_else(rig: LogRig) -> None:
    for generation in (1, 11, 2):
        save(rig, generation, SNAPSHOT)
        for number in range(1_500 if generation == 1 else 3):
            rig.tracking.store_offset(generation, b"%d" % number, number)
    rig.run(rig.tracking.settled())
    others = {key for key in keys(rig) if not key.startswith((b"1\x00", b"1\x01"))}
    assert len(others) == 2 * (3 + 3)

    rig.tracking.store_offset(1, b"late", 1)
    rig.run(rig.tracking.forget(1))

    assert keys(rig) == others


def test_a_part_that_is_damaged_while_the_server_runs_is_in_the_way_of_nothing_else(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    part = b"\x08" + b"a" * 8 + bytes(300)
    save(rig, 1, replace(SNAPSHOT, parts=[part]))
    rig.tracking.store_offset(2, b"reader", 5)
    rig.run(rig.tracking.settled())
    (path,) = (each for each in (rig.directory / "data").iterdir() if part in each.read_bytes())
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(part) + 5)
        file.write(b"b")

    assert rig.run(rig.tracking.snapshots.load(1)) == Snapshot(parts=[UNKNOWN])
    assert f"stored snapshot is damaged table={TABLE} generation=1" in caplog.text
    rig.run(rig.tracking.forget(2))
    assert f"offsets of deleted streams not removed table={TABLE}" in caplog.text
    assert query(rig, 2, b"reader") == 5


# Durable readers


def place(rig: LogRig, reference: bytes = b"ref") -> int | None:
    reader = rig.run(rig.tracking.reader_of(1, reference))
    return None if reader is None else reader.place


def test_a_durable_reader_has_a_place_from_its_beginning_on(rig: LogRig) -> None:
    assert place(rig) is None
    rig.tracking.store_offset(1, b"ref", 7)
    assert place(rig) is None  # a consumer has that name, no durable reader
    rig.tracking.begin_reader(1, b"ref", 100)
    assert place(rig) == 100
    rig.tracking.store_offset(1, b"ref", 99)
    assert place(rig) == 100
    rig.tracking.store_offset(1, b"ref", 150)
    assert place(rig) == 151
    assert query(rig, 1, b"ref") == 150
    assert place(rig, b"other") is None


def test_the_place_survives_another_opening_and_counts_as_a_reference(rig: LogRig) -> None:
    rig.tracking.begin_reader(1, b"ref", 3, b"mew")
    rig.run(rig.tracking.settled())
    again = rig.run(open_tracking(rig.store, TABLE, rig.loop.call_soon, references_max=1))
    assert rig.run(again.reader_of(1, b"ref")) == DurableReader(3, b"mew")
    again.store_offset(1, b"new", 1)
    assert rig.run(again.reader_of(1, b"ref")) is None  # forgotten in place of the new one


def test_a_reader_in_use_is_not_forgotten_for_another_reference(make_rig: MakeRig) -> None:
    rig = make_rig()
    tracking = rig.run(open_tracking(rig.store, TABLE, rig.loop.call_soon, references_max=2))
    tracking.begin_reader(1, b"used", 3)
    tracking.use_reader(1, b"used")
    for name in (b"a", b"b"):
        tracking.begin_reader(1, name, 1)
    assert rig.run(tracking.reader_of(1, b"used")) == DurableReader(3, b"")
    assert rig.run(tracking.reader_of(1, b"a")) is None

    tracking.use_reader(1, b"b")
    tracking.begin_reader(1, b"c", 1)
    assert rig.run(tracking.reader_of(1, b"c")) is None  # both others are in use
    assert rig.run(tracking.offsets_of(1)) == {}

    tracking.leave_reader(1, b"used")
    tracking.begin_reader(1, b"c", 1)
    assert rig.run(tracking.reader_of(1, b"used")) is None
    assert rig.run(tracking.reader_of(1, b"b")) == DurableReader(1, b"")
    rig.run(tracking.forget(1))
    tracking.leave_reader(1, b"b")
    assert rig.run(tracking.reader_of(1, b"b")) is None


@pytest.mark.parametrize("is_under_way", [False, True])
def test_a_reader_is_forgotten_behind_what_was_stored_before(
    rig: LogRig, *, is_under_way: bool
) -> None:
    rig.tracking.begin_reader(1, b"ref", 3)
    rig.tracking.store_offset(1, b"other", 1)
    if is_under_way:
        rig.run(rig.tracking.settled())
        rig.tracking.store_offset(1, b"ref", 8)
        rig.tracking._send()
    rig.tracking.store_offset(1, b"ref", 9)
    rig.tracking.forget_reader(1, b"ref")

    assert place(rig) is None
    assert query(rig, 1, b"ref") is None
    assert query(rig, 1, b"other") == 1
    rig.tracking.store_offset(1, b"ref", 4)
    assert query(rig, 1, b"ref") == 4


def test_a_deleted_stream_takes_its_readers_along(rig: LogRig) -> None:
    for generation in (1, 11):
        rig.tracking.begin_reader(generation, b"ref", 3)
    rig.run(rig.tracking.forget(1))

    assert place(rig) is None
    assert rig.run(rig.tracking.reader_of(11, b"ref")) == DurableReader(3, b"")
    assert len(keys(rig)) == 1

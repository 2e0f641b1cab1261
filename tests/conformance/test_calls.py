"""How every operation is called and answers: the docstring of store/api.py itself."""

import time
from uuid import UUID

from store.api import ABSENT, AttributeUpdate, Durability, SegmentStore, TableEntry
from store.errors import AttributeMismatch, NoSuchSegment, SegmentSealed, StoreError
from tests.conformance.harness import Pending, Rig
from tests.conformance.promise import promise

WRITER = UUID(int=1)
ATTRIBUTE = UUID(int=2)


def _one_of_each(rig: Rig, store: SegmentStore) -> list[Pending]:
    """Start every operation of the store, on segments a (plain), m (to be merged) and t (table)."""
    session = rig.writer("a", WRITER)
    reader = rig.reader("a")
    return [
        rig.start(store.create_segment, "new"),
        rig.start(session.append, b"x", 1),
        rig.start(store.info, "a"),
        rig.start(store.list_segments, "a"),
        rig.start(store.count_segments, "none/"),
        rig.start(store.open_writer, "a", WRITER),
        rig.start(store.open_reader, "a"),
        rig.start(store.read, "a", 0, 10),
        rig.start(reader.check, 0, 1, len),
        rig.start(store.get_attribute, "a", ATTRIBUTE),
        rig.start(store.update_attributes, "a", [AttributeUpdate(ATTRIBUTE, 1)]),
        rig.start(store.truncate_segment, "a", 1),
        rig.start(store.merge_segments, "a", "m"),
        rig.start(store.seal_segment, "a"),
        rig.start(store.delete_segment, "a"),
        rig.start(store.create_table, "u"),
        rig.start(store.update_table, "t", [TableEntry(b"k", b"v")]),
        rig.start(store.read_table, "t", [b"k"]),
        rig.start(store.iterate_table, "t"),
        rig.start(store.read_table_delta, "t", 0),
        rig.start(store.table_info, "t"),
        rig.start(store.remove_keys, "t", [TableEntry(b"k", b"")]),
        rig.start(store.delete_table, "t"),
    ]


def test_no_result_comes_from_inside_a_call_or_before_the_loop_turns(rig: Rig) -> None:
    rig.create("a", b"abc")
    rig.create("m", b"def")
    rig.do(rig.store.create_table, "t")
    pending = _one_of_each(rig, rig.store)
    time.sleep(0.02)  # longer than a disk takes: results are ready, and wait for the loop
    assert [each.label for each in pending if each.is_done] == []
    rig.wait(*pending)
    assert [each.label for each in pending if isinstance(each.result, StoreError)] == []
    # That each came once and on the loop's thread is checked by the rig at the end of every test.


def test_errors_are_passed_and_come_later_just_as_values_do(rig: Rig) -> None:
    pending = [
        rig.start(rig.store.info, "none"),
        rig.start(rig.store.delete_segment, "none"),
        rig.start(rig.store.read, "none", 0, 1),
        rig.start(rig.store.open_writer, "none", WRITER),
        rig.start(rig.store.get_attribute, "none", ATTRIBUTE),
        rig.start(rig.store.table_info, "none"),
    ]
    assert not any(each.is_done for each in pending)
    rig.wait(*pending)
    for each in pending:
        each.error(NoSuchSegment)


def test_results_of_one_segment_come_in_the_order_of_the_calls(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    pending = [
        rig.start(session.append, b"1" * 10_000, 1),
        rig.start(rig.store.info, "a"),
        rig.start(session.append, b"2", 2),
        rig.start(rig.store.update_attributes, "a", [AttributeUpdate(ATTRIBUTE, 5)]),
        rig.start(rig.store.get_attribute, "a", ATTRIBUTE),
        rig.start(rig.store.read, "a", 0, 5),
        rig.start(rig.store.create_segment, "a"),  # refused, and that waits for its turn too
        rig.start(rig.store.truncate_segment, "a", 10_000),
        rig.start(rig.store.seal_segment, "a"),
        rig.start(session.append, b"3", 3),
        rig.start(rig.store.info, "a"),
    ]
    for index, each in enumerate(pending):
        rig.wait(each)
        assert all(earlier.is_done for earlier in pending[:index])
    # That holds in every test of this suite: the rig checks it, see `violations`.


def test_what_was_called_earlier_has_happened_when_a_later_call_is_answered(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    appended = rig.start(session.append, b"abc", 7)
    read = rig.start(rig.store.read, "a", 0, 10)
    number = rig.start(rig.store.get_attribute, "a", WRITER)
    sealed = rig.start(rig.store.seal_segment, "a")
    late = rig.start(session.append, b"d", 8)
    rig.wait(appended, read, number, sealed, late)
    assert (read.value.data, number.value, sealed.value) == (b"abc", 7, 3)
    late.error(SegmentSealed)


@promise("Writer.append")
def test_a_refusal_for_a_deleted_segment_waits_for_what_was_called_before(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    appended = rig.start(session.append, b"x", 1)
    deleted = rig.start(rig.store.delete_segment, "a")
    late = rig.start(session.append, b"y", 2)
    rig.wait(late)
    assert (appended.is_done, deleted.is_done) == (True, True)
    assert (appended.value.position, deleted.value) == (0, None)
    late.error(NoSuchSegment)


@promise("SegmentStore.merge_segments")
def test_a_refused_merge_keeps_its_place(rig: Rig) -> None:
    source = rig.writer(rig.create("s"), WRITER)
    rig.create("t", b"t")
    appended = rig.start(source.append, b"x", 1)
    update = [AttributeUpdate(ATTRIBUTE, 1, expected=5)]
    merged = rig.start(rig.store.merge_segments, "t", "s", attributes=update)
    info = rig.start(rig.store.info, "t")
    rig.wait(info)
    assert (appended.is_done, merged.is_done) == (True, True)
    merged.error(AttributeMismatch)


def test_operations_of_many_segments_may_be_under_way_at_once(rig: Rig) -> None:
    names = [f"s/{index}" for index in range(100)]
    rig.wait(*(rig.start(rig.store.create_segment, name) for name in names))
    sessions = [rig.writer(name, WRITER) for name in names]
    appends = [
        rig.start(session.append, name.encode(), 1)
        for session, name in zip(sessions, names, strict=True)
    ]
    rig.wait(*appends)
    assert [rig.content(name) for name in names] == [name.encode() for name in names]


@promise("Writer.append")
def test_every_durability_can_be_asked_for_by_one_append(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    appends = [
        rig.start(session.append, bytes([65 + number]), number, durability=durability)
        for number, durability in enumerate([*Durability, None, *reversed(Durability)])
    ]
    rig.wait(*appends)
    assert [each.value.position for each in appends] == list(range(7))
    assert rig.content("a") == b"ABCDEFG"


@promise("SegmentStore.create_segment")
def test_every_durability_can_be_asked_for_by_create_and_table_update(rig: Rig) -> None:
    for durability in Durability:
        rig.do(rig.store.create_segment, durability.value, durability=durability)
    rig.do(rig.store.create_table, "t")
    for durability in Durability:
        entry = TableEntry(durability.value.encode(), b"x")
        rig.do(rig.store.update_table, "t", [entry], durability=durability)
    assert rig.do(rig.store.table_info, "t")[1] == len(Durability)


def test_an_unknown_attribute_of_a_fresh_segment_is_absent(rig: Rig) -> None:
    assert rig.do(rig.store.get_attribute, rig.create("a"), ATTRIBUTE) == ABSENT

"""Closing a store, and opening it again."""

import os
from pathlib import Path
from uuid import UUID

import pytest

from store.api import AttributeUpdate, TableEntry
from store.errors import StoreClosed, StoreLocked
from tests.conformance.harness import Rig
from tests.conformance.implementations import Implementation, needs_files
from tests.conformance.promise import promise

WRITER = UUID(int=1)


@promise("SegmentStore.close")
def test_what_was_called_before_close_is_finished(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(rig.store.create_table, "t")
    pending = [rig.start(session.append, b"%02d" % number, number) for number in range(50)]
    pending += [
        rig.start(rig.store.update_attributes, "a", [AttributeUpdate(UUID(int=5), 5)]),
        rig.start(rig.store.update_table, "t", [TableEntry(b"k", b"v")]),
        rig.start(rig.store.create_segment, "b"),
    ]
    rig.close()
    for each in pending:
        assert each.value is None or each.value
    rig.reopen()
    assert rig.content("a") == b"".join(b"%02d" % number for number in range(50))
    assert rig.do(rig.store.get_attribute, "a", UUID(int=5)) == 5
    assert rig.do(rig.store.table_info, "t")[1] == 1
    assert rig.do(rig.store.info, "b").length == 0


@promise("SegmentStore.for_removal")
def test_operations_for_a_removal_are_those_of_the_same_store(rig: Rig) -> None:
    rig.do(rig.store.for_removal.create_segment, "a")
    rig.do(rig.writer("a", WRITER).append, b"one", 1)
    session = rig.do(rig.store.for_removal.open_writer, "a", WRITER)
    assert session.event_number == 1
    rig.do(session.append, b"two", 2)
    rig.do(rig.store.create_table, "t")
    pending = [
        rig.start(store.update_table, "t", [TableEntry(b"k", b"%d" % number)])
        for number, store in enumerate((rig.store, rig.store.for_removal) * 2)
    ]
    rig.wait(*pending)
    assert rig.content("a") == b"onetwo"
    (entry,) = rig.do(rig.store.for_removal.read_table, "t", [b"k"])
    assert entry.value == b"3"
    rig.close()
    rig.refused(StoreClosed, rig.store.for_removal.info, "a")


@promise("SegmentStore.close", StoreClosed)
def test_calls_after_close_are_refused(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"abc"), WRITER)
    reader = rig.reader("a")
    store = rig.store
    closing = rig.start(store.close)
    at_once = rig.start(session.append, b"x", 1)  # while it closes
    rig.wait(closing, at_once)
    at_once.error(StoreClosed)
    for call, arguments in (
        (session.append, (b"x", 1)),
        (store.create_segment, ("b",)),
        (store.delete_segment, ("a",)),
        (store.seal_segment, ("a",)),
        (store.truncate_segment, ("a", 1)),
        (store.merge_segments, ("a", "b")),
        (store.info, ("a",)),
        (store.open_writer, ("a", WRITER)),
        (store.open_reader, ("a",)),
        (store.read, ("a", 0, 1)),
        (store.get_attribute, ("a", WRITER)),
        (store.update_attributes, ("a", [AttributeUpdate(WRITER, 1)])),
        (store.create_table, ("t",)),
        (store.delete_table, ("t",)),
        (store.update_table, ("t", [TableEntry(b"k", b"v")])),
        (store.remove_keys, ("t", [TableEntry(b"k", b"v")])),
        (store.read_table, ("t", [b"k"])),
        (store.iterate_table, ("t",)),
        (store.read_table_delta, ("t", 0)),
        (store.table_info, ("t",)),
        (reader.check, (0, 1, len)),
    ):
        rig.refused(StoreClosed, call, *arguments)
    rig.reopen()
    assert rig.content("a") == b"abc"


@promise("SegmentStore.close")
def test_a_waiting_read_hears_that_the_store_closes(rig: Rig) -> None:
    rig.create("a", b"abc")
    reader = rig.start(rig.store.read, "a", 3, 10, wait=True)
    rig.close()
    rig.wait(reader)
    reader.error(StoreClosed)


@promise("SegmentStore.close")
def test_the_directory_is_free_when_close_is_done(rig: Rig) -> None:
    rig.create("a")
    for number in range(10):
        rig.fill("a", b"%d" % number)
        rig.reopen()
    assert rig.content("a") == b"0123456789"


@promise("SegmentStore.close")
@needs_files
def test_a_store_that_is_open_is_nobody_elses(
    rig: Rig, implementation: Implementation, tmp_path: Path
) -> None:
    with pytest.raises(StoreLocked, match=str(os.getpid())):
        implementation.open(rig.loop, tmp_path)
    rig.create("a", b"still mine")
    rig.close()
    rig.reopen()
    assert rig.content("a") == b"still mine"


@promise("SegmentStore.close", StoreClosed)
def test_a_second_close_does_no_harm(rig: Rig) -> None:
    first, second = rig.start(rig.store.close), rig.start(rig.store.close)
    rig.wait(first, second)
    assert first.value is None
    if second.result is not None:
        second.error(StoreClosed)
    rig.reopen()

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from store.api import ABSENT, AttributeUpdate, Durability
from store.errors import (
    AttributeMismatch,
    InvalidArgument,
    IsATable,
    NoSuchSegment,
    SegmentExists,
    SegmentSealed,
    SegmentTruncated,
    StoreClosed,
    StoreError,
)
from tests.simulation.disk import Disk, Sync
from tests.unit.store.local.opened import WRITER, Opened, opened

ATTRIBUTE = UUID(int=2)


@pytest.fixture
def rig() -> Opened:
    return opened(Disk())


def test_names_are_1_to_1024_bytes_of_text(rig: Opened) -> None:
    rig.refused(InvalidArgument, rig.store.create_segment, "")
    rig.refused(InvalidArgument, rig.store.create_segment, "ü" * 512 + "x")
    rig.refused(InvalidArgument, rig.store.create_segment, "\udc80")
    rig.create("ü" * 512, b"x")
    rig.create("x")
    rig.close()


def test_names_on_the_disk_are_numbers() -> None:
    disk = Disk()
    rig = opened(disk)
    for name in ("../escape", "a/b", "nul\0", "."):
        rig.create(name, b"x")
    assert sorted(disk.names("data")) == ["1", "2", "3", "4"]
    assert sorted(disk.names("")) == ["checkpoint", "data", "journal", "lock", "reserve"]
    rig.close()


def test_a_name_can_be_created_while_its_deletion_is_on_its_way(rig: Opened) -> None:
    session = rig.session("a")
    rig.do(session.append, b"old", 1)
    pending = [
        rig.start(rig.store.delete_segment, "a"),
        rig.start(rig.store.create_segment, "a"),
        rig.start(rig.store.create_segment, "a"),
    ]
    rig.wait(*pending)
    assert [each.result for each in pending[:2]] == [None, None]
    pending[2].error(SegmentExists)
    assert rig.content("a") == b""
    rig.refused(NoSuchSegment, session.append, b"late", 2)
    rig.close()


def test_an_update_that_fails_halfway_changes_nothing(rig: Opened) -> None:
    rig.create("a")
    updates = [AttributeUpdate(ATTRIBUTE, 1), AttributeUpdate(WRITER, 2, expected=5)]
    rig.refused(AttributeMismatch, rig.store.update_attributes, "a", updates)
    rig.do(rig.store.update_attributes, "a", updates[:1])
    later = [AttributeUpdate(ATTRIBUTE, 7, expected=1), AttributeUpdate(ATTRIBUTE, 8, expected=7)]
    rig.do(rig.store.update_attributes, "a", later)
    assert rig.do(rig.store.get_attribute, "a", ATTRIBUTE) == 8
    rig.close()


def test_a_value_that_does_not_fit_is_refused(rig: Opened) -> None:
    rig.create("a")
    for value in (2**63, -(2**63) - 1):
        update = [AttributeUpdate(ATTRIBUTE, value)]
        rig.refused(InvalidArgument, rig.store.update_attributes, "a", update)
    rig.close()


def test_a_merge_moves_files_and_copies_nothing() -> None:
    disk = Disk()
    rig = opened(disk)
    for name in ("t", "s"):
        rig.create(name, name.encode() * 5_000)
    before = {step for step in disk.record if not isinstance(step, Sync)}
    rig.do(rig.store.merge_segments, "t", "s")
    written = [step for step in disk.record if not isinstance(step, Sync) and step not in before]
    assert len(written) == 1  # the journal's
    rig.fill("t", b"more")
    assert rig.content("t") == b"t" * 5_000 + b"s" * 5_000 + b"more"
    rig.close()


def test_a_merge_with_a_table_or_nothing_is_refused(rig: Opened) -> None:
    rig.create("a", b"x")
    rig.do(rig.store.create_table, "t")
    rig.refused(IsATable, rig.store.merge_segments, "a", "t")
    rig.refused(IsATable, rig.store.merge_segments, "t", "a")
    rig.refused(NoSuchSegment, rig.store.merge_segments, "a", "none")
    rig.refused(NoSuchSegment, rig.store.merge_segments, "none", "a")
    rig.refused(InvalidArgument, rig.store.merge_segments, "a", "a")
    rig.close()


def test_in_os_durability_no_operation_waits_for_a_sync() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    begin = sum(isinstance(step, Sync) for step in disk.record)
    session = rig.session("a")
    rig.do(session.append, b"x", 1)
    rig.create("s", b"y")
    rig.do(rig.store.merge_segments, "a", "s")
    rig.do(rig.store.update_attributes, "a", [AttributeUpdate(ATTRIBUTE, 1)])
    rig.do(rig.store.seal_segment, "a")
    assert sum(isinstance(step, Sync) for step in disk.record) == begin
    rig.close()


def test_one_operation_may_ask_for_more_than_the_store_does() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    begin = len(disk.record)
    rig.do(rig.store.create_segment, "a", durability=Durability.DISK)
    assert any(isinstance(step, Sync) for step in disk.record[begin:])
    rig.close()


Call = Callable[[Opened, str], tuple[Callable[..., object], *tuple[Any, ...]]]
OF_A_SEGMENT: list[Call] = [
    lambda rig, name: (rig.store.seal_segment, name),
    lambda rig, name: (rig.store.truncate_segment, name, 0),
    lambda rig, name: (rig.store.delete_segment, name),
    lambda rig, name: (rig.store.merge_segments, name, "other"),
    lambda rig, name: (rig.store.merge_segments, "other", name),
    lambda rig, name: (rig.store.open_writer, name, WRITER),
    lambda rig, name: (rig.store.open_reader, name),
    lambda rig, name: (rig.store.read, name, 0, 1),
    lambda rig, name: (rig.store.info, name),
    lambda rig, name: (rig.store.get_attribute, name, ATTRIBUTE),
    lambda rig, name: (rig.store.update_attributes, name, []),
]


@pytest.mark.parametrize("call", OF_A_SEGMENT)
def test_every_operation_on_a_segment_needs_it_to_be_there(rig: Opened, call: Call) -> None:
    rig.create("other")
    rig.refused(NoSuchSegment, *call(rig, "none"))

    rig.create("a")
    deleted = rig.start(rig.store.delete_segment, "a")
    rig.refused(NoSuchSegment, *call(rig, "a"))
    assert deleted.value is None
    rig.close()


@pytest.mark.parametrize("call", OF_A_SEGMENT)
def test_a_store_that_is_closed_takes_no_operation(rig: Opened, call: Call) -> None:
    rig.create("other")
    rig.create("a")
    rig.close()
    rig.refused(StoreClosed, *call(rig, "a"))


CHANGES: list[Call] = [
    lambda rig, name: (rig.store.seal_segment, name),
    lambda rig, name: (rig.store.merge_segments, name, "other"),
    lambda rig, name: (rig.store.update_attributes, name, [AttributeUpdate(ATTRIBUTE, 1)]),
]


@pytest.mark.parametrize("call", CHANGES)
def test_a_sealed_segment_is_not_changed(rig: Opened, call: Call) -> None:
    rig.create("other", b"y")
    rig.create("a", b"x")
    assert rig.do(rig.store.seal_segment, "a") == 1

    rig.refused(SegmentSealed, *call(rig, "a"))

    assert rig.content("a") == b"x"
    assert rig.content("other") == b"y"
    assert rig.do(rig.store.get_attribute, "a", ATTRIBUTE) == ABSENT
    rig.close()


def test_a_sealed_segment_can_be_merged_into_another(rig: Opened) -> None:
    rig.create("a", b"x")
    rig.create("other", b"y")
    rig.do(rig.store.seal_segment, "other")
    rig.do(rig.store.merge_segments, "a", "other")
    assert rig.content("a") == b"xy"
    rig.close()


@pytest.mark.parametrize("position", [-1, 1, 6])
def test_a_truncation_goes_to_a_place_within_the_segment(rig: Opened, position: int) -> None:
    rig.create("a", b"12345")
    rig.do(rig.store.truncate_segment, "a", 2)

    error = rig.refused(SegmentTruncated, rig.store.truncate_segment, "a", position)

    assert error.start == 2
    info = rig.do(rig.store.info, "a")
    assert (info.start, info.length) == (2, 5)
    rig.close()


def test_a_segment_of_which_something_was_removed_is_merged_into_none(rig: Opened) -> None:
    rig.create("a")
    rig.create("cut", b"12345")
    rig.do(rig.store.truncate_segment, "cut", 2)
    assert rig.refused(SegmentTruncated, rig.store.merge_segments, "a", "cut").start == 2
    rig.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda rig, name: (rig.store.truncate_segment, name, 0),
        lambda rig, name: (rig.store.open_reader, name),
    ],
)
def test_a_table_is_no_segment_to_be_read_or_truncated(rig: Opened, call: Call) -> None:
    rig.do(rig.store.create_table, "t")
    rig.refused(IsATable, *call(rig, "t"))
    rig.close()


@pytest.mark.parametrize("call", OF_A_SEGMENT)
def test_an_answer_waits_for_the_operations_before_it(rig: Opened, call: Call) -> None:
    rig.create("other")
    before = rig.start(rig.store.create_segment, "a")

    def look(_: object) -> None:
        assert before.is_done

    asked = rig.start(*call(rig, "a"), then=look)
    rig.wait(asked)
    assert before.value is None
    assert not isinstance(asked.result, StoreError)
    rig.close()

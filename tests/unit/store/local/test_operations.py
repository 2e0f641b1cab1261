from uuid import UUID

import pytest

from store.api import AttributeUpdate, Durability
from store.errors import (
    AttributeMismatch,
    InvalidArgument,
    IsATable,
    NoSuchSegment,
    SegmentExists,
)
from tests.simulation.disk import Disk, Sync
from tests.unit.store.local.opened import WRITER, Opened, opened

ATTRIBUTE = UUID(int=2)


@pytest.fixture
def rig() -> Opened:
    return opened(Disk())


def test_names_are_1_to_65535_bytes_of_text(rig: Opened) -> None:
    rig.refused(InvalidArgument, rig.store.create_segment, "")
    rig.refused(InvalidArgument, rig.store.create_segment, "ü" * 32_768)
    rig.refused(InvalidArgument, rig.store.create_segment, "\udc80")
    rig.create("ü" * 32_767 + "x", b"x")
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

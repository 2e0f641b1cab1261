"""Attributes: 64-bit numbers that belong to a segment and change by compare-and-set."""

from uuid import UUID

import pytest

from store.api import ABSENT, ATTRIBUTES_MAX, AttributeUpdate
from store.errors import (
    AttributeMismatch,
    InvalidArgument,
    NoSuchSegment,
    SegmentExists,
    SegmentSealed,
    WriterFenced,
)
from tests.conformance.harness import Rig
from tests.conformance.promise import promise

A, B, C = (UUID(int=value) for value in (2, 3, 2**128 - 1))
WRITER = UUID(int=1)


def _set(rig: Rig, *updates: AttributeUpdate) -> None:
    rig.do(rig.store.update_attributes, "s", updates)


def _get(rig: Rig, attribute: UUID) -> int:
    value = rig.do(rig.store.get_attribute, "s", attribute)
    assert isinstance(value, int)
    return value


@promise("SegmentStore.get_attribute")
@promise("SegmentStore.update_attributes")
@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63) + 1])
def test_an_attribute_reads_as_it_was_set(rig: Rig, value: int) -> None:
    rig.create("s")
    assert _get(rig, A) == ABSENT
    _set(rig, AttributeUpdate(A, value), AttributeUpdate(C, 7))
    assert (_get(rig, A), _get(rig, B), _get(rig, C)) == (value, ABSENT, 7)
    rig.reopen()
    assert (_get(rig, A), _get(rig, B), _get(rig, C)) == (value, ABSENT, 7)


@promise("SegmentStore.create_segment")
def test_a_segment_has_the_attributes_of_its_creation_from_the_beginning(rig: Rig) -> None:
    updates = [AttributeUpdate(A, 7), AttributeUpdate(WRITER, 40, expected=ABSENT)]
    created = rig.start(rig.store.create_segment, "s", attributes=updates)
    opened = rig.start(rig.store.open_writer, "s", WRITER)
    found = rig.start(rig.store.get_attribute, "s", A)
    changed = rig.start(rig.store.update_attributes, "s", [AttributeUpdate(B, 1, expected=ABSENT)])
    rig.wait(created, opened, found, changed)
    assert (created.value, found.value, changed.value) == (None, 7, None)
    assert opened.value.event_number == 40
    for _ in range(2):
        assert (_get(rig, A), _get(rig, B), _get(rig, C), _get(rig, WRITER)) == (7, 1, ABSENT, 40)
        rig.reopen()
    rig.do(rig.store.delete_segment, "s")
    rig.create("s")
    assert (_get(rig, A), _get(rig, WRITER)) == (ABSENT, ABSENT)


@promise("SegmentStore.create_segment", AttributeMismatch)
def test_a_creation_whose_attribute_expects_a_value_makes_nothing(rig: Rig) -> None:
    updates = [AttributeUpdate(A, 1), AttributeUpdate(B, 2, expected=0)]
    rig.refused(AttributeMismatch, rig.store.create_segment, "s", attributes=updates)
    rig.refused(NoSuchSegment, rig.store.info, "s")
    rig.create("s")
    assert (_get(rig, A), _get(rig, B)) == (ABSENT, ABSENT)
    kept = [AttributeUpdate(A, 1)]
    rig.refused(SegmentExists, rig.store.create_segment, "s", attributes=kept)
    assert _get(rig, A) == ABSENT


@promise("SegmentStore.update_attributes")
def test_setting_absent_removes_an_attribute(rig: Rig) -> None:
    rig.create("s")
    _set(rig, AttributeUpdate(A, 1))
    _set(rig, AttributeUpdate(A, ABSENT))
    assert _get(rig, A) == ABSENT
    _set(rig, AttributeUpdate(A, 5, expected=ABSENT))
    rig.reopen()
    assert _get(rig, A) == 5


@promise("SegmentStore.update_attributes", AttributeMismatch)
def test_a_condition_that_fails_changes_nothing_at_all(rig: Rig) -> None:
    rig.create("s")
    _set(rig, AttributeUpdate(A, 1))
    for updates in (
        [AttributeUpdate(B, 9), AttributeUpdate(A, 2, expected=0)],
        [AttributeUpdate(A, 2, expected=1), AttributeUpdate(B, 9, expected=0)],
        [AttributeUpdate(A, 2, expected=ABSENT)],
    ):
        rig.refused(AttributeMismatch, rig.store.update_attributes, "s", updates)
        assert (_get(rig, A), _get(rig, B)) == (1, ABSENT)
    rig.reopen()
    assert (_get(rig, A), _get(rig, B)) == (1, ABSENT)


@promise("SegmentStore.update_attributes")
def test_conditions_that_hold_change_all(rig: Rig) -> None:
    rig.create("s")
    _set(rig, AttributeUpdate(A, 1, expected=ABSENT))
    _set(rig, AttributeUpdate(A, 2, expected=1), AttributeUpdate(B, 3, expected=ABSENT))
    assert (_get(rig, A), _get(rig, B)) == (2, 3)


@promise("SegmentStore.update_attributes")
def test_of_two_updates_at_once_with_one_expectation_the_first_wins(rig: Rig) -> None:
    rig.create("s")
    first = rig.start(rig.store.update_attributes, "s", [AttributeUpdate(A, 1, expected=ABSENT)])
    second = rig.start(rig.store.update_attributes, "s", [AttributeUpdate(A, 2, expected=ABSENT)])
    third = rig.start(rig.store.update_attributes, "s", [AttributeUpdate(A, 3, expected=1)])
    rig.wait(first, second, third)
    second.error(AttributeMismatch)
    assert (first.value, third.value, _get(rig, A)) == (None, None, 3)


@promise("SegmentStore.update_attributes")
def test_no_updates_at_all_change_nothing(rig: Rig) -> None:
    rig.create("s", b"x")
    _set(rig)
    assert rig.content("s") == b"x"


@promise("SegmentStore.get_attribute")
def test_the_id_of_a_writer_holds_its_event_number(rig: Rig) -> None:
    session = rig.writer(rig.create("s"), WRITER)
    assert _get(rig, WRITER) == ABSENT
    rig.do(session.append, b"x", 41)
    assert _get(rig, WRITER) == 41
    rig.do(session.append, b"", 42)
    assert _get(rig, WRITER) == 42


@promise("SegmentStore.get_attribute")
def test_an_attribute_reads_true_after_idling_and_much_else(rig: Rig) -> None:
    session = rig.writer(rig.create("s"), WRITER)
    rig.do(session.append, b"x", 41)
    _set(rig, AttributeUpdate(A, 1))
    other = rig.writer(rig.create("busy"), WRITER)
    for first in range(0, 2_000, 500):
        rig.wait(*(rig.start(other.append, b"y" * 1_000, first + each) for each in range(500)))
    for index in range(200):
        rig.create(f"one of many {index}")
    assert (_get(rig, WRITER), _get(rig, A)) == (41, 1)
    rig.reopen()
    assert (_get(rig, WRITER), _get(rig, A)) == (41, 1)


@promise("SegmentStore.update_attributes", SegmentSealed)
def test_a_sealed_segment_keeps_its_attributes_and_refuses_updates(rig: Rig) -> None:
    rig.create("s")
    _set(rig, AttributeUpdate(A, 1))
    rig.do(rig.store.seal_segment, "s")
    rig.refused(SegmentSealed, rig.store.update_attributes, "s", [AttributeUpdate(A, 2)])
    assert _get(rig, A) == 1


@promise("SegmentStore.update_attributes", NoSuchSegment)
@promise("SegmentStore.get_attribute")
def test_attributes_of_nothing(rig: Rig) -> None:
    rig.refused(NoSuchSegment, rig.store.get_attribute, "none", A)
    rig.refused(NoSuchSegment, rig.store.update_attributes, "none", [AttributeUpdate(A, 2)])


@promise("SegmentStore.update_attributes")
@pytest.mark.parametrize("value", [0, 5, 6, 7, ABSENT])
def test_changing_the_attribute_of_a_writer_fences_its_sessions(rig: Rig, value: int) -> None:
    session = rig.writer(rig.create("s"), WRITER)
    rig.do(session.append, b"x", 4)
    _set(rig, AttributeUpdate(WRITER, value, expected=4))
    rig.refused(WriterFenced, session.append, b"y", 5)
    assert rig.content("s") == b"x"
    newer = rig.writer("s", WRITER)
    assert newer.event_number == value
    rig.do(newer.append, b"z", 8)
    rig.refused(WriterFenced, session.append, b"y", 9)
    assert rig.content("s") == b"xz"


@promise("SegmentStore.update_attributes", InvalidArgument)
def test_a_segment_has_no_more_attributes_than_may_be_beside_its_writers(rig: Rig) -> None:
    session = rig.writer(rig.create("s"), WRITER)
    rig.do(session.append, b"x", 1)
    _set(rig, *(AttributeUpdate(UUID(int=1 << 64 | n), n) for n in range(ATTRIBUTES_MAX)))
    rig.refused(InvalidArgument, rig.store.update_attributes, "s", [AttributeUpdate(A, 1)])
    _set(rig, AttributeUpdate(UUID(int=1 << 64), 9), AttributeUpdate(WRITER, 4))
    _set(rig, AttributeUpdate(UUID(int=1 << 64), ABSENT))
    _set(rig, AttributeUpdate(A, 1))
    rig.reopen()
    assert (_get(rig, A), _get(rig, WRITER)) == (1, 4)
    rig.refused(InvalidArgument, rig.store.update_attributes, "s", [AttributeUpdate(B, 1)])

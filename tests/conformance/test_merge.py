"""Merging one segment into another."""

from uuid import UUID

import pytest

from store.api import ABSENT, AttributeUpdate
from store.errors import (
    AttributeMismatch,
    InvalidArgument,
    IsATable,
    LengthMismatch,
    NoSuchSegment,
    SegmentSealed,
    SegmentTruncated,
)
from tests.conformance.harness import Rig
from tests.conformance.promise import promise

WRITER, OTHER = UUID(int=1), UUID(int=2)
A, B = UUID(int=3), UUID(int=4)


@promise("SegmentStore.merge_segments")
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_merge_appends_the_source_and_deletes_it(rig: Rig, *, is_sealed: bool) -> None:
    rig.create("t", b"target")
    rig.create("s", b"source")
    if is_sealed:
        rig.do(rig.store.seal_segment, "s")
    assert rig.do(rig.store.merge_segments, "t", "s") == 12
    assert rig.content("t") == b"targetsource"
    rig.refused(NoSuchSegment, rig.store.info, "s")
    rig.create("s", b"again")  # the name is free
    rig.reopen()
    assert rig.content("t") == b"targetsource"
    assert rig.content("s") == b"again"


@promise("SegmentStore.merge_segments")
@pytest.mark.parametrize(("target", "source"), [(b"", b""), (b"", b"s"), (b"t", b"")])
def test_merging_from_and_into_empty_segments(rig: Rig, target: bytes, source: bytes) -> None:
    rig.create("t", target)
    rig.create("s", source)
    assert rig.do(rig.store.merge_segments, "t", "s") == len(target + source)
    assert rig.content("t") == target + source
    rig.refused(NoSuchSegment, rig.store.info, "s")


@promise("SegmentStore.merge_segments")
@pytest.mark.parametrize("count", [2, 40])
def test_a_source_of_many_files_merges_as_one(rig: Rig, count: int) -> None:
    rig.create("t", b"target")
    session = rig.writer(rig.create("s"), WRITER)
    pieces = [bytes([65 + n]) * 30_000 for n in range(count)]
    rig.wait(*(rig.start(session.append, piece, n) for n, piece in enumerate(pieces)))
    assert rig.do(rig.store.merge_segments, "t", "s") == 6 + 30_000 * count
    rig.fill("t", b"after")
    expected = b"target" + b"".join(pieces) + b"after"
    assert rig.content("t") == expected
    rig.reopen()
    assert rig.content("t") == expected


@promise("SegmentStore.merge_segments")
def test_a_merge_takes_its_place_among_what_is_under_way(rig: Rig) -> None:
    into, of = rig.writer(rig.create("t"), WRITER), rig.writer(rig.create("s"), WRITER)
    pending = [
        rig.start(into.append, b"1", 1),
        rig.start(of.append, b"s", 1),
        rig.start(rig.store.merge_segments, "t", "s"),
        rig.start(into.append, b"2", 2),
    ]
    late = rig.start(of.append, b"late", 2)
    rig.wait(*pending, late)
    assert [each.value.position for each in (pending[0], pending[3])] == [0, 2]
    assert pending[2].value == 2
    late.error(NoSuchSegment)
    assert rig.content("t") == b"1s2"


@promise("SegmentStore.merge_segments")
def test_a_merge_changes_the_length_that_conditional_appends_expect(rig: Rig) -> None:
    session = rig.writer(rig.create("t", b"t"), WRITER)
    rig.create("s", b"source")
    rig.start(rig.store.merge_segments, "t", "s")
    error = rig.refused(LengthMismatch, session.append, b"x", 1, expected_length=1)
    assert error.length == 7
    assert rig.do(session.append, b"x", 1, expected_length=7).position == 7


@promise("SegmentStore.merge_segments")
def test_a_merge_updates_attributes_with_the_bytes(rig: Rig) -> None:
    rig.create("t", b"t")
    rig.create("s", b"s")
    rig.do(rig.store.update_attributes, "t", [AttributeUpdate(A, 1)])
    updates = [AttributeUpdate(A, 2, expected=1), AttributeUpdate(B, 3, expected=ABSENT)]
    rig.do(rig.store.merge_segments, "t", "s", attributes=updates)
    for _ in range(2):
        assert rig.do(rig.store.get_attribute, "t", A) == 2
        assert rig.do(rig.store.get_attribute, "t", B) == 3
        assert rig.content("t") == b"ts"
        rig.reopen()


@promise("SegmentStore.merge_segments")
def test_the_attributes_of_the_source_are_gone(rig: Rig) -> None:
    rig.create("t", b"t")
    rig.do(rig.writer(rig.create("s"), WRITER).append, b"s", 9)
    rig.do(rig.store.update_attributes, "s", [AttributeUpdate(A, 1)])
    rig.do(rig.store.merge_segments, "t", "s")
    assert rig.do(rig.store.get_attribute, "t", WRITER) == ABSENT
    assert rig.do(rig.store.get_attribute, "t", A) == ABSENT


@promise("SegmentStore.merge_segments", AttributeMismatch)
def test_a_condition_that_fails_leaves_both_as_they_were(rig: Rig) -> None:
    rig.create("t", b"t")
    source = rig.writer(rig.create("s"), WRITER)
    rig.do(source.append, b"s", 1)
    updates = [AttributeUpdate(B, 3), AttributeUpdate(A, 2, expected=1)]
    rig.refused(AttributeMismatch, rig.store.merge_segments, "t", "s", attributes=updates)
    assert rig.content("t") == b"t"
    assert rig.do(rig.store.get_attribute, "t", B) == ABSENT
    assert not rig.do(rig.store.info, "s").sealed
    rig.do(source.append, b"more", 2)
    assert rig.do(rig.store.merge_segments, "t", "s") == 6
    assert rig.content("t") == b"tsmore"


@promise("SegmentStore.merge_segments", SegmentTruncated)
def test_a_truncated_source_is_refused(rig: Rig) -> None:
    rig.create("t", b"t")
    rig.create("s", b"source")
    rig.do(rig.store.truncate_segment, "s", 1)
    error = rig.refused(SegmentTruncated, rig.store.merge_segments, "t", "s")
    assert error.start == 1
    assert (rig.content("t"), rig.content("s")) == (b"t", b"ource")
    assert not rig.do(rig.store.info, "s").sealed


@promise("SegmentStore.merge_segments", InvalidArgument)
def test_a_segment_cannot_be_merged_into_itself(rig: Rig) -> None:
    rig.create("t", b"t")
    rig.refused(InvalidArgument, rig.store.merge_segments, "t", "t")
    assert rig.content("t") == b"t"


@promise("SegmentStore.merge_segments", SegmentSealed)
def test_a_sealed_target_is_refused(rig: Rig) -> None:
    rig.create("t", b"t")
    rig.create("s", b"s")
    rig.do(rig.store.seal_segment, "t")
    rig.refused(SegmentSealed, rig.store.merge_segments, "t", "s")
    assert (rig.content("t"), rig.content("s")) == (b"t", b"s")
    rig.fill("s", b"open")


@promise("SegmentStore.merge_segments")
def test_a_merge_needs_both_segments(rig: Rig) -> None:
    rig.create("t", b"t")
    rig.refused(NoSuchSegment, rig.store.merge_segments, "t", "none")
    rig.refused(NoSuchSegment, rig.store.merge_segments, "none", "t")
    assert rig.content("t") == b"t"


@promise("SegmentStore.merge_segments")
def test_the_second_of_two_merges_at_once_finds_no_source(rig: Rig) -> None:
    rig.create("t", b"t")
    rig.create("s", b"s")
    first = rig.start(rig.store.merge_segments, "t", "s")
    second = rig.start(rig.store.merge_segments, "t", "s")
    rig.wait(first, second)
    assert first.value == 2
    second.error(NoSuchSegment)


@promise("SegmentStore.merge_segments")
def test_a_table_cannot_be_merged(rig: Rig) -> None:
    rig.create("s", b"s")
    rig.do(rig.store.create_table, "t")
    rig.refused(IsATable, rig.store.merge_segments, "t", "s")
    rig.refused(IsATable, rig.store.merge_segments, "s", "t")
    assert rig.content("s") == b"s"


@promise("SegmentStore.merge_segments")
def test_a_truncated_target_takes_a_merge(rig: Rig) -> None:
    rig.create("t", b"target")
    rig.create("s", b"source")
    rig.do(rig.store.truncate_segment, "t", 6)
    assert rig.do(rig.store.merge_segments, "t", "s") == 12
    assert rig.content("t") == b"source"


@promise("SegmentStore.merge_segments")
def test_readers_waiting_on_the_target_get_merged_bytes_and_on_the_source_an_error(
    rig: Rig,
) -> None:
    rig.create("t", b"t")
    rig.create("s", b"source")
    at_target = rig.start(rig.store.read, "t", 1, 10, wait=True)
    at_source = rig.start(rig.store.read, "s", 6, 10, wait=True)
    rig.do(rig.store.merge_segments, "t", "s")
    rig.wait(at_target, at_source)
    assert at_target.value.data == b"source"
    # The merge seals the source first, so the end of the segment is as true as its absence.
    if isinstance(at_source.result, NoSuchSegment):
        return
    assert (at_source.value.data, at_source.value.end_of_segment) == (b"", True)

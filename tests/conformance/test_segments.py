"""Creating, describing, sealing, truncating and deleting segments."""

import time
from uuid import UUID

import pytest

from store.api import ABSENT, AttributeUpdate, SegmentInfo
from store.errors import (
    InvalidArgument,
    NoSuchSegment,
    SegmentExists,
    SegmentSealed,
    SegmentTruncated,
    StoreError,
)
from tests.conformance.harness import Rig
from tests.conformance.promise import promise

WRITER = UUID(int=1)
ATTRIBUTE = UUID(int=2)

ODD_NAMES = [
    "a",
    "stream/0.#epoch.0",
    "../../etc/passwd",
    "/",
    ".",
    "..",
    "CON",
    "line\nfeed",
    "nul\0inside",
    "blank ",
    "größe €",
    "\U0001f9c0" * 256,
    "n" * 1_024,
]


@promise("SegmentStore.create_segment")
@promise("SegmentStore.info")
def test_a_created_segment_is_empty(rig: Rig) -> None:
    before_ms = time.time_ns() // 1_000_000
    assert rig.do(rig.store.create_segment, "a") is None
    info = rig.do(rig.store.info, "a")
    assert info == SegmentInfo("a", 0, 0, sealed=False, is_table=False,
                               modified_at_ms=info.modified_at_ms)  # fmt: skip
    assert before_ms - 1_000 <= info.modified_at_ms <= time.time_ns() // 1_000_000 + 1_000


@promise("SegmentStore.create_segment", SegmentExists)
def test_create_refuses_a_name_that_is_taken(rig: Rig) -> None:
    rig.create("a", b"kept")
    rig.refused(SegmentExists, rig.store.create_segment, "a")
    rig.do(rig.store.create_table, "t")
    rig.refused(SegmentExists, rig.store.create_segment, "t")
    assert rig.content("a") == b"kept"


@promise("SegmentStore.create_segment")
def test_of_two_creates_at_once_the_first_wins(rig: Rig) -> None:
    first = rig.start(rig.store.create_segment, "a")
    second = rig.start(rig.store.create_segment, "a")
    rig.wait(first, second)
    assert first.value is None
    second.error(SegmentExists)


@promise("SegmentStore.create_segment")
@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: repr(name)[:20])
def test_a_name_is_free_text(rig: Rig, name: str) -> None:
    rig.create(name, b"abc")
    rig.create(name[:-1] + "!", b"other")
    assert rig.content(name) == b"abc"
    rig.reopen()
    assert rig.do(rig.store.info, name).name == name
    assert rig.content(name) == b"abc"
    rig.do(rig.store.delete_segment, name)
    rig.refused(NoSuchSegment, rig.store.info, name)


@promise("SegmentStore.create_segment", InvalidArgument)
@pytest.mark.parametrize("name", ["", "n" * 1_025, "€" * 342], ids=["0", "1025", "1026"])
def test_a_name_has_1_to_1024_bytes(rig: Rig, name: str) -> None:
    rig.refused(InvalidArgument, rig.store.create_segment, name)
    rig.refused(InvalidArgument, rig.store.create_table, name)


@promise("SegmentStore.info", NoSuchSegment)
@promise("SegmentStore.delete_segment", NoSuchSegment)
def test_what_does_not_exist_is_no_such_segment(rig: Rig) -> None:
    store = rig.store
    rig.refused(NoSuchSegment, store.info, "none")
    rig.refused(NoSuchSegment, store.delete_segment, "none")
    rig.refused(NoSuchSegment, store.seal_segment, "none")
    rig.refused(NoSuchSegment, store.truncate_segment, "none", 0)
    rig.refused(NoSuchSegment, store.read, "none", 0, 1)
    rig.refused(NoSuchSegment, store.read, "none", 0, 1, wait=True)


@promise("SegmentStore.info")
def test_info_tells_start_length_and_kind(rig: Rig) -> None:
    rig.create("a", b"0123456789")
    rig.do(rig.store.truncate_segment, "a", 4)
    rig.do(rig.store.seal_segment, "a")
    info = rig.do(rig.store.info, "a")
    assert (info.name, info.start, info.length, info.sealed, info.is_table) == (
        "a", 4, 10, True, False,
    )  # fmt: skip


@promise("SegmentStore.info")
def test_modified_at_never_goes_back_and_moves_with_an_append(rig: Rig) -> None:
    rig.create("a")
    before = rig.do(rig.store.info, "a").modified_at_ms
    time.sleep(0.02)
    rig.fill("a", b"x")
    assert rig.do(rig.store.info, "a").modified_at_ms > before


@promise("SegmentStore.list_segments")
def test_names_are_listed_by_what_they_begin_with_after_what_was_issued_before(rig: Rig) -> None:
    for name in ("a/b/2", "a/b/1", "a/bc", "b/b/1"):
        rig.create(name)
    rig.do(rig.store.create_table, "a/b/t")
    deleted = rig.start(rig.store.delete_segment, "a/b/1")
    created = rig.start(rig.store.create_segment, "a/b/3")
    listed = rig.start(rig.store.list_segments, "a/b/")
    rig.wait(deleted, created, listed)
    assert listed.value == ["a/b/2", "a/b/3", "a/b/t"]
    assert rig.do(rig.store.list_segments, "c") == []
    rig.reopen()
    assert rig.do(rig.store.list_segments, "") == ["a/b/2", "a/b/3", "a/b/t", "a/bc", "b/b/1"]


@promise("SegmentStore.count_segments")
def test_names_that_are_the_same_up_to_the_second_slash_are_counted(rig: Rig) -> None:
    names = ("a/b/2", "a/b/1", "a/b/deep/3", "a/bc", "b/b/1", "x", "a/b/merged")
    for name in names:
        rig.create(name)
    rig.do(rig.store.create_table, "a/b/t")
    rig.refused(SegmentExists, rig.store.create_segment, "a/b/2")
    rig.do(rig.store.merge_segments, "a/b/2", "a/b/merged")
    deleted = rig.start(rig.store.delete_segment, "a/b/1")
    created = rig.start(rig.store.create_segment, "a/b/4")
    counted = rig.start(rig.store.count_segments, "a/b/none")
    rig.wait(deleted, created, counted)
    for _ in range(2):
        asked = ("a/b/", "a/x", "y", "b/b/z", "c/c/c")
        counts = [rig.do(rig.store.count_segments, name) for name in asked]
        assert [counted.value, *counts] == [4, 4, 1, 1, 1, 0]
        rig.reopen()


@promise("SegmentStore.count_segments")
def test_parts_of_segments_are_counted_apart_by_their_kind(rig: Rig) -> None:
    parts = ("a/b/1#transaction.1", "a/b/1#transaction.2", "a/b/2#transaction.1#transient.1")
    for name in ("a/b/1", "a/b/2.#epoch.0", "a/c/1#transient.1", *parts):
        rig.create(name)
    rig.do(rig.store.merge_segments, "a/b/1", parts[0])
    for _ in range(2):
        asked = ("a/b/", "a/b/#transaction.", "a/b/#transient.", "a/c/", "a/c/#transient.")
        assert [rig.do(rig.store.count_segments, name) for name in asked] == [2, 1, 1, 0, 1]
        rig.reopen()


@promise("SegmentStore.delete_segment")
def test_a_deleted_name_is_free_at_once(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"old" * 100), WRITER)
    rig.do(session.append, b"older", 77)
    rig.do(rig.store.update_attributes, "a", [AttributeUpdate(ATTRIBUTE, 3)])
    deleted = rig.start(rig.store.delete_segment, "a")
    created = rig.start(rig.store.create_segment, "a")  # nobody waited
    info = rig.start(rig.store.info, "a")
    rig.wait(deleted, created, info)
    assert (deleted.value, created.value) == (None, None)
    assert (info.value.start, info.value.length) == (0, 0)
    assert rig.do(rig.store.get_attribute, "a", WRITER) == ABSENT
    assert rig.do(rig.store.get_attribute, "a", ATTRIBUTE) == ABSENT
    assert rig.writer("a", WRITER).event_number == ABSENT
    rig.fill("a", b"new")
    rig.reopen()
    assert rig.content("a") == b"new"


@promise("SegmentStore.delete_segment")
def test_a_second_delete_finds_nothing(rig: Rig) -> None:
    rig.create("a")
    first = rig.start(rig.store.delete_segment, "a")
    second = rig.start(rig.store.delete_segment, "a")
    rig.wait(first, second)
    assert first.value is None
    second.error(NoSuchSegment)


@promise("SegmentStore.delete_segment")
def test_delete_takes_tables_and_sealed_segments_too(rig: Rig) -> None:
    rig.do(rig.store.create_table, "t")
    rig.do(rig.store.delete_segment, "t")
    rig.refused(NoSuchSegment, rig.store.table_info, "t")
    rig.create("a", b"x")
    rig.do(rig.store.seal_segment, "a")
    rig.do(rig.store.delete_segment, "a")
    rig.reopen()
    rig.refused(NoSuchSegment, rig.store.info, "a")
    rig.refused(NoSuchSegment, rig.store.info, "t")


@promise("SegmentStore.seal_segment")
def test_seal_gives_the_final_length_with_what_was_under_way(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.start(session.append, b"abc", 1)
    assert rig.do(rig.store.seal_segment, "a") == 3
    assert rig.content("a") == b"abc"


@promise("SegmentStore.seal_segment", SegmentSealed)
def test_a_second_seal_is_refused(rig: Rig) -> None:
    rig.create("a", b"x")
    rig.do(rig.store.seal_segment, "a")
    rig.refused(SegmentSealed, rig.store.seal_segment, "a")
    rig.reopen()
    rig.refused(SegmentSealed, rig.store.seal_segment, "a")


@promise("SegmentStore.seal_segment")
def test_a_sealed_segment_refuses_appends_and_attributes(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"x"), WRITER)
    rig.do(rig.store.seal_segment, "a")
    rig.refused(SegmentSealed, session.append, b"y", 1)
    rig.refused(SegmentSealed, session.append, b"", 2)
    update = [AttributeUpdate(ATTRIBUTE, 1)]
    rig.refused(SegmentSealed, rig.store.update_attributes, "a", update)
    assert rig.content("a") == b"x"
    assert rig.do(rig.store.get_attribute, "a", ATTRIBUTE) == ABSENT


@promise("SegmentStore.seal_segment")
def test_a_sealed_segment_can_be_truncated_read_and_deleted(rig: Rig) -> None:
    rig.create("a", b"abcdef")
    rig.do(rig.store.seal_segment, "a")
    rig.do(rig.store.truncate_segment, "a", 2)
    assert rig.do(rig.store.read, "a", 2, 100).data == b"cdef"
    rig.do(rig.store.delete_segment, "a")


@promise("SegmentStore.truncate_segment")
def test_truncation_gives_up_the_bytes_before_a_position(rig: Rig) -> None:
    rig.create("a", b"0123456789")
    assert rig.do(rig.store.truncate_segment, "a", 4) is None
    assert rig.content("a") == b"456789"
    error = rig.refused(SegmentTruncated, rig.store.read, "a", 3, 1)
    assert error.start == 4
    rig.reopen()
    assert rig.do(rig.store.info, "a").start == 4
    assert rig.content("a") == b"456789"


@promise("SegmentStore.truncate_segment")
def test_truncation_at_the_same_position_is_fine(rig: Rig) -> None:
    rig.create("a", b"0123456789")
    for _ in range(2):
        rig.do(rig.store.truncate_segment, "a", 4)
    rig.do(rig.store.seal_segment, "a")
    rig.do(rig.store.truncate_segment, "a", 4)
    assert rig.content("a") == b"456789"


@promise("SegmentStore.truncate_segment", SegmentTruncated)
@pytest.mark.parametrize("position", [-1, 0, 3, 11, 2**62])
def test_truncation_outside_start_and_length_is_refused(rig: Rig, position: int) -> None:
    rig.create("a", b"0123456789")
    rig.do(rig.store.truncate_segment, "a", 4)
    error = rig.refused(SegmentTruncated, rig.store.truncate_segment, "a", position)
    assert error.start == 4
    assert rig.content("a") == b"456789"


@promise("SegmentStore.truncate_segment")
def test_truncation_of_everything_leaves_the_length(rig: Rig) -> None:
    rig.create("a", b"0123456789")
    rig.do(rig.store.truncate_segment, "a", 10)
    info = rig.do(rig.store.info, "a")
    assert (info.start, info.length) == (10, 10)
    rig.fill("a", b"abc")
    assert rig.do(rig.store.read, "a", 10, 10).data == b"abc"
    rig.reopen()
    assert rig.content("a") == b"abc"


@promise("SegmentStore.truncate_segment")
def test_truncation_through_many_files_keeps_the_rest(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    pieces = [bytes([number]) * 30_000 for number in range(12)]
    rig.wait(*(rig.start(session.append, piece, number) for number, piece in enumerate(pieces)))
    whole = b"".join(pieces)
    for position in (1, 30_000, 95_000, 200_001, 359_999):
        rig.do(rig.store.truncate_segment, "a", position)
        assert rig.content("a") == whole[position:]
    rig.reopen()
    assert rig.content("a") == whole[359_999:]


def test_everything_of_a_segment_is_there_after_closing_and_opening(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(session.append, b"0123456789", 5)
    rig.do(rig.store.update_attributes, "a", [AttributeUpdate(ATTRIBUTE, -3)])
    rig.do(rig.store.truncate_segment, "a", 2)
    rig.create("gone")
    rig.do(rig.store.delete_segment, "gone")
    before = rig.do(rig.store.info, "a")
    for _ in range(2):
        rig.reopen()
        assert rig.do(rig.store.info, "a") == before
        assert rig.content("a") == b"23456789"
        assert rig.do(rig.store.get_attribute, "a", WRITER) == 5
        assert rig.do(rig.store.get_attribute, "a", ATTRIBUTE) == -3
        rig.refused(NoSuchSegment, rig.store.info, "gone")


def test_a_refused_operation_of_each_kind_leaves_the_store_usable(rig: Rig) -> None:
    rig.create("a", b"abc")
    refused = [
        rig.start(rig.store.create_segment, "a"),
        rig.start(rig.store.truncate_segment, "a", 99),
        rig.start(rig.store.merge_segments, "a", "a"),
        rig.start(rig.store.merge_segments, "a", "none"),
        rig.start(rig.store.update_attributes, "a", [AttributeUpdate(ATTRIBUTE, 1, expected=2)]),
        rig.start(rig.store.table_info, "a"),
    ]
    rig.wait(*refused)
    assert all(isinstance(each.result, StoreError) for each in refused)
    rig.fill("a", b"def")
    assert rig.content("a") == b"abcdef"

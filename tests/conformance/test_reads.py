"""Reading by name, also at the tail."""

from uuid import UUID

import pytest

from store.api import READ_BYTES_MAX
from store.errors import (
    NoSuchSegment,
    PositionOutOfRange,
    SegmentSealed,
    SegmentTruncated,
)
from tests.conformance.harness import Rig
from tests.conformance.promise import promise

WRITER = UUID(int=1)


@promise("SegmentStore.read")
def test_a_read_gives_bytes_from_its_position(rig: Rig) -> None:
    rig.create("a", b"0123456789")
    for position, size in ((0, 10), (3, 4), (9, 1), (9, 100)):
        result = rig.do(rig.store.read, "a", position, size)
        assert result.position == position
        assert result.data == b"0123456789"[position : position + size][: len(result.data)]
        assert 1 <= len(result.data) <= size
        assert not result.end_of_segment


@promise("SegmentStore.read")
def test_a_read_tells_that_it_reached_the_tail(rig: Rig) -> None:
    rig.create("a", b"0123456789")
    for _ in range(2):
        for position, size in ((0, 9), (0, 10), (3, 4), (9, 1), (9, 100), (10, 5), (50, 5)):
            result = rig.do(rig.store.read, "a", position, size)
            assert result.at_tail == (position + len(result.data) >= 10)
        rig.reopen()
    waiting = rig.start(rig.store.read, "a", 10, 2, wait=True)
    whole = rig.start(rig.store.read, "a", 10, 3, wait=True)
    rig.fill("a", b"abc")
    rig.wait(waiting, whole)
    assert [(each.value.data, each.value.at_tail) for each in (waiting, whole)] == [
        (b"ab", False),
        (b"abc", True),
    ]
    rig.do(rig.store.seal_segment, "a")
    for position, at_tail in ((0, False), (12, True), (13, True)):
        result = rig.do(rig.store.read, "a", position, 1)
        assert (result.at_tail, result.end_of_segment) == (at_tail, at_tail)


@promise("SegmentStore.read")
def test_any_byte_can_be_read_whatever_the_appends_and_files_were(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    pieces = [bytes([n % 251]) * (1 + n * 797 % 9_000) for n in range(60)]
    rig.wait(*(rig.start(session.append, piece, n) for n, piece in enumerate(pieces)))
    whole = b"".join(pieces)
    for position in range(0, len(whole), 4_999):
        result = rig.do(rig.store.read, "a", position, 50)
        assert result.data == whole[position : position + len(result.data)]
        assert result.data
    assert rig.content("a") == whole
    rig.reopen()
    assert rig.content("a") == whole


@promise("SegmentStore.read")
@pytest.mark.parametrize("size", [READ_BYTES_MAX, READ_BYTES_MAX + 1, 2**40])
def test_a_read_gives_at_most_2_mib(rig: Rig, size: int) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(session.append, b"x" * (READ_BYTES_MAX + 100), 1)
    assert 1 <= len(rig.do(rig.store.read, "a", 0, size).data) <= READ_BYTES_MAX


@promise("SegmentStore.read")
@pytest.mark.parametrize("size", [0, -5])
def test_a_size_below_1_counts_as_1(rig: Rig, size: int) -> None:
    rig.create("a", b"abc")
    assert rig.do(rig.store.read, "a", 1, size).data == b"b"


@promise("SegmentStore.read")
def test_a_read_at_or_past_the_tail_is_empty_without_wait(rig: Rig) -> None:
    rig.create("a", b"abc")
    for position in (3, 4, 10**12):
        result = rig.do(rig.store.read, "a", position, 10)
        assert (result.position, result.data, result.end_of_segment) == (position, b"", False)


@promise("SegmentStore.read")
def test_a_waiting_read_with_bytes_there_answers_at_once(rig: Rig) -> None:
    rig.create("a", b"abc")
    assert rig.do(rig.store.read, "a", 1, 10, wait=True).data == b"bc"


@promise("SegmentStore.read")
def test_a_waiting_read_gets_the_next_append(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"abc"), WRITER)
    readers = [rig.start(rig.store.read, "a", 3, 100, wait=True) for _ in range(3)]
    rig.loop.run_for(0.02)
    assert not any(each.is_done for each in readers)
    rig.do(session.append, b"def", 1)
    rig.wait(*readers)
    assert [(each.value.position, each.value.data) for each in readers] == [(3, b"def")] * 3


@promise("SegmentStore.read")
def test_a_read_waiting_past_the_tail_wants_the_bytes_at_its_position(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"abc"), WRITER)
    reader = rig.start(rig.store.read, "a", 6, 100, wait=True)
    rig.do(session.append, b"def", 1)
    rig.do(session.append, b"", 2)
    rig.loop.run_for(0.02)
    assert not reader.is_done
    rig.do(session.append, b"ghi", 3)
    rig.wait(reader)
    assert (reader.value.position, reader.value.data) == (6, b"ghi")


@promise("SegmentStore.read")
def test_a_waiting_read_can_give_up(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    given_up = rig.start(rig.store.read, "a", 0, 100, wait=True)
    waiting = rig.start(rig.store.read, "a", 0, 100, wait=True)
    given_up.returned()
    rig.do(session.append, b"abc", 1)
    rig.wait(waiting)
    rig.loop.run_for(0.02)
    assert not given_up.is_done
    given_up.returned()  # a second time does no harm
    waiting.returned()  # nor does giving up what has been answered


@promise("SegmentStore.read")
def test_giving_up_in_the_moment_of_the_append_means_no_answer(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    reader = rig.start(rig.store.read, "a", 0, 100, wait=True)
    append = rig.start(session.append, b"abc", 1)
    reader.returned()
    rig.wait(append)
    rig.loop.run_for(0.02)
    assert not reader.is_done


@promise("SegmentStore.seal_segment")
@promise("SegmentStore.read")
def test_a_reader_waiting_at_the_tail_gets_the_end_when_the_segment_is_sealed(rig: Rig) -> None:
    rig.create("a", b"abc")
    reader = rig.start(rig.store.read, "a", 3, 100, wait=True)
    rig.do(rig.store.seal_segment, "a")
    rig.wait(reader)
    assert (reader.value.position, reader.value.data) == (3, b"")
    assert reader.value.end_of_segment


@promise("SegmentStore.seal_segment")
def test_a_reader_waiting_past_the_tail_hears_of_the_seal(rig: Rig) -> None:
    rig.create("a", b"abc")
    reader = rig.start(rig.store.read, "a", 9, 100, wait=True)
    rig.do(rig.store.seal_segment, "a")
    rig.wait(reader)
    assert type(reader.result) in {PositionOutOfRange, SegmentSealed}


@promise("SegmentStore.read", NoSuchSegment)
def test_a_waiting_read_hears_of_deletion(rig: Rig) -> None:
    rig.create("a", b"abc")
    reader = rig.start(rig.store.read, "a", 3, 100, wait=True)
    rig.do(rig.store.delete_segment, "a")
    rig.wait(reader)
    reader.error(NoSuchSegment)


@promise("SegmentStore.read")
def test_a_waiting_read_does_not_move_to_a_new_segment_of_the_same_name(rig: Rig) -> None:
    rig.create("a", b"abc")
    reader = rig.start(rig.store.read, "a", 3, 100, wait=True)
    rig.start(rig.store.delete_segment, "a")
    rig.create("a", b"012345")
    rig.wait(reader)
    reader.error(NoSuchSegment)


@promise("SegmentStore.read", SegmentTruncated)
def test_a_waiting_read_hears_of_truncation_past_it(rig: Rig) -> None:
    # Bytes at the position arrive with the truncation, so either answer is true in its moment;
    # what must not happen is that the reader is left waiting for bytes that will never come.
    session = rig.writer(rig.create("a", b"abc"), WRITER)
    reader = rig.start(rig.store.read, "a", 5, 100, wait=True)
    rig.start(session.append, b"defghi", 1)
    rig.do(rig.store.truncate_segment, "a", 8)
    rig.wait(reader)
    if type(reader.result) is SegmentTruncated:
        assert reader.error(SegmentTruncated).start == 8
    else:
        assert b"fghi".startswith(reader.value.data)
        assert reader.value.data


@promise("SegmentStore.read")
def test_a_read_that_reaches_the_end_of_a_sealed_segment_says_so(rig: Rig) -> None:
    rig.create("a", b"abcdef")
    rig.do(rig.store.seal_segment, "a")
    for wait in (False, True):
        whole = rig.do(rig.store.read, "a", 0, 100, wait=wait)
        assert (whole.data, whole.end_of_segment) == (b"abcdef", True)
        part = rig.do(rig.store.read, "a", 0, 5, wait=wait)
        assert (part.data, part.end_of_segment) == (b"abcde", False)
        rest = rig.do(rig.store.read, "a", 5, 1, wait=wait)
        assert (rest.data, rest.end_of_segment) == (b"f", True)
        end = rig.do(rig.store.read, "a", 6, 10, wait=wait)
        assert (end.position, end.data, end.end_of_segment) == (6, b"", True)


@promise("SegmentStore.read", PositionOutOfRange)
@pytest.mark.parametrize("position", [7, 2**62])
def test_a_read_past_a_sealed_end_is_out_of_range(rig: Rig, position: int) -> None:
    rig.create("a", b"abcdef")
    rig.do(rig.store.seal_segment, "a")
    rig.refused(PositionOutOfRange, rig.store.read, "a", position, 1)


@promise("SegmentStore.read", PositionOutOfRange)
@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("position", [-1, -(2**62)])
def test_a_negative_position_is_out_of_range(rig: Rig, position: int, *, wait: bool) -> None:
    rig.create("a", b"abcdef")
    rig.refused(PositionOutOfRange, rig.store.read, "a", position, 1, wait=wait)
    rig.do(rig.store.truncate_segment, "a", 2)
    rig.refused(PositionOutOfRange, rig.store.read, "a", position, 1, wait=wait)


@promise("SegmentStore.read", SegmentTruncated)
@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_read_before_the_start_tells_where_it_begins(
    rig: Rig, *, wait: bool, is_sealed: bool
) -> None:
    rig.create("a", b"abcdef")
    rig.do(rig.store.truncate_segment, "a", 6)
    if is_sealed:
        rig.do(rig.store.seal_segment, "a")
    for position in (0, 5):
        error = rig.refused(SegmentTruncated, rig.store.read, "a", position, 9, wait=wait)
        assert error.start == 6


@promise("SegmentStore.read")
def test_a_read_of_an_empty_segment(rig: Rig) -> None:
    rig.create("a")
    assert rig.do(rig.store.read, "a", 0, 10).data == b""
    rig.do(rig.store.seal_segment, "a")
    result = rig.do(rig.store.read, "a", 0, 10)
    assert (result.data, result.end_of_segment) == (b"", True)

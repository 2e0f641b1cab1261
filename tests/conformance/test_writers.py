"""Writer sessions: what one append promises."""

from uuid import UUID

import pytest

from store.api import ABSENT, APPEND_BYTES_MAX, RESEND_WINDOW, Appended
from store.errors import (
    EventNumberTooLow,
    InvalidArgument,
    IsATable,
    LengthMismatch,
    NoSuchSegment,
    SegmentSealed,
    StoreError,
    WriterFenced,
)
from tests.conformance.harness import Rig
from tests.conformance.promise import promise

WRITER, OTHER = UUID(int=1), UUID(int=2)


@promise("SegmentStore.open_writer")
@promise("Writer.event_number")
def test_a_new_writer_knows_no_number(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    assert (session.event_number, session.length) == (ABSENT, 0)


@promise("SegmentStore.open_writer", NoSuchSegment)
def test_there_is_no_session_on_nothing(rig: Rig) -> None:
    rig.refused(NoSuchSegment, rig.store.open_writer, "none", WRITER)


@promise("Writer.append")
def test_an_append_tells_where_it_landed(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    assert rig.do(session.append, b"abc", 1) == Appended(0, 3, 1)
    assert rig.do(session.append, b"defgh", 2) == Appended(3, 5, 2)
    assert rig.content("a") == b"abcdefgh"


@promise("Writer.append")
def test_event_numbers_grow_and_need_not_be_dense(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    for number in (0, 1, 5, 100, 2**63 - 1):
        assert rig.do(session.append, b"x", number).event_number == number
    assert rig.content("a") == b"xxxxx"
    assert rig.writer("a", WRITER).event_number == 2**63 - 1


@promise("Writer.append")
@pytest.mark.parametrize("number", [-1, ABSENT, 2**63])
def test_an_event_number_outside_its_range_writes_nothing(rig: Rig, number: int) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.refused(InvalidArgument, session.append, b"x", number)
    rig.do(session.append, b"y", 1)
    assert rig.content("a") == b"y"


@promise("Writer.event_number")
@promise("Writer.length")
def test_number_and_length_count_appends_when_they_are_issued(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"12"), WRITER)
    first = rig.start(session.append, b"abc", 1)
    second = rig.start(session.append, b"d", 9)
    assert not first.is_done
    assert (session.event_number, session.length) == (9, 6)
    rig.wait(first, second)
    assert (session.event_number, session.length) == (9, 6)


@promise("Writer.length")
def test_the_length_counts_the_appends_of_other_writers_too(rig: Rig) -> None:
    mine, others = rig.writer(rig.create("a"), WRITER), rig.writer("a", OTHER)
    pending = rig.start(others.append, b"abc", 1)
    assert (mine.length, mine.event_number) == (3, ABSENT)
    rig.wait(pending)
    assert mine.length == 3


@promise("Writer.append")
def test_the_buffer_is_the_callers_again_when_the_call_returns(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    pending = []
    expected = b""
    for number, size in enumerate((10, 5_000, 100_000)):
        buffer = bytearray(b"%d" % number * size)
        expected += buffer
        pending.append(rig.start(session.append, memoryview(buffer), number))
        buffer[:] = b"#" * size
        buffer.clear()  # fails while anybody holds the buffer
    rig.wait(*pending)
    assert rig.content("a") == expected


@promise("Writer.append")
def test_pipelined_appends_land_in_order(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    pieces = [b"%05d" % number * (1 + number % 7 * 300) for number in range(300)]
    pending = [rig.start(session.append, piece, n) for n, piece in enumerate(pieces)]
    rig.wait(*pending)
    position = 0
    for piece, each in zip(pieces, pending, strict=True):
        assert (each.value.position, each.value.size) == (position, len(piece))
        position += len(piece)
    assert rig.content("a") == b"".join(pieces)
    rig.reopen()
    assert rig.content("a") == b"".join(pieces)


@promise("Writer.append")
def test_appends_of_two_writers_do_not_mix(rig: Rig) -> None:
    sessions = [rig.writer(rig.create("a"), WRITER), rig.writer("a", OTHER)]
    pieces = [b"<%d>" % number * 50 for number in range(40)]
    rig.wait(*(rig.start(sessions[n % 2].append, piece, 1 + n) for n, piece in enumerate(pieces)))
    assert rig.content("a") == b"".join(pieces)


@promise("Writer.append")
def test_an_empty_append_moves_the_number_and_writes_nothing(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"abc"), WRITER)
    assert rig.do(session.append, b"", 5) == Appended(3, 0, 5)
    assert session.event_number == 5
    assert rig.do(rig.store.get_attribute, "a", WRITER) == 5
    rig.refused(EventNumberTooLow, session.append, b"x", 4)
    rig.reopen()
    assert rig.writer("a", WRITER).event_number == 5
    assert rig.content("a") == b"abc"


@promise("Writer.append")
def test_an_append_has_at_most_17_mib(rig: Rig) -> None:
    assert APPEND_BYTES_MAX == 17 * 1024 * 1024
    session = rig.writer(rig.create("a"), WRITER)
    data = bytes(range(256)) * (APPEND_BYTES_MAX // 256)
    rig.refused(InvalidArgument, session.append, data + b"x", 1)
    assert rig.do(session.append, data, 2) == Appended(0, APPEND_BYTES_MAX, 2)
    rig.do(session.append, b"next", 3)
    assert rig.content("a") == data + b"next"
    rig.reopen()
    assert rig.content("a") == data + b"next"


@promise("Writer.append")
def test_a_resent_number_is_acknowledged_and_not_written_twice(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    first = rig.do(session.append, b"abc", 1)
    second = rig.do(session.append, b"de", 2)
    assert rig.do(session.append, b"abc", 1) == first
    assert rig.do(session.append, b"de", 2) == second
    rig.do(session.append, b"f", 3)
    assert rig.do(session.append, b"abc", 1) == first
    assert rig.content("a") == b"abcdef"
    assert session.event_number == 3


@promise("Writer.append")
def test_a_resent_empty_append_is_acknowledged(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"12"), WRITER)
    assert rig.do(session.append, b"", 1) == Appended(2, 0, 1)
    rig.do(session.append, b"x", 2)
    assert rig.do(session.append, b"", 1) == Appended(2, 0, 1)


@promise("Writer.append")
def test_a_resend_under_way_is_acknowledged_once_the_first_is_committed(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    pending = [rig.start(session.append, b"abc" * 5_000, 1) for _ in range(3)]
    info = rig.start(rig.store.info, "a")
    rig.wait(*pending, info)
    assert [each.value for each in pending] == [Appended(0, 15_000, 1)] * 3
    assert info.value.length == 15_000
    # The order (first before its resends) is checked by the rig.


@promise("Writer.append", EventNumberTooLow)
def test_a_session_recognises_its_last_1024_numbers(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.wait(*(rig.start(session.append, b"x", 10 * n) for n in range(RESEND_WINDOW)))
    assert rig.do(session.append, b"x", 0) == Appended(0, 1, 0)
    last = rig.do(session.append, b"x", 10 * RESEND_WINDOW)
    assert last.position == RESEND_WINDOW
    rig.refused(EventNumberTooLow, session.append, b"x", 0)
    assert rig.do(session.append, b"x", 10) == Appended(1, 1, 10)
    rig.refused(EventNumberTooLow, session.append, b"x", 15)
    assert rig.do(rig.store.info, "a").length == RESEND_WINDOW + 1


@promise("Writer.append", EventNumberTooLow)
def test_a_number_not_above_the_last_that_was_never_stored_is_too_low(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(session.append, b"a", 10)
    rig.refused(EventNumberTooLow, session.append, b"b", 9)
    rig.do(session.append, b"c", 11)  # the session lives on
    assert rig.content("a") == b"ac"


@promise("Writer.append", EventNumberTooLow)
def test_a_new_session_does_not_take_an_old_number_for_its_own_resend(rig: Rig) -> None:
    rig.do(rig.writer(rig.create("a"), WRITER).append, b"abc", 5)
    session = rig.writer("a", WRITER)
    assert session.event_number == 5
    rig.refused(EventNumberTooLow, session.append, b"abc", 5)
    rig.reopen()
    session = rig.writer("a", WRITER)
    assert session.event_number == 5
    rig.refused(EventNumberTooLow, session.append, b"abc", 5)
    rig.do(session.append, b"d", 6)
    assert rig.content("a") == b"abcd"


@promise("Writer.append", LengthMismatch)
def test_a_conditional_append_needs_the_exact_length(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"12345"), WRITER)
    for expected in (0, 4, 6):
        error = rig.refused(LengthMismatch, session.append, b"x", 1, expected_length=expected)
        assert error.length == 5
    assert rig.do(session.append, b"abc", 1, expected_length=5) == Appended(5, 3, 1)
    assert rig.content("a") == b"12345abc"


@promise("Writer.append", LengthMismatch)
def test_after_a_length_mismatch_the_session_lives_on_and_the_number_is_free(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"12345"), WRITER)
    pending = [
        rig.start(session.append, b"x", 1, expected_length=9),
        rig.start(session.append, b"y", 1, expected_length=5),
        rig.start(session.append, b"z", 2, expected_length=5),
        rig.start(session.append, b"z", 2, expected_length=6),
    ]
    rig.wait(*pending)
    assert pending[0].error(LengthMismatch).length == 5
    assert pending[2].error(LengthMismatch).length == 6
    assert (pending[1].value.position, pending[3].value.position) == (5, 6)
    assert rig.content("a") == b"12345yz"
    assert session.event_number == 2


@promise("Writer.append")
def test_conditional_appends_can_be_pipelined_with_predicted_lengths(rig: Rig) -> None:
    sessions = [rig.writer(rig.create("a"), WRITER), rig.writer("a", OTHER)]
    pending = [
        rig.start(sessions[n % 2].append, b"abc", n, expected_length=3 * n) for n in range(20)
    ]
    rig.wait(*pending)
    assert [each.value.position for each in pending] == list(range(0, 60, 3))


@promise("Writer.append")
def test_the_expected_length_counts_what_was_truncated(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"12345"), WRITER)
    rig.do(rig.store.truncate_segment, "a", 5)
    rig.refused(LengthMismatch, session.append, b"x", 1, expected_length=0)
    assert rig.do(session.append, b"x", 1, expected_length=5).position == 5


@promise("Writer.append")
def test_an_empty_append_can_be_conditional(rig: Rig) -> None:
    session = rig.writer(rig.create("a", b"12345"), WRITER)
    rig.refused(LengthMismatch, session.append, b"", 1, expected_length=4)
    assert rig.do(rig.store.get_attribute, "a", WRITER) == ABSENT
    assert rig.do(session.append, b"", 1, expected_length=5) == Appended(5, 0, 1)


# The order of the checks: each pair of faults at once, the earlier is told.


@promise("Writer.append", NoSuchSegment)
def test_a_missing_segment_is_told_before_all_else(rig: Rig) -> None:
    session, newer = rig.writer(rig.create("a"), WRITER), rig.writer("a", WRITER)
    rig.do(session.append, b"x", 5)
    rig.do(rig.store.delete_segment, "a")
    rig.refused(NoSuchSegment, newer.append, b"x", 1, expected_length=7)  # would be fenced
    rig.refused(NoSuchSegment, session.append, b"x", 5)  # would be a resend
    rig.refused(NoSuchSegment, session.append, b"x", 6)


@promise("Writer.append")
def test_a_session_does_not_move_to_a_new_segment_of_the_same_name(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(session.append, b"x", 5)
    rig.start(rig.store.delete_segment, "a")
    rig.start(rig.store.create_segment, "a")
    rig.refused(NoSuchSegment, session.append, b"y", 6)
    rig.refused(NoSuchSegment, session.append, b"x", 5)
    assert rig.do(rig.store.info, "a").length == 0
    assert rig.do(rig.store.get_attribute, "a", WRITER) == ABSENT


@promise("Writer.append", SegmentSealed)
def test_a_sealed_segment_is_told_before_the_number_is_looked_at(rig: Rig) -> None:
    session, old = rig.writer(rig.create("a"), WRITER), rig.writer("a", WRITER)
    rig.do(session.append, b"x", 5)
    rig.do(rig.store.seal_segment, "a")
    for each in (session, old):
        rig.refused(SegmentSealed, each.append, b"y", 6)
        rig.refused(SegmentSealed, each.append, b"y", 4)
        rig.refused(SegmentSealed, each.append, b"x", 5)
        rig.refused(SegmentSealed, each.append, b"y", 6, expected_length=99)


@promise("SegmentStore.open_writer")
def test_a_session_on_a_sealed_segment_knows_the_number(rig: Rig) -> None:
    rig.do(rig.writer(rig.create("a"), WRITER).append, b"x", 5)
    rig.do(rig.store.seal_segment, "a")
    session = rig.writer("a", WRITER)
    assert (session.event_number, session.length) == (5, 1)
    rig.refused(SegmentSealed, session.append, b"y", 6)


@promise("Writer.append", WriterFenced)
def test_fencing_is_told_before_resend_number_and_length(rig: Rig) -> None:
    for name, number in (("resend", 5), ("too low", 3), ("length", 9), ("good", 9)):
        session = rig.writer(rig.create(name), WRITER)
        rig.do(session.append, b"x", 5)
        rig.do(rig.writer(name, WRITER).append, b"y", 6)
        expected = 99 if name == "length" else None
        rig.refused(WriterFenced, session.append, b"x", number, expected_length=expected)
        assert rig.content(name) == b"xy"


@promise("Writer.append")
def test_a_resend_is_told_before_its_length_is_compared(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    first = rig.do(session.append, b"abc", 1, expected_length=0)
    assert rig.do(session.append, b"abc", 1, expected_length=0) == first


@promise("Writer.append")
def test_a_number_too_low_is_told_before_the_length_is_compared(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(session.append, b"abc", 5)
    rig.refused(EventNumberTooLow, session.append, b"abc", 4, expected_length=99)


def test_a_table_takes_no_plain_append(rig: Rig) -> None:
    rig.do(rig.store.create_table, "t")
    opened = rig.start(rig.store.open_writer, "t", WRITER)
    rig.wait(opened)
    if isinstance(opened.result, StoreError):
        opened.error(IsATable)
    else:
        rig.refused(IsATable, opened.value.append, b"x", 1)


def test_a_writer_has_a_number_of_its_own_on_each_segment(rig: Rig) -> None:
    first, second = (rig.writer(rig.create(name), WRITER) for name in "ab")
    rig.do(first.append, b"x", 9)
    rig.do(second.append, b"y", 1)
    assert rig.do(first.append, b"x", 10).position == 1

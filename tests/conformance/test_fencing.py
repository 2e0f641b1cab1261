"""An old session is never acknowledged for bytes that it did not store.

Several sessions of one writer, in the orders that go wrong most easily. What the session that is
not fenced stored is always there, and nothing else.
"""

from uuid import UUID

import pytest

from store.api import ABSENT, Appended, AttributeUpdate
from store.errors import EventNumberTooLow, WriterFenced
from tests.conformance.harness import Rig
from tests.conformance.promise import promise

WRITER, OTHER = UUID(int=1), UUID(int=2)


@promise("Writer.append", WriterFenced)
def test_of_two_sessions_opened_at_once_the_first_to_append_wins(rig: Rig) -> None:
    old, new = rig.writer(rig.create("a"), WRITER), rig.writer("a", WRITER)
    rig.do(new.append, b"new", 1)
    rig.refused(WriterFenced, old.append, b"old", 1)
    assert rig.content("a") == b"new"


@promise("Writer.append", WriterFenced)
def test_the_same_number_under_way_in_two_sessions_is_acknowledged_to_one(rig: Rig) -> None:
    old, new = rig.writer(rig.create("a"), WRITER), rig.writer("a", WRITER)
    first = rig.start(old.append, b"same", 1)
    second = rig.start(new.append, b"same", 1)  # even the bytes are the same
    rig.wait(first, second)
    assert first.value == Appended(0, 4, 1)
    second.error(WriterFenced)
    assert rig.content("a") == b"same"


@promise("Writer.append", WriterFenced)
def test_a_fenced_session_is_not_acknowledged_for_its_own_resend(rig: Rig) -> None:
    old = rig.writer(rig.create("a"), WRITER)
    rig.do(old.append, b"1", 1)
    rig.do(rig.writer("a", WRITER).append, b"2", 2)
    rig.refused(WriterFenced, old.append, b"1", 1)
    rig.refused(WriterFenced, old.append, b"2", 2)
    rig.refused(WriterFenced, old.append, b"3", 3)
    assert rig.content("a") == b"12"


@promise("Writer.append")
def test_a_resend_called_before_the_fencing_is_acknowledged(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    first, resend = (rig.start(session.append, b"x", 1) for _ in range(2))
    fenced = rig.start(rig.store.update_attributes, "a", [AttributeUpdate(WRITER, 9)])
    late = rig.start(session.append, b"y", 2)
    rig.wait(first, resend, fenced, late)
    assert first.value == resend.value == Appended(0, 1, 1)
    late.error(WriterFenced)


@promise("Writer.append", WriterFenced)
def test_opening_a_session_alone_fences_nobody(rig: Rig) -> None:
    old = rig.writer(rig.create("a"), WRITER)
    rig.do(old.append, b"1", 1)
    new = rig.writer("a", WRITER)
    assert rig.do(old.append, b"2", 2).position == 1
    rig.refused(WriterFenced, new.append, b"3", 3)
    assert rig.content("a") == b"12"


@promise("Writer.append")
def test_an_empty_append_fences_older_sessions(rig: Rig) -> None:
    old = rig.writer(rig.create("a"), WRITER)
    rig.do(old.append, b"1", 1)
    new = rig.writer("a", WRITER)
    rig.do(new.append, b"", 2)
    rig.refused(WriterFenced, old.append, b"2", 2)
    rig.refused(WriterFenced, old.append, b"1", 1)
    rig.do(new.append, b"3", 3)
    assert rig.content("a") == b"13"


@promise("Writer.append", WriterFenced)
def test_appends_called_behind_the_opening_of_a_session_count(rig: Rig) -> None:
    old = rig.writer(rig.create("a"), WRITER)
    opened = rig.start(rig.store.open_writer, "a", WRITER)
    before = [rig.start(old.append, b"o", number) for number in (1, 2, 3)]
    rig.wait(opened, *before)
    assert [each.value.position for each in before] == [0, 1, 2]
    # A session may know what was stored before it was handed over. If it does not, it is fenced.
    if opened.value.event_number == 3:
        assert rig.do(opened.value.append, b"n", 4).position == 3
        rig.refused(WriterFenced, old.append, b"o", 4)
        assert rig.content("a") == b"ooon"
    else:
        assert opened.value.event_number == ABSENT
        rig.refused(WriterFenced, opened.value.append, b"n", 4)
        assert rig.content("a") == b"ooo"


@promise("Writer.append", WriterFenced)
def test_a_session_opened_behind_appends_under_way_knows_their_number(rig: Rig) -> None:
    old = rig.writer(rig.create("a"), WRITER)
    rig.start(old.append, b"o" * 10_000, 7)
    new = rig.writer("a", WRITER)
    assert new.event_number == 7
    took = rig.start(new.append, b"n", 8)
    late = rig.start(old.append, b"o", 8)
    rig.wait(took, late)
    assert took.value.position == 10_000
    late.error(WriterFenced)


@promise("Writer.append", WriterFenced)
def test_a_pipeline_of_a_fenced_session_fails_to_the_last(rig: Rig) -> None:
    old, new = rig.writer(rig.create("a"), WRITER), rig.writer("a", WRITER)
    took = rig.start(new.append, b"n", 5)
    late = [rig.start(old.append, b"o", number) for number in (1, 5, 5, 6, 7)]
    rig.wait(took, *late)
    for each in late:
        each.error(WriterFenced)
    assert rig.content("a") == b"n"


@promise("Writer.append", WriterFenced)
def test_a_dead_session_stays_dead_even_if_the_number_is_again_what_it_knew(rig: Rig) -> None:
    old = rig.writer(rig.create("a"), WRITER)
    rig.do(old.append, b"1", 1)
    rig.do(rig.store.update_attributes, "a", [AttributeUpdate(WRITER, 9)])
    rig.refused(WriterFenced, old.append, b"2", 2)
    rig.do(rig.store.update_attributes, "a", [AttributeUpdate(WRITER, 1)])
    rig.refused(WriterFenced, old.append, b"2", 2)
    rig.refused(WriterFenced, old.append, b"1", 1)
    assert rig.content("a") == b"1"


@promise("Writer.append")
def test_three_sessions_take_over_from_one_another(rig: Rig) -> None:
    rig.create("a")
    sessions = []
    for number in (1, 2, 3):
        session = rig.writer("a", WRITER)
        assert session.event_number == (number - 1 if number > 1 else ABSENT)
        rig.do(session.append, b"%d" % number, number)
        sessions.append(session)
    for dead in sessions[:2]:
        rig.refused(WriterFenced, dead.append, b"x", 4)
    rig.do(sessions[2].append, b"4", 4)
    assert rig.content("a") == b"1234"


@promise("Writer.append", EventNumberTooLow)
def test_a_successor_that_resends_what_its_predecessor_stored_is_told_so(rig: Rig) -> None:
    rig.do(rig.writer(rig.create("a"), WRITER).append, b"1", 1)
    new = rig.writer("a", WRITER)
    rig.refused(EventNumberTooLow, new.append, b"1", 1)
    rig.do(new.append, b"2", 2)
    assert rig.content("a") == b"12"


@promise("SegmentStore.merge_segments")
def test_a_merge_that_moves_a_writers_number_fences_its_sessions(rig: Rig) -> None:
    old = rig.writer(rig.create("a"), WRITER)
    rig.do(old.append, b"1", 1)
    rig.create("m", b"merged")
    update = [AttributeUpdate(WRITER, 2, expected=1)]
    rig.do(rig.store.merge_segments, "a", "m", attributes=update)
    rig.refused(WriterFenced, old.append, b"2", 2)
    assert rig.writer("a", WRITER).event_number == 2
    assert rig.content("a") == b"1merged"


@promise("SegmentStore.merge_segments")
def test_a_merge_that_leaves_the_number_fences_nobody(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    first = rig.do(session.append, b"1", 1)
    rig.create("m", b"merged")
    rig.do(rig.store.merge_segments, "a", "m")
    assert rig.do(session.append, b"1", 1) == first
    assert rig.do(session.append, b"2", 2).position == 7
    assert session.length == 8


def test_other_writers_and_other_segments_fence_nobody(rig: Rig) -> None:
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(session.append, b"1", 1)
    rig.do(rig.writer("a", OTHER).append, b"o", 50)
    rig.do(rig.writer(rig.create("b"), WRITER).append, b"b", 50)
    rig.do(rig.store.update_attributes, "a", [AttributeUpdate(UUID(int=77), 3)])
    assert rig.do(session.append, b"2", 2).position == 2


@pytest.mark.parametrize("refused_first", [False, True])
def test_a_refused_append_of_an_old_session_leaves_the_new_one_alone(
    rig: Rig, *, refused_first: bool
) -> None:
    old, new = rig.writer(rig.create("a"), WRITER), rig.writer("a", WRITER)
    rig.do(new.append, b"1", 1)
    if refused_first:
        rig.refused(WriterFenced, old.append, b"x", 2)
    took = rig.start(new.append, b"2", 2)
    late = rig.start(old.append, b"x", 2)
    more = rig.start(new.append, b"3", 3)
    rig.wait(took, late, more)
    late.error(WriterFenced)
    assert (took.value.position, more.value.position) == (1, 2)
    assert rig.content("a") == b"123"

"""Times that writers tell, and the watermarks that follow from them."""

from __future__ import annotations

import pytest

from gateway.pravega.controller.records.epochs import History, StreamSegment
from gateway.pravega.controller.records.history import evenly, scaled
from gateway.pravega.controller.rounds.marks import Watermark
from gateway.pravega.controller.rounds.writers import (
    ENTRIES_MAX,
    WRITERS_MAX,
    Times,
    Told,
    WriterTimes,
)

TWO = History((evenly(2, 0, 0),))
LOW, HIGH = TWO.open
NONE = Times(scope="scope", stream="stream")


def told(times: Times, name: str, time: int, *offsets: int) -> Times:
    what, after = times.tell(name, time, dict(enumerate(offsets)))
    assert what is Told.TAKEN
    return after


def test_a_record_is_read_as_it_was_written() -> None:
    times = told(told(NONE, "one", -5, 1, 2), "two", 7).end("two")
    assert times is not None
    marked = told(NONE, "one", 5, 1, 2).mark((), TWO)

    for each in (NONE, times, marked):
        assert Times.from_bytes(each.to_bytes()) == each


@pytest.mark.parametrize(
    ("time", "position", "expected"),
    [
        (10, {0: 5, 1: 5}, Told.TAKEN),
        (11, {0: 5, 1: 6}, Told.TAKEN),
        (11, {1: 9}, Told.TAKEN),
        (11, {1 << 32: 0}, Told.TAKEN),
        (9, {0: 9, 1: 9}, Told.INVALID_TIME),
        (11, {0: 4, 1: 9}, Told.INVALID_POSITION),
        (11, {0: 9, 1: 4}, Told.INVALID_POSITION),
    ],
)
def test_time_and_position_of_a_writer_go_on(
    time: int, position: dict[int, int], expected: Told
) -> None:
    before = told(NONE, "one", 10, 5, 5)

    what, after = before.tell("one", time, position)

    assert what is expected
    assert after.writers["one"] == (
        WriterTimes(time, position) if expected is Told.TAKEN else WriterTimes(10, {0: 5, 1: 5})
    )


def test_no_more_writers_are_kept_than_fit_into_a_record() -> None:
    times = NONE
    for number in range(WRITERS_MAX):
        times = told(times, f"{number}", 1, 0)
    assert times.tell("more", 1, {0: 0}) == (Told.TOO_MANY, times)
    assert told(times, "0", 2, 1).writers["0"].time == 2

    wide = dict.fromkeys(range(ENTRIES_MAX + 1), 0)
    assert NONE.tell("wide", 1, wide) == (Told.TOO_MANY, NONE)


def test_a_watermark_has_the_bounds_of_all_writers() -> None:
    times = told(told(NONE, "one", 100, 5, 9), "two", 120, 7, 3)

    assert times.mark((), TWO).last == Watermark(100, 120, {LOW: 7, HIGH: 9})


def test_a_writer_that_lags_holds_back_the_next_watermark() -> None:
    times = told(told(NONE, "one", 100, 1, 1), "two", 120, 2, 2).mark((), TWO)
    times = told(times, "two", 130, 3, 3)
    assert times.mark((), TWO) == times

    times = told(times, "one", 140, 4, 2)

    assert times.mark((), TWO).last == Watermark(130, 140, {LOW: 4, HIGH: 3})


def test_a_writer_that_is_silent_is_waited_for_no_more() -> None:
    times = told(told(NONE, "one", 100, 1, 1), "two", 120, 2, 2).mark((), TWO)
    times = told(times, "two", 130, 3, 3)

    after = times.mark(["one"], TWO)

    assert after.last == Watermark(130, 130, {LOW: 3, HIGH: 3})
    assert set(after.writers) == {"two"}


def test_a_writer_takes_part_while_its_time_is_above_the_last_watermark() -> None:
    times = told(told(NONE, "one", 100, 1, 1), "two", 120, 2, 2).mark((), TWO)
    assert not times.takes_part("one")
    assert times.takes_part("two")

    ended = times.end("two")

    assert ended is not None
    assert ended.mark(["one", "two"], TWO).writers["two"].time == 120
    assert times.end("none") is None


def test_without_writers_there_is_no_watermark() -> None:
    assert NONE.mark((), TWO) == NONE
    gone = told(NONE, "one", 1, 1, 1).mark((), TWO).mark(["one"], TWO)
    assert not gone.writers
    assert gone.mark((), TWO) == gone


def test_a_watermark_covers_all_keys_over_a_scaling() -> None:
    epoch = scaled(TWO, [0], [(0.0, 0.25), (0.25, 0.5)], 1)
    assert epoch is not None
    history = TWO.followed_by(epoch)
    first, second, _ = history.open
    times = told(told(NONE, "one", 100, 5, 5), "two", 110)
    what, times = times.tell("two", 110, {first.identity: 3})
    assert what is Told.TAKEN

    marked = times.mark((), history)

    assert marked.last is not None
    assert marked.last.cut == {first: 3, second: 0, HIGH: 5}


def test_segments_that_are_not_known_any_more_count_for_nothing() -> None:
    times = told(NONE, "one", 100)
    what, times = times.tell("one", 100, {7: 1})
    assert what is Told.TAKEN
    assert times.mark((), TWO) == times

    what, times = times.tell("two", 100, {7: 1, 1: 4})
    marked = times.mark((), TWO)

    assert marked.last is not None
    assert marked.last.cut == {StreamSegment(0.0, 0.5, 0, 0): 0, HIGH: 4}

"""Borders of a range: whole chunks, pieces of about one size, exact at both ends."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.log.log import StreamLog
from gateway.log.reading.locations import Start, locate_border
from gateway.log.reading.plans import PlanBorder, borders_between, ends_of
from gateway.log.reading.retention import Cut, cut_before, remove_before
from tests.unit.gateway.log.log_rig import NAMES, LogRig, put

RECORDS = 3
CHUNKS = 40
SPAN = 1_000


class History(NamedTuple):
    """A log of chunks of three records each, and where each begins."""

    rig: LogRig
    log: StreamLog
    places: dict[int, int]

    def plan(self, first: int, end: int, span: int = SPAN) -> list[PlanBorder]:
        ends = self.rig.run(ends_of(self.log, first, end))
        return list(borders_between(self.log, *ends, span))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    rig = LogRig(tmp_path_factory.mktemp("log"))
    yield filled(rig)
    rig.close()


def filled(rig: LogRig) -> History:
    rig.span_bytes = 600
    log = rig.create()
    places: dict[int, int] = {}
    for number in range(CHUNKS):
        places[log.committed_next_offset] = log.committed_length
        put(log, [bytes(50 + number)] * RECORDS)
        rig.settle(log)
    places[log.committed_next_offset] = log.committed_length
    return History(rig, log, places)


TAIL = CHUNKS * RECORDS
offsets = st.integers(0, TAIL + 5)


@given(offsets, offsets, st.integers(1, 5_000))
def test_borders_are_those_of_chunks_and_exact_at_both_ends(
    history: History, one: int, other: int, span: int
) -> None:
    first, end = min(one, other), max(one, other)

    borders = history.plan(first, end, span)

    begin = min(first // RECORDS * RECORDS, TAIL)
    stop = min(-(-end // RECORDS) * RECORDS, TAIL)
    start = history.places[begin]
    assert borders[0] == PlanBorder(begin, 0)
    assert all(history.places[offset] - start == size for offset, size in borders)
    assert borders[-1].offset == max(begin, stop)
    assert all(a.offset < b.offset and a.size_bytes < b.size_bytes for a, b in pairwise(borders))


@given(st.integers(1, 5_000))
def test_pieces_have_about_the_size_that_was_asked_for(history: History, span: int) -> None:
    borders = history.plan(0, TAIL, span)

    sizes = [after.size_bytes - before.size_bytes for before, after in pairwise(borders)]
    assert all(span <= size < span + 600 + 400 for size in sizes[:-1])
    assert sizes[-1] < span + 600 + 400
    assert sum(sizes) == history.log.committed_length


@pytest.mark.parametrize(("first", "end"), [(0, 0), (4, 4), (TAIL, TAIL), (TAIL, TAIL + 9)])
def test_a_range_without_records_has_one_border_or_that_of_its_chunk(
    history: History, first: int, end: int
) -> None:
    borders = history.plan(first, end)

    assert len(borders) == (2 if first == 4 else 1)


def test_an_empty_stream_has_one_border(rig: LogRig) -> None:
    log = rig.create()

    ends = rig.run(ends_of(log, 0, 100))

    assert list(borders_between(log, *ends, SPAN)) == [PlanBorder(0, 0)]


def test_a_plan_of_removed_records_begins_with_the_oldest_chunk(rig: LogRig) -> None:
    history = filled(rig)
    log = history.log
    entry = 3
    cut = Cut(log.index.positions[entry], log.index.offsets[entry])
    rig.run(remove_before(rig.store, NAMES.data_segment, log, cut))

    assert history.plan(0, 2) == [PlanBorder(cut.offset, 0)]
    assert history.plan(0, TAIL)[0] == PlanBorder(cut.offset, 0)
    assert history.plan(0, TAIL)[-1] == PlanBorder(TAIL, log.committed_length - cut.position)


@given(st.integers(0, TAIL + 5))
def test_a_border_is_the_first_chunk_at_an_offset_or_behind_it(
    history: History, offset: int
) -> None:
    expected = min(-(-offset // RECORDS) * RECORDS, TAIL)

    found = history.rig.run(locate_border(history.log, offset))

    assert found == Start(expected, history.places[expected])


@given(st.integers(0, TAIL))
def test_a_cut_before_an_offset_leaves_its_chunk(history: History, offset: int) -> None:
    log = history.log
    whole = Cut(log.index.positions[-1], log.index.offsets[-1])

    cut = cut_before(log, whole, offset)

    if cut is None:
        assert offset < log.index.offsets[1]
    else:
        assert cut.offset <= offset
        assert cut == whole or cut.offset > offset - 600 // 50 * RECORDS
        assert log.index.offset_at(cut.position) == cut.offset

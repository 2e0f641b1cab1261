import gc
from collections.abc import Callable
from typing import Final

import pytest

from store.errors import DiskFull
from store.local.commit.changes import Change
from store.local.commit.round import Round
from store.local.state import segment as segment_module
from store.local.state.data_file import DataFile
from store.local.state.segment import Place, Segment, SegmentState

MANY: Final = 2_000
NONE: Final[list[Change]] = []


def state_of(length: int, *bases: int) -> SegmentState:
    state = SegmentState()
    state.length = length
    state.extents = tuple((base, DataFile(number, 1)) for number, base in enumerate(bases, 1))
    return state


def files_of(state: SegmentState) -> list[tuple[int, int]]:
    return [(base, file.number) for base, file in state.extents]


def test_a_place_ends_with_its_file_or_the_segment() -> None:
    state = state_of(250, 0, 100, 200)
    first, second, last = (file for _, file in state.extents)
    assert state.place_of(0, 10) == Place(first, 0, 10)
    assert state.place_of(90, 50) == Place(first, 90, 10)
    assert state.place_of(100, 50) == Place(second, 0, 50)
    assert state.place_of(240, 50) == Place(last, 40, 10)


def test_a_truncation_drops_whole_files_and_keeps_the_last() -> None:
    state = state_of(250, 0, 100, 200)
    assert [file.number for file in state.truncate(99)] == []
    assert [file.number for file in state.truncate(100)] == [1]
    assert [file.number for file in state.truncate(250)] == [2]
    assert (state.start, files_of(state)) == (250, [(200, 3)])


def test_a_truncation_never_goes_back() -> None:
    state = state_of(250, 0)
    state.truncate(100)
    state.truncate(50)
    assert state.start == 100


def test_a_merge_takes_the_files_over() -> None:
    target, source = state_of(100, 0), state_of(30, 0, 20)
    target.merge(source)
    assert target.length == 130
    assert files_of(target) == [(0, 1), (100, 1), (120, 2)]
    assert target.place_of(119, 5).size == 1


def test_a_merge_of_nothing_changes_nothing() -> None:
    target = state_of(100, 0)
    target.merge(SegmentState())
    assert (target.length, files_of(target)) == (100, [(0, 1)])


def test_a_copy_goes_its_own_way() -> None:
    state = state_of(100, 0)
    state.attributes.update([(b"a", 1)])
    copy = state.copy()
    state.attributes.update([(b"a", 2)])
    state.extents = ()
    assert (copy.attributes.all(), len(copy.extents), copy.length) == ({b"a": 1}, 1, 100)


def test_taking_back_returns_to_what_is_committed() -> None:
    segment = Segment(1, "a", None)
    segment.created = True
    segment.pending.length = 50
    segment.pending.sealed = True
    segment.gone = True
    error = DiskFull("full")
    segment.abort(error)
    assert (segment.pending.length, segment.gone, segment.blocked) == (0, False, False)
    assert (segment.aborts, segment.abort_error) == (1, error)


class Waiting:
    def __init__(
        self, *, finishes: bool = True, wakes: "Callable[[], object] | None" = None
    ) -> None:
        self.is_finished = False
        self.tries = 0
        self._finishes = finishes
        self._wakes = wakes

    def attempt(self) -> bool:
        self.tries += 1
        self.is_finished = self._finishes
        if self._wakes is not None:
            self._wakes()
        return self.is_finished


def test_waking_asks_those_whose_bytes_are_there_and_as_many_as_it_is_told() -> None:
    segment = Segment(1, "a", None)
    waiting = [Waiting() for _ in range(5)]
    for position, each in zip((7, 0, 3, 0, 9), waiting, strict=True):
        segment.wait(position, each)
    assert not segment.wake(10)
    segment.committed.length = 8
    assert segment.wake(3)
    assert [each.tries for each in waiting] == [0, 1, 1, 1, 0]
    assert not segment.wake(3)
    assert [each.tries for each in waiting] == [1, 1, 1, 1, 0]
    segment.committed.sealed = True
    segment.wake(3)
    assert waiting[4].tries == 1


def test_waking_keeps_who_waits_on_and_who_came_meanwhile() -> None:
    segment = Segment(1, "a", None)
    segment.committed.length = 1
    new, patient = Waiting(), Waiting(finishes=False)
    segment.wait(0, Waiting(wakes=lambda: segment.wait(0, new)))
    segment.wait(0, patient)
    assert not segment.wake(10)
    assert (new.tries, patient.tries) == (1, 1)
    segment.wake_all()
    assert (new.tries, patient.tries) == (1, 2)


@pytest.mark.compiled
@pytest.mark.skipif(not segment_module.__file__.endswith(".so"), reason="objects of Python")
def test_the_collector_of_garbage_looks_at_no_segment_and_no_file() -> None:
    kept: list[Segment] = []
    gc.collect()
    before = len(gc.get_objects())
    for number in range(MANY):
        segment = Segment(number, "a", None)
        segment.committed.extents = ((0, DataFile(number, number)),)
        segment.pending = segment.committed.copy()
        segment.round = Round()
        segment.round.changes = NONE
        kept.append(segment)
    gc.collect()
    gc.collect()  # a tuple is forgotten once what is in it is
    assert len(gc.get_objects()) - before < MANY // 10

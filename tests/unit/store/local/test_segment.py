from store.api import ABSENT
from store.errors import DiskFull
from store.local.data_file import DataFile
from store.local.segment import Extent, Place, Segment, SegmentState


def state_of(length: int, *bases: int) -> SegmentState:
    state = SegmentState()
    state.length = length
    state.extents = [Extent(base, DataFile(number, 1)) for number, base in enumerate(bases, 1)]
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


def test_absent_removes_an_attribute() -> None:
    state = SegmentState()
    state.set_attributes([(b"a", 1), (b"b", 2), (b"a", ABSENT), (b"c", ABSENT)])
    assert state.attributes == {b"b": 2}


def test_a_copy_goes_its_own_way() -> None:
    state = state_of(100, 0)
    state.attributes[b"a"] = 1
    copy = state.copy()
    state.attributes.clear()
    state.extents.clear()
    assert (copy.attributes, len(copy.extents), copy.length) == ({b"a": 1}, 1, 100)


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
    def __init__(self, segment: Segment, *, is_finished: bool, adds: "Waiting | None") -> None:
        self._segment = segment
        self._is_finished = is_finished
        self._adds = adds

    def attempt(self) -> bool:
        if self._adds is not None:
            self._segment.waiters.append(self._adds)
            self._adds = None
        return self._is_finished


def test_waking_keeps_who_waits_on_and_who_came_meanwhile() -> None:
    segment = Segment(1, "a", None)
    new = Waiting(segment, is_finished=True, adds=None)
    patient = Waiting(segment, is_finished=False, adds=None)
    segment.waiters = [Waiting(segment, is_finished=True, adds=new), patient]
    segment.wake()
    assert segment.waiters == [new, patient]

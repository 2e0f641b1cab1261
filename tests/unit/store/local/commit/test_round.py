"""What becomes of the changes of a round when a part of it fails."""

from collections.abc import Sequence

import pytest

from store.errors import DiskFull, SegmentFailed, StoreError
from store.local.commit.changes import Change, Key, Later
from store.local.commit.round import Outcome, Round
from store.local.state.data_file import DataFile

ERROR, OTHER = SegmentFailed("broken"), DiskFull("full")


class Step(Change):
    """A change that touches some keys."""

    def __init__(self, *keys: Key, record: bytes = b"r", gives_space: bool = False) -> None:
        super().__init__()
        self.keys = keys
        self.record = record
        self.gives_space = gives_space

    def touches(self) -> tuple[Key, ...]:
        return self.keys

    def apply(self, at_ms: int) -> None:
        raise AssertionError(at_ms)

    def report(self, error: StoreError | None) -> None:
        raise AssertionError(error)


def dropped(outcome: Outcome, changes: Sequence[Step]) -> list[int]:
    return [number for number, change in enumerate(changes) if change in outcome.dropped]


def test_a_file_is_synced_and_kept_open_once_for_each_reason() -> None:
    round_, file = Round(), DataFile(1, 1)
    round_.sync(file)
    round_.sync(file)
    round_.pin(file)

    assert round_.syncs == {file: 0}
    assert (file.pins, round_.pinned) == (2, [file, file])


def test_what_builds_upon_a_failed_file_is_dropped_and_nothing_else() -> None:
    outcome = Outcome(0)
    changes = [Step(1), Step(2), Step(1, "name"), Step("name"), Step(3)]
    outcome.fail(DataFile(7, 1), ERROR)

    kept = outcome.drop_dependent(changes)

    assert kept == [changes[1], changes[4]]
    assert dropped(outcome, changes) == [0, 2, 3]
    assert set(outcome.dropped.values()) == {ERROR}


def test_the_first_error_of_a_segment_is_the_one_that_is_told() -> None:
    outcome = Outcome(0)
    outcome.fail(DataFile(7, 1), ERROR)
    outcome.fail(DataFile(8, 1), OTHER)
    change = Step(1)
    outcome.drop_dependent([change])

    assert outcome.dropped[change] is ERROR
    assert len(outcome.failed) == 2


def test_only_what_comes_after_a_dropped_change_builds_upon_it() -> None:
    outcome = Outcome(0)
    changes = [Step("name"), Step(1, "name"), Step("name")]
    outcome.touched[1] = ERROR

    assert outcome.drop_dependent(changes) == [changes[0]]


def test_a_call_that_waits_its_turn_takes_nothing_with_it() -> None:
    outcome = Outcome(0)
    later = Later((1, 2), lambda: None)
    outcome.touched[1] = ERROR
    change = Step(2)

    assert outcome.drop_dependent([later, change]) == [change]
    assert outcome.dropped == {later: ERROR}


@pytest.mark.parametrize("also_givers", [False, True])
def test_without_room_takers_go_and_givers_stay_unless_they_do_not_fit(
    *, also_givers: bool
) -> None:
    outcome = Outcome(0)
    changes = [
        Step(1),
        Step(2, gives_space=True),
        Step(1, gives_space=True),  # builds upon the first
        Step(3, record=b""),
    ]

    kept = outcome.drop_takers(changes, OTHER, also_givers=also_givers)

    assert kept == ([] if also_givers else [changes[1], changes[3]])
    assert dropped(outcome, changes) == ([0, 1, 2, 3] if also_givers else [0, 2])

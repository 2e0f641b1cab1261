from typing import Any, cast

import pytest

from gateway.broker.commits.commit_order import PAUSE_MS_MAX, CommitOrder, CommitPart, PartOutcome
from gateway.pending import Pending, run, start


class Entrance:
    """Parts that try to enter, and pauses between the tries."""

    def __init__(self) -> None:
        self.tried: list[CommitPart] = []
        self.outcomes: list[Pending[PartOutcome]] = []
        self.pauses: list[tuple[int, Pending[None]]] = []
        self.lanes = CommitOrder(self._enter, self._wait)

    async def _enter(self, part: CommitPart) -> PartOutcome:
        self.tried.append(part)
        self.outcomes.append(Pending())
        return await self.outcomes[-1]

    def _wait(self, delay_ms: int) -> Pending[None]:
        self.pauses.append((delay_ms, Pending()))
        return self.pauses[-1][1]

    def put(self, commit: int, generation: int = 1) -> CommitPart:
        part = CommitPart(commit, "s", generation, cast("Any", None))
        self.lanes.put(part)
        return part

    def end(self, outcome: PartOutcome) -> None:
        self.outcomes[-1].settle(outcome)


def test_parts_of_one_stream_enter_one_after_the_other() -> None:
    entrance = Entrance()
    first, second = entrance.put(1), entrance.put(2)
    assert entrance.tried == [first]

    entrance.end(PartOutcome.ENTERED)

    assert first.ended.result() is first.first.result() is PartOutcome.ENTERED
    assert entrance.tried == [first, second]
    entrance.end(PartOutcome.DROPPED)
    assert second.ended.result() is PartOutcome.DROPPED


def test_parts_of_different_streams_enter_at_a_time() -> None:
    entrance = Entrance()
    first, second = entrance.put(1, generation=1), entrance.put(1, generation=2)

    assert entrance.tried == [first, second]


def test_a_part_that_waits_is_tried_again_and_holds_back_those_behind_it() -> None:
    entrance = Entrance()
    first, second = entrance.put(1), entrance.put(2)
    entrance.end(PartOutcome.WAITING)
    third = entrance.put(3)

    assert [part.first.result() for part in (first, second, third)] == [PartOutcome.WAITING] * 3
    entrance.pauses[0][1].settle(None)
    assert entrance.tried == [first, first]
    for _ in range(3):
        entrance.end(PartOutcome.ENTERED)
    assert entrance.tried == [first, first, second, third]
    assert third.ended.result() is PartOutcome.ENTERED


def test_the_pause_grows_up_to_a_minute_and_begins_anew() -> None:
    entrance = Entrance()
    entrance.put(1)
    for _ in range(12):
        entrance.end(PartOutcome.WAITING)
        entrance.pauses[-1][1].settle(None)

    delays = [delay_ms for delay_ms, _ in entrance.pauses]
    assert delays[:4] == [100, 200, 400, 800]
    assert delays[-2:] == [PAUSE_MS_MAX, PAUSE_MS_MAX]
    entrance.put(2)
    entrance.end(PartOutcome.ENTERED)
    entrance.end(PartOutcome.WAITING)
    assert entrance.pauses[-1][0] == 100


def test_an_error_nobody_foresaw_keeps_no_commit_unanswered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    entrance = Entrance()
    part = entrance.put(1)

    entrance.outcomes[-1].settle(ZeroDivisionError())

    assert part.first.result() is PartOutcome.WAITING
    assert "part of a commit fails stream=s number=1" in caplog.text


def test_a_stop_waits_for_what_is_under_way_and_begins_nothing() -> None:
    entrance = Entrance()
    first, second = entrance.put(1), entrance.put(2)

    ends: list[object] = []
    run(entrance.lanes.stop(), ends.append)
    assert ends == []
    entrance.end(PartOutcome.ENTERED)

    assert ends == [None]
    assert entrance.tried == [first]
    assert second.first.result() is PartOutcome.WAITING
    assert not second.ended.is_settled


def test_a_stop_does_not_wait_for_a_pause() -> None:
    entrance = Entrance()
    part = entrance.put(1)
    entrance.end(PartOutcome.WAITING)

    assert start(entrance.lanes.stop()).is_settled
    entrance.pauses[0][1].settle(None)

    assert entrance.tried == [part]

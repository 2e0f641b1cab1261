"""What is done at the end of a turn of the loop."""

from typing import Any

import pytest

from gateway.server.loop.schedule import Schedule
from tests.unit.gateway.server.connection_rig import TimedLoop


@pytest.fixture
def loop() -> TimedLoop:
    return TimedLoop()


def schedule_on(loop: TimedLoop) -> Schedule:
    any_loop: Any = loop
    return Schedule(any_loop)


def test_actions_are_done_in_order_and_not_at_once(loop: TimedLoop) -> None:
    schedule = schedule_on(loop)
    done: list[int] = []
    for number in range(3):
        schedule.add(lambda number=number: done.append(number))  # type: ignore[misc]  # bound at once
    assert done == []

    loop.run_all()

    assert done == [0, 1, 2]


def test_what_an_action_asks_for_is_done_after_the_others(loop: TimedLoop) -> None:
    schedule = schedule_on(loop)
    done: list[str] = []

    def first() -> None:
        done.append("first")
        schedule.add(lambda: done.append("third"))

    schedule.add(first)
    schedule.add(lambda: done.append("second"))

    loop.run_all()

    assert done == ["first", "second", "third"]


def test_actions_that_ask_for_each_other_for_ever_leave_turns_to_the_rest(
    loop: TimedLoop,
) -> None:
    schedule = schedule_on(loop)
    count = [0]

    def again() -> None:
        count[0] += 1
        schedule.add(again)

    schedule.add(again)
    for _ in range(10):
        loop.turn()

    assert 10 <= count[0] <= 100


def test_an_action_that_fails_is_logged_and_the_others_are_done(
    loop: TimedLoop, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = schedule_on(loop)
    done: list[str] = []

    def fail() -> None:
        raise KeyError("our bug")

    schedule.add(lambda: done.append("before"))
    schedule.add(fail)
    schedule.add(lambda: done.append("after"))
    loop.run_all()
    schedule.add(lambda: done.append("later"))
    loop.run_all()

    assert done == ["before", "after", "later"]
    assert "scheduled action failed" in caplog.text


def test_it_can_stand_in_for_the_loop_where_arguments_come_along(loop: TimedLoop) -> None:
    schedule = schedule_on(loop)
    done: list[object] = []

    schedule.call_soon(done.append, 1)
    schedule.call_soon(done.clear)
    schedule.call_soon(done.append, 2)
    loop.run_all()

    assert done == [2]


def test_the_loop_is_kept_awake_for_a_moment_and_less_often_where_that_is_in_vain(
    loop: TimedLoop,
) -> None:
    now_ns = 0
    any_loop: Any = loop
    schedule = Schedule(any_loop, busy_poll_us=50)
    schedule.rest.now_ns = lambda: now_ns

    def is_awake_after_something() -> bool:
        schedule.add(lambda: None)
        loop.turn()
        return bool(loop._ready)

    kept_awake = []
    for _ in range(40):
        kept_awake.append(is_awake_after_something())
        loop.turn()
        assert bool(loop._ready) == kept_awake[-1]  # not before the time is over
        now_ns += 50_000
        loop.turn()
        assert not bool(loop._ready)

    assert kept_awake[:4] == [True] * 4
    assert 1 <= sum(kept_awake[4:]) <= 4

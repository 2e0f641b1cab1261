"""The actions at the end of a turn of the loop, and its rests."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.server.loop.schedule import BUSY_NS, BUSY_TURNS, WINDOW_NS, AdaptiveSleep, Schedule
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


REST_US = 100
SECOND_NS = 1_000_000_000
# A loop that is busy enough: a turn every 100 µs.
TURN_NS = 100_000


class Loop:
    """A loop with a clock of its own, whose rests take time on it."""

    def __init__(self, rest_us: int = REST_US) -> None:
        self.now_ns = SECOND_NS
        self.rested_ns: list[int] = []
        self.rest = AdaptiveSleep(rest_us, now_ns=lambda: self.now_ns, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)
        self.rested_ns.append(self.now_ns)

    def run(self, length_ns: int, bytes_of_turn: Callable[[int], int]) -> int:
        """Take turns for a while; return how many of them rested.

        Args:
            length_ns: How long.
            bytes_of_turn: Bytes that come for a turn that many nanoseconds after the one before.
        """
        end_ns, rested_before = self.now_ns + length_ns, len(self.rested_ns)
        last_ns = self.now_ns
        while self.now_ns < end_ns:
            self.now_ns += TURN_NS
            self.rest.received_bytes += bytes_of_turn(self.now_ns - last_ns)
            last_ns = self.now_ns
            self.rest.at_end_of_turn()
        return len(self.rested_ns) - rested_before


def by_themselves(passed_ns: int) -> int:
    """Return the bytes of messages that come at a steady rate."""
    return passed_ns // 1_000


def after_each_answer(_passed_ns: int) -> int:
    """Return the bytes of a client that waits for each answer."""
    return 100


def test_under_load_that_lasts_it_rests_nearly_always() -> None:
    loop = Loop()
    assert loop.run(BUSY_NS, by_themselves) == 0
    loop.run(SECOND_NS, by_themselves)
    most = 10 * SECOND_NS // (TURN_NS + REST_US * 1_000)
    assert 0.9 * most < loop.run(10 * SECOND_NS, by_themselves) < most


def test_clients_that_wait_for_answers_are_hardly_delayed() -> None:
    loop = Loop()
    loop.run(20 * SECOND_NS, after_each_answer)
    turns = 60 * SECOND_NS // TURN_NS
    assert 0 < loop.run(60 * SECOND_NS, after_each_answer) < 0.005 * turns


def test_it_ends_soon_after_clients_begin_to_wait() -> None:
    loop = Loop()
    loop.run(2 * SECOND_NS, by_themselves)
    assert loop.run(SECOND_NS // 10, by_themselves)
    loop.run(SECOND_NS + 2 * WINDOW_NS, after_each_answer)
    assert loop.run(SECOND_NS // 10, after_each_answer) == 0


def test_a_loop_with_little_to_do_never_rests() -> None:
    loop = Loop()
    for _ in range(20 * BUSY_TURNS):
        loop.now_ns += 3 * WINDOW_NS // BUSY_TURNS
        loop.rest.received_bytes += 100
        assert not loop.rest.at_end_of_turn()


def test_after_a_load_it_rests_no_longer() -> None:
    loop = Loop()
    loop.run(2 * SECOND_NS, by_themselves)
    loop.now_ns += SECOND_NS
    loop.rest.at_end_of_turn()
    loop.now_ns += SECOND_NS
    assert not loop.rest.at_end_of_turn()


def test_0_is_no_rest_at_all() -> None:
    loop = Loop(rest_us=0)
    assert loop.run(2 * SECOND_NS, by_themselves) == 0

"""When heartbeats are sent, and when silence ends a connection."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from gateway.server.loop.timers import Heartbeats, HeartbeatTimers
from tests.unit.gateway.server.connection_rig import TimedLoop


@dataclass
class Line:
    """What heartbeats look at, and when they did something."""

    loop: TimedLoop = field(default_factory=TimedLoop)
    sent: int = 0
    received: int = 0
    is_reading: bool = True
    sent_at: list[float] = field(default_factory=list)
    failed_at: list[float] = field(default_factory=list)

    def begin(self, interval_s: int) -> Heartbeats:
        loop: Any = self.loop
        return Heartbeats(HeartbeatTimers(loop), interval_s, self, self._send)

    def sent_bytes(self) -> int:
        return self.sent

    def bytes_of_life(self) -> int:
        return self.received

    def listens(self) -> bool:
        return self.is_reading

    def _send(self) -> None:
        self.sent_at.append(self.loop.now_s)
        self.sent += 8

    def heartbeat_missed(self) -> None:
        self.failed_at.append(self.loop.now_s)


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.mark.parametrize(
    ("interval_s", "times"), [(1, [0.5, 1.5, 2.5, 3.5]), (2, [1.0, 3.0, 5.0, 7.0])]
)
def test_the_first_comes_after_half_the_interval_and_then_one_each_interval(
    line: Line, interval_s: int, times: list[float]
) -> None:
    line.begin(interval_s)

    line.loop.pass_time(4 * interval_s)

    assert line.sent_at == times


def test_what_was_sent_since_the_last_look_stands_for_a_heartbeat(line: Line) -> None:
    line.begin(10)
    line.loop.pass_time(5)
    for _ in range(10):
        line.loop.pass_time(4)
        line.sent += 1
        line.loop.pass_time(1)

    assert line.sent_at == [5.0]


@pytest.mark.parametrize(("interval_s", "end_s"), [(1, 3.0), (2, 6.0), (25, 75.0), (60, 180.0)])
def test_silence_from_the_start_ends_it_after_three_intervals(
    line: Line, interval_s: int, end_s: float
) -> None:
    line.begin(interval_s)

    line.loop.pass_time(3 * interval_s)

    assert line.failed_at == [end_s]


@pytest.mark.parametrize("last_byte_s", [2.0, 2.5, 2.9])
def test_silence_ends_it_two_to_three_intervals_after_the_last_byte(
    line: Line, last_byte_s: float
) -> None:
    line.begin(1)
    line.loop.pass_time(last_byte_s)
    line.received += 1

    line.loop.pass_time(10)

    assert 2.0 <= line.failed_at[0] - last_byte_s <= 3.0


def test_any_byte_is_a_sign_of_life(line: Line) -> None:
    line.begin(1)
    for _ in range(100):
        line.loop.pass_time(1.9)
        line.received += 1

    assert line.failed_at == []


def test_a_line_that_is_not_read_is_not_silent(line: Line) -> None:
    line.begin(1)
    line.loop.pass_time(0.5)
    line.is_reading = False
    line.loop.pass_time(100)
    assert line.failed_at == []

    line.is_reading = True
    line.loop.pass_time(1)
    assert line.failed_at == []
    line.loop.pass_time(2)

    assert len(line.failed_at) == 1


def test_an_interval_of_0_means_none(line: Line) -> None:
    line.begin(0)

    line.loop.pass_time(1_000_000)

    assert (line.sent_at, line.failed_at) == ([], [])
    assert line.loop.timer_count == 0


def test_nothing_happens_after_the_end(line: Line) -> None:
    heartbeats = line.begin(1)
    line.loop.pass_time(0.6)

    heartbeats.stop()
    line.loop.pass_time(100)

    assert (line.sent_at, line.failed_at) == ([0.5], [])
    assert line.loop.timer_count == 0


def test_long_delays_of_many_share_the_timers_of_whole_seconds() -> None:
    loop: Any = TimedLoop()
    timers = HeartbeatTimers(loop)
    called_at: list[float] = []

    def look() -> Callable[[], None]:
        return lambda: called_at.append(loop.now_s)

    for index in range(1_000):
        loop.now_s = 100 + index / 1_000
        timers.call_later(30, look())

    assert loop.timer_count == 2
    loop.pass_time(40)
    assert set(called_at) == {130.0, 131.0}
    assert len(called_at) == 1_000


def test_short_delays_are_exact() -> None:
    loop: Any = TimedLoop()
    timers = HeartbeatTimers(loop)
    called_at: list[float] = []
    loop.now_s = 0.3

    timers.call_later(9.5, lambda: called_at.append(loop.now_s))
    loop.pass_time(20)

    assert called_at == [9.8]


def test_a_long_delay_that_is_cancelled_ends_without_a_call() -> None:
    loop: Any = TimedLoop()
    timers = HeartbeatTimers(loop)
    called: list[str] = []
    cancel = timers.call_later(30, lambda: called.append("cancelled"))
    timers.call_later(30, lambda: called.append("kept"))

    cancel()
    loop.pass_time(31)
    cancel()

    assert called == ["kept"]


def test_a_second_whose_looks_are_all_cancelled_leaves_no_timer() -> None:
    loop: Any = TimedLoop()
    timers = HeartbeatTimers(loop)
    called: list[str] = []
    for delay_s in range(20, 1_000):
        cancel = timers.call_later(delay_s, lambda: called.append("cancelled"))
        cancel()
        cancel()
    assert loop.timer_count == 0

    timers.call_later(30, lambda: called.append("kept"))
    loop.pass_time(31)
    assert called == ["kept"]


def test_a_look_that_is_cancelled_while_those_of_its_second_are_called_is_not_called() -> None:
    loop: Any = TimedLoop()
    timers = HeartbeatTimers(loop)
    called: list[int] = []
    cancels: list[Callable[[], object]] = []

    def first_of_all(number: int) -> None:
        called.append(number)
        for cancel in cancels:
            cancel()

    cancels.extend(timers.call_later(30, partial(first_of_all, n)) for n in range(1_000))
    loop.pass_time(31)

    assert len(called) == 1


def test_others_have_their_turn_between_the_looks_of_a_second() -> None:
    loop: Any = TimedLoop()
    timers = HeartbeatTimers(loop)
    called: list[int] = []
    for index in range(1_000):
        timers.call_later(30, partial(called.append, index))
    loop.call_later(30, lambda: loop.call_soon(lambda: counts.append(len(called))))
    counts: list[int] = []

    loop.pass_time(31)

    assert len(called) == 1_000
    assert 0 < counts[0] <= 100

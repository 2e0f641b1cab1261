import random

from gateway.log import clock as clock_module
from gateway.log.clock import Clock

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Times:
    """The time of day, which can be set, and a clock that cannot."""

    def __init__(self) -> None:
        self.wall_ms = 1_700_000_000_000
        self.steady_ms = 5_000
        self.clock = Clock(lambda: self.wall_ms, lambda: self.steady_ms)

    def pass_by(self, ms: int) -> None:
        self.wall_ms += ms
        self.steady_ms += ms


def test_it_gives_the_time_of_day() -> None:
    times = Times()
    times.pass_by(7)

    assert times.clock() == times.wall_ms


def test_the_system_gives_the_time_of_day_if_nothing_else_is_said() -> None:
    clock = Clock()

    assert abs(clock() - clock.for_age(HOUR_MS)) < 1_000
    assert clock() > 1_700_000_000_000


def test_without_a_jump_the_time_for_an_age_is_the_time_of_day() -> None:
    times = Times()
    for _ in range(100):
        times.pass_by(60_000)
        assert times.clock.for_age(HOUR_MS) == times.wall_ms


def test_a_jump_forward_is_believed_only_when_the_age_has_passed() -> None:
    times = Times()
    before = times.wall_ms
    times.wall_ms += DAY_MS

    assert times.clock.for_age(HOUR_MS) == before
    times.pass_by(HOUR_MS)
    assert times.clock.for_age(HOUR_MS) == before + HOUR_MS
    times.pass_by(1)
    assert times.clock.for_age(HOUR_MS) == times.wall_ms


def test_a_jump_back_is_believed_at_once() -> None:
    times = Times()
    times.wall_ms -= DAY_MS

    assert times.clock.for_age(HOUR_MS) == times.wall_ms


def test_a_clock_that_is_a_little_fast_is_followed() -> None:
    times = Times()
    for _ in range(10_000):
        times.pass_by(1_000)
        times.wall_ms += 1

    assert 0 <= times.wall_ms - times.clock.for_age(1_000_000) < 3_000


def test_nothing_younger_than_the_age_ever_looks_older_however_the_clock_is_set() -> None:
    chance = random.Random(1)
    times = Times()
    written: list[tuple[int, int]] = []
    last_ms = 0
    for _ in range(5_000):
        times.pass_by(chance.randrange(2 * HOUR_MS // 50))
        if chance.random() < 0.1:
            times.wall_ms += chance.choice((-DAY_MS, DAY_MS))
        last_ms = max(last_ms, times.clock())
        written.append((times.steady_ms, last_ms))
        now_ms = times.clock.for_age(HOUR_MS)
        young = [ms for steady, ms in written if times.steady_ms - steady < HOUR_MS]
        assert all(now_ms - ms <= HOUR_MS for ms in young)


def test_however_often_the_clock_is_set_little_is_remembered_and_nothing_forgotten() -> None:
    times = Times()
    times.wall_ms -= DAY_MS
    low = times.clock() - times.steady_ms
    for _ in range(3 * clock_module._RUNS_MAX):
        times.wall_ms += 10_000
        times.pass_by(1)
        times.clock()

    assert len(times.clock._runs) <= clock_module._RUNS_MAX
    assert times.clock.for_age(HOUR_MS) == times.steady_ms + low

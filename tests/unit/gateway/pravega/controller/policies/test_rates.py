"""Rates at which segments are written."""

from __future__ import annotations

import pytest

from gateway.pravega.controller.policies.rates import WINDOWS, Rates

MINUTE = 60_000
TICK = 5_000
BEGAN = 1_000_000


def written(rates: Rates, minutes: float, per_s: float, since: int = BEGAN) -> int:
    """Write so many units a second, noted each tick; return the time at the end."""
    now = since
    while now < since + minutes * MINUTE:
        rates.add(per_s * TICK / 1_000, now, now + TICK)
        now += TICK
    return now


@pytest.mark.parametrize("minutes", [0.1, 1, 10, 60])
def test_a_steady_rate_is_that_of_each_window_at_any_age(minutes: float) -> None:
    rates = Rates(BEGAN, MINUTE)
    now = written(rates, minutes, 70)

    assert [rates.over(window, now) for window in WINDOWS] == pytest.approx([70] * 4)


def test_a_burst_weighs_most_in_the_shortest_window() -> None:
    rates = Rates(BEGAN, MINUTE)
    now = written(rates, 1, 100, since=written(rates, 30, 10))
    over = [rates.over(window, now) for window in WINDOWS]

    assert over == sorted(over, reverse=True)
    assert over[0] == pytest.approx(10 + 90 * (1 - 2.718281828 ** (-1 / 2)), rel=1e-3)


def test_silence_lowers_a_rate_though_nothing_is_noted() -> None:
    rates = Rates(BEGAN, MINUTE)
    now = written(rates, 30, 100)

    assert rates.over(2, now + 2 * MINUTE) == pytest.approx(100 / 2.718281828, rel=1e-3)
    assert rates.over(20, now + 200 * MINUTE) < 1


def test_what_comes_after_a_silence_is_of_its_own_time() -> None:
    steady, rates = Rates(BEGAN, MINUTE), Rates(BEGAN, MINUTE)
    for each in (steady, rates):
        written(each, 10, 100)
    now = BEGAN + 20 * MINUTE
    for tick in range(BEGAN + 10 * MINUTE, now, TICK):
        steady.add(0, tick, tick + TICK)
    for each in (steady, rates):
        each.add(500, now, now + TICK)

    over = [[each.over(window, now + TICK) for window in WINDOWS] for each in (steady, rates)]
    assert over[0] == pytest.approx(over[1])


def test_a_young_segment_has_no_rate_and_its_age_is_in_minutes() -> None:
    rates = Rates(BEGAN, 50)

    assert rates.over(2, BEGAN) == 0
    assert rates.age(BEGAN + 500) == 10


def test_a_clock_that_goes_back_makes_no_rate_larger() -> None:
    rates = Rates(BEGAN, MINUTE)
    now = written(rates, 10, 100)
    rates.add(500, now - MINUTE, now - MINUTE + TICK)

    assert rates.over(10, now - 5 * MINUTE) < 1_000_000
    assert rates.over(10, BEGAN - 5 * MINUTE) == 0

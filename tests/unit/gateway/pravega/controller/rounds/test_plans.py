"""Plans of a policy of scaling."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.records.history import covers_all, evenly
from gateway.pravega.controller.records.model import StreamPolicy
from gateway.pravega.controller.rounds.plans import (
    BY_EVENTS,
    WINDOWS,
    Keys,
    Rates,
    ScalingStep,
    planned,
)

MINUTE = 60_000
BEGAN = 1_000_000
MOST = 1_000
TARGET = 100


def plans(
    rates: list[float],
    *,
    minutes: float = 30,
    least: int = 1,
    factor: int = 2,
    most: int = MOST,
) -> tuple[tuple[StreamSegment, ...], list[ScalingStep]]:
    """Return even segments that were written at some rates, and what is planned for them."""
    segments = evenly(len(rates), 0, 0).made
    now = round(BEGAN + minutes * MINUTE)
    known: dict[Keys, Rates] = {}
    for segment, rate in zip(segments, rates, strict=True):
        its = known[segment.low, segment.high] = Rates(BEGAN, MINUTE)
        its.add(rate * (now - BEGAN) / 1_000, BEGAN, now)
    policy = StreamPolicy(scale_type=BY_EVENTS, rate=TARGET, factor=factor, segments=least)
    return segments, planned(segments, known, policy, now, most)


@pytest.mark.parametrize(
    ("rate", "factor", "parts"),
    [(99, 4, 0), (101, 4, 2), (350, 4, 3), (350, 2, 2), (9_000, 4, 4), (101, 1, 2)],
)
def test_a_busy_segment_is_split_by_its_rate_and_by_no_more_than_the_factor(
    rate: float, factor: int, parts: int
) -> None:
    (segment,), changes = plans([rate], factor=factor)
    if not parts:
        assert changes == []
        return
    (change,) = changes

    assert change.ended == (segment,)
    assert len(change.keys) == parts
    assert covers_all(change.keys)
    assert change.rate == pytest.approx(rate)
    assert "above" in change.why


def test_a_segment_that_began_lately_is_left_alone() -> None:
    assert plans([9_000], minutes=10)[1] == []
    assert plans([9_000], minutes=10.1)[1] != []
    assert plans([0, 0], minutes=20)[1] == []
    assert plans([0, 0], minutes=20.1)[1] != []


def test_neighbours_that_are_cold_become_one() -> None:
    segments, (change,) = plans([99, 10, 10, 99])

    assert change.ended == segments[1:3]
    assert change.keys == ((0.25, 0.75),)
    assert change.rate == pytest.approx(20)


def test_a_cold_segment_without_a_cold_neighbour_stays() -> None:
    assert plans([10, 99, 10])[1] == []


def test_a_segment_above_half_of_the_rate_is_not_cold() -> None:
    assert plans([51, 51])[1] == []


@pytest.mark.parametrize(("least", "left"), [(1, 3), (2, 3), (3, 3), (5, 5), (7, 7), (9, 7)])
def test_three_at_a_time_merge_and_never_below_the_least_number(least: int, left: int) -> None:
    _, changes = plans([0] * 7, least=least)

    assert 7 - sum(len(each.ended) - 1 for each in changes) == left


def test_no_segment_is_split_where_there_are_too_many() -> None:
    _, changes = plans([9_000] * 4, factor=3, most=8)

    assert len(changes) == 2


def test_a_split_and_a_merge_may_come_together() -> None:
    segments, (split, merge) = plans([9_000, 0, 0], least=3)

    assert split.ended == segments[:1]
    assert merge.ended == segments[1:]


@given(
    rates=st.lists(st.sampled_from([0.0, 10.0, 99.0, 300.0, 9_000.0]), min_size=1, max_size=40),
    least=st.integers(1, 40),
    factor=st.integers(1, 6),
)
def test_whatever_is_planned_covers_each_key_once(
    rates: list[float], least: int, factor: int
) -> None:
    segments, changes = plans(rates, least=least, factor=factor, most=50)
    ended = {each for change in changes for each in change.ended}
    keys = [(each.low, each.high) for each in segments if each not in ended]
    keys += [each for change in changes for each in change.keys]

    assert len(ended) == sum(len(change.ended) for change in changes)
    assert covers_all(sorted(keys))
    assert len(keys) <= 50
    assert len(keys) >= min(least, len(segments))
    for change in changes:
        assert all(one.high == other.low for one, other in pairwise(change.ended))


TICK = 5_000


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

"""Trimming: what of the log may go, and what stays for members that come late."""

from typing import Final

import pytest

from store.replica.log import NOTHING
from store.replica.trimming import KEPT_BYTES, KEPT_S, Trimming

BYTES_MAX: Final = 16 * KEPT_BYTES
FAR: Final = 10**9
"""A position behind all that the tests note."""


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def trimming(clock: Clock) -> Trimming:
    return Trimming(BYTES_MAX, clock)


def note_until(trimming: Trimming, clock: Clock, seconds: int, bytes_each: int) -> None:
    """Note a position each ten seconds: the tenth part of the time, beginning with 1."""
    for count in range(seconds // 10 + 1):
        trimming.note(1 + count, count * bytes_each)
        clock.now_s += 10


def test_nothing_goes_as_long_as_nothing_was_noted(trimming: Trimming) -> None:
    assert trimming.position(FAR, [FAR], 0) == NOTHING


def test_what_is_old_and_far_from_the_end_goes(trimming: Trimming, clock: Clock) -> None:
    note_until(trimming, clock, 1200, KEPT_BYTES // 10)

    # Clock is 10 s behind the last sample: position 62 is 600 s old, and 5.9 GiB from the end.
    assert trimming.position(FAR, [FAR], 0) == 62


def test_what_is_young_stays_though_it_is_far_from_the_end(
    trimming: Trimming, clock: Clock
) -> None:
    note_until(trimming, clock, int(KEPT_S) - 20, KEPT_BYTES)

    assert trimming.position(FAR, [FAR], 0) == NOTHING


@pytest.mark.parametrize(("sent_bytes", "position"), [(KEPT_BYTES - 1, 0), (KEPT_BYTES, 7)])
def test_the_last_bytes_stay_though_they_are_old(
    trimming: Trimming, clock: Clock, sent_bytes: int, position: int
) -> None:
    trimming.note(7, 0)
    clock.now_s += 100 * KEPT_S
    trimming.note(8, sent_bytes)

    assert trimming.position(FAR, [FAR], 0) == position


@pytest.mark.parametrize(("age_s", "position"), [(KEPT_S - 1, 0), (KEPT_S, 7)])
def test_the_last_minutes_stay(
    trimming: Trimming, clock: Clock, age_s: float, position: int
) -> None:
    trimming.note(7, 0)
    clock.now_s += age_s
    trimming.note(8, 2 * KEPT_BYTES)

    assert trimming.position(FAR, [FAR], 0) == position


def test_what_a_member_has_not_on_its_disk_stays(trimming: Trimming, clock: Clock) -> None:
    note_until(trimming, clock, 1200, KEPT_BYTES // 10)

    assert trimming.position(FAR, [40, FAR], 0) == 40
    assert trimming.position(30, [40, FAR], 0) == 30
    assert trimming.position(FAR, [NOTHING, FAR], 0) == NOTHING


def test_what_stayed_for_a_member_goes_when_it_comes_up(trimming: Trimming, clock: Clock) -> None:
    note_until(trimming, clock, 1200, KEPT_BYTES // 10)
    assert trimming.position(FAR, [NOTHING], 0) == NOTHING

    assert trimming.position(FAR, [FAR], 0) == 62


def test_a_member_that_is_alone_trims_nothing(trimming: Trimming, clock: Clock) -> None:
    note_until(trimming, clock, 1200, KEPT_BYTES // 10)

    assert trimming.position(FAR, [], 0) == NOTHING


@pytest.mark.parametrize("others", [[], [NOTHING], [40]])
def test_a_full_log_waits_for_no_member_that_is_away(trimming: Trimming, others: list[int]) -> None:
    full = BYTES_MAX * 8 // 10 + 1

    found = []
    for log_bytes in (full - 2, full, 0):
        position = trimming.position(77, others, log_bytes)
        found.append((position, trimming.is_full))

    assert found == [(NOTHING, False), (77, True), (NOTHING, False)]


@pytest.mark.parametrize("bytes_each", [0, 1, KEPT_BYTES // 1024, KEPT_BYTES])
def test_a_long_time_takes_no_more_than_some_hundred_samples(
    trimming: Trimming, clock: Clock, bytes_each: int
) -> None:
    for count in range(20_000):
        trimming.note(count, count * bytes_each)
        clock.now_s += 10
        trimming.position(FAR, [FAR], 0)

    assert len(trimming._samples) < 400

"""When one frame that names a great many things lets others go first."""

import time

from gateway.broker.slices import THINGS_A_TURN, Slice


def test_a_turn_has_so_many_things() -> None:
    time_slice = Slice()
    counts: list[int] = []
    count = 0
    while len(counts) < 2:
        count += 1
        if time_slice.is_over():
            counts.append(count)
            time_slice.begin()
            count = 0
    assert max(counts) <= THINGS_A_TURN


def test_what_takes_long_is_over_after_a_few() -> None:
    time_slice = Slice()
    count = 1
    while not time_slice.is_over():
        time.sleep(0.001)
        count += 1
    assert count <= 16


def test_the_clock_is_looked_at_as_often_as_is_asked_for() -> None:
    time_slice = Slice(every=1)
    time.sleep(0.006)
    assert time_slice.is_over()
    time_slice = Slice(every=3)
    time.sleep(0.006)
    assert [time_slice.is_over() for _ in range(3)] == [False, False, True]

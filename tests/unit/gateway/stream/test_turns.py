"""When one frame that names a great many things lets others go first."""

import time

from gateway.stream.turns import THINGS_A_TURN, Turns


def test_a_turn_has_so_many_things() -> None:
    turns = Turns()
    counts: list[int] = []
    count = 0
    while len(counts) < 2:
        count += 1
        if turns.is_over():
            counts.append(count)
            turns.begin()
            count = 0
    assert max(counts) <= THINGS_A_TURN


def test_what_takes_long_is_over_after_a_few() -> None:
    turns = Turns()
    count = 1
    while not turns.is_over():
        time.sleep(0.001)
        count += 1
    assert count <= 16

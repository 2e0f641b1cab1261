"""Where events begin, as it is noted."""

from gateway.pravega.boundaries import SPACING_BYTES, Boundaries


def test_the_last_noted_at_or_below_a_position_is_found() -> None:
    boundaries = Boundaries()
    for index in range(10):
        boundaries.note("s", 1, index * SPACING_BYTES)
    assert boundaries.below("s", 1, 3 * SPACING_BYTES) == 3 * SPACING_BYTES
    assert boundaries.below("s", 1, 4 * SPACING_BYTES - 1) == 3 * SPACING_BYTES
    assert boundaries.below("s", 1, SPACING_BYTES - 1) == 0


def test_appends_near_each_other_are_noted_once() -> None:
    boundaries = Boundaries()
    boundaries.note("s", 1, SPACING_BYTES)
    boundaries.note("s", 1, SPACING_BYTES + 1)
    assert boundaries.below("s", 1, SPACING_BYTES + 1) == SPACING_BYTES


def test_a_name_that_is_used_again_is_another_segment() -> None:
    boundaries = Boundaries()
    boundaries.note("s", 1, SPACING_BYTES)
    assert boundaries.below("s", 2, SPACING_BYTES) == 0
    boundaries.note("s", 2, 2 * SPACING_BYTES)
    assert boundaries.below("s", 2, 9 * SPACING_BYTES) == 2 * SPACING_BYTES
    boundaries.forget("s")
    assert boundaries.below("s", 2, 9 * SPACING_BYTES) == 0

"""The place of a stream's truncation, by its policy and by what its readers gave up."""

from __future__ import annotations

import pytest

from gateway.pravega.controller.records.epochs import History
from gateway.pravega.controller.records.history import evenly, scaled
from gateway.pravega.controller.records.model import StreamPolicy
from gateway.pravega.controller.rounds.places import (
    BY_SIZE,
    BY_TIME,
    ENTRIES_MAX,
    StreamEnd,
    chosen,
    thinned,
)

ONE = History((evenly(1, 0, 0),))
PLACES = [StreamEnd(at_ms, 10 * at_ms, {0: 10 * at_ms}) for at_ms in (100, 200, 300, 400)]
NOW = StreamEnd(450, 4_500, {0: 4_500})


def kept(policy: StreamPolicy, *given_up: int) -> int | None:
    """Return when the place was noted that is chosen."""
    place = chosen(PLACES, policy, NOW, ONE, [{0: offset} for offset in given_up])
    return None if place is None else place.at_ms


def test_a_place_is_read_as_it_was_written() -> None:
    place = StreamEnd(5, 7, {0: 1, 1 << 32: 2})

    assert StreamEnd.from_bytes(place.to_bytes()) == place


@pytest.mark.parametrize(
    ("kind", "least", "expected"),
    [
        (BY_TIME, 500, None),
        (BY_TIME, 351, None),
        (BY_TIME, 350, 100),
        (BY_TIME, 51, 300),
        (BY_TIME, 50, 400),
        (BY_TIME, 0, 400),
        (BY_SIZE, 4_000, None),
        (BY_SIZE, 3_500, 100),
        (BY_SIZE, 501, 300),
        (BY_SIZE, 500, 400),
    ],
)
def test_the_least_that_a_policy_keeps_is_kept(kind: int, least: int, expected: int | None) -> None:
    assert kept(StreamPolicy(retention_type=kind, retention=least)) == expected


@pytest.mark.parametrize(
    ("given_up", "most", "expected"),
    [
        ([4_000], 0, 400),
        ([3_999], 0, 300),
        ([4_500, 2_000], 0, 200),
        ([999], 0, None),
        ([-1], 0, 400),
        ([999], 250, 200),
        ([2_500], 250, 200),
        ([3_999], 250, 300),
        ([999], 400, None),
    ],
)
def test_what_the_slowest_reader_needs_is_kept_up_to_the_most(
    given_up: list[int], most: int, expected: int | None
) -> None:
    policy = StreamPolicy(retention_type=BY_TIME, retention=50, retention_max=most)

    assert kept(policy, *given_up) == expected


def test_a_place_behind_a_scaling_is_not_before_what_was_given_up_in_front_of_it() -> None:
    epoch = scaled(ONE, [0], [(0.0, 0.5), (0.5, 1.0)], 300)
    assert epoch is not None
    history = ONE.followed_by(epoch)
    new = [each.identity for each in history.open]
    places = [StreamEnd(100, 100, {0: 100}), StreamEnd(400, 200, {new[0]: 30, new[1]: 20})]
    policy = StreamPolicy(retention_type=BY_TIME, retention=1)
    now = StreamEnd(500, 300, {new[0]: 80, new[1]: 70})

    def at(*cuts: dict[int, int]) -> int | None:
        place = chosen(places, policy, now, history, cuts)
        return None if place is None else place.at_ms

    assert at() == 400
    assert at({0: 150}) == 100
    assert at({0: 50}) is None
    assert at({new[0]: 30, new[1]: 20}) == 400
    assert at({new[0]: 30, new[1]: 19}) == 100


def test_no_more_places_are_kept_than_may_be() -> None:
    many = [StreamEnd(number, 0, {0: number}) for number in range(ENTRIES_MAX)]
    assert thinned(many) == []

    gone = thinned([*many, StreamEnd(ENTRIES_MAX, 0, {0: 0})])

    assert 0 < len(gone) <= ENTRIES_MAX // 2
    assert gone[0].at_ms == 1
    assert gone[-1].at_ms < ENTRIES_MAX // 2


def test_a_place_with_too_many_segments_goes() -> None:
    wide = StreamEnd(1, 0, dict.fromkeys(range(ENTRIES_MAX + 1), 0))

    assert thinned([wide]) == [wide]

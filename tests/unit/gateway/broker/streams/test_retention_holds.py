"""Ranges that are kept from retention: for how long, and of how many plans."""

from dataclasses import dataclass

import pytest

from gateway.broker.errors import PreconditionFailed
from gateway.broker.streams import retention_holds as module
from gateway.broker.streams.retention_holds import HOLD_S, HOLDS_MAX, RetentionHolds

STREAM, OTHER = 7, 8


@dataclass(eq=False)
class Connection:
    is_closed: bool = False


class Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def holds(clock: Clock) -> RetentionHolds:
    return RetentionHolds(clock)


def test_what_was_not_planned_is_not_held(holds: RetentionHolds) -> None:
    holds.take("ann", Connection(), {STREAM: (5, 9)})

    assert holds.first_held(OTHER) is None


def test_the_lowest_offset_of_all_plans_of_a_stream_is_held(holds: RetentionHolds) -> None:
    connections = [Connection() for _ in range(3)]
    for connection, first in zip(connections, (20, 5, 9), strict=True):
        holds.take("ann", connection, {STREAM: (first, 100)})

    assert holds.first_held(STREAM) == 5


def test_a_range_is_held_until_its_time_is_up_and_not_longer(
    holds: RetentionHolds, clock: Clock
) -> None:
    holds.take("ann", Connection(), {STREAM: (5, 9), OTHER: (0, 3)})

    clock.now_s += HOLD_S - 1
    assert holds.first_held(STREAM) == 5
    clock.now_s += 1
    assert holds.first_held(STREAM) is None
    assert len(holds) == 0


@pytest.mark.parametrize(
    ("user", "generation", "offset", "is_renewed"),
    [
        ("ann", STREAM, 5, True),
        ("ann", STREAM, 8, True),
        ("ann", STREAM, 4, False),
        ("ann", STREAM, 9, False),
        ("ann", OTHER, 5, False),
        ("bob", STREAM, 5, False),
    ],
)
def test_reading_in_the_range_renews_it(
    holds: RetentionHolds,
    clock: Clock,
    user: str,
    generation: int,
    offset: int,
    *,
    is_renewed: bool,
) -> None:
    holds.take("ann", Connection(), {STREAM: (5, 9)})

    clock.now_s += HOLD_S / 2
    holds.renew(user, generation, offset)
    clock.now_s += HOLD_S / 2

    assert (holds.first_held(STREAM) == 5) is is_renewed


def test_reading_too_late_renews_nothing(holds: RetentionHolds, clock: Clock) -> None:
    holds.take("ann", Connection(), {STREAM: (5, 9)})

    clock.now_s += HOLD_S
    holds.renew("ann", STREAM, 5)

    assert holds.first_held(STREAM) is None


def test_a_range_that_is_renewed_outlives_one_that_was_taken_later(
    holds: RetentionHolds, clock: Clock
) -> None:
    one, two = Connection(), Connection()
    holds.take("ann", one, {STREAM: (5, 9)})
    clock.now_s += 1
    holds.take("ann", two, {OTHER: (5, 9)})
    clock.now_s += 1
    holds.renew("ann", STREAM, 5)

    clock.now_s += HOLD_S - 1

    assert (holds.first_held(STREAM), holds.first_held(OTHER)) == (5, None)


def test_planning_again_renews_it(holds: RetentionHolds, clock: Clock) -> None:
    connection = Connection()
    holds.take("ann", connection, {STREAM: (5, 9)})
    clock.now_s += HOLD_S / 2
    holds.take("ann", connection, {STREAM: (5, 9)})
    clock.now_s += HOLD_S / 2

    assert holds.first_held(STREAM) == 5
    assert len(holds) == 1


def test_a_connection_that_goes_on_gives_up_what_it_planned_before(holds: RetentionHolds) -> None:
    connection = Connection()
    holds.take("ann", connection, {STREAM: (0, 5), OTHER: (0, 5)})

    for first in range(5, 500, 5):
        holds.take("ann", connection, {STREAM: (first, first + 5), OTHER: (first, first)})

    assert holds.first_held(STREAM) == 495
    assert holds.first_held(OTHER) is None
    assert len(holds) == 1


@pytest.mark.parametrize("planned", [(3, 8), (0, 4), (7, 7), (1, 9)])
def test_a_connection_that_is_not_through_keeps_both_ranges(
    holds: RetentionHolds, planned: tuple[int, int]
) -> None:
    connection = Connection()
    holds.take("ann", connection, {STREAM: (2, 8)})

    holds.take("ann", connection, {STREAM: planned})

    expected = 2 if planned == (7, 7) else min(2, planned[0])
    assert holds.first_held(STREAM) == expected
    assert len(holds) == 1


def test_an_empty_plan_holds_nothing(holds: RetentionHolds) -> None:
    holds.take("ann", Connection(), {STREAM: (5, 5)})
    holds.take("ann", Connection(), {})

    assert len(holds) == 0


def test_another_connection_of_the_user_leaves_what_was_planned(holds: RetentionHolds) -> None:
    first, second = Connection(), Connection()
    holds.take("ann", first, {STREAM: (0, 5)})

    holds.take("ann", second, {STREAM: (5, 10)})

    assert holds.first_held(STREAM) == 0
    assert len(holds) == 2


def test_a_plan_outlives_its_connection(holds: RetentionHolds) -> None:
    holds.take("ann", Connection(), {STREAM: (0, 5)})  # no reference to it is left
    closed = Connection(is_closed=True)
    holds.take("ann", closed, {OTHER: (1, 5)})

    assert (holds.first_held(STREAM), holds.first_held(OTHER)) == (0, 1)


def test_a_user_who_starts_anew_takes_over_what_an_ended_connection_planned(
    holds: RetentionHolds,
) -> None:
    for _ in range(2 * HOLDS_MAX):
        connection = Connection()
        holds.take("ann", connection, {STREAM: (0, 5), OTHER: (2, 4)})
        connection.is_closed = True

    assert len(holds) == 2

    holds.take("ann", Connection(), {STREAM: (0, 3)})
    assert len(holds) == 2
    holds.renew("ann", STREAM, 4)  # both ends are held
    assert holds.first_held(STREAM) == 0


def test_a_user_has_so_many_plans_and_no_more_until_one_ends(
    holds: RetentionHolds, clock: Clock
) -> None:
    connections = [Connection() for _ in range(HOLDS_MAX + 1)]
    for number, connection in enumerate(connections[:-1]):
        holds.take("ann", connection, {STREAM: (number, 1_000)})
    clock.now_s += 1

    with pytest.raises(PreconditionFailed, match="user 'ann' has 100 plans that keep records"):
        holds.take("ann", connections[-1], {STREAM: (500, 1_000)})

    assert len(holds) == HOLDS_MAX
    holds.take("bob", connections[-1], {STREAM: (600, 1_000)})
    holds.take("ann", connections[0], {OTHER: (0, 1)})  # one that has a plan may go on
    clock.now_s += HOLD_S - 1
    holds.take("ann", Connection(), {STREAM: (500, 1_000)})


@pytest.mark.parametrize("count", [5, 6])
def test_a_user_holds_so_many_ranges_and_no_more(
    holds: RetentionHolds, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(module, "RANGES_MAX", 8)
    one, two = Connection(), Connection()
    holds.take("ann", one, dict.fromkeys(range(3), (0, 1)))
    ranges = dict.fromkeys(range(100, 100 + count), (0, 1))

    if count == 5:
        holds.take("ann", two, ranges)
    else:
        with pytest.raises(PreconditionFailed, match="keep 9 ranges of streams, more than 8"):
            holds.take("ann", two, ranges)

    assert len(holds) == (8 if count == 5 else 3)

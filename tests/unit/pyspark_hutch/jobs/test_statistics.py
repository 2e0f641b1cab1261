import pytest

from pyspark_hutch.jobs.statistics import (
    BUCKETS_MAX,
    GAPS_MAX,
    KEYS_MAX,
    Curve,
    RowGroup,
    Statistics,
    bin_end,
)


def group(stream: str, time_ms: int, rows: int = 1, size: int = 100) -> RowGroup:
    return RowGroup(stream, time_ms, 26, rows, rows * size, size, size)


def test_sums_are_those_of_all_batches_and_of_each_stream() -> None:
    found = Statistics()

    found.add([group("a", 1_000, 2), group("b", 2_000, 3)])
    found.add([group("a", 3_000, 5)])

    assert (found.total.rows, found.total.size) == (10, 1_000)
    assert found.streams["a"].rows == 7
    assert found.seconds == 2.0


def test_the_smallest_and_the_largest_are_of_all_rows() -> None:
    found = Statistics()

    found.add([RowGroup("a", 0, 0, 2, 12, 2, 10), RowGroup("a", 1, 0, 2, 12, 1, 11)])

    assert (found.smallest, found.largest) == (1, 11)


def test_gaps_are_between_the_times_of_one_stream_also_over_batches() -> None:
    found = Statistics()

    found.add([group("a", 3_000), group("a", 1_000), group("b", 1_500)])
    found.add([group("a", 9_000), group("b", 1_600)])

    assert [(gap.stream, gap.length_ms, gap.from_ms) for gap in found.gaps] == [
        ("a", 6_000, 3_000),
        ("a", 2_000, 1_000),
        ("b", 100, 1_500),
    ]


def test_only_the_longest_gaps_are_kept() -> None:
    found = Statistics()
    for length in range(1, 100):
        found.add([group(str(length), 0), group(str(length), length)])

    assert [gap.length_ms for gap in found.gaps] == list(range(99, 99 - GAPS_MAX, -1))


def test_a_curve_has_a_bounded_number_of_points_and_loses_no_row() -> None:
    curve = Curve()
    for second in range(10_000):
        curve.add(second * 1_000, 1, 10)

    points = list(curve.points())
    assert len(points) <= BUCKETS_MAX
    assert sum(found.rows for _, found in points) == 10_000
    assert curve.width_ms == 16_000


def test_a_curve_shows_times_without_rows() -> None:
    curve = Curve()
    curve.add(5_000, 1, 1)
    curve.add(7_500, 2, 2)

    assert [(at, found.rows) for at, found in curve.points()] == [
        (5_000, 1),
        (6_000, 0),
        (7_000, 2),
    ]


def test_a_curve_that_jumps_by_years_stays_bounded() -> None:
    curve = Curve()
    curve.add(0, 1, 1)
    curve.add(10 * 365 * 86_400_000, 1, 1)

    assert len(list(curve.points())) <= BUCKETS_MAX


@pytest.mark.parametrize(
    ("index", "end"), [(-1, 0), (0, 1), (3, 1), (4, 2), (7, 3), (11, 7), (26, 107)]
)
def test_a_bin_ends_before_the_next_begins(index: int, end: int) -> None:
    assert bin_end(index) == end


def test_a_percentile_is_the_end_of_its_bin_and_no_more_than_the_largest() -> None:
    found = Statistics()
    found.add(
        [RowGroup("a", 0, 12, 90, 90 * 8, 8, 8), RowGroup("a", 0, 40, 10, 10 * 1_030, 1_030, 1_030)]
    )

    assert found.percentile(0.5) == 9
    assert found.percentile(0.99) == 1_030


def test_keys_are_counted_and_those_without_are_named() -> None:
    found = Statistics()
    found.add_keys([("x", 2), (None, 1)])
    found.add_keys([("x", 3)])

    assert found.keys.most_common() == [("x", 5), ("(none)", 1)]
    assert not found.keys_dropped


def test_beyond_the_most_keys_the_rarest_go_and_that_is_noted() -> None:
    found = Statistics()
    found.add_keys([("often", 2)] + [(str(n), 1) for n in range(KEYS_MAX)])

    assert len(found.keys) == KEYS_MAX
    assert found.keys["often"] == 2
    assert found.keys_dropped


def test_of_nothing_there_is_nothing() -> None:
    found = Statistics()

    assert found.seconds == 0
    assert found.percentile(0.5) == 0
    assert list(found.curve.points()) == []

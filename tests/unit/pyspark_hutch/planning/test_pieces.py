import pytest

from hutch.stream.pipeline import RangeBorder
from pyspark_hutch.planning.pieces import cuts, in_proportion, merged, rows_within


def borders(*steps: tuple[int, int], first: int = 0) -> list[RangeBorder]:
    """Build borders from rows and bytes of the pieces between them."""
    found = [RangeBorder(first, 0)]
    for rows, size in steps:
        found.append(RangeBorder(found[-1].offset + rows, found[-1].size_bytes + size))
    return found


TENS = borders(*[(10, 100)] * 10)


def test_pieces_are_equal_in_bytes_however_many_rows_they_have() -> None:
    skewed = borders((1_000, 100), (10, 100), (10, 100), (10, 100))

    assert cuts(skewed, 0, 1_030, count=2, bytes_max=None) == [1_010]
    assert cuts(skewed, 0, 1_030, count=4, bytes_max=None) == [1_000, 1_010, 1_020]


def test_a_piece_is_cut_at_the_nearest_border() -> None:
    assert cuts(TENS, 0, 100, count=4, bytes_max=None) == [20, 50, 70]


def test_no_piece_is_larger_than_its_limit_unless_it_has_no_border_inside() -> None:
    assert cuts(TENS, 0, 100, count=1, bytes_max=350) == [30, 60, 80]
    assert cuts(TENS, 0, 100, count=1, bytes_max=1_000) == []
    assert cuts(TENS, 0, 100, count=1, bytes_max=50) == list(range(10, 100, 10))


def test_more_pieces_than_borders_are_as_many_as_there_are() -> None:
    assert cuts(TENS, 0, 100, count=500, bytes_max=None) == list(range(10, 100, 10))


def test_borders_at_and_outside_the_ends_do_not_count() -> None:
    assert cuts(TENS, 15, 25, count=4, bytes_max=None) == [20]
    assert cuts(TENS, 20, 30, count=4, bytes_max=None) == []
    assert cuts([], 20, 30, count=4, bytes_max=1) == []


@pytest.mark.parametrize(
    ("bytes_max", "rows"), [(0, 0), (99, 9), (100, 10), (250, 25), (999, 99), (1_000, 100)]
)
def test_rows_between_borders_count_as_equal(bytes_max: int, rows: int) -> None:
    assert rows_within(TENS, 0, 100, bytes_max) == rows


def test_rows_are_counted_from_the_beginning_of_the_range() -> None:
    assert rows_within(TENS, 5, 95, 300) == 25
    assert rows_within(TENS, 5, 95, 20) == 0
    assert rows_within(TENS, 5, 95, 5_000) == 90


def test_borders_of_several_plans_are_one_list() -> None:
    assert merged(
        [
            RangeBorder(0, 0),
            RangeBorder(9, 90),
            RangeBorder(0, 0),
            RangeBorder(5, 50),
            RangeBorder(9, 90),
        ]
    ) == [
        RangeBorder(0, 0),
        RangeBorder(5, 50),
        RangeBorder(9, 90),
    ]


def test_a_budget_is_shared_by_size() -> None:
    assert in_proportion({"a": 300, "b": 100, "c": 0}, 100) == {"a": 75.0, "b": 25.0, "c": 0.0}

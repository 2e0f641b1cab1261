"""Pieces by bytes are the range: for any borders and limits no row is left out or read twice."""

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from hutch.stream.pipeline import RangeBorder
from pyspark_hutch.planning.pieces import cuts, merged, rows_within
from pyspark_hutch.planning.splits import cut

steps = st.lists(st.tuples(st.integers(1, 1_000), st.integers(1, 10**6)), max_size=60)


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[RangeBorder], int, int]:
    """Borders of a plan, and the range that it is about."""
    drawn = draw(steps)
    first = draw(st.integers(0, 10**6))
    offsets = accumulate((rows for rows, _ in drawn), initial=first)
    sizes = accumulate((size for _, size in drawn), initial=0)
    borders = list(map(RangeBorder, offsets, sizes))
    low = draw(st.integers(first, borders[-1].offset))
    high = draw(st.integers(low, borders[-1].offset)) + 1
    return borders, low, high


@given(plans(), st.integers(1, 100), st.none() | st.integers(1, 10**7))
def test_pieces_of_any_range_are_the_range_and_keep_to_their_limit(
    plan: tuple[list[RangeBorder], int, int], count: int, bytes_max: int | None
) -> None:
    borders, low, high = plan

    pieces = cut(low, high, cuts(borders, low, high, count=count, bytes_max=bytes_max))

    assert pieces[0][0] == low
    assert pieces[-1][1] == high
    assert all(end == begin for (_, end), (begin, _) in pairwise(pieces))
    assert all(begin < end for begin, end in pieces)
    offsets = {border.offset for border in borders}
    assert all(begin in offsets for begin, _ in pieces[1:])
    if bytes_max is None:
        assert len(pieces) <= count
    else:
        for begin, end in pieces:
            inside = [border for border in borders if begin < border.offset < end]
            assert not inside or inside[-1].size_bytes - _at(borders, begin) <= bytes_max


def _at(borders: list[RangeBorder], offset: int) -> int:
    """The bytes before the chunk that has an offset."""
    return max((b.size_bytes for b in borders if b.offset <= offset), default=0)


@given(plans(), st.integers(0, 10**8))
def test_rows_within_a_budget_are_in_the_range_and_their_whole_chunks_in_the_budget(
    plan: tuple[list[RangeBorder], int, int], bytes_max: int
) -> None:
    borders, low, high = plan

    rows = rows_within(borders, low, high, bytes_max)

    assert 0 <= rows <= high - low
    passed = [border for border in borders if border.offset <= low + rows]
    assert not rows or passed[-1].size_bytes <= bytes_max


@given(
    st.lists(steps.map(lambda drawn: [RangeBorder(rows, size) for rows, size in drawn]), max_size=3)
)
def test_merged_borders_ascend(parts: list[list[RangeBorder]]) -> None:
    found = merged(border for part in parts for border in part)

    assert all(one.offset < other.offset for one, other in pairwise(found))

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_hutch.planning.admission import Patience, share

backlogs = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), st.integers(0, 10**9))


@given(backlogs, st.integers(1, 10**6))
def test_a_share_is_within_budget_and_backlog_and_none_starves(
    backlog: dict[str, int], budget: int
) -> None:
    shares = share(backlog, budget)

    assert shares.keys() == backlog.keys()
    assert all(0 <= shares[stream] <= backlog[stream] for stream in backlog)
    assert sum(shares.values()) == min(budget, sum(backlog.values()))
    if budget >= sum(1 for count in backlog.values() if count):
        assert all(shares[stream] > 0 for stream, count in backlog.items() if count)


@given(backlogs, st.integers(1, 10**6))
def test_a_larger_backlog_gets_no_smaller_share(backlog: dict[str, int], budget: int) -> None:
    shares = share(backlog, budget)
    by_backlog = sorted(backlog, key=lambda stream: backlog[stream])

    for smaller, larger in pairwise(by_backlog):
        assert shares[smaller] <= shares[larger] + 1


def test_a_share_is_in_proportion() -> None:
    shares = share({"a": 7_000, "b": 2_000, "c": 1_000}, 1_000)

    assert shares == pytest.approx({"a": 700, "b": 200, "c": 100}, abs=3)


def test_a_few_rows_beside_a_backlog_that_never_ends_do_come() -> None:
    assert share({"a": 1_000_000, "b": 1}, 10) == {"a": 9, "b": 1}


def test_bytes_go_by_the_size_of_what_waits() -> None:
    backlog, sizes = {"a": 100, "b": 100}, {"a": 10.0, "b": 90.0}

    assert share(backlog, 5_000, sizes) == {"a": 50, "b": 50}
    assert share(backlog, 10_000, sizes) == backlog
    assert sum(share(backlog, 1, sizes).values()) == 1, "a row, however large"


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.tuples(st.integers(1, 10**6), st.integers(1, 10**4))
    ),
    st.integers(1, 10**7),
)
def test_a_share_of_bytes_is_within_the_budget_to_a_row(
    streams: dict[str, tuple[int, int]], budget: int
) -> None:
    backlog = {stream: rows for stream, (rows, _) in streams.items()}
    sizes = {stream: size for stream, (_, size) in streams.items()}
    shares = share(backlog, budget, sizes)
    taken = sum(count * sizes[stream] for stream, count in shares.items())

    assert all(0 <= shares[stream] <= backlog[stream] for stream in backlog)
    assert taken <= budget or sum(shares.values()) == 1
    smallest = [sizes[stream] for stream in backlog if shares[stream] < backlog[stream]]
    assert not smallest or taken > budget - max(sizes.values())


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30), st.integers(1, 40))
def test_no_stream_waits_longer_than_it_takes_to_give_each_of_them_a_row(
    rows: list[int], budget: int
) -> None:
    backlog = {f"s{number:02}": count for number, count in enumerate(rows)}
    passed: dict[str, int] = {}
    for _ in range(5):
        shares = share(backlog, budget, passed=passed)
        assert sum(shares.values()) == min(budget, sum(rows))
        passed = {stream: passed.get(stream, 0) + 1 for stream in backlog if not shares[stream]}
        assert max(passed.values(), default=0) <= -(-len(rows) // budget) - 1


def test_any_row_will_do_without_a_minimum() -> None:
    patience = Patience(None, 10.0, 0.0)

    assert not patience.is_due(0, 100.0)
    assert patience.is_due(1, 0.0)


@pytest.mark.parametrize(("rows", "now", "due"), [(9, 9.9, False), (10, 0, True), (1, 10, True)])
def test_a_minimum_is_waited_for_but_not_for_ever(rows: int, now: float, due: bool) -> None:  # noqa: FBT001  # a column of the table
    assert Patience(10, 10.0, 0.0).is_due(rows, now) is due


def test_a_wait_begins_anew_with_each_batch() -> None:
    patience = Patience(10, 10.0, 0.0)

    assert patience.is_due(10, 8.0)
    assert not patience.is_due(1, 17.0)
    assert patience.is_due(1, 18.0)

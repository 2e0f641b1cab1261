"""Waits: medians, shares of them, and the bounds that they keep or not."""

from dataclasses import replace

import pytest

from compat.spark_bench.publisher import Times
from compat.spark_bench.report import verdicts_of, waits_of
from compat.spark_bench.waits import Took, Wait, Waited, median_of, percentile
from tests.unit.compat.spark_bench.test_report import run_of

ALONE = Wait(
    name="alone",
    title="a commit",
    figure="longest confirm",
    bound=1_000,
    meaning="A commit.",
    measure=lambda _: Took(1),
)
BESIDE = replace(ALONE, name="beside", other="rstream", bound=2)


def test_the_median_of_each_side_counts() -> None:
    taken = [Took(9, 1), Took(2, 8), Took(3, 4)]

    assert median_of(taken) == Took(3, 4)
    assert median_of([Took(5), Took(7), Took(6)]) == Took(6)


def test_a_percentile_is_the_value_that_so_many_do_not_exceed() -> None:
    assert percentile(list(range(1, 1001)), 0.99) == 991
    assert percentile([7], 0.99) == 7


def test_messages_count_that_were_on_their_way_in_the_time() -> None:
    times = Times(sent_ns=[0, 5, 10, 20, 31], waited_ns=[4, 7, 1, 50, 1])

    assert times.within(10, 30) == [7, 1, 50]


@pytest.mark.parametrize(
    ("wait", "took", "words"),
    [
        (ALONE, Took(1_000), ["at most 1000 ms", "1 k ms", "yes"]),
        (ALONE, Took(1_200), ["at most 1000 ms", "1.2 k ms", "**no**"]),
        (BESIDE, Took(10, 5), ["at most 2", "2.00", "yes"]),
        (BESIDE, Took(11, 5), ["at most 2", "2.20", "**no**"]),
    ],
)
def test_a_wait_is_held_against_its_bound(wait: Wait, took: Took, words: list[str]) -> None:
    run = replace(run_of(), waits=[(wait, Waited(took, is_disturbed=False))])

    assert [cell.strip() for cell in verdicts_of(run)[-1].split("|")[2:5]] == words


def test_the_table_has_both_sides_and_marks_what_was_disturbed() -> None:
    run = replace(
        run_of(),
        waits=[
            (ALONE, Waited(Took(20), is_disturbed=True)),
            (BESIDE, Waited(Took(10, 5), is_disturbed=False)),
        ],
    )

    alone, beside = ([cell.strip() for cell in line.split("|")[3:7]] for line in waits_of(run)[-2:])

    assert alone == ["20~", "-", "-", "-"]
    assert beside == ["10", "rstream", "5", "2.00"]

"""Figures of two trees compared."""

import pytest

from compat.bench.against import ROWS, growth, lines_of, worse
from compat.bench.row import CPU, RATE
from compat.bench.rows import ROW_NAMES

BEFORE = {"cpu": 10.0, "rate": 1_000.0}


def test_the_rows_are_rows_of_the_bench() -> None:
    assert set(ROWS) <= set(ROW_NAMES)


def test_a_cpu_that_grows_is_worse_and_a_rate_that_grows_is_better() -> None:
    assert growth(CPU, 11, 10) == pytest.approx(0.1)
    assert growth(RATE, 1_100, 1_000) == pytest.approx(-0.1)


@pytest.mark.parametrize(
    ("cpu", "rate", "is_worse"),
    [
        (10.0, 1_000, False),
        (10.2, 960, False),
        (10.4, 1_000, True),
        (10.0, 940, True),
        (8, 2_000, False),
    ],
)
def test_a_row_is_worse_beyond_its_bounds_alone(cpu: float, rate: float, *, is_worse: bool) -> None:
    assert worse("drain_large", {"cpu": cpu, "rate": rate}, BEFORE) is is_worse


def test_the_table_has_the_ratio_of_each_figure() -> None:
    _, first, second, last = lines_of({"drain_large": ({"cpu": 9.0, "rate": 1_100}, BEFORE)})

    assert first.endswith(" 0.900")
    assert second.endswith(" 1.100")
    assert last.endswith(" 0.900")

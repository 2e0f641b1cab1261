from compat.bench.campaign import STEPS, median_figures
from compat.bench.rows import ROWS


def test_medians_are_taken_figure_by_figure() -> None:
    rounds = [{"a": 1.0, "b": 5.0}, {"a": 9.0}, {"a": 2.0, "b": 7.0}]
    assert median_figures(rounds) == {"a": 2.0, "b": 6.0}


def test_every_row_is_measured_by_one_step() -> None:
    assert sorted(name for step in STEPS for name in step.rows) == sorted(r.name for r in ROWS)

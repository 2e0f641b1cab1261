"""What is drawn is looked at where `make bench` runs; here: that nothing is drawn of nothing."""

from pathlib import Path

from compat.bench import plots
from compat.bench.jobs import Figures
from compat.bench.servers import HUTCH_OS, ServerName


def test_without_all_figures_of_a_plot_it_is_not_drawn(tmp_path: Path) -> None:
    figures: dict[ServerName, Figures] = {HUTCH_OS: {"p50": 60.0, "p99": 90.0, "rate": 1e6}}
    medians = {"paced_1000": figures, "paced_10000": figures, plots.ONE_STREAM: figures}
    assert plots.draw(medians, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_each_plot_has_a_text_that_stands_for_it() -> None:
    assert set(plots.TEXTS) == {plots.LATENCY, plots.THROUGHPUT}

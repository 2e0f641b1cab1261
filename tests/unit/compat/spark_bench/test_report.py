"""Figures, ratios and verdicts."""

from dataclasses import replace

from compat.spark_bench.measuring import Figures, Sample, figures_of
from compat.spark_bench.report import Run, page_of, table_of, verdicts_of
from compat.spark_bench.rows import FIXED_100
from compat.spark_bench.usage import Usage
from compat.spark_bench.work import Target, Work


def figures(title: str, rate: float, cpu: float) -> Figures:
    return Figures(title, rate, Usage(cpu, 0, 0, cpu), is_disturbed=False)


def run_of(*sides: Figures, rate: float = 0.5, cpu: float = 2) -> Run:
    targets = (Target("rate", rate), Target("cpu", cpu))
    work = Work("read", "read, 100 B", FIXED_100, lambda _, __: (), "All of it.", targets)
    return Run(
        figures=[(work, sides)],
        waits=[],
        rounds=5,
        rows=1_000,
        machine={"CPU": "2 x some"},
        command="python -m compat.spark_bench",
        date="2026-01-01",
        failures=[],
        skipped=["read from RabbitMQ: none here"],
    )


def test_the_figures_are_those_of_the_fastest_and_of_the_cheapest_round() -> None:
    slow = Sample(4.0, Usage(jvm=1.0, python=0.5, server=0.5, machine=2.0))
    fast = Sample(2.0, Usage(jvm=2.0, python=1.0, server=1.0, machine=4.25))

    found = figures_of("Hutch", [slow, fast], 2_000_000)

    assert found == Figures("Hutch", 1_000_000, Usage(0.5, 0.25, 0.25, 1.0), is_disturbed=False)
    busy = replace(fast, used=fast.used._replace(machine=5.0))
    assert figures_of("Hutch", [slow, busy], 2_000_000).is_disturbed


def test_a_ratio_of_rates_must_be_as_high_and_one_of_cpu_as_low_as_its_bound() -> None:
    run = run_of(figures("Hutch", 60, 3.0), figures("Parquet", 100, 1.0))

    rate, cpu = verdicts_of(run)[-2:]

    assert [word.strip() for word in rate.split("|")[2:5]] == ["at least 0.5", "0.60", "yes"]
    assert [word.strip() for word in cpu.split("|")[2:5]] == ["at most 2", "3.00", "**no**"]


def test_a_side_alone_is_reported_without_ratios_or_verdicts() -> None:
    run = run_of(figures("Hutch", 60, 3.0))

    assert len(verdicts_of(run)) == 2
    assert [cell.strip() for cell in table_of(run)[-1].split("|")[-3:-1]] == ["-", "-"]


def test_the_page_says_what_was_measured_where_and_what_was_not() -> None:
    page = page_of(run_of(figures("Hutch", 60, 3.0), figures("Parquet", 100, 1.0)))

    for words in (
        "2 x some",
        "Best of 5 rounds",
        "medians of 3 rounds",
        "All of it.",
        "read from RabbitMQ: none here",
    ):
        assert words in page

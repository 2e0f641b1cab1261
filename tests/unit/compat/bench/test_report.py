from dataclasses import replace

import pytest

from compat.bench import report
from compat.bench.row import CPU, RATE
from compat.bench.servers import HUTCH_DISK, HUTCH_OS, RABBITMQ
from compat.bench.targets import Medians

MEDIANS: Medians = {
    "drain_large": {
        HUTCH_OS: {"rate": 4e7, "cpu": 0.0123, "generator_share": 0.95, "others_share": 0.0},
        HUTCH_DISK: {"rate": 3e7, "cpu": 0.02, "generator_share": 0.5, "others_share": 0.3},
        RABBITMQ: {"rate": 2e7, "generator_share": 0.5},
    }
}


def cells(line: str) -> list[str]:
    return [part.strip() for part in line.strip("|").split("|")]


def test_the_table_has_a_column_for_each_server_and_each_ratio() -> None:
    head, _, rate, cpu = report.table_of(MEDIANS)
    assert cells(head)[2:5] == ["Hutch `os`", "Hutch `disk`", "RabbitMQ"]
    assert cells(rate)[2:] == ["40 M*", "30 M~", "20 M", "2.00", "1.50"]
    assert cells(cpu)[2:] == ["0.0123", "0.02~", "-", "-", "-"]


def test_without_rabbitmq_there_are_no_ratios() -> None:
    alone: Medians = {"drain_large": {HUTCH_OS: MEDIANS["drain_large"][HUTCH_OS]}}
    assert cells(report.table_of(alone)[0]) == ["work", "figure", "Hutch `os`"]


@pytest.mark.parametrize(("share", "marked"), [(0.89, False), (0.9, True), (1.0, True)])
def test_a_generator_that_is_the_bottleneck_is_marked(share: float, marked: bool) -> None:  # noqa: FBT001
    figures = {"rate": 1.0, "cpu": 1.0, "generator_share": share}
    assert ("*" in report.cell(figures, RATE)) is marked
    assert "*" not in report.cell(figures, CPU)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123456, "0.0123"),
        (88.04, "88"),
        (999.6, "1 k"),
        (1234, "1.23 k"),
        (640_123, "640 k"),
        (999_700, "1 M"),
        (12_345_678, "12.3 M"),
    ],
)
def test_numbers_keep_three_digits(value: float, text: str) -> None:
    assert report.short(value) == text


def test_a_target_has_the_unit_of_its_figure() -> None:
    medians: Medians = {"idle_cpu": {HUTCH_OS: {"quiet": 0.00167, "heartbeats": 0.0224}}}

    lines = report.verdicts_of(medians, fsync_ms=0.1)[-2:]

    cells = [[cell.strip() for cell in line.split("|")[2:5]] for line in lines]
    assert cells == [["at most 0.5", "0.167", "yes"], ["at most 1.5", "2.24", "**no**"]]


RUN = report.Run(
    medians=MEDIANS,
    rounds=3,
    machine={"CPU": "2 x Fast"},
    versions={"RabbitMQ": "4.3.6"},
    command="python -m compat.bench",
    date="2026-01-02",
    fsync_ms=0.05,
    failures=["rabbitmq, drain_large: it went away"],
)


def test_the_page_says_what_was_measured_where_and_how() -> None:
    page = report.page_of(RUN)
    for part in ("3 rounds", "2 x Fast", "4.3.6", "`python -m compat.bench`", "went away"):
        assert part in page
    assert "**drain, large chunks**" in page
    assert "ingest 100 B, 1 per frame**" not in page
    assert "at least 1 times" in page


def test_the_page_says_which_rows_were_skipped() -> None:
    page = report.page_of(replace(RUN, failures=[], skipped=["perf_test_full: no jar"]))
    assert page.rstrip().endswith("## Not measured\n\n- perf_test_full: no jar")


def test_a_machine_that_is_not_quiet_is_warned_of_at_the_top() -> None:
    before, meanwhile = report.warnings_of(replace(RUN, busy_cores=0.25))
    assert "0.25 cores" in before
    assert "1 of 1 rows" in meanwhile
    assert "drain, large chunks" in meanwhile
    page = report.page_of(RUN)
    assert page.index("**Warning.** The machine was not quiet") < page.index("Hutch and RabbitMQ")


def test_a_quiet_machine_needs_no_warning() -> None:
    figures = {"rate": 1.0, "cpu": 1.0, "generator_share": 0.1, "others_share": 0.24}
    quiet = replace(RUN, medians={"drain_large": {HUTCH_OS: figures}}, busy_cores=0.24)
    assert report.warnings_of(quiet) == []
    assert "Warning" not in report.page_of(quiet)


def test_the_page_shows_the_plots_with_the_texts_that_stand_for_them() -> None:
    page = report.page_of(replace(RUN, plots={"a.svg": "Latency"}))
    assert "![Latency](a.svg)" in page
    assert "![" not in report.page_of(RUN)

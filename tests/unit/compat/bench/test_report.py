import pytest

from compat.bench import report
from compat.bench.row import CPU, RATE
from compat.bench.servers import CLUSTER, HUTCH_DISK, HUTCH_OS, NATS, RABBITMQ
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


def test_a_cluster_has_a_table_beside_the_plain_server_and_the_client_of_its_log() -> None:
    mib = 1 << 20
    medians: Medians = {
        **MEDIANS,
        "cluster_ingest": {
            HUTCH_DISK: {"rate": 200 * mib, "cpu": 0.004},
            CLUSTER: {"rate": 50 * mib, "cpu": 0.02},
            NATS: {"rate": 80 * mib},
        },
        "cluster_drain": {HUTCH_DISK: {"rate": 4e7}, CLUSTER: {"rate": 3e7}},
    }

    head, _, rate, cpu, drain, _ = report.table_of(medians, NATS)

    assert cells(head)[2:5] == ["Hutch `disk`", "Hutch, a cluster", "nats-py"]
    assert cells(head)[5:] == ["cluster ÷ Hutch `disk`", "cluster ÷ nats-py"]
    assert cells(rate)[1:] == ["MiB/s", "200", "50", "80", "0.25", "0.62"]
    assert cells(cpu)[1:] == ["CPU ms a MiB", "4", "20", "-", "5.00", "-"]
    assert cells(drain)[2:] == ["40 M", "30 M", "-", "0.75", "-"]
    assert "\n".join(report.table_of(medians, NATS)) in "\n".join(report.tables_of(medians))


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

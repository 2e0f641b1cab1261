import pytest

from compat.bench.ordinary_rows import STREAMS, WINDOWED
from compat.bench.rows import ROWS
from compat.bench.scale import FULL, QUICK, Scale
from compat.bench.servers import HUTCH_OS, RABBITMQ, ServerName
from compat.bench.steps import ingest_row
from compat.bench.targets import TARGETS, Target, judge

HALF = Target("drain_large", "cpu", HUTCH_OS, RABBITMQ, "at most", 0.5)
LEAST = Target("drain_large", "rate", HUTCH_OS, None, "at least", 100)


def medians(
    metric: str, hutch: float, rabbitmq: float
) -> dict[str, dict[ServerName, dict[str, float]]]:
    return {"drain_large": {HUTCH_OS: {metric: hutch}, RABBITMQ: {metric: rabbitmq}}}


@pytest.mark.parametrize(("hutch", "reached"), [(0.9, True), (1.0, True), (1.1, False)])
def test_a_ratio_is_reached_up_to_its_bound(hutch: float, reached: bool) -> None:  # noqa: FBT001
    verdict = judge(HALF, medians("cpu", hutch, 2.0), fsync_ms=1)
    assert verdict.value == pytest.approx(hutch / 2)
    assert verdict.is_reached is reached


@pytest.mark.parametrize(("hutch", "reached"), [(99.0, False), (100.0, True)])
def test_an_absolute_bound_needs_no_other_server(hutch: float, reached: bool) -> None:  # noqa: FBT001
    assert judge(LEAST, medians("rate", hutch, 0), fsync_ms=1).is_reached is reached


def test_what_was_not_measured_is_neither_reached_nor_missed() -> None:
    for given in ({}, medians("rate", 1, 1), medians("cpu", 1, 0)):
        assert judge(HALF, given, fsync_ms=1).is_reached is None


def test_a_slow_disk_excuses_only_what_depends_on_it() -> None:
    slow = Target("drain_large", "rate", HUTCH_OS, None, "at least", 100, "fast fsync")
    given = medians("rate", 1, 1)
    assert judge(slow, given, fsync_ms=0.2).is_reached is None
    assert judge(slow, given, fsync_ms=0.1).is_reached is False
    assert judge(LEAST, given, fsync_ms=0.2).is_reached is False


def test_every_target_names_a_row_and_one_of_its_figures() -> None:
    metrics = {(row.name, metric.key) for row in ROWS for metric in row.metrics}
    assert {(target.row, target.metric) for target in TARGETS} <= metrics


@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_every_ingest_and_every_number_of_streams_has_its_row_and_counts(scale: Scale) -> None:
    rows = {row.name for row in ROWS}
    assert {ingest_row(*key) for key in scale.ingest_messages} <= rows
    assert {f"streams_{count}x{per}" for count, per in scale.streams_messages} <= rows
    assert set(STREAMS) == set(scale.streams_messages)
    assert {(case.body_bytes, case.per_frame) for case in WINDOWED} == set(scale.windowed_messages)
    assert FULL.ingest_messages.keys() == scale.ingest_messages.keys()

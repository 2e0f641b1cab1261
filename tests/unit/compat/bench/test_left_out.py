"""Rows that need what a machine may not have."""

import shutil

import pytest

from compat.bench import cluster
from compat.bench.cluster_rows import CLUSTER_ROWS
from compat.bench.left_out import NEEDING, split_rows
from compat.bench.ordinary_rows import PERF_TEST_ROWS

NAMES = [row.name for row in CLUSTER_ROWS]
MISSING = ((CLUSTER_ROWS, lambda: "no servers"), (PERF_TEST_ROWS, lambda: ""))


def test_rows_that_cannot_be_measured_are_left_out_with_the_reason() -> None:
    rows, skipped = split_rows(["drain_large", *NAMES, "perf_test_full"], MISSING)

    assert rows == ("drain_large", "perf_test_full")
    assert skipped == [f"{', '.join(NAMES)}: no servers"]


def test_nothing_is_said_of_rows_that_are_not_wanted() -> None:
    assert split_rows(["drain_large"], MISSING) == (("drain_large",), [])


def test_the_rows_of_a_cluster_need_the_servers_of_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)

    assert "nats-server is not installed" in cluster.why_not()
    assert (CLUSTER_ROWS, cluster.why_not) in NEEDING

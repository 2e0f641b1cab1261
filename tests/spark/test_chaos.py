"""Kills of a server at each step: rows are there once (all cases: `make spark-chaos`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyspark_hutch.jobs.preparation.installed import java_trouble
from tests.spark.chaos.cases import CASES, SHORT, TESTED
from tests.spark.chaos.reading import Found
from tests.spark.chaos.running import Ground, run_case

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    trouble = java_trouble()
    if trouble is not None:
        pytest.skip(trouble)
    with Ground(tmp_path_factory.mktemp("chaos"), SHORT, print) as ground:
        yield ground


def test_every_row_is_there_once_after_kills_of_the_server(ground: Ground) -> None:
    assert TESTED in CASES

    outcome = run_case(TESTED, ground)

    assert outcome.found == Found(SHORT.rows, lost=0, doubled=0, wrong=0)

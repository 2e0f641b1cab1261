"""A job tells how far it is within a batch, however large that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_hutch.jobs.runs.progress import JobProgress, Standing
from tests.spark.conftest import Place
from tests.spark.publishing import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 80_000

SLOW = """
import time

def slow(batch):
    time.sleep(len(batch) / 10_000)
    return batch
"""


class Shown(JobProgress):
    """Keeps every standing."""

    def __init__(self) -> None:
        super().__init__(None)
        self.standings: list[Standing] = []

    def show(self, standing: Standing) -> None:
        self.standings.append(standing)


def test_progress_moves_within_a_batch(
    spark: SparkSession, place: Place, stream: str, tmp_path: Path
) -> None:
    from pyspark_hutch.jobs.preparation.functions import named_function
    from pyspark_hutch.jobs.preparation.sources import Pace
    from pyspark_hutch.jobs.to_stream import CopyTarget, copy
    from pyspark_hutch.jobs.transform import Transform

    (tmp_path / "rows.py").write_text(SLOW)
    with place.client() as client:
        publish(client, stream, [b"row"] * COUNT, at_once=2_000)
        client.create(f"{stream}-to")
    shown = Shown()
    target = CopyTarget(place.options | {"stream": f"{stream}-to"})
    function = named_function(f"{tmp_path}/rows.py:slow")
    function.load()

    done = copy(
        spark,
        place.options | {"stream": stream},
        target,
        Transform(function, is_json=False, takes_batches=True),
        pace=Pace(str(tmp_path / "notes")),
        progress=shown,
    )

    assert (done.rows, done.batches) == (COUNT, 1)
    within = [one for one in shown.standings if one.rows == 0 and one.left is not None]
    read = [one.reading for one in within]
    assert read == sorted(read), "it goes on, and never back"
    assert len(set(read)) > 2, read
    assert all(one.left == COUNT - one.reading and one.done == one.reading for one in within)

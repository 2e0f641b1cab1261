"""Streaming queries of tests: into Parquet files, started again and again on one checkpoint."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.conftest import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WAIT_S = 60
"""For what takes a second on a quiet machine."""

TRIGGERS: dict[str, dict[str, Any]] = {
    "availableNow": {"availableNow": True},
    "once": {"once": True},
    "processingTime": {"processingTime": "0 seconds"},
}

_OURS = re.compile(r"^(?:pyspark\.errors\S*: )?(?:pyspark_)?hutch\.[\w.]+: (.+)$", re.MULTILINE)


def eventually(is_so: Callable[[], object], within_s: float = WAIT_S) -> None:
    """Wait until something is so. Raises AssertionError if that takes too long."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, "it has not come to be in time"
        time.sleep(0.02)


def said(failure: object) -> str:
    """Return the one line of the source, out of all that Spark says about a failure."""
    lines = set(_OURS.findall(str(failure)))
    assert len(lines) == 1, str(failure)
    return str(lines.pop()).strip()


def refusal(action: Callable[[], object]) -> str:
    """Do something that must fail, and return the one line that says why."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as failure:
        action()
    return said(failure.value)


class Query:
    """A query that copies streams into Parquet files.

    Attributes:
        batches: Number and rows of each batch of the last run that had any to report.
    """

    def __init__(self, spark: SparkSession, place: Place, folder: Path, **options: object) -> None:
        self.spark = spark
        self.checkpoint = folder / "checkpoint"
        self.output = folder / "output"
        self.options = place.options | {name: str(value) for name, value in options.items()}
        self.batches: list[tuple[int, int]] = []

    def loaded(self) -> DataFrame:
        return self.spark.readStream.format("hutch").options(**self.options).load()

    def start(self, how: str = "processingTime") -> StreamingQuery:
        writing = self.loaded().select("stream", "offset", "body").writeStream
        return (
            writing.format("parquet")
            .option("path", str(self.output))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(**TRIGGERS[how])
            .start()
        )

    def run(self, how: str = "availableNow") -> list[int]:
        """Run to the end of what is there; give all offsets that are in the files by now."""
        query = self.start(how)
        try:
            assert query.awaitTermination(WAIT_S), "the query does not end"
        finally:
            query.stop()
        self.batches = batches_of(query)
        return self.offsets()

    @contextmanager
    def running(self) -> Iterator[StreamingQuery]:
        """Run until the end of the block."""
        query = self.start()
        try:
            yield query
            failure = query.exception()
            assert failure is None, failure
        finally:
            query.stop()
            self.batches = batches_of(query)

    def offsets(self) -> list[int]:
        """The offsets in the files, in order; of all streams."""
        return sorted(row.offset for row in self.rows())

    def rows(self, files: str = "") -> list[Any]:
        """The rows of committed batches; of files by a pattern if there is one."""
        schema = "stream string, offset bigint, body binary"
        return list(self.spark.read.schema(schema).parquet(str(self.output / files)).collect())

    def position(self, batch: int) -> str:
        """Return the end of a batch as the checkpoint has it, as text."""
        return (self.checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1]

    def position_of(self, batch: int) -> dict[str, int]:
        return {name: place["o"] for name, place in json.loads(self.position(batch)).items()}

    def uncommit(self, batch: int) -> None:
        """Leave the checkpoint as a kill within a batch does."""
        uncommit(self.checkpoint, batch)

    def last_batch(self) -> int:
        return max(_numbers(self.checkpoint / "offsets"))

    def committed(self) -> list[int]:
        return _numbers(self.checkpoint / "commits")


def uncommit(checkpoint: Path, batch: int | None = None) -> None:
    """Leave a checkpoint as a kill within a batch does, the last one if none is named."""
    folder = checkpoint / "commits"
    number = max(_numbers(folder)) if batch is None else batch
    (folder / str(number)).unlink()
    (folder / f".{number}.crc").unlink(missing_ok=True)


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def batches_of(query: StreamingQuery) -> list[tuple[int, int]]:
    return [(int(one["batchId"]), int(one["numInputRows"])) for one in query.recentProgress]


def rows_of(query: StreamingQuery) -> int:
    """Return how many rows a query has read in this run."""
    failure = query.exception()
    assert failure is None, failure
    return sum(rows for _, rows in batches_of(query))

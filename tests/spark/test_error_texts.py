"""The errors that docs/spark.md explains: each is provoked, and has the text that the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from gateway.stream.wire import messages as m
from tests.spark.conftest import Place
from tests.spark.publishing import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE: Final = Path(__file__).parents[2] / "docs" / "spark.md"
LATER: Final = "2099-01-01T00:00:00Z"
DEDUP: Final = {"delivery": "dedup", "producerName": "texts"}
NUMBERED: Final = DEDUP | {"publishingIdColumn": "number", "producerKeyColumn": "key"}


def texts() -> list[str]:
    """Return the first text of each row of the page's table of errors."""
    page = PAGE.read_text(encoding="utf-8")
    table = page.split("## When something fails")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)


class Trials:
    """Does what goes wrong."""

    def __init__(self, spark: SparkSession, place: Place, stream: str, folder: Path) -> None:
        self.spark = spark
        self.place = place
        self.stream = stream
        self.folder = folder

    def read(self, schema: str | None = None, **options: str) -> None:
        reader = self.spark.read.format("hutch").options(**self.place.options | options)
        (reader if schema is None else reader.schema(schema)).load().collect()

    def write(self, *columns: str, mode: str = "append", **options: str) -> None:
        rows = self.spark.range(2, numPartitions=1).selectExpr(*columns)
        writer = rows.write.format("hutch").options(**self.place.options | options)
        (writer.mode(mode) if mode else writer).save()

    def insert_text(self) -> None:
        options = self.place.options | {"stream": self.stream}
        listed = ", ".join(f"{name} '{value}'" for name, value in options.items())
        view = f"{self.stream.split('[')[0]}_view"
        self.spark.sql(f"CREATE TEMPORARY VIEW {view} (body BINARY) USING hutch OPTIONS ({listed})")
        try:
            self.spark.sql(f"INSERT INTO {view} SELECT 'text'")
        finally:
            self.spark.catalog.dropTempView(view)

    def lose(self) -> None:
        reader = self.spark.read.format("hutch").options(**self.place.options, stream=self.stream)
        planned = reader.load()
        planned.count()
        with self.place.client() as client:
            client.must("delete_stream", m.DeleteStream(self.stream))
            client.create(self.stream)
        planned.count()

    def start_without_a_checkpoint(self) -> None:
        reader = self.spark.readStream.format("hutch").options(**self.place.options)
        rows = reader.option("stream", self.stream).load()
        rows.writeStream.format("parquet").option("path", f"{self.folder}/rows").start()

    def run(self, *arguments: str, **variables: str) -> None:
        """Run Python in a process of its own, and fail with what it says."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        raise AssertionError(done.stdout + done.stderr)


Trial = Callable[[Trials], object]

TRIALS: Final[Mapping[str, Trial]] = {
    "[JAVA_GATEWAY_EXITED]": lambda t: t.run(
        "-c",
        "from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate()",
        JAVA_HOME=str(t.folder),
    ),
    "Failed to find the data source": lambda t: t.spark.read.format("hatch").load(),
    "No module named 'pyspark_hutch'": lambda t: t.run("-I", "-S", "-c", "import pyspark_hutch"),
    "cannot connect to …: Connection refused": lambda t: t.read(
        stream="a", endpoints="127.0.0.1:1"
    ),
    "cannot connect to …: Name": lambda t: t.read(stream="a", endpoints="nowhere.invalid"),
    "… refused user": lambda t: t.read(stream="a", password="wrong"),
    "option username='…' needs": lambda t: t.read(stream="a", username="ben"),
    "virtual host": lambda t: t.read(stream="a", vhost="other"),
    "stream '…' does not exist": lambda t: t.read(stream="no-such"),
    "super stream '…' does not exist": lambda t: t.read(superStream="no-such"),
    "option … is unknown": lambda t: t.read(stream="a", startingOffset="earliest"),
    "option stream is missing": lambda t: t.read(),
    "option maxOffsetsPerTrigger": lambda t: t.read(stream="a", maxOffsetsPerTrigger="5"),
    "option startingOffsets: offset": lambda t: t.read(
        stream=t.stream, startingOffsets=f'{{"{t.stream}": 99}}'
    ),
    "option startingOffsets: must name": lambda t: t.read(
        stream=t.stream, startingOffsets='{"other": 1}'
    ),
    "stream '…' has no row of this time": lambda t: t.read(
        stream=t.stream, startingTimestamp=LATER
    ),
    "schema: no column": lambda t: t.read("ofset bigint", stream=t.stream),
    "schema: column 'body' has type": lambda t: t.read("body string", stream=t.stream),
    "Set failOnDataLoss": lambda t: t.lose(),
    'The data source "hutch" cannot': lambda t: t.write("'x' AS body", mode="", stream=t.stream),
    "mode overwrite": lambda t: t.write("'x' AS body", mode="overwrite", stream=t.stream),
    "column 'body': missing": lambda t: t.write("'x' AS value", stream=t.stream),
    "column '…': (…) no such": lambda t: t.write("'x' AS body", "id", stream=t.stream),
    "column 'body': null": lambda t: t.write("cast(null AS string) AS body", stream=t.stream),
    "nothing says where rows go": lambda t: t.write("'x' AS body"),
    "option createStream='true' needs": lambda t: t.write(
        "'x' AS body", "'k' AS routing_key", superStream="new", createStream="true"
    ),
    "option delivery='dedup' needs": lambda t: t.write("'x' AS body", stream=t.stream, **DEDUP),
    "numbers must ascend": lambda t: t.write(
        "'x' AS body", "5L AS number", "'k' AS key", stream=t.stream, **NUMBERED
    ),
    "a catalog table's options": lambda t: t.spark.sql(
        "CREATE TABLE texts USING hutch OPTIONS (endpoints 'localhost:5552', stream 'orders')"
    ),
    "Cannot safely cast": lambda t: t.insert_text(),
    "checkpointLocation must be": lambda t: t.start_without_a_checkpoint(),
}
"""How each text of the page begins, and what brings it about."""


def pattern_of(text: str) -> re.Pattern[str]:
    return re.compile(".*?".join(re.escape(part) for part in text.split("…")), re.DOTALL)


def test_every_text_of_the_page_has_its_trial() -> None:
    found = [[start for start in TRIALS if text.startswith(start)] for text in texts()]

    assert [len(starts) for starts in found] == [1] * len(TRIALS), found


@pytest.mark.parametrize(
    "text", texts(), ids=lambda text: re.sub(r"[^a-z]+", "-", text[:40].lower())
)
def test_an_error_has_the_text_that_the_page_says(
    spark: SparkSession, place: Place, stream: str, tmp_path: Path, text: str
) -> None:
    with place.client() as client:
        publish(client, stream, [b"row"])
    trials = Trials(spark, place, stream, tmp_path)
    trial = next(trial for start, trial in TRIALS.items() if text.startswith(start))

    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark has a class for each kind
        trial(trials)

    assert pattern_of(text).search(str(caught.value)), str(caught.value)

"""Restarts of streaming queries and of their server: no row is lost or doubled."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hutch.stream import messages as m
from tests.client import Client
from tests.integration.server import HutchServer
from tests.spark.conftest import SPARK_SETTINGS, Place
from tests.spark.publishing import append, bodies_of, create_super_stream, publish
from tests.spark.queries import WAIT_S, Query, eventually, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINTS = Path(__file__).parents[1] / "golden" / "checkpoints"
"""As `Query` left them that had read 10 rows of `golden-a`, and found `golden-b` empty."""

JOB = """
import json, sys
from pyspark.sql import SparkSession

options, settings, checkpoint, output = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]").appName("to be killed")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
frame = spark.readStream.format("hutch").options(**options).load()
writing = frame.select("stream", "offset", "body").writeStream.format("parquet")
query = writing.option("path", output).option("checkpointLocation", checkpoint).start()
query.awaitTermination()
"""


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with place.client() as opened:
        yield opened


def test_a_query_survives_a_restart_of_its_server(
    spark: SparkSession, stream: str, tmp_path: Path
) -> None:
    with HutchServer(tmp_path / "data") as server:
        place = Place("hutch", server.host, server.port)
        with place.client() as client:
            publish(client, stream, bodies_of(100))
        query = Query(spark, place, tmp_path, stream=stream, startingOffsets="earliest")
        with query.running() as running:
            eventually(lambda: rows_of(running) == 100)
            server.restart()
            with place.client() as client:
                append(client, stream, bodies_of(100, 100))
            eventually(lambda: rows_of(running) == 200)

        assert query.offsets() == list(range(200))


def test_a_query_whose_driver_is_killed_gives_every_row_once(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    publish(client, stream, bodies_of(2_000), at_once=10)
    options = {"stream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 20}
    query = Query(spark, place, tmp_path, **options)
    (tmp_path / "job.py").write_text(JOB)
    given = [query.options, SPARK_SETTINGS, str(query.checkpoint), str(query.output)]
    with (tmp_path / "log").open("wb") as log:
        job = subprocess.Popen(
            [sys.executable, str(tmp_path / "job.py"), json.dumps(given)],
            stdout=log,
            stderr=log,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            start_new_session=True,
        )
        try:
            eventually((query.checkpoint / "commits" / "3").exists, 2 * WAIT_S)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait(WAIT_S)
    assert query.last_batch() < 100
    query.options["maxOffsetsPerTrigger"] = "1000"

    assert query.run() == list(range(2_000))


@pytest.mark.parametrize("start", ["latest", "-10"])
def test_a_query_whose_first_batch_was_not_committed_begins_where_it_began(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path, start: str
) -> None:
    publish(client, stream, bodies_of(100))
    query = Query(spark, place, tmp_path, stream=stream, startingOffsets=start)
    began = query.run() or [100]
    for batch in sorted(query.committed(), reverse=True):
        query.uncommit(batch)
    append(client, stream, bodies_of(5, 100))

    assert query.run() == list(range(began[0], 105))


def test_a_query_that_is_stopped_within_batches_gives_every_row_once(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    streams = create_super_stream(client, stream, 2)
    for name in streams:
        append(client, name, bodies_of(1_000), at_once=30)
    options = {"superStream": stream, "startingOffsets": "earliest", "minPartitions": 4}
    query = Query(spark, place, tmp_path, **options, maxOffsetsPerTrigger=200)
    with query.running() as running:
        eventually(lambda: rows_of(running) >= 300)
    # A batch that is planned, and even written, but not committed, is done again.
    query.uncommit(max(query.committed()))
    for name in streams:
        append(client, name, bodies_of(200, 1_000), at_once=7)
    query.options["maxOffsetsPerTrigger"] = "1000"

    query.run()

    rows = [(row.stream, row.offset) for row in query.rows()]
    assert sorted(rows) == [(name, offset) for name in streams for offset in range(1_200)]


def test_event_time_with_watermark_and_window_goes_on_across_restarts(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    client.create(stream)
    query = Query(spark, place, tmp_path, stream=stream, startingOffsets="earliest")
    closed: list[list[list[int]]] = []
    for first in (0, 30, 60):
        append(client, stream, bodies_of(30, first))
        a_second_later = time.time() + 1.1
        counted = (
            query.loaded()
            .withWatermark("timestamp", "0 seconds")
            .groupBy(f.window("timestamp", "1 second"))
            .agg(f.sort_array(f.collect_list("offset")).alias("offsets"))
        )
        run_on(counted.select("offsets"), query)
        found = spark.read.schema("offsets array<bigint>").parquet(str(query.output)).collect()
        closed.append(sorted(list(row.offsets) for row in found))
        eventually(lambda: time.time() > a_second_later)  # noqa: B023  # called here

    assert closed == [
        [],
        [list(range(30))],
        [list(range(30)), list(range(30, 60))],
    ]


def run_on(frame: Any, query: Query) -> None:  # noqa: ANN401  # a data frame
    writing = frame.writeStream.format("parquet").option("path", str(query.output))
    running = writing.option("checkpointLocation", str(query.checkpoint)).trigger(availableNow=True)
    assert running.start().awaitTermination(WAIT_S)


@pytest.mark.parametrize("version", [path.name for path in sorted(CHECKPOINTS.iterdir())])
def test_a_checkpoint_of_an_earlier_version_is_resumed(
    spark: SparkSession, place: Place, client: Client, tmp_path: Path, version: str
) -> None:
    if version.removeprefix("spark-") > ".".join(spark.version.split(".")[:2]):
        pytest.skip(f"this Spark is {spark.version}, and the checkpoint of a later one")
    publish(client, "golden-a", bodies_of(15))
    publish(client, "golden-b", bodies_of(3))
    query = Query(spark, place, tmp_path, stream="golden-a,golden-b", startingOffsets="latest")
    shutil.copytree(CHECKPOINTS / version, query.checkpoint)
    try:
        running = query.start("availableNow")
        assert running.awaitTermination(WAIT_S)
    finally:
        for name in ("golden-a", "golden-b"):
            client.must("delete_stream", m.DeleteStream(name))

    rows = sorted((row.stream, row.offset) for row in query.rows("*.parquet"))
    assert rows == [("golden-a", offset) for offset in range(10, 15)] + [
        ("golden-b", offset) for offset in range(3)
    ]

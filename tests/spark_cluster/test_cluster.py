"""Jobs on a cluster of two workers: what they read and write is what one machine does."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.http_client import Api
from tests.integration.server import HutchServer
from tests.spark_cluster.conftest import driver
from tests.spark_cluster.filling import contents, fill_super_stream
from tests.spark_cluster.standalone import WORKERS, Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

SOURCES, TARGETS = 16, 5
ROWS = 1_000
LARGE_ROWS, LARGE_BYTES = 16_000, 1_024
TASK = re.compile(r"task \d+\.\d+\.\d+ pid (\d+)")


def bodies_of(key: int, count: int, size: int = 0) -> list[bytes]:
    return [b"key-%d-%d %s" % (key, number, b"." * size) for number in range(count)]


def options_of(server: HutchServer) -> dict[str, str]:
    return {"endpoints": f"{server.host}:{server.port}", "advertised": "ignore"}


def read(spark: SparkSession, server: HutchServer, super_stream: str) -> DataFrame:
    reader = spark.read.format("hutch").options(**options_of(server))
    return reader.option("superStream", super_stream).load()


def copy(spark: SparkSession, server: HutchServer, source: str, target: str) -> None:
    """Copy a super stream to another one, by the first word of each body."""
    from pyspark.sql import functions as f

    key = f.split(f.col("body").cast("string"), " ")[0]
    rows = read(spark, server, source).select("body", key.alias("routing_key"))
    writer = rows.write.format("hutch").options(**options_of(server))
    writer = writer.options(superStream=target, createStream="true", partitions=str(TARGETS))
    writer.mode("append").save()


def test_a_super_stream_copied_by_two_workers_is_what_one_machine_makes_of_it(
    cluster: Cluster, hutch: HutchServer, tmp_path: Path
) -> None:
    fill_super_stream(hutch, "orders", [bodies_of(number, ROWS) for number in range(SOURCES)])

    with driver(cluster.url, "copying", tmp_path) as spark:
        is_done = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            seen = pool.submit(workers_seen, cluster, hutch, "copying", is_done)
            try:
                copy(spark, hutch, "orders", "by-two")
            finally:
                is_done.set()
    with driver("local[2]", "alone", tmp_path) as spark:
        copy(spark, hutch, "orders", "by-one")

    assert seen.result() == set(range(WORKERS))
    by_two = contents(hutch, "by-two")
    assert by_two == contents(hutch, "by-one")
    assert sum(map(len, by_two)) == SOURCES * ROWS
    assert len(by_two) == TARGETS
    assert all(by_two)


def workers_seen(
    cluster: Cluster, server: HutchServer, application: str, is_done: threading.Event
) -> set[int]:
    """Return which workers had tasks with a connection to the server while a job ran."""
    seen: set[int] = set()
    while not is_done.is_set() and len(seen) < WORKERS:
        for name in connection_names(server):
            task = TASK.search(name)
            if name.startswith(f"{application}/") and task is not None:
                worker = cluster.worker_of(int(task[1]))
                seen |= set() if worker is None else {worker}
        time.sleep(0.02)
    return seen


def connection_names(server: HutchServer) -> list[str]:
    """Return what the server's administrators see of its connections."""
    found = Api(*server.management).ask("GET", "connections").json
    return [one["client_properties"].get("connection_name", "") for one in found]


def test_a_read_whose_executor_is_killed_is_complete(
    cluster: Cluster, hutch: HutchServer, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    # The rows of one partition do not fit between reader and user of the rows, so that its task is
    # in the midst of the stream when it waits.
    bodies = [bodies_of(number, 100) for number in range(3)]
    bodies.append(bodies_of(3, LARGE_ROWS, LARGE_BYTES))
    fill_super_stream(hutch, "killed", bodies)
    mark = tmp_path / "in the middle"

    def attempt_at(partition: int, offset: int) -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        if (partition, offset, attempt) == (len(bodies) - 1, 100, 0):
            mark.with_suffix(".new").write_text(str(os.getpid()))
            mark.with_suffix(".new").rename(mark)
            time.sleep(100)
        return attempt

    with driver(cluster.url, "killing", tmp_path) as spark:
        attempt = f.udf(attempt_at, "int", useArrow=False)("partition", "offset")
        rows = read(spark, hutch, "killed").select("partition", "offset", attempt.alias("attempt"))
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(rows.collect)
            while not mark.exists():
                assert not job.done(), job.result()
                time.sleep(0.02)
            os.kill(cluster.executor_of(int(mark.read_text())), signal.SIGKILL)
            found = job.result()

    expected = [(part, offset) for part, own in enumerate(bodies) for offset in range(len(own))]
    assert sorted((row.partition, row.offset) for row in found) == expected
    assert {row.attempt for row in found if row.partition == len(bodies) - 1} == {1}

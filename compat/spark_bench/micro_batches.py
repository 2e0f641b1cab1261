"""The time of a streaming query's small batches: staged and committed, and dropped."""

import statistics
import time
from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from compat.spark_bench.errors import SparkBenchError
from compat.spark_bench.stage import CORES, Stage
from compat.spark_bench.waits import Ground, Took

ROWS: Final = 1_000
STREAM: Final = "micro-batches"
LOOK_S: Final = 0.05
PATIENCE_S: Final = 300.0

Writer = Callable[[DataStreamWriter], DataStreamWriter]


def trigger_times(ground: Ground) -> Took:
    """Run a query of small batches into a stream, then into a sink that drops them."""
    stage, hutch = ground.stage, ground.servers.hutch
    assert stage is not None, "a wait that needs Spark has it"
    options = stage.new_stream(hutch, STREAM) | {"delivery": "staged"}
    count = ground.scale.micro_batches
    ours_ms = _trigger_ms(stage, lambda to: to.format("hutch").options(**options), count)
    stage.drop_stream(hutch, STREAM)
    return Took(ours_ms, _trigger_ms(stage, lambda to: to.format("noop"), count))


def _bodies(stage: Stage) -> DataFrame:
    """Return a stream of batches of bodies of 100 B, as many as there are triggers."""
    reader = stage.spark.readStream.format("rate-micro-batch")
    rows = reader.option("rowsPerBatch", ROWS).option("numPartitions", CORES).load()
    return rows.selectExpr("cast(lpad(cast(value AS string), 100, '0') AS binary) AS body")


def _trigger_ms(stage: Stage, to: Writer, count: int) -> float:
    """Run a query for so many batches, and as many before; return the median of a trigger.

    Raises:
        SparkBenchError: It failed, or took too long.
    """
    checkpoint = stage.new_folder("micro-batches")
    writer = _bodies(stage).writeStream.option("checkpointLocation", str(checkpoint))
    query = to(writer).start()
    try:
        _await_batch(query, 2 * count)
        times = [
            float(progress["durationMs"]["triggerExecution"])
            for progress in query.recentProgress
            if count <= progress["batchId"] < 2 * count
        ]
    finally:
        query.stop()
    return statistics.median(times)


def _await_batch(query: StreamingQuery, number: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while query.lastProgress is None or query.lastProgress["batchId"] < number:
        error = query.exception()
        if error is not None:
            raise SparkBenchError(f"the query failed: {error}")
        if time.monotonic() > until:
            raise SparkBenchError(f"batch {number} was not done within {PATIENCE_S:.0f} s")
        time.sleep(LOOK_S)

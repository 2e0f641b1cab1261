"""Statistics of streams as one page of HTML: rates, sizes, keys, gaps in time."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyspark_hutch.jobs.errors import WrongArgument
from pyspark_hutch.jobs.output import written_whole
from pyspark_hutch.jobs.preparation.sources import name_of
from pyspark_hutch.jobs.report_page import page
from pyspark_hutch.jobs.runs.batches import (
    BatchName,
    JobResult,
    RowsLeft,
    read_stream,
    run_batches,
    spark_errors,
)
from pyspark_hutch.jobs.runs.progress import JobProgress
from pyspark_hutch.jobs.statistics import BINS_PER_DOUBLING, RowGroup, Statistics

BUDGETS: Final = {"maxOffsetsPerTrigger": "1000000"}
KEYS_OF_BATCH_MAX: Final = 20_000
"""Keys of a batch that come to the driver, the most frequent first."""

_SLIM: Final = "stream string, timestamp timestamp, body binary"
_WITH_ALL: Final = (
    f"{_SLIM}, `partition` int, `offset` bigint, body_type string, "
    "application_properties map<string,string>"
)


def report(
    spark: SparkSession,
    options: Mapping[str, str],
    file: Path,
    *,
    key: str | None = None,
    progress: JobProgress | None = None,
) -> JobResult:
    """Write a report about the rows that streams hold now.

    Ctrl-C ends the reading after a batch; the report is then about the rows until there.

    Args:
        spark: The session.
        options: Of the read, as `spark.readStream.format("hutch")` takes them. Without a start it
            begins at the first row.
        file: The page.
        key: Expression of SQL by which rows are counted, over the columns stream, partition,
            offset, timestamp, body, body_type and application_properties.
        progress: Shows how far it is.

    Raises:
        WrongArgument: An option or the key is wrong.
        JobFailed: The streams cannot be read, or the page cannot be written.
    """
    source = read_stream(spark, options, _SLIM if key is None else _WITH_ALL, BUDGETS)
    rows = _measured(source, key)
    found = Statistics()

    def handle(batch: DataFrame, _: BatchName) -> JobResult:
        return _gather(batch, found)

    with written_whole(file) as out:  # a page that cannot be written is told before the reading
        with tempfile.TemporaryDirectory(prefix="hutch-report-") as folder:
            left = RowsLeft(options)
            done = run_batches(rows, handle, folder, progress=progress, left=left)
        out.write(page(f"Stream report: {name_of(options)}", found).encode())
    return done


def _measured(source: DataFrame, key: str | None) -> DataFrame:
    size = f.length("body")
    columns = [
        f.col("stream"),
        f.unix_millis("timestamp").alias("time_ms"),
        f.when(size > 0, f.floor(f.log2(size) * BINS_PER_DOUBLING)).otherwise(-1).alias("bin"),
        size.alias("size"),
    ]
    if key is not None:
        columns.append(f.expr(key).cast("string").alias("key"))
    with spark_errors(f"key {key!r}: ", WrongArgument):
        return source.select(*columns)


def _gather(batch: DataFrame, found: Statistics) -> JobResult:
    has_keys = "key" in batch.columns
    if has_keys:  # read once, counted twice
        batch = batch.persist()
    try:
        groups = batch.groupBy("stream", "time_ms", "bin").agg(
            f.count(f.lit(1)), f.sum("size"), f.min("size"), f.max("size")
        )
        before = (found.total.rows, found.total.size)
        found.add(RowGroup(*row) for row in groups.collect())
        if has_keys:
            keys = batch.groupBy("key").agg(f.count(f.lit(1)).alias("rows"))
            top = keys.orderBy(f.desc("rows")).limit(KEYS_OF_BATCH_MAX).collect()
            found.add_keys((row[0], row[1]) for row in top)
            found.keys_dropped |= len(top) == KEYS_OF_BATCH_MAX
    finally:
        if has_keys:
            batch.unpersist()
    return JobResult(found.total.rows - before[0], found.total.size - before[1])

"""Statistics of streams as one page of HTML: rates, sizes, keys, gaps in time."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyspark_hutch.jobs.batches import BatchName, Count, Done, rows_left, run_batches
from pyspark_hutch.jobs.errors import JobFailed, WrongArgument, in_one_line
from pyspark_hutch.jobs.progress import Progress
from pyspark_hutch.jobs.report_page import page
from pyspark_hutch.jobs.sources import Pace, name_of, reading
from pyspark_hutch.jobs.statistics import BINS_PER_DOUBLING, Group, Statistics

BUDGETS: Final = {"maxOffsetsPerTrigger": "1000000"}
KEYS_OF_BATCH_MAX: Final = 20_000
"""Keys of a batch that come to the driver, the most frequent first."""

_SLIM: Final = "stream string, timestamp timestamp, body binary"
_WITH_ALL: Final = (
    f"{_SLIM}, `partition` int, `offset` bigint, body_type string, "
    "application_properties map<string,string>"
)


@dataclass(frozen=True, slots=True)
class Reported:
    """Findings of a report.

    Attributes:
        done: Rows that were read.
        statistics: Of them.
    """

    done: Done
    statistics: Statistics


def report(
    spark: SparkSession,
    options: Mapping[str, str],
    file: Path,
    *,
    key: str | None = None,
    progress: Progress | None = None,
) -> Reported:
    """Write a report about what streams hold now.

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
    chosen = reading(options, budgets=BUDGETS)
    schema = _SLIM if key is None else _WITH_ALL
    source = spark.readStream.format("hutch").options(**chosen).schema(schema).load()
    rows = _measured(source, key)
    found = Statistics()

    def handle(batch: DataFrame, _: BatchName) -> Count:
        return _gather(batch, found)

    with tempfile.TemporaryDirectory(prefix="hutch-report-") as folder:
        done = run_batches(
            rows,
            handle,
            folder,
            pace=Pace(),
            progress=progress or Progress(None),
            left=rows_left,
        )
    _write(file, page(f"Stream report: {name_of(options)}", found))
    return Reported(done, found)


def _measured(source: DataFrame, key: str | None) -> DataFrame:
    size = f.length("body")
    columns = [
        f.col("stream"),
        f.unix_millis("timestamp").alias("time_ms"),
        f.when(size > 0, f.floor(f.log2(size) * BINS_PER_DOUBLING)).otherwise(-1).alias("bin"),
        size.alias("size"),
    ]
    if key is None:
        return source.select(*columns)
    try:
        return source.select(*columns, f.expr(key).cast("string").alias("key"))
    except PySparkException as error:
        raise WrongArgument(f"key {key!r}: {in_one_line(error)}") from None


def _gather(batch: DataFrame, found: Statistics) -> Count:
    has_keys = "key" in batch.columns
    if has_keys:  # read once, counted twice
        batch = batch.persist()
    try:
        groups = batch.groupBy("stream", "time_ms", "bin").agg(
            f.count(f.lit(1)), f.sum("size"), f.min("size"), f.max("size")
        )
        before = (found.total.rows, found.total.size)
        found.add(Group(*row) for row in groups.collect())
        if has_keys:
            keys = batch.groupBy("key").agg(f.count(f.lit(1)).alias("rows"))
            top = keys.orderBy(f.desc("rows")).limit(KEYS_OF_BATCH_MAX).collect()
            found.add_keys((row[0], row[1]) for row in top)
            found.keys_dropped |= len(top) == KEYS_OF_BATCH_MAX
    finally:
        if has_keys:
            batch.unpersist()
    return Count(found.total.rows - before[0], found.total.size - before[1])


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise JobFailed(f"cannot write {file}: {error.strerror}") from None

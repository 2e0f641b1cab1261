"""Stream to Parquet, Delta or Iceberg: every row once, also over kills."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from pyspark_hutch.jobs.lakes import Lake
from pyspark_hutch.jobs.preparation.sources import Pace, name_of
from pyspark_hutch.jobs.runs.batches import JobResult, RowsLeft, read_stream, run_batches
from pyspark_hutch.jobs.runs.progress import JobProgress


def to_lake(
    spark: SparkSession,
    options: Mapping[str, str],
    lake: Lake,
    *,
    columns: str | None = None,
    pace: Pace | None = None,
    progress: JobProgress | None = None,
) -> JobResult:
    """Land the rows of streams.

    Args:
        spark: The session.
        options: Of the read, as `spark.readStream.format("hutch")` takes them. Without a start it
            begins at the first row, without a budget a batch has 500,000 rows or 128 MiB at most.
        lake: Where to.
        columns: A schema that chooses columns, as `offset bigint, body binary`.
        pace: Whether it goes on, and where it notes how far it has come (by default within the
            lake, a folder for each source).
        progress: Shows how far it is.

    Raises:
        WrongArgument: An option is wrong, or the folder has another kind of lake.
        JobFailed: The streams cannot be read or the lake cannot be written.
    """
    lake.check(spark)
    rows = read_stream(spark, options, columns)
    checkpoint, left = lake.checkpoint(name_of(options)), RowsLeft(options)
    return run_batches(rows, lake.write, checkpoint, pace, progress, left)

"""Targets for rows of streams: folders of Parquet, Delta tables, Iceberg tables.

Each of them takes a batch once. The batch's name is noted together with its rows; one that comes
again after a kill is found there and left out.
"""

from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from pyspark_hutch.jobs.batches import BatchName, Count

BODY: Final = "body"


class Lake(Protocol):
    """A place for batches."""

    def checkpoint(self, name: str) -> str:
        """Return the folder in which a job notes how far it has come with a source."""
        ...

    def write(self, batch: DataFrame, name: BatchName) -> Count:
        """Write a batch, if it is not there."""
        ...


class ParquetLake:
    """A folder of Parquet files, a folder in it for each batch: `batch=1f0c9e2a-000000017`.

    A batch that comes again replaces its folder, unless the folder was finished, which the file
    `_SUCCESS` in it says. So any reader of Parquet sees each row once; the folder's name is a
    column `batch` to most of them.
    """

    def __init__(self, path: str) -> None:
        """Keep the path, which may be on any storage that Spark can write."""
        self._path = path.rstrip("/") or "/"

    def checkpoint(self, name: str) -> str:
        return f"{self._path}/_checkpoints/{name}"  # readers pass over what begins with _

    def write(self, batch: DataFrame, name: BatchName) -> Count:
        folder = f"{self._path}/batch={name.text}"
        if _exists(batch, f"{folder}/_SUCCESS"):
            return Count()
        observed, seen = counted(batch)
        observed.write.mode("overwrite").parquet(folder)
        return count_of(seen)


def counted(batch: DataFrame) -> tuple[DataFrame, Observation]:
    """Return a frame that counts its rows when they pass, and where to find the count."""
    seen = Observation()
    sizes = f.sum(f.length(BODY)) if BODY in batch.columns else f.lit(0)
    return batch.observe(seen, f.count(f.lit(1)).alias("rows"), sizes.alias("size")), seen


def count_of(seen: Observation) -> Count:
    """Return what was counted, once the rows have passed."""
    found = seen.get
    return Count(found.get("rows") or 0, found.get("size") or 0, found.get("bad") or 0)


def _exists(batch: DataFrame, path: str) -> bool:
    """Return whether a file is there, on whatever storage Spark knows."""
    spark = batch.sparkSession
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  # Hadoop's file systems have no other door
    file = jvm.org.apache.hadoop.fs.Path(path)
    system = file.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
    return bool(system.exists(file))


def gathered(batch: DataFrame) -> tuple[pa.Table, Count]:
    """Return a batch as one table in this process, its times in UTC.

    A batch has to fit into the driver; the budgets of the jobs see to that.
    """
    table = batch.toArrow()
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC"):
            kind = pa.timestamp(field.type.unit, "UTC")
            table = table.set_column(index, field.with_type(kind), table.column(index).cast(kind))
    size = 0
    if BODY in table.column_names:
        size = pc.sum(pc.binary_length(table.column(BODY))).as_py() or 0
    return table, Count(table.num_rows, size)

"""Targets for rows of streams: folders of Parquet, Delta tables, Iceberg tables.

Each of them takes a batch once. The batch's name is noted together with its rows; one that comes
again after a kill is found there and left out.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from pyspark_hutch.jobs.errors import WrongArgument
from pyspark_hutch.jobs.preparation.sources import local
from pyspark_hutch.jobs.runs.batches import BatchName, JobResult

BODY: Final = "body"
SIGNS: Final = {"parquet": "batch=*", "delta": "_delta_log", "iceberg": "catalog.db"}
"""A name, or a pattern, that only the folder of that kind of lake has."""


class Lake(ABC):
    """A place for batches, in a folder."""

    kind: ClassVar[str]

    def __init__(self, folder: str) -> None:
        """Keep the path."""
        self.folder = folder

    def checkpoint(self, name: str) -> str:
        """Return the folder in which a job notes how far it has come with a source."""
        return f"{self.folder}/_checkpoints/{name}"  # readers pass over what begins with _

    def check(self, spark: SparkSession | None = None) -> None:
        """Check that the folder does not belong to another kind of lake, with its checkpoints.

        Args:
            spark: Looks on storage of any kind; None: only a folder of this machine is looked at.

        Raises:
            WrongArgument: It is.
        """
        for kind, sign in SIGNS.items():
            if kind != self.kind and self._has(spark, sign):
                raise WrongArgument(
                    f"{self.folder} has rows in the format {kind}; {self.kind} needs another folder"
                )

    @abstractmethod
    def write(self, batch: DataFrame, name: BatchName) -> JobResult:
        """Write a batch, if it is not there."""

    def _has(self, spark: SparkSession | None, sign: str) -> bool:  # noqa: ARG002  # it is here
        """Return whether there is a file of that name or pattern in the folder."""
        return any(Path(self.folder).glob(sign))


class ParquetLake(Lake):
    """A folder of Parquet files, a folder in it for each batch: `batch=1f0c9e2a-000000017`.

    The folder may be on any storage that Spark can write. A batch that comes again replaces its
    folder, unless that was finished, which the file `_SUCCESS` in it says. So any reader of Parquet
    sees each row once; the folder's name is a column `batch` to most of them.
    """

    kind = "parquet"

    def __init__(self, path: str) -> None:
        """Keep the path."""
        super().__init__(path.rstrip("/") or "/")

    def write(self, batch: DataFrame, name: BatchName) -> JobResult:
        inner = f"batch={name.text}"
        if self._has(batch.sparkSession, f"{inner}/_SUCCESS"):
            return JobResult(is_unread=True)
        observed, seen = counted(batch)
        observed.write.mode("overwrite").parquet(f"{self.folder}/{inner}")
        return done_of(seen)

    def _has(self, spark: SparkSession | None, sign: str) -> bool:
        if spark is None:
            return "://" not in self.folder and super()._has(spark, sign)
        context: Any = spark.sparkContext  # Hadoop's file systems have no other door
        file = context._jvm.org.apache.hadoop.fs.Path(f"{self.folder}/{sign}")  # noqa: SLF001
        system = file.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        return bool(system.exists(file))


class TableLake(Lake):
    """A table on this machine, to which batches are appended one after another."""

    def __init__(self, path: str) -> None:
        """Keep the path; raises WrongArgument if it is not of this machine."""
        super().__init__(str(local(path)))

    def write(self, batch: DataFrame, name: BatchName) -> JobResult:
        if self.latest(name.query) >= name.number:
            return JobResult(is_unread=True)
        rows = gathered(batch)
        if rows.num_rows:
            self.append(rows, name)
        size = pc.sum(pc.binary_length(rows[BODY])).as_py() if BODY in rows.column_names else 0
        return JobResult(rows.num_rows, size or 0)

    @abstractmethod
    def latest(self, query: str) -> int:
        """Return the number of the last batch of a query that is in the table; -1 if none is."""

    @abstractmethod
    def append(self, rows: pa.Table, name: BatchName) -> None:
        """Add rows, and the name of their batch, in one step."""


def counted(batch: DataFrame) -> tuple[DataFrame, Observation]:
    """Return a frame that counts its rows when they pass, and where to find the count."""
    seen = Observation()
    sizes = f.sum(f.length(BODY)) if BODY in batch.columns else f.lit(0)
    return batch.observe(seen, f.count(f.lit(1)).alias("rows"), sizes.alias("size")), seen


def done_of(seen: Observation) -> JobResult:
    """Return the counts of an observation, once the rows have passed."""
    found = seen.get
    return JobResult(found["rows"] or 0, found["size"] or 0, found.get("bad", 0))


def gathered(batch: DataFrame) -> pa.Table:
    """Return a batch as one table in this process, its times in UTC.

    A batch has to fit into the driver; the budgets of the jobs see to that.
    """
    table = batch.toArrow()
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC"):
            kind = pa.timestamp(field.type.unit, "UTC")
            table = table.set_column(index, field.with_type(kind), table.column(index).cast(kind))
    return table

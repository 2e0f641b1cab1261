"""Files of Parquet, JSON, CSV or lines of text to a stream."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from pyspark_hutch.encoding.columns import COLUMNS
from pyspark_hutch.jobs.errors import WrongArgument
from pyspark_hutch.jobs.lakes import BODY, counted, done_of
from pyspark_hutch.jobs.preparation.sources import Pace, writing
from pyspark_hutch.jobs.runs.batches import BatchName, JobResult, run_batches, spark_errors
from pyspark_hutch.jobs.runs.progress import JobProgress, Standing
from pyspark_hutch.jobs.runs.saves import save, saves_once

FORMATS: Final[Mapping[str, Mapping[str, str]]] = {
    "parquet": {},
    "json": {"mode": "FAILFAST"},  # a line that is none would else be a row of nulls
    "csv": {"header": "true", "inferSchema": "true", "mode": "FAILFAST"},
    "text": {},
}
"""Formats, with Spark's options for reading them that hold unless others are given."""

BATCH_BYTES: Final = 256 * 1024 * 1024
BATCH_FILES_MAX: Final = 1_000
KEY: Final = "routing_key"


@dataclass(frozen=True, slots=True)
class InputFiles:
    """The files to read.

    Attributes:
        path: Folder, file or pattern.
        format: One of `FORMATS`.
        options: Spark's, for reading them, as `sep` for CSV.
        body: Column that is the body; None: `body`, or if there is none, all columns as JSON.
        key: Column that is the routing key; None: `routing_key` if there is one.
    """

    path: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    key: str | None = None


def from_files(
    spark: SparkSession,
    files: InputFiles,
    options: Mapping[str, str],
    *,
    pace: Pace | None = None,
    progress: JobProgress | None = None,
) -> JobResult:
    """Publish the rows of files: with a checkpoint and on Hutch each once, else at least once.

    Args:
        spark: The session.
        files: Where they are, and their form.
        options: Of the write, as `frame.write.format("hutch")` takes them.
        pace: Where it notes which files are done; without a checkpoint it publishes all of them.
        progress: Shows how far it is.

    Raises:
        WrongArgument: An option is wrong, a column is missing.
        JobFailed: The files cannot be read, the stream cannot be written.
    """
    if files.format not in FORMATS:
        raise WrongArgument(f"no format {files.format!r}: there are {', '.join(FORMATS)}")
    target = writing(options)
    given = {**FORMATS[files.format], **files.options}
    found = _looked_at(spark, files, given)
    at_once = _files_at_once(found.files, found.size)
    source = spark.readStream.format(files.format).options(**given).schema(found.schema)
    with spark_errors():
        rows = source.load(_pattern(files.path, found), maxFilesPerTrigger=at_once)
    messages = _messages(rows, files)
    # Without a checkpoint no batch comes again, and the server need not remember any.
    has_names = pace is not None and pace.checkpoint is not None
    is_once = has_names and saves_once(target, messages.columns)
    batches: list[int] = []

    def handle(batch: DataFrame, name: BatchName) -> JobResult:
        observed, seen = counted(batch)
        save(observed, target, name if is_once else None)
        batches.append(name.number)
        return done_of(seen)

    def left(_: Mapping[str, Any] | None, standing: Standing) -> Standing:
        done = min(len(batches) * at_once, found.files)
        return replace(standing, done=done, left=found.files - done, unit="files")

    with tempfile.TemporaryDirectory(prefix="hutch-from-files-") as folder:
        return run_batches(messages, handle, folder, pace, progress, left)


class _Found(NamedTuple):
    files: int
    size: int
    one: str  # of them
    schema: StructType


def _looked_at(spark: SparkSession, files: InputFiles, options: Mapping[str, str]) -> _Found:
    """Return the count of the files, their size, one of their names, and their schema."""
    with spark_errors(f"{files.path} cannot be read: "):
        sizes = spark.read.format("binaryFile").load(files.path)
        count, size, one = sizes.agg(f.count("path"), f.sum("length"), f.max("path")).collect()[0]
        if not count:
            raise WrongArgument(f"{files.path} has no file with anything in it")
        schema = spark.read.format(files.format).options(**options).load(files.path).schema
    return _Found(count, size, one, schema)


def _pattern(path: str, found: _Found) -> str:
    """Return the path; a streaming read takes a single file only as a pattern that fits it."""
    is_file = found.files == 1 and Path(found.one).name == Path(path).name
    return f"{path[:-1]}[{path[-1]}]" if is_file and not path.endswith("]") else path


def _files_at_once(count: int, size: int) -> int:
    """Return how many files a batch takes: those of its bytes, if all are equally large."""
    return max(1, min(BATCH_FILES_MAX, int(BATCH_BYTES / max(size / count, 1))))


def _messages(rows: DataFrame, files: InputFiles) -> DataFrame:
    """Return the columns that are written: a body, and all others that a message can have."""
    columns = {name: f.col(f"`{name.replace('`', '``')}`") for name in rows.columns}
    for name in (files.body, files.key):
        if name is not None and name not in columns:
            raise WrongArgument(f"the files have no column {name!r}: {', '.join(columns)}")
    body = files.body or ("value" if files.format == "text" else BODY)
    if body in columns:
        passed = set(COLUMNS) - {"stream", body}
        chosen = {name: column for name, column in columns.items() if name in passed}
        chosen[BODY] = columns[body]
    else:
        chosen = {BODY: f.to_json(f.struct(*columns.values()))}
    key = columns.get(files.key or KEY)
    if key is not None:
        chosen[KEY] = key.cast("string")
    return rows.select(*(column.alias(name) for name, column in chosen.items()))

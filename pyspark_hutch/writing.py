"""Batch and streaming writes as Spark runs them: prepared on the driver, published by tasks."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.names import planner_name, task_name
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.settings import WriteSettings
from pyspark_hutch.options.writing import write_settings
from pyspark_hutch.shared.client.errors import ClientError
from pyspark_hutch.sink.numbering import TaskIdentity
from pyspark_hutch.sink.targets import Targets, prepare
from pyspark_hutch.sink.task import Written, check_schema, require_one_task_each, write_rows

LOG: Final = logging.getLogger(__name__)

AT_LEAST_ONCE: Final = (
    "hutch: delivery=none: rows are written at least once, and again where Spark tries a %s again"
)


class Done(WriterCommitMessage):
    """The message of a task to the driver."""

    def __init__(self, written: Written) -> None:
        self.written = written


class WriteTask:
    """The task of a write: settings and targets, sent from the driver to the workers.

    Attributes:
        settings: Of the write.
        targets: As `prepare` found them; None: each task looks for them itself.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        schema: StructType,
        *,
        overwrites: bool,
        is_streaming: bool,
    ) -> None:
        """Check options and columns; for a batch write find or make the targets, too.

        Raises:
            WrongOption: An option, or the save mode, cannot be used.
            BadColumn: The rows cannot be written.
            ClientError: A target cannot be written to.
        """
        if overwrites:
            raise WrongOption("mode overwrite: a stream only grows; use mode append")
        self.settings = write_settings(options, is_streaming=is_streaming)
        check_schema(to_arrow_schema(schema, timezone="UTC"), self.settings)
        self.targets = None if is_streaming else self._prepare()

    def __getstate__(self) -> dict[str, object]:
        """Find or make the targets of a streaming write when it is sent to the workers.

        Spark makes a writer for the commit of each batch, too, which needs none. A server that is
        away for a moment fails no batch: the tasks, which are more patient, look again.
        """
        if self.targets is None:
            with suppress(ClientError):
                self.targets = self._prepare()
        return self.__dict__

    def _prepare(self) -> Targets:
        connection = self.settings.connection
        return prepare(Cluster(connection, planner_name(connection)), self.settings)

    def write(self, batches: Iterator[pa.RecordBatch]) -> Done:
        """Publish the rows of the task that this process runs."""
        task = _identity(self.settings)
        connection = self.settings.connection
        cluster = Cluster(connection, task_name(connection), retries_first=True)
        targets = self.targets or prepare(cluster, self.settings)
        return Done(write_rows(cluster, self.settings, targets, task, batches))


class BatchWriter(DataSourceArrowWriter):
    """Writes a data frame once."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrites: bool) -> None:
        """Check and prepare; errors are those of WriteTask."""
        self._task = WriteTask(options, schema, overwrites=overwrites, is_streaming=False)
        if self._task.settings.dedup is None:
            LOG.warning(AT_LEAST_ONCE, "task")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Done:
        return self._task.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Tell what was written; the rows are in their streams since their tasks ended.

        Raises:
            BadColumn: Rows of one producer were in two tasks.
        """
        require_one_task_each(_written(messages))
        _log_written("hutch: %s", messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Tell what stays: a stream takes back no row."""
        LOG.warning("hutch: the write failed; of tasks that ended stay %s", _told(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrites: bool) -> None:
        """Check options and columns; errors are those of WriteTask."""
        self._task = WriteTask(options, schema, overwrites=overwrites, is_streaming=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Done:
        return self._task.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        """Tell what was written; the rows are in their streams since their tasks ended.

        Raises:
            BadColumn: Rows of one producer were in two tasks.
        """
        require_one_task_each(_written(messages))
        if batch_id == 0 and self._task.settings.dedup is None:
            LOG.warning(AT_LEAST_ONCE, "batch")
        _log_written(f"hutch: batch {batch_id}: %s", messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        """Tell what stays: a stream takes back no row."""
        told = _told(messages)
        LOG.warning("hutch: batch %d failed; of tasks that ended stay %s", batch_id, told)


def _log_written(text: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Log the rows of a write; aloud if some were dropped, which may not be what was meant."""
    has_skipped = any(one.skipped for one in _written(messages))
    LOG.log(logging.WARNING if has_skipped else logging.INFO, text, _told(messages))


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message.written for message in messages if isinstance(message, Done)]


def _told(messages: Sequence[WriterCommitMessage | None]) -> str:
    done = _written(messages)
    rows, skipped = sum(one.rows for one in done), sum(one.skipped for one in done)
    before = f", {skipped} rows were there from an earlier try" if skipped else ""
    return f"{rows} rows{before}"


def _identity(settings: WriteSettings) -> TaskIdentity:
    """Tell which task this process runs; Spark says so in properties that it does not document.

    Raises:
        WrongOption: The session speculates, or this Spark does not tell the batch.
    """
    context = TaskContext.get()
    assert context is not None, "a write runs in a task"
    partition = context.partitionId()
    if settings.dedup is None:
        return TaskIdentity(partition)
    if context.getLocalProperty("spark.speculation") == "true":
        raise WrongOption(
            "option delivery='dedup': spark.speculation runs a task twice at once, which loses "
            "rows; set it to false"
        )
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    if query is None:
        return TaskIdentity(partition)
    if batch is None:
        raise WrongOption("option delivery='dedup': this Spark does not tell tasks their batch")
    return TaskIdentity(partition, query, int(batch))

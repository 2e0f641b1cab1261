"""Batch and streaming writes as Spark runs them: prepared on the driver, published by tasks."""

import logging
from collections.abc import Iterator, Mapping
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
from pyspark_hutch.sink.numbering import TaskIdentity
from pyspark_hutch.sink.targets import prepare
from pyspark_hutch.sink.task import Written, check_schema, write_rows

LOG: Final = logging.getLogger(__name__)


class Done(WriterCommitMessage):
    """What a task tells the driver."""

    def __init__(self, written: Written) -> None:
        self.written = written


class WriteTask:
    """What a task of a write needs: settings and targets, sent from the driver to the workers."""

    def __init__(
        self,
        options: Mapping[str, str],
        schema: StructType,
        *,
        overwrites: bool,
        is_streaming: bool,
    ) -> None:
        """Check options and columns, find or make the targets.

        Raises:
            WrongOption: An option, or the save mode, cannot be used.
            BadColumn: The rows cannot be written.
            ClientError: A target cannot be written to.
        """
        if overwrites:
            raise WrongOption("mode overwrite: a stream only grows; use mode append")
        self._settings = write_settings(options, is_streaming=is_streaming)
        check_schema(to_arrow_schema(schema, timezone="UTC"), self._settings)
        connection = self._settings.connection
        self._targets = prepare(Cluster(connection, planner_name(connection)), self._settings)
        if self._settings.dedup is None:
            LOG.warning(
                "hutch: delivery=none: rows are written at least once, and again where Spark "
                "tries a task again"
            )

    def write(self, batches: Iterator[pa.RecordBatch]) -> Done:
        """Publish the rows of the task that this process runs."""
        connection = self._settings.connection
        cluster = Cluster(connection, task_name(connection), retries_first=True)
        task = _identity(self._settings)
        return Done(write_rows(cluster, self._settings, self._targets, task, batches))


class BatchWriter(DataSourceArrowWriter):
    """Writes a data frame once."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrites: bool) -> None:
        """Check and prepare; errors are those of WriteTask."""
        self._task = WriteTask(options, schema, overwrites=overwrites, is_streaming=False)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Done:
        return self._task.write(iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrites: bool) -> None:
        """Check and prepare; errors are those of WriteTask."""
        self._task = WriteTask(options, schema, overwrites=overwrites, is_streaming=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Done:
        return self._task.write(iterator)


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

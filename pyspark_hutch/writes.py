"""Batch and streaming writes as Spark runs them.

The driver prepares a write, tasks publish or stage its rows, and the driver commits what is staged.
Its part runs in Python processes on its machine, that of tasks in the Python workers of executors.
Writers and messages travel between them as pickles.
"""

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

from hutch.client.errors import ClientError
from pyspark_hutch.names import planner_cluster, task_cluster
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.write_rules import write_settings
from pyspark_hutch.options.write_settings import StreamWriteSettings
from pyspark_hutch.sink.commits import Staged, commit, discard, purpose_of, tell
from pyspark_hutch.sink.plan import WritePlan, plan_write, why_not_staged
from pyspark_hutch.sink.publishing_ids import TaskIdentity
from pyspark_hutch.sink.stages import Purpose
from pyspark_hutch.sink.task import (
    RowsWritten,
    check_schema,
    require_one_task_each,
    stage_rows,
    write_rows,
)
from pyspark_hutch.workers import spare_collections

LOG: Final = logging.getLogger(__name__)

AT_LEAST_ONCE: Final = (
    "hutch: delivery=none%s: rows are written at least once, and again where Spark tries a %s again"
)
ALONE: Final = Purpose("", 0)
"""The commit of a save that counts alone: the server keeps no record of it."""


class TaskDone(WriterCommitMessage):
    """The message of a task to the driver: it is pickled, and holds numbers and names alone."""

    def __init__(self, written: RowsWritten | Staged) -> None:
        self.written = written


class WriteTask:
    """The task of a write: settings and plan, sent from the driver to the workers.

    Attributes:
        settings: Of the write.
        columns: Names of the columns of its rows.
        is_streaming: Whether it is the write of a streaming query.
        plan: As the driver found it; None: each task looks itself.
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
        spare_collections()
        if overwrites:
            raise WrongOption("mode overwrite: a stream only grows; use mode append")
        self.settings = write_settings(options, is_streaming=is_streaming)
        check_schema(to_arrow_schema(schema, timezone="UTC"), self.settings)
        self.columns = tuple(schema.names)
        self.is_streaming = is_streaming
        self.plan = None if is_streaming else self._prepare()

    def __getstate__(self) -> dict[str, object]:
        """Plan a streaming write, and make its targets, when it is sent to the workers.

        Spark makes a writer for the commit of each batch, too, which needs none. A server that is
        away for a moment fails no batch: the tasks, which are more patient, look again.
        """
        if self.plan is None:
            with suppress(ClientError):
                self.plan = self._prepare()
        return self.__dict__

    def _prepare(self) -> WritePlan:
        cluster = planner_cluster(self.settings.connection)
        return plan_write(cluster, self.settings, self.columns)

    def write(self, batches: Iterator[pa.RecordBatch]) -> TaskDone:
        """Publish or stage the rows of the task that this process runs."""
        spare_collections()
        task = _identity(self.settings)
        settings = self.settings
        cluster = task_cluster(settings.connection)
        plan = self.plan or plan_write(cluster, settings, self.columns)
        if not plan.is_staged:
            return TaskDone(write_rows(cluster, settings, plan.targets, task, batches))
        purpose = self._purpose(task)
        return TaskDone(
            stage_rows(cluster, settings, plan.targets, purpose, task.partition, batches)
        )

    def _purpose(self, task: TaskIdentity) -> Purpose:
        """Return the commit that the rows of a task are for.

        Raises:
            WrongOption: This Spark does not tell.
        """
        if not self.is_streaming:
            return self.purpose_of_save
        if task.query is None:
            raise WrongOption(
                "option delivery='staged': this Spark does not tell tasks their query and batch; "
                "take delivery=dedup or none"
            )
        return Purpose(task.query, task.batch)

    @property
    def purpose_of_save(self) -> Purpose:
        """The commit of a batch write."""
        named = self.settings.transaction
        return ALONE if named is None else Purpose(named.app_id, named.version)

    def warn_of(self, repeated: str) -> None:
        """Log that rows may be written again, if they are not numbered."""
        if self.settings.dedup is None:
            LOG.warning(AT_LEAST_ONCE, why_not_staged(self.settings, self.columns), repeated)

    def commit(self, purpose: Purpose, staged: Sequence[Staged]) -> None:
        """Publish the stages of the tasks, and log that; errors are those of `commit`."""
        cluster = planner_cluster(self.settings.connection, retries_first=True)
        told = commit(cluster, purpose, staged, self.settings.confirm_timeout_ms)
        tell(purpose, staged, told)

    def discard(self, staged: Sequence[Staged]) -> None:
        """Drop the stages of the tasks, if a server can be reached now."""
        cluster = planner_cluster(self.settings.connection)
        discard(cluster, staged, self.settings.confirm_timeout_ms)


class BatchWriter(DataSourceArrowWriter):
    """Writes a data frame once.

    It is pickled for the tasks, and for the commit: settings, names of columns, and the plan.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrites: bool) -> None:
        """Check and prepare; errors are those of WriteTask."""
        self._task = WriteTask(options, schema, overwrites=overwrites, is_streaming=False)
        if not self._is_staged:
            self._task.warn_of("task")

    @property
    def _is_staged(self) -> bool:
        return self._task.plan is not None and self._task.plan.is_staged

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Publish or stage the rows of a task; errors are those of `WriteTask.write`.

        Called in a Python worker of an executor, once for each try of a task, on a copy that was
        unpickled for it. So rows that are published at once may be there twice.
        """
        return self._task.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the stages of all tasks, and log the rows that were written.

        Called once, when all tasks have ended well, in a process of the driver, on a copy of the
        writer that `DefaultSource.writer` has made.

        Rows that were not staged are in their streams since their tasks ended. A save without rows
        is committed if it has a number. That counts as done then, unless the series has no rows so
        far: there is nothing yet that could be doubled.

        Raises:
            BadColumn: Rows of one producer were in two tasks.
            ClientError: Nothing that is staged was published, or nothing tells if it was.
        """
        if not self._is_staged:
            require_one_task_each(_written(messages))
            _log_written("hutch: %s", messages)
            return
        staged, purpose = _staged(messages), self._task.purpose_of_save
        if _has_stages(staged) or purpose.sink:
            self._task.commit(purpose, staged)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Discard the stages; else log the rows that stay, since a stream takes back no row.

        Called once instead of `commit` if a task has failed for good, in a process of the driver.
        Of tasks that failed the message is None.
        """
        if self._is_staged:
            self._task.discard(_staged(messages))
            LOG.warning("hutch: the write failed; what its tasks staged is discarded")
        else:
            LOG.warning("hutch: the write failed; of tasks that ended stay %s", _told(messages))


class StreamingWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query.

    It is pickled for the tasks: settings, names of columns, and the plan, which is made then.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrites: bool) -> None:
        """Check options and columns; errors are those of WriteTask."""
        self._task = WriteTask(options, schema, overwrites=overwrites, is_streaming=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Publish or stage the rows of a task; errors are those of `WriteTask.write`.

        Called in a Python worker of an executor, for each batch once for each try of a task, on a
        copy that was unpickled for it.
        """
        return self._task.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        """Publish the stages of a batch's tasks, and log the rows that were written.

        Called for each batch when all of its tasks have ended well, in a process of the driver, on
        a writer that is made for it. A batch that comes again after a failure is committed again.
        Rows that were not staged are in their streams since their tasks ended.

        Raises:
            BadColumn: Rows of one producer were in two tasks.
            ClientError: Nothing that is staged was published, or nothing tells if it was.
        """
        staged = _staged(messages)
        if staged:
            self._commit(staged, batch_id)
            return
        require_one_task_each(_written(messages))
        if batch_id == 0 and _written(messages):
            self._task.warn_of("batch")
        _log_written(f"hutch: batch {batch_id}: %s", messages)

    def _commit(self, staged: Sequence[Staged], batch_id: int) -> None:
        purpose = purpose_of(staged)
        assert purpose is not None, "each task says what it staged for"
        if purpose.batch != batch_id:
            raise ClientError(
                f"tasks of batch {batch_id} staged rows for batch {purpose.batch}; nothing is "
                "committed"
            )
        if _has_stages(staged):
            self._task.commit(purpose, staged)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        """Discard the stages; else log the rows that stay, since a stream takes back no row.

        Called instead of `commit` for a batch of which a task has failed for good, as that. Of
        tasks that failed the message is None.
        """
        staged = _staged(messages)
        if staged:
            self._task.discard(staged)
            LOG.warning("hutch: batch %d failed; what its tasks staged is discarded", batch_id)
        else:
            told = _told(messages)
            LOG.warning("hutch: batch %d failed; of tasks that ended stay %s", batch_id, told)


def _log_written(text: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Log the rows of a write; as a warning if some were dropped, which may be a mistake."""
    has_skipped = any(one.skipped for one in _written(messages))
    LOG.log(logging.WARNING if has_skipped else logging.INFO, text, _told(messages))


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[RowsWritten]:
    done = [message.written for message in messages if isinstance(message, TaskDone)]
    return [one for one in done if isinstance(one, RowsWritten)]


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    done = [message.written for message in messages if isinstance(message, TaskDone)]
    return [one for one in done if isinstance(one, Staged)]


def _has_stages(staged: Sequence[Staged]) -> bool:
    return any(one.stages for one in staged)


def _told(messages: Sequence[WriterCommitMessage | None]) -> str:
    done = _written(messages)
    rows, skipped = sum(one.rows for one in done), sum(one.skipped for one in done)
    before = f", {skipped} rows were there from an earlier try" if skipped else ""
    return f"{rows} rows{before}"


def _identity(settings: StreamWriteSettings) -> TaskIdentity:
    """Return the task that this process runs, by properties that Spark does not document.

    Raises:
        WrongOption: The session speculates, or this Spark does not tell the batch.
    """
    context = TaskContext.get()
    assert context is not None, "a write runs in a task"
    partition = context.partitionId()
    if settings.delivery == "none":
        return TaskIdentity(partition)
    is_dedup = settings.dedup is not None
    if is_dedup and context.getLocalProperty("spark.speculation") == "true":
        raise WrongOption(
            "option delivery='dedup': spark.speculation runs a task twice at once, which loses "
            "rows; set it to false"
        )
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    if query is None:
        return TaskIdentity(partition)
    if batch is None:
        raise WrongOption(
            f"option delivery={settings.delivery!r}: this Spark does not tell tasks their batch"
        )
    return TaskIdentity(partition, query, int(batch))

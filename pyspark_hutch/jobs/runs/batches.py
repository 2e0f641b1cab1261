"""A streaming query with batches that a job handles one by one, watched from outside.

Each batch has a name, which is the same when it comes again after a kill: the query's id, which is
in the checkpoint, and its number. A job marks its output with that name, and leaves out output that
is marked already.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_hutch.jobs.errors import JobError, JobFailed, WrongArgument, in_one_line
from pyspark_hutch.jobs.preparation.sources import BUDGETS, Pace, reading
from pyspark_hutch.jobs.runs.progress import JobProgress, Standing, interrupts
from pyspark_hutch.jobs.runs.scans import Scans
from pyspark_hutch.names import planner_name
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.progress import QueryBacklog, left_out

FIRST: Final = 0
"""Number of the batch without rows, which notes where a query over streams began."""

LOOK_EVERY_S: Final = 1  # Spark takes whole seconds; an end is heard at once
PAUSE_S: Final = 0.05
START_S_MAX: Final = 120.0  # Spark names the query before it runs a batch
COMMIT_S_MAX: Final = 10.0  # Spark notes in the checkpoint that a batch is done
IDLE: Final = "500 milliseconds"  # pause of a query that goes on and found nothing new


class BatchName(NamedTuple):
    """The name of this batch, for ever."""

    query: str
    number: int

    @property
    def text(self) -> str:
        """The name as one word, which sorts in the order of the batches."""
        return f"{self.query[:8]}-{self.number:09}"


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a batch, or of a whole job.

    Attributes:
        rows: Handled.
        size: Bytes of their bodies.
        bad: Rows that could not be handled and were put aside or left out.
        batches: Of a job: those that had rows.
        seconds: Of a job: the time that it took.
        is_interrupted: Whether Ctrl-C ended the job before all was done.
        left_out: Of a job: offsets that it has passed without a row of them.
        is_unread: Of a batch: whether it was found done, and its rows were not read again.
    """

    rows: int = 0
    size: int = 0
    bad: int = 0
    batches: int = 0
    seconds: float = 0.0
    is_interrupted: bool = False
    left_out: int = 0
    is_unread: bool = False

    def with_batch(self, batch: "JobResult") -> "JobResult":
        """Return the sum of all earlier results and of a batch's."""
        return replace(
            self,
            rows=self.rows + batch.rows,
            size=self.size + batch.size,
            bad=self.bad + batch.bad,
            batches=self.batches + (batch.rows + batch.bad > 0),
        )


Handle = Callable[[DataFrame, BatchName], JobResult]
Left = Callable[[Mapping[str, Any] | None, Standing], Standing]
"""Adds the work that is left to a standing, from the query's latest progress."""


@contextmanager
def spark_errors(what: str = "", kind: type[JobError] = JobFailed) -> Iterator[None]:
    """Raise an error of a job, in one line, for one of Spark.

    Args:
        what: The beginning of the line.
        kind: Of the error.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise kind(f"{what}{in_one_line(error)}") from error


def read_stream(
    spark: SparkSession,
    options: Mapping[str, str],
    schema: str | None = None,
    budgets: Mapping[str, str] = BUDGETS,
) -> DataFrame:
    """Return the rows of streams as a streaming frame.

    Args:
        spark: The session.
        options: Of the read, to which the defaults of jobs are added.
        schema: Columns to read; None reads the default ones.
        budgets: Options that limit a batch, if there are none among the others.

    Raises:
        WrongArgument: An option or the schema is wrong.
        JobFailed: The source cannot be loaded.
    """
    source = spark.readStream.format("hutch").options(**reading(options, budgets=budgets))
    if schema is not None:
        with spark_errors(f"columns {schema!r}: ", WrongArgument):
            source = source.schema(schema)
    with spark_errors():
        return source.load()


class RowsLeft:
    """Finds out the rows of streams that are before a query, of servers too if it must."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Prepare; nothing is asked yet.

        Args:
            options: Of the read, as `reading` takes them.

        Raises:
            WrongArgument: They cannot be read with.
        """
        settings = read_settings(reading(options), is_streaming=True).connection
        self._backlog = QueryBacklog(settings, planner_name(settings))

    def __call__(self, progress: Mapping[str, Any] | None, standing: Standing) -> Standing:
        """Add the rows that are left; None while they are not known of every stream."""
        known = list(self._backlog.behind(progress).values())
        left = sum(rows for rows in known if rows is not None) - standing.reading
        is_known = bool(known) and None not in known
        done = standing.rows + standing.reading
        return replace(standing, done=done, left=max(0, left) if is_known else None)


class _Ended(Exception):
    """A batch came after the job was to end."""


class _Handler:
    """Hands batches to a job, and none once the job is to end."""

    def __init__(self, handle: Handle) -> None:
        self.query: Future[str] = Future()
        self.done = JobResult()
        self.before = JobResult()  # what was done before the last batch
        self.number = -1  # of the last batch that was handled
        self.error: Exception | None = None
        self.latest: Callable[[], Mapping[str, Any] | None] = lambda: None  # the query's progress
        self._left_out = 0  # offsets without a row, of the batches before the one last noted
        self._noted = -1, 0  # the number of that one, and its offsets without a row
        self._unread = -1  # of the last batch that was found done
        self.lock = threading.Lock()  # held while a batch is handled
        self.is_ending = False
        self._handle = handle

    def __call__(self, batch: DataFrame, number: int) -> None:
        with self.lock:
            if self.is_ending:
                raise _Ended
            try:
                if number == FIRST and batch.isEmpty():
                    return
                name = BatchName(self.query.result(START_S_MAX), number)
                self.note(self.latest())  # of the batch before
                done = self._handle(batch, name)
            except Exception as error:  # told by the thread that waits, not by Spark's wrapping
                self.error = error
                raise
            if done.is_unread:
                self._unread = number
            self.number, self.before = number, self.done
            self.done = self.done.with_batch(done)

    def note(self, latest: Mapping[str, Any] | None) -> None:
        """Note from a progress of the query how many offsets its batch has left out."""
        if latest is None or int(latest["batchId"]) == self._unread:
            return
        number, count = self._noted
        if number != int(latest["batchId"]):
            self._left_out += count
        self._noted = int(latest["batchId"]), left_out(latest)

    @property
    def left_out(self) -> int:
        """Offsets that were passed without a row of them, in the batches that were noted."""
        return self._left_out + self._noted[1]

    def end(self, query: StreamingQuery) -> None:
        """Wait until the query is between two batches, and let no other begin."""
        with self.lock:  # waits for the batch that is being handled
            self.is_ending = True
        limit = time.monotonic() + COMMIT_S_MAX
        # Without this the batch would only come again, and be left out by its mark.
        while query.isActive and time.monotonic() < limit and not self._has_committed(query):
            time.sleep(PAUSE_S)

    def done_by(self, latest: Mapping[str, Any] | None) -> JobResult:
        """Return the work done by a progress of the query, which comes after the last batch."""
        is_older = latest is not None and int(latest["batchId"]) < self.number
        return self.before if is_older else self.done

    def _has_committed(self, query: StreamingQuery) -> bool:
        latest = query.lastProgress
        return self.number < 0 or (latest is not None and int(latest["batchId"]) >= self.number)


def run_batches(
    frame: DataFrame,
    handle: Handle,
    checkpoint: str,
    pace: Pace | None = None,
    progress: JobProgress | None = None,
    left: Left = lambda _, standing: standing,
) -> JobResult:
    """Run a streaming query to its end, or until Ctrl-C.

    Args:
        frame: A streaming one.
        handle: Is called with each batch, in this process.
        checkpoint: Folder in which Spark notes how far the query has come, if the pace names none.
        pace: Whether it ends when all that there is now has been done, as it does by default.
        progress: Shows how far it is.
        left: Finds out the work that is left; by default that is not shown.

    Raises:
        JobFailed: The query failed.
    """
    pace, progress = pace or Pace(), progress or JobProgress(None)
    handler = _Handler(handle)
    started = time.monotonic()
    writer = frame.writeStream.foreachBatch(handler)
    writer = writer.option("checkpointLocation", pace.checkpoint or checkpoint)
    if pace.is_continuous:
        writer = writer.trigger(processingTime=IDLE)
    else:
        writer = writer.trigger(availableNow=True)
    with interrupts(progress.say) as asked:
        try:
            query = writer.start()
            try:
                handler.latest = lambda: query.lastProgress
                handler.query.set_result(str(query.id))
                scans = Scans(frame.sparkSession)
                _watch(query, handler, asked, progress, left, scans)
                handler.note(query.lastProgress)
            finally:  # the query does not outlive this; a second Ctrl-C has ended the connection
                with suppress(Py4JError):
                    query.stop()
        except (PySparkException, Py4JError) as error:
            cause = handler.error or error
            if isinstance(cause, JobError):
                raise cause from None
            raise JobFailed(in_one_line(cause)) from error
    seconds = time.monotonic() - started
    done = replace(
        handler.done,
        seconds=seconds,
        is_interrupted=asked.is_set(),
        left_out=handler.left_out,
    )
    progress.end(Standing(done.rows, done.size), "interrupted" if asked.is_set() else "done")
    return done


def _watch(
    query: StreamingQuery,
    handler: _Handler,
    asked: threading.Event,
    progress: JobProgress,
    left: Left,
    scans: Scans,
) -> None:
    while not query.awaitTermination(LOOK_EVERY_S):
        if asked.is_set():
            handler.end(query)
            return
        latest = query.lastProgress
        done = handler.done_by(latest)
        batch = -1 if latest is None else int(latest["batchId"])
        standing = Standing(done.rows, done.size, reading=scans.rows_behind(batch))
        progress.show(left(latest, standing))

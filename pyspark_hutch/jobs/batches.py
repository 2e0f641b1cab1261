"""A streaming query whose batches a job handles one by one, watched from outside.

Each batch comes with a name, which is the same when it comes again after a kill: the query's id,
which is in the checkpoint, and its number. A job marks its output with it and leaves out what is
marked already.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pyspark_hutch.jobs.errors import JobError, JobFailed, in_one_line
from pyspark_hutch.jobs.interrupts import Interrupts
from pyspark_hutch.jobs.progress import Progress, Standing
from pyspark_hutch.jobs.sources import Pace
from pyspark_hutch.progress import lag

FIRST: Final = 0
"""Number of the batch that, of streams, has no rows: it notes where the query began."""

LOOK_EVERY_S: Final = 1  # Spark takes whole seconds; an end is heard at once
PAUSE_S: Final = 0.05
START_S_MAX: Final = 120.0  # Spark names the query before it runs a batch
COMMIT_S_MAX: Final = 10.0  # Spark notes in the checkpoint that a batch is done
IDLE_S: Final = 0.5  # pause of a query that goes on and found nothing new


class BatchName(NamedTuple):
    """The name of this batch, for ever."""

    query: str
    number: int

    @property
    def text(self) -> str:
        """The same as one word, in the order of the batches."""
        return f"{self.query[:8]}-{self.number:09}"


class Count(NamedTuple):
    """The result of a batch.

    Attributes:
        rows: Handled.
        size: Bytes of their bodies.
        bad: Rows that could not be handled and were put aside or left out.
    """

    rows: int = 0
    size: int = 0
    bad: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a job.

    Attributes:
        rows: Handled.
        size: Bytes of their bodies.
        bad: Rows that could not be handled and were put aside or left out.
        batches: That had rows.
        seconds: That it took.
        is_interrupted: Whether Ctrl-C ended it before all was done.
    """

    rows: int = 0
    size: int = 0
    bad: int = 0
    batches: int = 0
    seconds: float = 0.0
    is_interrupted: bool = False


Handle = Callable[[DataFrame, BatchName], Count]
Left = Callable[[Mapping[str, Any] | None, Standing], Standing]
"""Adds to a standing what is left, from the query's latest progress."""


class _Ended(Exception):
    """A batch came after the job was to end."""


class _Handler:
    """Gives batches to a job, and none after it was told to end."""

    def __init__(self, handle: Handle) -> None:
        self.query: Future[str] = Future()
        self.done = Done()
        self.number = -1  # of the last batch that was handled
        self.error: Exception | None = None
        self.lock = threading.Lock()  # held while a batch is handled
        self.is_ending = False
        self._handle = handle

    def __call__(self, batch: DataFrame, number: int) -> None:
        with self.lock:
            if self.is_ending:
                raise _Ended
            if number == FIRST and batch.isEmpty():
                return
            try:
                count = self._handle(batch, BatchName(self.query.result(START_S_MAX), number))
            except Exception as error:  # told by the thread that waits, not by Spark's wrapping
                self.error = error
                raise
            done = self.done
            self.number = number
            self.done = replace(
                done,
                rows=done.rows + count.rows,
                size=done.size + count.size,
                bad=done.bad + count.bad,
                batches=done.batches + (count.rows + count.bad > 0),
            )


def run_batches(
    frame: DataFrame,
    handle: Handle,
    checkpoint: str,
    *,
    pace: Pace,
    progress: Progress,
    left: Left,
) -> Done:
    """Run a streaming query to its end, or until Ctrl-C.

    Args:
        frame: A streaming one.
        handle: Is called with each batch, in this process.
        checkpoint: Folder in which Spark notes how far the query has come.
        pace: Whether it ends when all that there is now has been done.
        progress: Shows how far it is.
        left: Finds out what is left.

    Raises:
        JobFailed: The query failed.
    """
    handler = _Handler(handle)
    started = time.monotonic()
    writer = frame.writeStream.foreachBatch(handler).option("checkpointLocation", checkpoint)
    if pace.is_continuous:
        writer = writer.trigger(processingTime=f"{int(IDLE_S * 1000)} milliseconds")
    else:
        writer = writer.trigger(availableNow=True)
    with Interrupts(progress.say) as interrupts:
        try:
            with _started(writer) as query:
                handler.query.set_result(str(query.id))
                _watch(query, handler, interrupts, progress, left)
        except (PySparkException, Py4JError) as error:
            raise _failure(handler, error) from error
    done = replace(
        handler.done,
        seconds=time.monotonic() - started,
        is_interrupted=interrupts.is_asked,
    )
    word = "interrupted" if done.is_interrupted else "done"
    progress.end(Standing(done.rows, done.size), word)
    return done


@contextmanager
def _started(writer: DataStreamWriter) -> Iterator[StreamingQuery]:
    """Start a query that does not outlive what watches it."""
    query = writer.start()
    try:
        yield query
    finally:
        if query.isActive:
            query.stop()


def _failure(handler: _Handler, error: Exception) -> JobError:
    if isinstance(handler.error, JobError):
        return handler.error
    return JobFailed(in_one_line(handler.error or error))


def _watch(
    query: StreamingQuery,
    handler: _Handler,
    interrupts: Interrupts,
    progress: Progress,
    left: Left,
) -> None:
    while not query.awaitTermination(LOOK_EVERY_S):
        if interrupts.is_asked:
            _end(query, handler)
            return
        done = handler.done
        progress.show(left(query.lastProgress, Standing(done.rows, done.size)))


def _end(query: StreamingQuery, handler: _Handler) -> None:
    """Wait until the query is between two batches, and let no other begin."""
    with handler.lock:  # waits for the batch that is being handled
        handler.is_ending = True
    limit = time.monotonic() + COMMIT_S_MAX
    # Without this the batch would only come again, and be left out by its mark.
    while query.isActive and time.monotonic() < limit and not _has_committed(query, handler.number):
        time.sleep(PAUSE_S)


def _has_committed(query: StreamingQuery, number: int) -> bool:
    latest = query.lastProgress
    return number < 0 or (latest is not None and int(latest["batchId"]) >= number)


def rows_left(progress: Mapping[str, Any] | None, standing: Standing) -> Standing:
    """Add the rows of streams that are before a query, as far as they are known."""
    left = lag(progress)
    return replace(standing, done=standing.rows, left=sum(left.values()) if left else None)

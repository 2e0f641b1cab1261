"""Stream to stream through a user's function, bad rows to a stream of their own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType

from pyspark_hutch.columns import column
from pyspark_hutch.encoding.messages import FILTER
from pyspark_hutch.jobs.errors import WrongArgument
from pyspark_hutch.jobs.lakes import BODY, done_of
from pyspark_hutch.jobs.preparation.sources import Pace, fate_of, name_of, writing
from pyspark_hutch.jobs.runs.batches import BatchName, JobResult, RowsLeft, read_stream, run_batches
from pyspark_hutch.jobs.runs.progress import JobProgress
from pyspark_hutch.jobs.runs.saves import save, saves_once
from pyspark_hutch.jobs.transform import (
    BAD_SUB_BATCH,
    OUTPUT,
    READ,
    REASON,
    SECTIONS,
    WRITTEN,
    Transform,
)

FAIL: Final = "fail"
DROP: Final = "drop"
_OF_ONE_TARGET: Final = (
    "stream",
    "superstream",
    "routing",
    "routingkeycolumn",
    "partitions",
    "bodyformat",
)


@dataclass(frozen=True, slots=True)
class CopyTarget:
    """The target of a copy.

    Attributes:
        options: Of the write, as `frame.write.format("hutch")` takes them.
        bad_rows: The fate of rows that cannot be copied: `fail`, `drop`, or the name of a
            stream.
        is_once: Whether batches are saved once; `copy` finds that out.
    """

    options: Mapping[str, str]
    bad_rows: str = FAIL
    is_once: bool = False

    @property
    def columns(self) -> list[str]:
        """Columns that can be written there."""
        given = {name.lower(): text for name, text in self.options.items()}
        left_out = set(SECTIONS) if given.get("bodyformat") == "raw" else set()
        if self.is_once or given.get("compression", "none") != "none":
            left_out.add(FILTER)  # the protocol has none on sub-batches and in stages
        return [name for name in WRITTEN if name not in left_out]

    def refuse_source(self, options: Mapping[str, str]) -> None:
        """Refuse to copy a stream to itself.

        Args:
            options: Of the read.

        Raises:
            WrongArgument: Good or bad rows would go to the stream that they come from.
        """
        if not self.bad_rows:
            raise WrongArgument("bad rows: say fail, drop or the name of a stream")
        if _place(options) in (_place(self.options), _place(self.dead_letters or {})):
            raise WrongArgument(f"{name_of(options)} cannot be copied to itself")

    @property
    def dead_letters(self) -> dict[str, str] | None:
        """The options of the write of bad rows; None if they go nowhere."""
        if self.bad_rows in (FAIL, DROP):
            return None
        shared = self.options.items()
        kept = {name: text for name, text in shared if name.lower() not in _OF_ONE_TARGET}
        return kept | {"stream": self.bad_rows}


def copy(
    spark: SparkSession,
    options: Mapping[str, str],
    target: CopyTarget,
    transform: Transform,
    *,
    pace: Pace,
    progress: JobProgress | None = None,
) -> JobResult:
    """Copy the rows of streams: on Hutch each once, else at least once.

    Args:
        spark: The session.
        options: Of the read, as `spark.readStream.format("hutch")` takes them. Without a start it
            begins at the first row, without a budget a batch has 500,000 rows or 128 MiB at most.
        target: Where to.
        transform: The change of each row on its way. Of its fields `fails` is the target's to say.
        pace: Whether it goes on, and where it notes how far it has come.
        progress: Shows how far it is.

    Raises:
        WrongArgument: An option is wrong, or there is no checkpoint.
        JobFailed: The streams cannot be read or written, or a row is bad, or has a filter value
            that cannot be written.
    """
    if pace.checkpoint is None:
        raise WrongArgument("a copy needs a checkpoint, the folder where it notes how far it is")
    target.refuse_source(options)
    is_once = saves_once(writing(target.options), [BODY])
    target = replace(target, is_once=is_once)
    transform = replace(
        transform, fails=target.bad_rows == FAIL, takes_filter_values=FILTER in target.columns
    )
    names = (*READ, BAD_SUB_BATCH) if fate_of(options) == "raw" else READ
    rows = read_stream(
        spark, options, ", ".join(f"`{name}` {column(name).spark}" for name in names)
    )

    def handle(batch: DataFrame, name: BatchName) -> JobResult:
        return _write(_transformed(batch, transform), target, name if is_once else None)

    return run_batches(rows, handle, pace.checkpoint, pace, progress, RowsLeft(options))


def _place(options: Mapping[str, str]) -> tuple[str | None, str | None]:
    given = {name.lower(): text for name, text in options.items()}
    return given.get("endpoints"), given.get("stream") or given.get("superstream")


def _transformed(batch: DataFrame, transform: Transform) -> DataFrame:
    """Return the rows that come of a batch.

    A scalar function of Arrow gives one value for each row that it gets, and unlike `mapInArrow`
    needs no pandas. So all that it makes of its rows is one list, and the other lists are empty.
    Spark may call a deterministic function twice, and does so before `explode`.
    """

    def made(rows: pa.Array) -> pa.Array:
        flat = transform(rows)
        ends = [0] + [len(flat)] * len(rows)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat)

    vectorized: Any = arrow_udf  # whose types want what its checks warn about
    function = vectorized(made, ArrayType(from_arrow_type(OUTPUT))).asNondeterministic()
    lists = batch.select(function(f.struct(*batch.columns)).alias("rows"))
    return lists.select(f.explode("rows").alias("row")).select("row.*")


def _write(rows: DataFrame, target: CopyTarget, once: BatchName | None) -> JobResult:
    dead_letters = target.dead_letters
    if dead_letters is not None:  # both writes must see what the function did once
        rows = rows.persist()
    try:
        seen = Observation()
        is_good = f.col(REASON).isNull()
        counted = rows.observe(
            seen,
            f.count_if(is_good).alias("rows"),
            f.sum(f.when(is_good, f.length("body"))).alias("size"),
            f.count(REASON).alias("bad"),
        )
        save(counted.where(is_good).select(*target.columns), target.options, once)
        done = done_of(seen)
        if dead_letters is not None and done.bad:
            save(rows.where(~is_good).select(BODY, *SECTIONS), dead_letters, once, "-bad")
        return done
    finally:
        if dead_letters is not None:
            rows.unpersist()

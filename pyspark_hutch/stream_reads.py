"""A streaming read as Spark runs it: one planner for a run of the query, many readers.

The planner is a Python process that the driver keeps for a run. It makes one reader, and calls all
methods of that but `read`. Offsets come and go as dictionaries of JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_hutch.names import planner_cluster, task_cluster
from pyspark_hutch.offsets.position import document_of, position_of
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.planning.streaming_plan import StreamPlanner
from pyspark_hutch.schemas import columns_of
from pyspark_hutch.split_task import SplitTask

_ROWS_MAX: Final = (1 << 63) - 1


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on as the streams grow.

    Tasks have copies of another instance, which has planned nothing and needs no planner. What is
    pickled is settings and names of columns alone.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        """Check options and schema; raises WrongOption."""
        settings = read_settings(options, is_streaming=True)
        columns, has_variants = columns_of(schema, settings.decoding)
        self._task = SplitTask(settings, columns, has_variants=has_variants)
        self._made: StreamPlanner | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave the planner, which has clocks and connections, where it is."""
        return {"_task": self._task, "_made": None}

    @property
    def _planner(self) -> StreamPlanner:
        if self._made is None:
            settings = self._task.settings
            self._made = StreamPlanner(planner_cluster(settings.connection), settings)
        return self._made

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins; errors are those of `StreamPlanner.begin`.

        Called in the planner, more than once until the first batch is noted. A query with a
        checkpoint begins where that says.
        """
        return document_of(self._planner.begin())

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return one of the budgets; whichever it is, `latestOffset` keeps all of them.

        It is always a limit: Spark asks for all that is there only where a query has one batch.
        Called in the planner, when a run of the query begins; no server is asked.
        """
        budgets = self._task.settings.budgets
        if budgets.offsets_max is None and budgets.bytes_max is not None:
            return ReadMaxBytes(budgets.bytes_max)
        return ReadMaxRows(budgets.offsets_max or _ROWS_MAX)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note the ends of the streams, at which the query ends; raises ClientError.

        Called in the planner, at the beginning of a query with the trigger availableNow.
        """
        self._planner.aim()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next batch ends; errors are those of `StreamPlanner.advance`.

        Called in the planner, whenever Spark is ready for a batch, and many times a second while a
        query is idle. `start` itself means that there is none.
        """
        has_one_batch = isinstance(limit, ReadAllAvailable)
        return document_of(self._planner.advance(position_of(start), has_one_batch=has_one_batch))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends of the streams as last seen; None before the first look.

        Called in the planner, for the progress that Spark shows of a query. No server is asked.
        """
        latest = self._planner.latest()
        return None if latest is None else document_of(latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Cut a batch into tasks; errors are those of `StreamPlanner.splits`.

        Called in the planner for each batch, also for one that an earlier run has planned and not
        finished. Partitions are pickled; each has a `Split`.
        """
        splits = self._planner.splits(position_of(start), position_of(end))
        return [InputPartition(split) for split in splits]

    def commit(self, end: dict[str, Any]) -> None:
        """Store how far the query is, if it has a name at the server; never fails.

        Called in the planner after a batch has ended, but only with the next one.
        """
        self._planner.commit(position_of(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; errors are those of `SplitTask.read`.

        Called in a Python worker of an executor, once for each try of a task, on a copy that was
        unpickled for it.
        """
        return self._task.read(partition.value, task_cluster(self._task.settings.connection))

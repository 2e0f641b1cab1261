"""A streaming read as Spark runs it: one planner for the query's life, many readers."""

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

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.names import planner_name
from pyspark_hutch.offsets.position import document_of, position_of
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.planning.streaming_plan import StreamPlanner
from pyspark_hutch.split_task import SplitTask

_ROWS_MAX: Final = (1 << 63) - 1


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on as the streams grow.

    Spark calls `read` on a copy in another process, which therefore needs nothing of the planner.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        """Check options and schema; raises WrongOption."""
        self._task = SplitTask(read_settings(options, is_streaming=True), schema)
        self._made: StreamPlanner | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave the planner, which has clocks and connections, where it is."""
        return {"_task": self._task, "_made": None}

    @property
    def _planner(self) -> StreamPlanner:
        if self._made is None:
            settings = self._task.settings
            cluster = Cluster(settings.connection, planner_name(settings.connection))
            self._made = StreamPlanner(cluster, settings)
        return self._made

    def initialOffset(self) -> dict[str, Any]:
        return document_of(self._planner.begin())

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return one of the budgets; whichever it is, `latestOffset` keeps all of them.

        It is always a limit: Spark asks for all that is there only where a query has one batch.
        """
        budgets = self._task.settings.budgets
        if budgets.offsets_max is None and budgets.bytes_max is not None:
            return ReadMaxBytes(budgets.bytes_max)
        return ReadMaxRows(budgets.offsets_max or _ROWS_MAX)

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.aim()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        has_one_batch = isinstance(limit, ReadAllAvailable)
        return document_of(self._planner.advance(position_of(start), has_one_batch=has_one_batch))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        latest = self._planner.latest()
        return None if latest is None else document_of(latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        splits = self._planner.splits(position_of(start), position_of(end))
        return [InputPartition(split) for split in splits]

    def commit(self, end: dict[str, Any]) -> None:
        self._planner.commit(position_of(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._task.read(partition.value)

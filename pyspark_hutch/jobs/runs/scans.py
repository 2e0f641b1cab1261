"""Rows that a batch has read so far, as Spark's executors report them every few seconds."""

from contextlib import suppress
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

RECENT: Final = 8
"""Executions that are looked at, the last ones: a batch makes a few, with the job's own."""

ROWS: Final = "number of output rows"


class Scans:
    """Counts rows that the running executions of a session read, which are those of one batch."""

    def __init__(self, spark: SparkSession) -> None:
        """Prepare; nothing is looked at yet."""
        session: Any = spark  # the live metrics have no other door
        self._executions = session._jsparkSession.sharedState().statusStore()  # noqa: SLF001
        self._batch = -1
        self._most = 0

    def rows_behind(self, batch: int) -> int:
        """Return how many rows the batch under way has read, never less than at the last look.

        Args:
            batch: Number of the last batch that has ended; -1 if none has.
        """
        if batch != self._batch:
            self._batch, self._most = batch, 0
        with suppress(Py4JError):  # the session is ending
            self._most = max(self._most, self._running())
        return self._most

    def _running(self) -> int:
        store = self._executions
        first = max(0, int(store.executionsCount()) - RECENT)
        running = (one for one in _items(store.executionsList(first, RECENT)) if _is_running(one))
        return max((self._rows_of(one.executionId()) for one in running), default=0)

    def _rows_of(self, execution: int) -> int:
        """Return the most rows that a scan of an execution has read."""
        values = self._executions.executionMetrics(execution)
        scans = (
            metric.accumulatorId()
            for node in _items(self._executions.planGraph(execution).allNodes())
            if "Scan" in node.name()
            for metric in _items(node.metrics())
            if metric.name() == ROWS
        )
        told = (values.apply(number) for number in scans if values.contains(number))
        return max((int(text.replace(",", "")) for text in told), default=0)


def _items(sequence: Any) -> list[Any]:  # noqa: ANN401  # of Scala
    return [sequence.apply(index) for index in range(sequence.size())]


def _is_running(execution: Any) -> bool:  # noqa: ANN401  # of Scala
    return not execution.completionTime().isDefined()

"""A batch read as Spark runs it: planned in a process of the driver, read in workers."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_hutch.columns import stream_schema
from pyspark_hutch.names import planner_cluster, task_cluster
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.planning.batch import describe_batch, plan_batch
from pyspark_hutch.schemas import columns_of, stream_columns_of
from pyspark_hutch.split_task import SplitTask


def reader_of(options: Mapping[str, str], schema: StructType) -> "BatchReader | StreamsReader":
    """Return the reader that options ask for; raises WrongOption."""
    settings = read_settings(options, is_streaming=False)
    return (StreamsReader if settings.describes_streams else BatchReader)(settings, schema)


class BatchReader(DataSourceReader):
    """Reads the rows that the streams hold when the query is planned.

    It is pickled for the tasks before it plans, and holds settings and names of columns alone.
    """

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        """Check the schema; raises WrongOption."""
        columns, has_variants = columns_of(schema, settings.decoding)
        self._task = SplitTask(settings, columns, has_variants=has_variants)

    def partitions(self) -> list[InputPartition]:
        """Plan the query, by questions to servers; errors are those of `plan_batch`.

        Called once in the process of the driver that has made this reader. Spark keeps the plan
        for all actions on a data frame. Partitions are pickled; each has a `Split`.
        """
        settings = self._task.settings
        splits = plan_batch(planner_cluster(settings.connection), settings)
        return [InputPartition(split) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; errors are those of `SplitTask.read`.

        Called in a Python worker of an executor, once for each try of a task, on a copy that was
        unpickled for it. A plan without splits has one task, with a partition of None.
        """
        return self._task.read(partition.value, task_cluster(self._task.settings.connection))


class StreamsReader(DataSourceReader):
    """Reads descriptions of streams, and none of their records.

    It is pickled as BatchReader.
    """

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        """Check the schema; raises WrongOption."""
        self._settings = settings
        self._columns = stream_columns_of(schema)

    def partitions(self) -> list[InputPartition]:
        """Ask the server for all rows, which go to one task in its partition.

        Called once in the process of the driver that has made this reader. Spark keeps the answer
        for all actions on a data frame.
        """
        found = describe_batch(planner_cluster(self._settings.connection), self._settings)
        rows = [
            {
                "stream": stream,
                "super_stream": place.super_stream,
                "partition": place.partition,
                "first_offset": found.bounds[stream].first,
                "next_offset": found.bounds[stream].next,
                "bytes": found.bounds[stream].size_bytes,
                "generation": found.bounds[stream].generation,
            }
            for stream, place in found.places.items()
        ]
        return [InputPartition(rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows that came with the partition; no server is asked.

        Called in a Python worker of an executor, once for each try of the task.
        """
        rows = pa.RecordBatch.from_pylist(partition.value, stream_schema())
        yield rows.select(list(self._columns))

"""A batch read as Spark runs it: planned in one process, read in many."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.names import planner_name
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.planning.batch import describe_batch, plan_batch
from pyspark_hutch.rows.columns import stream_schema
from pyspark_hutch.schemas import stream_columns_of
from pyspark_hutch.split_task import SplitTask


def reader_of(options: Mapping[str, str], schema: StructType) -> "BatchReader | StreamsReader":
    """Return the reader that options ask for; raises WrongOption."""
    settings = read_settings(options, is_streaming=False)
    return (StreamsReader if settings.describes_streams else BatchReader)(settings, schema)


class BatchReader(DataSourceReader):
    """Reads what the streams hold when the query is planned."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        """Check the schema; raises WrongOption."""
        self._task = SplitTask(settings, schema)

    def partitions(self) -> list[InputPartition]:
        """Plan the query; Spark keeps the plan for all actions on a data frame."""
        settings = self._task.settings
        return [InputPartition(split) for split in plan_batch(_cluster_of(settings), settings)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._task.read(partition.value)


class StreamsReader(DataSourceReader):
    """Reads what there is to say of streams, and none of their records."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        """Check the schema; raises WrongOption."""
        self._settings = settings
        self._columns = stream_columns_of(schema)

    def partitions(self) -> list[InputPartition]:
        """Ask the server; Spark keeps the answer for all actions on a data frame."""
        found = describe_batch(_cluster_of(self._settings), self._settings)
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
        rows = pa.RecordBatch.from_pylist(partition.value, stream_schema())
        yield rows.select(list(self._columns))


def _cluster_of(settings: ReadSettings) -> Cluster:
    return Cluster(settings.connection, planner_name(settings.connection))

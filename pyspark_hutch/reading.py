"""A batch read as Spark runs it: planned in one process, read in many."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.names import planner_name
from pyspark_hutch.options.reading import read_settings
from pyspark_hutch.planning.batch import plan_batch
from pyspark_hutch.split_task import SplitTask


class BatchReader(DataSourceReader):
    """Reads what the streams hold when the query is planned."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        """Check options and schema; raises WrongOption."""
        self._task = SplitTask(read_settings(options, is_streaming=False), schema)

    def partitions(self) -> list[InputPartition]:
        """Plan the query; Spark keeps the plan for all actions on a data frame."""
        settings = self._task.settings
        cluster = Cluster(settings.connection, planner_name(settings.connection))
        return [InputPartition(split) for split in plan_batch(cluster, settings)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._task.read(partition.value)

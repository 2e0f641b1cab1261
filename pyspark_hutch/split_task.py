"""The task of a read: settings and columns, sent from the planner to the workers."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.decoding.wanted import Wanted
from pyspark_hutch.names import task_name
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.planning.splits import Split
from pyspark_hutch.rows.split_rows import rows_of
from pyspark_hutch.schemas import app_types, columns_of


class SplitTask:
    """Reads splits.

    Attributes:
        settings: Of the read.
    """

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        """Check the schema, which may choose columns; raises WrongOption."""
        self.settings = settings
        self._columns, self._variant = columns_of(schema, settings.decoding)

    def read(self, split: Split | None) -> Iterator[pa.RecordBatch]:
        """Read one split; Spark gives none where a plan is empty."""
        if split is None:
            return
        decoding = self.settings.decoding
        wanted = Wanted(
            self._columns,
            split.place.stream,
            split.place.super_stream,
            split.place.partition,
            decoding.body_format,
            self._variant,
            app_types(decoding, self._columns),
            decoding.bad_sub_batches,
        )
        connection = self.settings.connection
        cluster = Cluster(connection, task_name(connection), retries_first=True)
        yield from rows_of(cluster, split, self.settings, wanted)

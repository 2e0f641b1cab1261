"""The format `hutch` as Spark sees it.

Spark loads this module in many processes, also of queries that use other formats. So it imports
nothing but Spark's own classes; the rest is loaded when a query of ours needs it.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_hutch.batch_reads import BatchReader, StreamsReader
    from pyspark_hutch.stream_reads import StreamReader
    from pyspark_hutch.writes import BatchWriter, StreamWriter

FORMAT = "hutch"


class DefaultSource(DataSource):
    """Streams and super streams as data frames."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns that a read without a schema of its own gets; checks the options."""
        from pyspark_hutch.schemas import schema_of_read

        return schema_of_read(self.options)

    def reader(self, schema: StructType) -> "BatchReader | StreamsReader":
        from pyspark_hutch.batch_reads import reader_of

        self._require_options()
        return reader_of(self.options, schema)

    def streamReader(self, schema: StructType) -> "StreamReader":
        from pyspark_hutch.stream_reads import StreamReader

        self._require_options()
        return StreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> "BatchWriter":
        from pyspark_hutch.writes import BatchWriter

        self._require_options()
        return BatchWriter(self.options, schema, overwrites=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamWriter":
        from pyspark_hutch.writes import StreamWriter

        self._require_options()
        return StreamWriter(self.options, schema, overwrites=overwrite)

    def _require_options(self) -> None:
        from pyspark_hutch.tables import require_options

        require_options(self.options)

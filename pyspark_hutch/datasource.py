"""The format `hutch` as Spark sees it.

Spark loads this module in many processes, also of queries that use other formats. So it imports
nothing but Spark's own classes; the rest is loaded when a query of ours needs it.

The driver is a JVM. What it asks of a source runs in Python processes that it starts on its own
machine and may use again; rows are read and written in the Python workers of executors. Between all
of these, objects travel as pickles: the source, readers, writers, partitions, commit messages.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_hutch.batch_reads import BatchReader, StreamsReader
    from pyspark_hutch.stream_reads import StreamReader
    from pyspark_hutch.writes import BatchWriter, StreamingWriter

FORMAT = "hutch"


class DefaultSource(DataSource):
    """Streams and super streams as data frames.

    Spark makes an instance with the options of a read or write in a process of the driver, and may
    pickle it for another one that asks for a reader or writer. Options are all that it holds.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name.

        Spark calls it in the program that registers the class, in the process that looks for
        packages `pyspark_*`, and in each process of the driver that makes an instance.
        """
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns that a read without a schema of its own gets; checks the options.

        Called once for each load without a user's schema, and for a table that is made without
        one, in the process of the driver that makes the instance. No server is asked.
        """
        from pyspark_hutch.schemas import schema_of_read

        return schema_of_read(self.options)

    def reader(self, schema: StructType) -> "BatchReader | StreamsReader":
        """Return the reader of a batch query; raises WrongOption.

        Called when a query is planned, in a process of the driver. Spark pickles this reader into
        the function that each task runs, and then asks it for its partitions.
        """
        from pyspark_hutch.batch_reads import reader_of

        self._require_options()
        return reader_of(self.options, schema)

    def streamReader(self, schema: StructType) -> "StreamReader":
        """Return the reader of a streaming query; raises WrongOption.

        Called in two kinds of processes of the driver. One process lives as long as a run of the
        query: its reader plans all batches, and is never pickled. Another one pickles its reader
        into the function that tasks run.
        """
        from pyspark_hutch.stream_reads import StreamReader

        self._require_options()
        return StreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> "BatchWriter":
        """Return the writer of a save, which finds or makes the targets; raises as `WriteTask`.

        Called once for each save, in a process of the driver. Spark pickles the writer twice: into
        the function that tasks run, and for the process that commits or aborts.
        """
        from pyspark_hutch.writes import BatchWriter

        self._require_options()
        return BatchWriter(self.options, schema, overwrites=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamingWriter":
        """Return the writer of a streaming query's batches; raises as `WriteTask`.

        Called in processes of the driver: in one that pickles its writer into the function that
        tasks run, and anew in that of each batch's commit or abort. So a commit has a writer that
        was never in a task, and learns all from the messages.
        """
        from pyspark_hutch.writes import StreamingWriter

        self._require_options()
        return StreamingWriter(self.options, schema, overwrites=overwrite)

    def _require_options(self) -> None:
        from pyspark_hutch.options.table import require_options

        require_options(self.options)

"""The task of a read, which goes from the planner to the workers: one split becomes batches."""

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.range_reader import Range, RangeReader
from pyspark_hutch.columns import WantedColumns, app_types
from pyspark_hutch.decoding.decoder import Decoder
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.planning.splits import Split


class SplitTask:
    """Reads splits; it is pickled, and holds settings and names of columns alone.

    Attributes:
        settings: Of the read.
    """

    def __init__(
        self, settings: ReadSettings, columns: tuple[str, ...], *, has_variants: bool
    ) -> None:
        self.settings = settings
        self._columns = columns
        self._has_variants = has_variants

    def read(self, split: Split | None, cluster: Cluster) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split; it is None where a plan is empty."""
        if split is None:
            return
        decoding = self.settings.decoding
        wanted = WantedColumns(
            self._columns,
            split.place.stream,
            split.place.super_stream,
            split.place.partition,
            decoding.body_format,
            self._has_variants,
            app_types(decoding.app_columns, self._columns),
            decoding.bad_sub_batches,
        )
        yield from rows_of(cluster, split, self.settings, wanted)


def rows_of(
    cluster: Cluster, split: Split, settings: ReadSettings, wanted: WantedColumns
) -> Iterator[pa.RecordBatch]:
    """Read a split.

    Args:
        cluster: The servers.
        split: Offsets of a stream.
        settings: Filter, time limits, and whether lost rows are an error.
        wanted: The columns.

    Raises:
        ClientError: In one line, why the split cannot be read to its end.
    """
    place = split.place
    offsets = Range(
        place.stream,
        split.leader,
        split.low,
        split.high,
        settings.filter.values,
        settings.filter.match_unfiltered,
        settings.fail_on_data_loss,
        split.generation,
        split.kept_by,
    )
    poll_timeout_ms = settings.connection.poll_timeout_ms
    reader = RangeReader(cluster, offsets, poll_timeout_ms)
    decoder = Decoder(wanted)
    with closing(reader.pieces()) as pieces:  # Spark may want no more rows before the end
        for piece in pieces:
            yield from decoder.add(piece.chunk, piece.low, split.high)
    yield from decoder.finish()

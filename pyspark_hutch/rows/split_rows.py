"""The rows of one split, as batches."""

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.range_reader import Range, RangeReader
from pyspark_hutch.decoding.decoder import Decoder
from pyspark_hutch.decoding.wanted import Wanted
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.planning.splits import Split


def rows_of(
    cluster: Cluster, split: Split, settings: ReadSettings, wanted: Wanted
) -> Iterator[pa.RecordBatch]:
    """Read a split.

    Args:
        cluster: The servers.
        split: Offsets of a stream.
        settings: Filter, time limits, and what to do about lost rows.
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

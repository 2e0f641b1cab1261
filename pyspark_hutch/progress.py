"""Progress of a streaming query: its lag, and the offsets that gave it no row."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hutch.client.errors import ClientError
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.offsets.position import StreamPlace, WrongPosition, position_of
from pyspark_hutch.options.connection_settings import BrokerSettings

LOG: Final = logging.getLogger(__name__)


def lag(progress: object, told: Mapping[str, StreamPlace] | None = None) -> dict[str, int | None]:
    """Return how many rows each stream holds that a query has not read yet.

    The ends of the streams are those that the query last saw, a moment ago. Spark tells none for a
    batch that is run again after a kill: then the rows are None, as they are not known. A stream
    that the query has not begun, or that was made again, counts from offset 0.

    Args:
        progress: A progress as `query.lastProgress` or a listener has it, as an object, as a
            dictionary or as JSON; None, as before the first batch, gives nothing.
        told: Ends of streams that a server has told, for those that the progress has none of.

    Returns:
        Rows by stream, of all sources of this format; None for a stream whose end is not told.
    """
    found: dict[str, int | None] = {}
    for source in _sources(progress):
        ends, latest = (position_in(_field(source, name)) for name in ("endOffset", "latestOffset"))
        for stream in {**latest, **ends}:
            rows = _between(ends.get(stream), latest.get(stream) or (told or {}).get(stream))
            before = found.get(stream, 0)
            found[stream] = None if rows is None or before is None else before + rows
    return found


def left_out(progress: object) -> int:
    """Return how many offsets a batch has passed without a row of them.

    They are the offsets of sub-batches that `badSubBatches=skip` leaves out; of each one that is
    `raw` all but the first; and what `failOnDataLoss=false` and `filterValues` pass over. On
    RabbitMQ the broker's own records are among them. Spark counts a row at each reading: a query
    that reads its batch twice has fewer left out here, or none.

    Args:
        progress: As for `lag`.
    """
    count = 0
    for source in _sources(progress):
        starts, ends = (position_in(_field(source, name)) for name in ("startOffset", "endOffset"))
        if starts:  # the first batch only notes where the query begins
            passed = sum(_between(starts.get(stream), end) or 0 for stream, end in ends.items())
            count += max(0, passed - int(_field(source, "numInputRows")))
    return count


def position_in(text: object) -> dict[str, StreamPlace]:
    """Read a position of this format from Spark's text; return nothing for another source's."""
    try:
        return position_of(json.loads(text) if isinstance(text, str) else text)
    except (WrongPosition, ValueError):
        return {}


def _between(low: StreamPlace | None, high: StreamPlace | None) -> int | None:
    """Return the rows from one place of a stream to another; None if the other is not known."""
    if high is None:
        return None
    if low is None or not low.may_be_with(high):
        return high.offset
    return max(0, high.offset - low.offset)


def _sources(progress: object) -> Any:  # noqa: ANN401  # what JSON holds
    """Return the sources of a progress, of all formats."""
    if isinstance(progress, str):
        progress = json.loads(progress)
    return _field(progress, "sources") or ()


def _field(holder: object, name: str) -> Any:  # noqa: ANN401  # what JSON holds
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)


class QueryBacklog:
    """Asks for the ends of streams that a progress lacks."""

    def __init__(self, settings: BrokerSettings, name: Name) -> None:
        """Prepare; nothing is asked yet.

        Args:
            settings: Of the query. A question is tried once: it may come again with each progress.
            name: Of the connection, as administrators see it.
        """
        self._cluster = Cluster(replace(settings, planner_retries=0), name)

    def behind(self, progress: object) -> dict[str, int | None]:
        """Return the `lag` of a progress; it is None only where no server knows a stream's end.

        Args:
            progress: As for `lag`.
        """
        found = lag(progress)
        unknown = [stream for stream, rows in found.items() if rows is None]
        return lag(progress, self._ends(unknown)) if unknown else found

    def _ends(self, streams: Sequence[str]) -> dict[str, StreamPlace]:
        try:
            leaders = self._cluster.leaders(streams, skips_missing=True)
            bounds = self._cluster.bounds(leaders)
        except (ClientError, OSError) as error:
            LOG.warning("the rows that wait are not known: %s", error)
            return {}
        return {stream: StreamPlace(held.next) for stream, held in bounds.items()}

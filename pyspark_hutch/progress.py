"""The lag of a streaming query and the offsets that gave it no row, from the progress of Spark."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark_hutch.offsets.position import Place, WrongPosition, position_of


def lag(progress: object, told: Mapping[str, Place] | None = None) -> dict[str, int | None]:
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


def position_in(text: object) -> dict[str, Place]:
    """Read a position of this format, as Spark tells it; give nothing for another source's."""
    try:
        return position_of(json.loads(text) if isinstance(text, str) else text)
    except (WrongPosition, ValueError):
        return {}


def _between(low: Place | None, high: Place | None) -> int | None:
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

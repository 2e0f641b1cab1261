"""The lag of a streaming query and the offsets that gave it no row, from the progress of Spark."""

import json
from collections.abc import Mapping
from typing import Any


def lag(progress: object) -> dict[str, int]:
    """Return how many rows each stream holds that a query has not read yet.

    The ends of the streams are those that the query last saw, a moment ago. A stream that it has
    not begun counts from offset 0.

    Args:
        progress: A progress as `query.lastProgress` or a listener has it, as an object, as a
            dictionary or as JSON; None, as before the first batch, gives nothing.

    Returns:
        Rows by stream, of all sources of this format.
    """
    if isinstance(progress, str):
        progress = json.loads(progress)
    found: dict[str, int] = {}
    for source in _field(progress, "sources") or ():
        ends, latest = (_offsets(_field(source, name)) for name in ("endOffset", "latestOffset"))
        for stream, offset in latest.items():
            found[stream] = found.get(stream, 0) + max(0, offset - ends.get(stream, 0))
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
    if isinstance(progress, str):
        progress = json.loads(progress)
    count = 0
    for source in _field(progress, "sources") or ():
        starts, ends = (_offsets(_field(source, name)) for name in ("startOffset", "endOffset"))
        if starts:  # the first batch only notes where the query begins
            passed = sum(max(0, end - starts.get(stream, 0)) for stream, end in ends.items())
            count += max(0, passed - int(_field(source, "numInputRows")))
    return count


def _field(holder: object, name: str) -> Any:  # noqa: ANN401  # what JSON holds
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)


def _offsets(position: object) -> dict[str, int]:
    """Read a position of ours; gives nothing for that of another source."""
    if isinstance(position, str):
        try:
            position = json.loads(position)
        except ValueError:
            return {}
    if not isinstance(position, Mapping):
        return {}
    found = {}
    for stream, place in position.items():
        offset = place.get("o") if isinstance(place, Mapping) else None
        if not isinstance(offset, int):
            return {}
        found[stream] = offset
    return found

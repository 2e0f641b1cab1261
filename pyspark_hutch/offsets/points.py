"""Places in streams as users name them, turned into offsets."""

import time
from collections.abc import Mapping
from typing import Final

from hutch.client.login import Endpoint
from hutch.stream.offsets import at_timestamp
from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.offsets.position import StreamPlace
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.places import Point, PointKind, Where
from pyspark_hutch.options.read_settings import Unmatched

_BY_TIME: Final = (PointKind.TIMESTAMP, PointKind.MS_BACK)


def offsets_of(
    cluster: Cluster,
    leaders: Mapping[str, Endpoint],
    bounds: Mapping[str, Bounds],
    where: Where,
    unmatched: Unmatched,
) -> dict[str, int]:
    """Return the offset of each stream at which a query starts or ends.

    A start by time is the first row of the first chunk that is not older. All rows of a chunk have
    its time, so this is exact.

    Args:
        cluster: Is asked where times are.
        leaders: Where each stream lives; all streams of the query.
        bounds: The range of each stream when the query began. Later rows count as the end.
        where: The user's choice.
        unmatched: The meaning of a time that is later than all rows: an error, or the end.

    Raises:
        WrongOption: Streams are missing or too many, or no row is as late as a time.
    """
    points = where.points(tuple(leaders))
    timed = [stream for stream, point in points.items() if point.kind in _BY_TIME]
    now_ms = int(time.time() * 1000)
    places = [(stream, at_timestamp(_time_of(points[stream], now_ms))) for stream in timed]
    resolved = dict(zip(timed, cluster.resolve(leaders, places), strict=True))
    found = {}
    for stream, point in points.items():
        held = bounds[stream]
        if point.kind in _BY_TIME:
            found[stream] = resolved[stream]
            if resolved[stream] >= held.next:
                _judge_unmatched(stream, point, where, unmatched)
                found[stream] = held.next
        else:
            _refuse_another(stream, point, where, held)
            found[stream] = _offset_of(point, held)
    return found


def refuse_beyond(bounds: Mapping[str, Bounds], offsets: Mapping[str, int], where: Where) -> None:
    """Refuse offsets that no row has had yet; raises WrongOption."""
    for stream, offset in offsets.items():
        if offset > bounds[stream].next:
            raise WrongOption(
                f"option {where.option}: offset {offset} of stream {stream!r} is beyond its end, "
                f"{bounds[stream].next}"
            )


def _refuse_another(stream: str, point: Point, where: Where, held: Bounds) -> None:
    if not StreamPlace(point.number, point.incarnation).may_be_in(held.generation):
        raise WrongOption(
            f"option {where.option}: stream {stream!r} was deleted and made again since its offset "
            f"{point.number} was noted; leave out its incarnation to begin there all the same"
        )


def _time_of(point: Point, now_ms: int) -> int:
    return point.number if point.kind is PointKind.TIMESTAMP else max(0, now_ms - point.number)


def _offset_of(point: Point, held: Bounds) -> int:
    match point.kind:
        case PointKind.EARLIEST:
            return held.first
        case PointKind.LATEST:
            return held.next
        case PointKind.ROWS_BACK:
            return max(held.first, held.next - point.number)
        case _:
            return point.number


def _judge_unmatched(stream: str, point: Point, where: Where, unmatched: Unmatched) -> None:
    if point.kind is PointKind.TIMESTAMP and unmatched == "error":
        raise WrongOption(
            f"option {where.option}={point.number}: stream {stream!r} has no row of this time or "
            "later (startingOffsetsByTimestampStrategy=latest begins at its end then)"
        )

"""What a batch query reads: the streams as they are when it is planned."""

from collections.abc import Mapping

from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.offsets.points import offsets_of
from pyspark_hutch.offsets.streams import streams_of
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.settings import ReadSettings, Where
from pyspark_hutch.planning.splits import Split, StreamRange, plan


def plan_batch(cluster: Cluster, settings: ReadSettings) -> list[Split]:
    """Return the splits of a batch read.

    Raises:
        WrongOption: An option does not fit the streams that there are.
        ClientError: A stream cannot be read, or no server answers.
    """
    places = streams_of(cluster, settings.source)
    leaders = cluster.leaders([place.stream for place in places])
    bounds = cluster.bounds(leaders)
    lows = offsets_of(cluster, leaders, bounds, settings.starting, settings.unmatched_time)
    assert settings.ending is not None, "a batch read has an end"
    highs = offsets_of(cluster, leaders, bounds, settings.ending, "latest")
    _refuse_beyond(bounds, lows, settings.starting)
    _refuse_beyond(bounds, highs, settings.ending)
    ranges = [StreamRange(place, lows[place.stream], highs[place.stream]) for place in places]
    return plan(cluster, leaders, ranges, settings.splitting)


def _refuse_beyond(bounds: Mapping[str, Bounds], offsets: Mapping[str, int], where: Where) -> None:
    """Refuse offsets that no row has had yet."""
    for stream, offset in offsets.items():
        if offset > bounds[stream].next:
            raise WrongOption(
                f"option {where.option}: offset {offset} of stream {stream!r} is beyond its end, "
                f"{bounds[stream].next}"
            )

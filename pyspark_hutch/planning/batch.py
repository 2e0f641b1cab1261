"""Plans a batch query: it reads the streams as they are now."""

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.offsets.points import offsets_of, refuse_beyond
from pyspark_hutch.offsets.streams import streams_of
from pyspark_hutch.options.settings import ReadSettings
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
    refuse_beyond(bounds, lows, settings.starting)
    refuse_beyond(bounds, highs, settings.ending)
    ranges = [StreamRange(place, lows[place.stream], highs[place.stream]) for place in places]
    return plan(cluster, leaders, ranges, settings.splitting)

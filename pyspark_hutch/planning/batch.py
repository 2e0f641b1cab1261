"""Plans a batch query: it reads the streams as they are now."""

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.offsets.points import offsets_of, refuse_beyond
from pyspark_hutch.options.read_settings import ReadSettings, ReadSource
from pyspark_hutch.planning.fact_choice import facts_of
from pyspark_hutch.planning.facts import PlanFacts, StreamsFound
from pyspark_hutch.planning.splits import Split, StreamRange


def plan_batch(cluster: Cluster, settings: ReadSettings) -> list[Split]:
    """Return the splits of a batch read.

    Raises:
        WrongOption: An option does not fit the streams that there are, or the server.
        ClientError: A stream cannot be read, or no server answers.
    """
    facts = facts_of(cluster, settings)
    found = all_of(cluster, facts, settings.source)
    leaders, bounds = found.leaders, found.bounds
    lows = offsets_of(cluster, leaders, bounds, settings.starting, settings.unmatched_time)
    assert settings.ending is not None, "a batch read has an end"
    highs = offsets_of(cluster, leaders, bounds, settings.ending, "latest")
    refuse_beyond(bounds, lows, settings.starting)
    refuse_beyond(bounds, highs, settings.ending)
    ranges = [
        StreamRange(place, lows[stream], highs[stream]) for stream, place in found.places.items()
    ]
    return facts.split(found, ranges, settings.splitting)


def describe_batch(cluster: Cluster, settings: ReadSettings) -> StreamsFound:
    """Return the streams of a read with the ranges that they hold.

    Raises:
        WrongOption: The server cannot describe streams.
        ClientError: A stream cannot be read, or no server answers.
    """
    return all_of(cluster, facts_of(cluster, settings), settings.source)


def all_of(cluster: Cluster, facts: PlanFacts, source: ReadSource) -> StreamsFound:
    """Return the streams of a read, all of which must be there.

    Raises:
        WrongOption: The option that names them does not fit the streams there.
        ClientError: One cannot be used or does not exist, or no server answers.
    """
    found = facts.find(source)
    for stream in found.missing:
        raise cluster.missing(stream)
    return found

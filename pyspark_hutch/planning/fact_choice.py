"""The choice between the sources of facts, by the server's commands."""

import time
from collections.abc import Callable

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.planning.facts import PlanFacts
from pyspark_hutch.planning.pipeline import PipelineFacts
from pyspark_hutch.planning.stock import StockFacts


def facts_of(
    cluster: Cluster, settings: ReadSettings, clock: Callable[[], float] = time.monotonic
) -> PlanFacts:
    """Return the source of facts for a read.

    Args:
        cluster: The servers, of which one is asked to log in.
        settings: Of the read.
        clock: Seconds that never go back.

    Raises:
        WrongOption: The read needs a fact that only Hutch has, and the server is another.
        ClientError: No server answers.
    """
    server = cluster.server()
    if server.has_pipeline:
        return PipelineFacts(cluster)
    for is_asked, option, lack, advice in (
        (settings.describes_streams, "metadata", "does not describe streams", ""),
        (
            settings.source.pattern is not None,
            "streamPattern",
            "does not list streams",
            "; name them by stream or superStream",
        ),
        (
            settings.splitting.bytes_max is not None,
            "maxBytesPerPartition",
            "does not tell sizes",
            "; take maxRecordsPerPartition",
        ),
    ):
        if is_asked:
            raise WrongOption(f"option {option}: {server.shown} {lack}, which needs Hutch{advice}")
    return StockFacts(cluster, clock)

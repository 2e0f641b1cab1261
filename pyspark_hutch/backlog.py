"""The rows that a streaming query has before it; a server is asked where Spark tells no end."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hutch.client.errors import ClientError
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.offsets.position import Place
from pyspark_hutch.options.connection_settings import ConnectionSettings
from pyspark_hutch.progress import lag

LOG: Final = logging.getLogger(__name__)


class Backlog:
    """Asks for the ends of streams that a progress does not tell."""

    def __init__(self, settings: ConnectionSettings, name: Name) -> None:
        """Prepare; nothing is asked yet.

        Args:
            settings: Of the query. A question is tried once: it may come again with each progress.
            name: Of the connection, as administrators see it.
        """
        self._cluster = Cluster(replace(settings, planner_retries=0), name)

    def behind(self, progress: object) -> dict[str, int | None]:
        """Return what `lag` does; None is left only where no server tells the end of a stream.

        Args:
            progress: As for `lag`.
        """
        found = lag(progress)
        unknown = [stream for stream, rows in found.items() if rows is None]
        return lag(progress, self._ends(unknown)) if unknown else found

    def _ends(self, streams: Sequence[str]) -> dict[str, Place]:
        try:
            leaders = self._cluster.leaders(streams, skips_missing=True)
            bounds = self._cluster.bounds(leaders)
        except (ClientError, OSError) as error:
            LOG.warning("the rows that wait are not known: %s", error)
            return {}
        return {stream: Place(held.next) for stream, held in bounds.items()}

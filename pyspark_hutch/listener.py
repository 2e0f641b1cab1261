"""Hears a streaming query: stores its position after its last batch too, and has its lag.

Spark tells a source about the end of a batch only with the next batch. So the source itself stores
the position of `consumerName` a batch late. A listener hears of each batch when it ends.
"""

import os
from collections.abc import Mapping
from typing import Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from hutch.client.errors import ClientError
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.offsets.position import StreamPlace
from pyspark_hutch.offsets.stored_offsets import LOG, StoredOffsets
from pyspark_hutch.offsets.streams import streams_of
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.planning.fact_choice import facts_of
from pyspark_hutch.progress import QueryBacklog, position_in


class OffsetListener(StreamingQueryListener):
    """Stores the position of `consumerName` when a batch has ended, and knows a query's lag.

    spark.streams.addListener(OffsetListener(options))

    Spark calls its methods in the program that has added it, once for each event of any query of
    the session. It is not pickled, and keeps connections in that process.
    """

    def __init__(self, options: Mapping[str, str], query_name: str | None = None) -> None:
        """Check the options; raises WrongOption.

        Args:
            options: Those of the read, with `consumerName`.
            query_name: The query to hear; None: all that read these streams.
        """
        self._settings: Final = read_settings(options, is_streaming=True)
        if self._settings.consumer_name is None:
            raise WrongOption("option consumerName is missing: a position is stored under it")
        self._query_name = query_name
        connection = self._settings.connection
        name = Name(connection.connection_name or "spark", f"listener pid {os.getpid()}")
        self._cluster = Cluster(connection, name)
        self._stored = StoredOffsets(self._cluster, self._settings.consumer_name)
        self._backlog = QueryBacklog(connection, name)
        self._streams = set(self._settings.source.streams)

    def lag(self, progress: object) -> dict[str, int | None]:
        """Return how many rows each stream holds that a query of these options has not read yet.

        Where the progress does not say where a stream ends, as in the first batch after a kill, the
        server is asked.

        Args:
            progress: As for `pyspark_hutch.lag`.

        Returns:
            Rows by stream; None for a stream of which the server does not tell them either.
        """
        return self._backlog.behind(progress)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Hear that a query begins, which changes nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Store the end of a batch."""
        if self._query_name in (None, event.progress.name):
            for source in event.progress.sources:
                position = position_in(source.endOffset)
                if position and self._is_ours(position):
                    self._stored.store(position)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Hear that a query has nothing to do, which changes nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Hear that a query has ended, which changes nothing."""

    def _is_ours(self, position: Mapping[str, StreamPlace]) -> bool:
        """Return whether a position is one in our streams; partitions may have been added."""
        source = self._settings.source
        if not source.streams and not position.keys() <= self._streams:
            try:
                self._streams = self._listed()
            except (ClientError, WrongOption) as error:
                LOG.warning("the position was not stored: %s", error)
        return position.keys() <= self._streams

    def _listed(self) -> set[str]:
        source = self._settings.source
        if source.pattern is not None:
            return set(facts_of(self._cluster, self._settings).find(source).places)
        return {place.stream for place in streams_of(self._cluster, source)}

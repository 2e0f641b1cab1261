"""Asks for the ends of a query's streams, but seldom enough to spare an idle server."""

from collections.abc import Callable, Container, Mapping
from typing import Final

from hutch.client.errors import ClientError, Refused
from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.planning.fact_choice import facts_of
from pyspark_hutch.planning.facts import PlanFacts, StreamsFound

LOOK_S: Final = 0.2
"""Time between two questions of an idle query for new rows; about its delay, too."""

LIST_S: Final = 5.0
"""Time after which the streams of a pattern, and partitions of super streams, are listed anew."""


class Tails:
    """The streams of a query, where they live, and the ranges that they hold.

    Attributes:
        found: The streams as last seen; those that have gone keep their places.
    """

    def __init__(
        self, cluster: Cluster, settings: ReadSettings, clock: Callable[[], float]
    ) -> None:
        """Prepare; nothing is asked yet."""
        self.found = StreamsFound({}, {}, {}, ())
        self._cluster = cluster
        self._settings = settings
        self._clock = clock
        self._made: PlanFacts | None = None
        self._looked_at: float | None = None
        self._listed_at: float | None = None
        self._failure: ClientError | None = None

    @property
    def facts(self) -> PlanFacts:
        """The source of facts that the server has; raises ClientError and WrongOption."""
        if self._made is None:
            self._made = facts_of(self._cluster, self._settings, self._clock)
        return self._made

    def look(
        self, *, is_fresh: bool = False, known: Container[str] | None = None
    ) -> Mapping[str, Bounds]:
        """Return the range of each stream, without streams that have gone.

        Args:
            is_fresh: Whether an answer from a moment ago will not do.
            known: Streams that the query has read from before, so that they may have gone. A stream
                that was there at an earlier call is known as well; None: all are.

        Raises:
            ClientError: A stream cannot be used or never was, or no server answers.
        """
        now = self._clock()
        if is_fresh or self._looked_at is None or now - self._looked_at >= LOOK_S:
            self._looked_at, self._failure = now, None
            try:
                self._look(now)
                self._refuse_unknown(known)
            except ClientError as error:
                self._listed_at, self._failure = None, error
        if self._failure is not None:
            raise self._failure
        return self.found.bounds

    def _look(self, now: float) -> None:
        is_listed = self._listed_at is not None and now - self._listed_at < LIST_S
        if is_listed:
            try:
                self.found = self.found._replace(bounds=self.facts.look(self.found.leaders))
            except Refused:  # a stream has gone since they were listed
                is_listed = False
        if not is_listed:
            self._list(now)

    def _refuse_unknown(self, known: Container[str] | None) -> None:
        for stream in self.found.missing:
            if known is not None and stream not in known and stream not in self.found.places:
                raise self._cluster.missing(stream)

    def _list(self, now: float) -> None:
        found = self.facts.find(self._settings.source)
        seen = {stream: found.places[stream] for stream in found.leaders}
        self.found = found._replace(places={**self.found.places, **seen})
        self._listed_at = now

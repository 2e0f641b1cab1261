"""What the streams of a query hold, asked no more often than is good for an idle server."""

from collections.abc import Callable, Mapping
from typing import Final

from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.client.errors import ClientError, Refused
from pyspark_hutch.offsets.streams import PartitionStream, streams_of
from pyspark_hutch.options.settings import Endpoint, Source

LOOK_S: Final = 0.2
"""An idle query asks for new rows so often, which is about its delay too."""

LIST_S: Final = 5.0
"""After so long the partitions of super streams are listed anew."""


class Tails:
    """The streams of a query, where they live, and what they hold.

    Attributes:
        places: The streams by name.
        leaders: Where each lives.
        seen: What each held when it was last asked.
    """

    def __init__(self, cluster: Cluster, source: Source, clock: Callable[[], float]) -> None:
        """Prepare; nothing is asked yet."""
        self.places: dict[str, PartitionStream] = {}
        self.leaders: dict[str, Endpoint] = {}
        self.seen: Mapping[str, Bounds] = {}
        self._cluster = cluster
        self._source = source
        self._clock = clock
        self._looked_at: float | None = None
        self._listed_at: float | None = None

    def look(self, *, is_fresh: bool = False) -> Mapping[str, Bounds]:
        """Return what each stream holds. A stream that has gone since the first look is left out.

        Args:
            is_fresh: Whether an answer from a moment ago will not do.

        Raises:
            ClientError: A stream cannot be used, or no server answers.
        """
        now = self._clock()
        if not is_fresh and self._looked_at is not None and now - self._looked_at < LOOK_S:
            return self.seen
        is_first = self._looked_at is None
        self._looked_at = now
        try:
            self._ask(now, skips_missing=not is_first)
        except ClientError as error:
            self._listed_at = None
            if is_first or not isinstance(error, Refused):
                raise
            self._ask(now, skips_missing=True)
        return self.seen

    def _ask(self, now: float, *, skips_missing: bool) -> None:
        if self._listed_at is None or now - self._listed_at >= LIST_S:
            places = streams_of(self._cluster, self._source)
            self.places |= {place.stream: place for place in places}
            names = [place.stream for place in places]
            self.leaders = self._cluster.leaders(names, skips_missing=skips_missing)
            self._listed_at = now
        self.seen = self._cluster.bounds(self.leaders)

"""Asks for the ends of a query's streams, but seldom enough to spare an idle server."""

from collections.abc import Callable, Container, Mapping
from typing import Final

from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.offsets.streams import PartitionStream, streams_of
from pyspark_hutch.options.settings import Source
from pyspark_hutch.shared.client.errors import ClientError, Refused, refusal
from pyspark_hutch.shared.client.login import Endpoint
from pyspark_hutch.shared.stream.wire.codes import ResponseCode

LOOK_S: Final = 0.2
"""Time between two questions of an idle query for new rows; about its delay, too."""

LIST_S: Final = 5.0
"""Time after which the partitions of super streams are listed anew."""


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
        self._failure: ClientError | None = None
        self._missing: list[str] = []

    def look(
        self, *, is_fresh: bool = False, known: Container[str] | None = None
    ) -> Mapping[str, Bounds]:
        """Return what each stream holds, without streams that have gone.

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
                self._look(now, known)
            except ClientError as error:
                self._listed_at, self._failure = None, error
        if self._failure is not None:
            raise self._failure
        return self.seen

    def _look(self, now: float, known: Container[str] | None) -> None:
        is_listed = self._listed_at is not None and now - self._listed_at < LIST_S
        try:
            if not is_listed:
                self._list(now)
            self.seen = self._cluster.bounds(self.leaders)
        except Refused:
            if not is_listed:
                raise
            self._list(now)  # a stream has gone since they were listed
            self.seen = self._cluster.bounds(self.leaders)
        self._refuse_unknown(known)

    def _refuse_unknown(self, known: Container[str] | None) -> None:
        for stream in self._missing:
            if known is not None and stream not in known and stream not in self.places:
                code = ResponseCode.STREAM_DOES_NOT_EXIST
                raise refusal(f"stream {stream!r}", code)

    def _list(self, now: float) -> None:
        places = {place.stream: place for place in streams_of(self._cluster, self._source)}
        leaders = self._cluster.leaders(list(places), skips_missing=True)
        self._missing = [stream for stream in places if stream not in leaders]
        self.places |= {stream: places[stream] for stream in leaders}
        self.leaders = leaders
        self._listed_at = now

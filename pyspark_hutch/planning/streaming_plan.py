"""The plan of a streaming query, batch by batch: where it begins, how far each batch goes.

Rules of Spark that shape this, seen on 4.3:

- It asks twice where a query begins, and writes that down only with the first batch. So the answer
  is kept, and the first batch of a new query is empty: it pins the beginning in the checkpoint.
- An idle query asks every 10 ms for something new. So the ends of streams are kept for a while.
- A failed question ends the query. So a server that is away means "nothing new" for some time.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from hutch.client.errors import ServerGone, ServerSilent
from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.client.range_reader import GONE, MADE_AGAIN, DataLoss
from pyspark_hutch.offsets.points import offsets_of, refuse_beyond
from pyspark_hutch.offsets.position import Position, StreamPlace, incarnation_of
from pyspark_hutch.offsets.stored_offsets import StoredOffsets
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.planning.admission import WHOLE, Patience, share
from pyspark_hutch.planning.facts import Reach
from pyspark_hutch.planning.splits import Split, StreamRange
from pyspark_hutch.planning.tails import Tails

LOG: Final = logging.getLogger(__name__)


class StreamPlanner:
    """Plans one run of a streaming query; lives in Spark's planner process."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ReadSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is asked yet."""
        self._cluster = cluster
        self._settings = settings
        self._clock = clock
        self._tails = Tails(cluster, settings, clock)
        self._beginning: dict[str, StreamPlace] | None = None
        self._is_pinned = False
        self._target: dict[str, int] | None = None
        self._planned: tuple[Position, Position] | None = None
        self._away_since: float | None = None
        self._passed: Mapping[str, int] = {}  # batches in which a stream that waits got nothing
        self._stored: StoredOffsets | None = None
        if settings.consumer_name is not None:
            self._stored = StoredOffsets(cluster, settings.consumer_name)
        budgets = settings.budgets
        self._patience = Patience(budgets.offsets_min, budgets.delay_ms_max / 1000, clock())

    def begin(self) -> dict[str, StreamPlace]:
        """Return where a new query begins; the answer is kept for further calls."""
        if self._beginning is None:
            bounds = self._tails.look(is_fresh=True, known=())
            settings = self._settings
            lows = offsets_of(
                self._cluster,
                self._tails.found.leaders,
                bounds,
                settings.starting,
                settings.unmatched_time,
            )
            refuse_beyond(bounds, lows, settings.starting)
            self._beginning = {
                stream: _place_in(bounds[stream], offset) for stream, offset in lows.items()
            }
        return self._beginning

    def aim(self) -> None:
        """Take the ends of the streams as of now for the end of the query."""
        bounds = self._tails.look(is_fresh=True)
        self._target = {stream: held.next for stream, held in bounds.items()}

    def latest(self) -> dict[str, StreamPlace] | None:
        """Return the ends of the streams as last seen, for the query's progress."""
        seen = self._tails.found.bounds
        return {stream: _place_in(held, held.next) for stream, held in seen.items()} or None

    def advance(self, start: Position, *, has_one_batch: bool) -> Position:
        """Return where the next batch ends; `start` itself if there is nothing to do.

        Args:
            start: Where it begins.
            has_one_batch: Whether the query ends with this batch, which then takes all there is,
                without a look at budgets.

        Raises:
            DataLoss: A stream has gone, or ends before `start`.
        """
        if self._beginning is not None and not self._is_pinned:
            self._is_pinned = True
            if start == self._beginning and not has_one_batch:
                return start
        try:
            end = self._next(start, has_one_batch=has_one_batch)
        except (ServerGone, ServerSilent) as error:
            self._bear(error)
            return start
        self._away_since = None
        self._planned = start, end
        return end

    def _next(self, start: Position, *, has_one_batch: bool) -> Position:
        bounds = self._tails.look(known=self._known(start))
        self._judge(start, bounds)
        ends = self._ends(start, bounds)
        backlog = {stream: end - low for stream, (low, end) in ends.items() if end > low}
        if not self._is_due(sum(backlog.values()), has_one_batch=has_one_batch):
            moved = self._at(ends, bounds, {})
            is_same = all(start.get(stream) == place for stream, place in moved.items())
            return start if is_same and start.keys() == moved.keys() else moved
        if not has_one_batch:
            backlog = self._limit(ends, backlog)
        return self._at(ends, bounds, backlog)

    def splits(self, start: Position, end: Position) -> list[Split]:
        """Return the splits of a batch, of equal rows however often it is asked.

        Raises:
            DataLoss: The batch begins before the first row that is kept.
        """
        # What `advance` has seen a moment ago will do.
        is_fresh = (start, end) != self._planned
        bounds = self._tails.look(is_fresh=is_fresh, known=self._known({**start, **end}))
        self._judge(start, bounds)
        ranges = []
        for stream, place in end.items():
            if stream not in bounds:
                self._lose(stream, place.offset, place.offset, GONE)
                continue
            held = bounds[stream]
            low = self._low(stream, start, held)
            if not place.may_be_in(held.generation):
                self._lose(stream, low, place.offset, MADE_AGAIN)
                continue
            if low > place.offset:
                # A first batch is empty. That of an earlier run, which began before this one, may
                # not be committed. Else the stream was made again, and that is accepted.
                low = place.offset if self._is_known(stream, start, held) else held.first
            if low < held.first and low < place.offset:
                self._lose(stream, low, min(held.first, place.offset), "retention removed them")
                low = held.first
            ranges.append(StreamRange(self._tails.found.places[stream], low, place.offset))
        return self._tails.facts.split(self._tails.found, ranges, self._settings.splitting)

    def commit(self, end: Position) -> None:
        """Show the server how far the query is, if it has a name there; never fails."""
        if self._stored is not None:
            self._stored.store(end, self._tails.found.leaders)

    # ---- one batch ---------------------------------------------------------------------------

    def _ends(self, start: Position, bounds: Mapping[str, Bounds]) -> dict[str, tuple[int, int]]:
        """Return for each stream where the batch begins and may end."""
        ends = {}
        for stream, held in bounds.items():
            low = self._low(stream, start, held)
            end = held.next
            if self._target is not None:
                end = max(min(end, self._target.get(stream, low)), low)
            ends[stream] = (low, end)
        return ends

    @staticmethod
    def _low(stream: str, start: Position, held: Bounds) -> int:
        """Return where a batch begins in a stream: at its first row if that is new to the query."""
        place = start.get(stream)
        if place is None or not place.may_be_in(held.generation):
            return held.first
        if place.offset <= held.next:
            return place.offset
        # The rows before it are lost, and that is accepted: all of them if it was made again.
        return held.next if place.is_in(held.generation) else held.first

    def _is_known(self, stream: str, start: Position, held: Bounds) -> bool:
        """Return whether a batch certainly begins in the present life of a stream.

        The generation says so or, where the server tells none, that this run asked for the place.
        """
        place = start.get(stream)
        if place is None:
            return False
        return place.is_in(held.generation) or place == (self._beginning or {}).get(stream)

    def _is_due(self, rows: int, *, has_one_batch: bool) -> bool:
        # A query that ends with what is there now must not wait for more.
        if has_one_batch or self._target is not None:
            return rows > 0
        return self._patience.is_due(rows, self._clock())

    def _limit(
        self, ends: Mapping[str, tuple[int, int]], backlog: dict[str, int]
    ) -> dict[str, int]:
        """Return the rows of each stream within the budgets."""
        budgets, facts, found = self._settings.budgets, self._tails.facts, self._tails.found
        shares = backlog
        if budgets.bytes_max is not None:
            reaches = {stream: Reach(*ends[stream]) for stream in backlog}
            shares = facts.within(found, reaches, budgets.bytes_max, self._passed)
        if budgets.offsets_max is not None:
            allowed, shares = shares, share(shares, budgets.offsets_max, passed=self._passed)
            # A chunk that two batches share is read twice: they meet at a border if one is near.
            wanted = {
                stream: ends[stream][0] + count
                for stream, count in shares.items()
                if 0 < count < allowed[stream]
            }
            for stream, border in facts.chunks_at(found, wanted).items() if wanted else ():
                whole = border - ends[stream][0]  # more than the share if its rows are gone
                if WHOLE * shares[stream] <= whole < shares[stream]:
                    shares[stream] = whole
        self._passed = {
            stream: self._passed.get(stream, 0) + 1 for stream in backlog if not shares[stream]
        }
        return shares

    @staticmethod
    def _at(
        ends: Mapping[str, tuple[int, int]],
        bounds: Mapping[str, Bounds],
        shares: Mapping[str, int],
    ) -> dict[str, StreamPlace]:
        return {
            stream: _place_in(bounds[stream], min(low + shares.get(stream, 0), end))
            for stream, (low, end) in ends.items()
        }

    # ---- trouble -----------------------------------------------------------------------------

    def _known(self, position: Position) -> Position | None:
        """Return the streams that may have gone without being a mistake in an option."""
        return position if self._settings.fail_on_data_loss else None

    def _bear(self, error: Exception) -> None:
        """Let a server be away for a while; log that once."""
        now = self._clock()
        if self._away_since is None:
            self._away_since = now
            LOG.warning("%s; the query waits for the server", error)
        if now - self._away_since > self._settings.connection.poll_timeout_ms / 1000:
            raise error

    def _judge(self, start: Position, bounds: Mapping[str, Bounds]) -> None:
        for stream, place in start.items():
            if stream not in bounds:
                self._lose(stream, place.offset, place.offset, GONE)
            elif not place.may_be_in(bounds[stream].generation):
                reason = f"{MADE_AGAIN}, and begins anew at offset {bounds[stream].first}"
                self._lose(stream, place.offset, place.offset, reason)
            elif bounds[stream].next < place.offset:
                end = bounds[stream].next
                is_same = place.is_in(bounds[stream].generation)
                why = "its last rows are gone" if is_same else "it was deleted and made again"
                reason = f"the stream ends at offset {end}: {why}"
                self._lose(stream, end, place.offset, reason)

    def _lose(self, stream: str, low: int, high: int, reason: str) -> None:
        what = f"offsets {low} to {high - 1} are lost" if low < high else f"nothing from {low} on"
        text = f"stream {stream!r}: {what}: {reason}"
        if self._settings.fail_on_data_loss:
            raise DataLoss(f"{text}. Set failOnDataLoss to false to go on without them.")
        LOG.warning("%s", text)


def _place_in(held: Bounds, offset: int) -> StreamPlace:
    return StreamPlace(offset, incarnation_of(held.generation))

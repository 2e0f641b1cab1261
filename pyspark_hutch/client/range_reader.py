"""The chunks of a range of offsets of one stream, across lost connections, to the last offset.

Counting does not tell where a range ends. A Deliver may reach past it, since Hutch joins small
chunks, and RabbitMQ has offsets that hold no message. So the reader asks for chunks of every kind
(`chunk_selector`), which cover each offset, and is done when one reaches the end of the range.

With a filter, chunks that do not match never come. A chunk that matches, in the range or behind it,
shows that none was left out before it. Behind the last one nothing shows that: a server that is
still looking sends nothing either. So when nothing comes for a while, the rest is read without the
filter.
"""

import logging
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from hutch.client.connection import Connection, DeliveredChunk
from hutch.client.errors import (
    BadAnswer,
    ClientError,
    Refused,
    ServerGone,
    ServerSilent,
)
from hutch.client.login import Endpoint
from hutch.formats.chunk import HEADER_BYTES, unpack_header
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import at_offset
from pyspark_hutch.client.cluster import Bounds, Cluster, bounds_by
from pyspark_hutch.client.descriptions import bounds_of, described, run_of

LOG: Final = logging.getLogger(__name__)

CREDIT: Final = 4
"""Chunks under way: enough that the server never waits for the next credit."""

_QUIET_S_MIN, _QUIET_S_MAX = 0.2, 10.0
_ROWS_A_SECOND: Final = 1_000_000
"""Bytes a second of a read without a filter, roughly."""
_SKIPPED_LOOK_S: Final = 1.0
_OFFSETS_MAX: Final = 1 << 63


GONE: Final = "the stream does not exist any more"
MADE_AGAIN: Final = "the stream was deleted and made again"


class DataLoss(ClientError):
    """Rows of the range are gone, by retention or with a deleted stream."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of offsets to read.

    Attributes:
        stream: Its name.
        leader: Where it is read.
        low: The first offset.
        high: The offset behind the last; all before it is committed.
        filters: Filter values; chunks that have none of them are skipped up to the last that has.
        match_unfiltered: Whether chunks without filter values come too.
        fails_on_loss: Whether rows that are gone are an error, else a line in the log.
        generation: Of the stream; None where the server did not say.
        kept_by: The run of the server that keeps the range from retention; None: none does.
    """

    stream: str
    leader: Endpoint
    low: int
    high: int
    filters: tuple[str, ...] = ()
    match_unfiltered: bool = False
    fails_on_loss: bool = True
    generation: int | None = None
    kept_by: str | None = None

    def properties(self) -> dict[str, str]:
        """Return the properties for Subscribe."""
        if not self.filters:
            return {"chunk_selector": "all"}
        wanted = {f"filter.{index}": value for index, value in enumerate(self.filters)}
        return wanted | {"match-unfiltered": str(self.match_unfiltered).lower()}


class RangePiece(NamedTuple):
    """A chunk that holds offsets of the range.

    Attributes:
        chunk: Header and data, as Deliver carries them; valid until the next piece is asked for.
        low: Rows below this offset were in pieces before, or are not in the range.
    """

    chunk: memoryview
    low: int


class RangeReader:
    """Reads one range once."""

    def __init__(self, cluster: Cluster, wanted: Range, poll_timeout_ms: int) -> None:
        """Prepare; `pieces` connects.

        Args:
            cluster: Its settings say how often a lost connection is made anew.
            wanted: The range.
            poll_timeout_ms: The longest wait for the next chunk.
        """
        self._cluster = cluster
        self._range = wanted
        self._leader = wanted.leader
        self._poll_timeout_s = poll_timeout_ms / 1000
        self._next = wanted.low
        self._high = wanted.high
        self._pauses = cluster.pauses()
        self._subscription_id = 0
        # With a filter: where chunks were skipped and nothing has shown yet that they were there.
        self._skipped_from: int | None = None
        self._looked_at = 0.0
        self._moved_at = 0.0

    def pieces(self) -> Generator[RangePiece]:
        """Yield the chunks of the range in their order.

        Raises:
            DataLoss: Rows of the range are gone.
            ClientError: The server does not come back, or its answers contradict.
        """
        while self._next < self._high:
            failure: ClientError | None = None
            try:
                with self._cluster.connection(self._leader) as connection:
                    try:
                        yield from self._read(connection)
                    except GeneratorExit:  # no more is wanted; the connection serves the next task
                        self._leave(connection)
                        return
            except (Refused, ServerGone, ServerSilent) as error:
                failure = error
            if failure is not None:
                self._recover(failure)

    def _recover(self, failure: ClientError) -> None:
        """Log a failure, wait, and find the stream anew; raise if there were too many."""
        stream = self._range.stream
        if isinstance(failure, Refused):
            if failure.code != ResponseCode.STREAM_DOES_NOT_EXIST:
                raise failure
            self._lose_rest()
            return
        pause_s = next(self._pauses, None)
        if pause_s is None:
            raise self._given_up(failure)
        LOG.warning(
            "reading %r: %s; going on at offset %d in %.1f s", stream, failure, self._next, pause_s
        )
        time.sleep(pause_s)
        try:
            leaders = self._cluster.leaders([stream], skips_missing=True)
        except (ServerGone, ServerSilent) as error:
            raise self._given_up(error) from None
        if stream in leaders:
            self._leader = leaders[stream]
        else:
            self._lose_rest()

    def _given_up(self, failure: ClientError) -> ClientError:
        missing = f"offsets {self._next} to {self._high - 1} were not read"
        return ClientError(f"stream {self._range.stream!r}: {failure}; {missing}")

    def _read(self, connection: Connection) -> Iterator[RangePiece]:
        stream = self._range.stream
        self._judge_bounds(connection)
        if self._next >= self._high:
            return
        connection.inbox.clear()  # it belongs to whatever was done before on this connection
        self._subscription_id = connection.new_subscription_id()
        connection.subscribe(
            self._subscription_id,
            stream,
            at_offset(self._next),
            credit=CREDIT,
            properties=self._range.properties(),
        )
        self._moved_at = time.monotonic()
        while self._next < self._high:
            chunk = self._receive(connection)
            if chunk is None:
                self._range = replace(self._range, filters=())
                connection.unsubscribe(self._subscription_id)
                return
            connection.credit(self._subscription_id, 1)
            piece = self._judge_chunk(chunk)
            if piece is not None:
                yield piece
                self._pauses = self._cluster.pauses()
                self._moved_at = time.monotonic()
        connection.unsubscribe(self._subscription_id)
        if self._skipped_from is not None:
            self._judge_skipped(connection)
        self._next = self._high

    def _judge_chunk(self, chunk: memoryview) -> RangePiece | None:
        """Move behind a chunk; None if nothing of it is in the range."""
        stream, low = self._range.stream, self._next
        if len(chunk) < HEADER_BYTES:
            raise BadAnswer(f"stream {stream!r}: a chunk behind offset {low} is cut short")
        header = unpack_header(chunk, 0)
        end = header.chunk_id + header.records
        if header.data_bytes > len(chunk) - HEADER_BYTES or end > _OFFSETS_MAX:
            raise BadAnswer(
                f"stream {stream!r}: the chunk at offset {header.chunk_id} is not whole"
            )
        if header.chunk_id > low:
            if self._range.filters:
                self._skipped_from = low if self._skipped_from is None else self._skipped_from
            else:
                reason = "retention removed them while they were read, or they are damaged"
                self._lose(low, min(header.chunk_id, self._high), reason)
        if end <= low:
            return None
        self._next = min(end, self._high)
        return RangePiece(chunk, low) if header.chunk_id < self._high else None

    def _receive(self, connection: Connection) -> memoryview | None:
        """Return the next chunk; None if a filter has let nothing through for a while."""
        self._look_at_skipped(connection)
        deadline = self._moved_at + self._poll_timeout_s
        if self._range.filters:
            # As long as reading the rest without the filter takes.
            rest_s = (self._high - self._next) / _ROWS_A_SECOND
            quiet_s = min(max(_QUIET_S_MIN, rest_s), _QUIET_S_MAX)
            deadline = min(deadline, time.monotonic() + quiet_s)
        while True:
            try:
                pushed = connection.pushed(deadline)
            except ServerSilent:
                if self._range.filters:
                    return None
                raise
            if isinstance(pushed, DeliveredChunk):
                return pushed.chunk  # from here on the connection must not be read
            if isinstance(pushed, m.MetadataUpdate) and pushed.stream == self._range.stream:
                raise ServerGone(f"{connection.endpoint} no longer serves the stream")

    def _leave(self, connection: Connection) -> None:
        """End a subscription whose chunks are not wanted any more."""
        try:
            connection.unsubscribe(self._subscription_id)
        except ClientError:
            connection.disconnect()

    # ---- loss --------------------------------------------------------------------------------

    def _bounds(self, connection: Connection) -> Bounds:
        """Return the range that the stream holds now; with its generation if the plan has one."""
        stream = self._range.stream
        if self._range.generation is None or not connection.has_pipeline:
            return bounds_by(connection, stream)
        (description,) = described(connection, [stream])
        return bounds_of(description)

    def _why_gone(self, connection: Connection) -> str:
        """Return how rows can be gone from the beginning of a stream."""
        if self._range.kept_by is None:
            return "retention"
        if self._range.kept_by != run_of(connection):
            return "retention, since the server was started again, which ended the plan of the read"
        return (
            "they were planned, so that retention leaves them for 10 minutes; hutch ctl "
            "truncate_stream removes them all the same, and so does a full disk"
        )

    def _judge_bounds(self, connection: Connection) -> None:
        bounds = self._bounds(connection)
        if bounds.generation not in (None, self._range.generation):
            self._lose(self._next, self._high, MADE_AGAIN)
            self._next = self._high
        if bounds.next < self._high:
            reason = f"the stream ends at offset {bounds.next}: it was deleted and made again"
            self._lose(max(self._next, bounds.next), self._high, reason)
            self._high = bounds.next
        if bounds.first > self._next:
            first = min(bounds.first, self._high)
            reason = self._why_gone(connection)
            self._lose(self._next, first, f"the stream begins at offset {bounds.first}: {reason}")
            self._next = first

    def _look_at_skipped(self, connection: Connection) -> None:
        """Check now and then that chunks that a filter skipped are still there."""
        now = time.monotonic()
        if self._skipped_from is not None and now - self._looked_at > _SKIPPED_LOOK_S:
            self._looked_at = now
            self._judge_skipped(connection)

    def _judge_skipped(self, connection: Connection) -> None:
        skipped, self._skipped_from = self._skipped_from, None
        first = self._bounds(connection).first
        if skipped is not None and first > skipped:
            reason = "retention removed chunks while a filter was looking for matches"
            self._lose(skipped, min(first, self._high), reason)

    def _lose_rest(self) -> None:
        self._lose(self._next, self._high, GONE)
        self._next = self._high

    def _lose(self, low: int, high: int, reason: str) -> None:
        if low >= high:
            return
        lost = f"stream {self._range.stream!r}: offsets {low} to {high - 1} are lost: {reason}"
        if self._range.fails_on_loss:
            raise DataLoss(f"{lost}. Set failOnDataLoss to false to go on without them.")
        LOG.warning("%s", lost)

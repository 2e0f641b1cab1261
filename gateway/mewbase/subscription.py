"""A subscription: the records of a channel from a position on, as RECEV frames."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.broker.connections import ConsumerDetails
from gateway.broker.streams.catalogue import Stream
from gateway.broker.yielding import Slice
from gateway.log.log import StreamLog
from gateway.log.records.reading import Record, RecordReader, UnreadableSubBatch, reader_from
from gateway.mewbase.durable import Durable
from gateway.mewbase.events import event_of, records_instead
from gateway.mewbase.matcher import Matcher
from gateway.mewbase.sources import Holding, SourcePorts
from gateway.mewbase.window import Window
from gateway.mewbase.wire.writing import received
from gateway.pending import run
from gateway.server.front import DeliverySource, SendPiece
from gateway.settings.mewbase import BadSubBatchRule
from hutch.formats.amqp.sections import TooManySections

log = logging.getLogger(__name__)

_PIECE_BYTES: Final = 64 * 1024
"""Frames are joined to pieces of about this size."""
_LOOKED_AT_BYTES: Final = 8 * 1024
"""Bytes of records, and of matchers, that are looked at before the clock is."""
_RECORD_BYTES: Final = 64
"""Bytes that an empty record counts for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedEvents:
    """The events that a subscription wants.

    Attributes:
        position: The first one may have this position.
        since_ms: Events that were stored before this time are left out; in milliseconds since 1970.
        matcher: Events that it does not match are left out. None takes them all.
        durable: Keeps the place. None for a subscription that ends with its connection.
        bad_sub_batches: What comes in the place of a sub-batch that cannot be opened.
    """

    position: int
    since_ms: int = 0
    matcher: Matcher | None = None
    durable: Durable | None = None
    bad_sub_batches: BadSubBatchRule = BadSubBatchRule.SKIP

    @property
    def stays_at_bad(self) -> bool:
        """True if it ends at a sub-batch that cannot be opened."""
        return self.bad_sub_batches is BadSubBatchRule.FAIL


class ChannelSubscription(DeliverySource):
    """One subscription of a connection.

    Attributes:
        number: Its id on the connection.
        stream: The channel's stream.
        is_closed: Whether it has ended, or another connection has its place.
    """

    def __init__(
        self,
        number: int,
        stream: Stream,
        stream_log: StreamLog,
        wanted: WantedEvents,
        window: Window,
        sources: SourcePorts,
        failed: Callable[[], object],
    ) -> None:
        """Begin without a reader; `failed` is called if the channel cannot be read further."""
        super().__init__()
        self.number = number
        self.stream = stream
        self._log = stream_log
        self._wanted = wanted
        self._window = window
        self._sources = sources
        self._holding = Holding(sources.ports)
        self._failed = failed
        self._slice = Slice(every=1)
        self._next_position = wanted.position
        self._reader: RecordReader | None = None
        self._records: list[Record] = []
        self._place = 0
        self._looked_at = 0
        self._is_opening = False
        self._is_dry = False
        self.is_closed = False
        self._sent_count = 0
        self._last_position = -1

    def wake(self) -> None:
        """Have the server ask for events."""
        self._is_dry = False
        self._sources.ports.wake(self)

    def acknowledge(self, position: int | None) -> None:
        """Take the client's word that it has an event and all before it.

        Without a position: all that were sent, or of a durable one the oldest.
        """
        if self.is_closed:
            return  # the place may be another connection's by now
        if position is None and self.durable is None:
            position = self._last_position
        self._window.acknowledge(position)
        self._keep_place()
        if not self._window.is_full:
            self.wake()
        elif position is None and self.durable is not None:
            self.durable.say_slow()

    def close(self) -> None:
        """Deliver nothing more."""
        if not self.is_closed:
            self.is_closed = True
            self._keep_place()
            self._rest()
            if self.durable is not None:
                self.durable.close()

    @property
    def durable(self) -> Durable | None:
        """The keeper of its place; None if it is not durable."""
        return self._wanted.durable

    def _keep_place(self) -> None:
        """Move the place of a durable one behind all that was acknowledged, or is not wanted."""
        if self.durable is not None:
            oldest = self._window.oldest
            self.durable.move(self._next_position if oldest is None else oldest)

    def wants_more(self) -> bool:
        """Return whether the client takes more."""
        return not self.is_closed and not self._window.is_full

    def next(self, scratch: bytearray) -> SendPiece | None:
        """Return the next events; None while there are none, or too many are on their way."""
        del scratch
        self.is_sifting = False
        self._holding.end()
        if not self.wants_more():
            return None
        reader = self._reader
        if reader is None:
            self._open()
            return None
        if self._is_dry:
            return None
        turns = self._sources.reading.turns
        if not turns.begin(self, self._go_on, self._slice):
            return None
        frames = self._frames(self._slice)
        turns.end(self._slice)
        holds = not self._window.is_full or reader.has_sub_batch_to_itself
        (self._hold if holds else self._rest)()
        return SendPiece(b"".join(frames)) if frames else None

    def _frames(self, time_slice: Slice) -> list[bytes]:
        """Return the frames of the next piece; sets `is_sifting` if it found none in its time."""
        frames: list[bytes] = []
        size = 0
        while size < _PIECE_BYTES and not self._window.is_full:
            if self._place < len(self._records):
                size += self._add(frames)
            elif not self._read_on(frames):
                break
            if self._looked_at < _LOOKED_AT_BYTES:
                continue
            self._looked_at = 0
            if time_slice.is_over():
                self.is_sifting = not frames
                break
        if self._place == len(self._records):
            self._records, self._place = [], 0
        self._sent_count += len(frames)
        if not frames and self.durable is not None:
            self._keep_place()  # behind what it does not want: no acknowledgement may ever come
        return frames

    def _add(self, frames: list[bytes]) -> int:
        """Add the frames of some records, those that are wanted; return their bytes."""
        records, place, window = self._records, self._place, self._window
        number, since_ms, matcher = self.number, self._wanted.since_ms, self._wanted.matcher
        each = _RECORD_BYTES + (0 if matcher is None else matcher.size)
        size, looked_at = 0, self._looked_at
        while looked_at < _LOOKED_AT_BYTES and place < len(records) and not window.is_full:
            position, timestamp_ms, record = records[place]
            place += 1
            looked_at += len(record) + each
            if timestamp_ms < since_ms:
                continue
            try:
                event = event_of(record)
            except TooManySections as error:
                self._sources.reading.passed_over.add(self.stream.name, [(position, str(error))])
                continue
            if matcher is not None and not matcher.matches(event):
                continue
            frame = received(number, timestamp_ms, position, event)
            frames.append(frame)
            size += len(frame)
            window.sent(position, len(frame))
            self._last_position = position
        self._place, self._looked_at = place, looked_at
        self._next_position = records[place - 1][0] + 1
        return size

    def _read_on(self, frames: list[bytes]) -> bool:
        """Read records, or step over some; `frames` go before an end. Return whether it goes on."""
        if self._reader is None:
            return False
        self._is_dry = True  # before the look: what fails for a moment wakes this at once
        found = self._reader.next()
        if found is None:
            if self._reader.failure is not None:
                self._failed()
            return False
        self._is_dry = False
        if isinstance(found, UnreadableSubBatch):
            return not (self._wanted.stays_at_bad and frames) and self._stand_in(found)
        self._records, self._place = found, 0
        return True

    def _stand_in(self, bad: UnreadableSubBatch) -> bool:
        """Take the notice of a sub-batch that is left out; False if that ends the subscription."""
        fate, behind = self._wanted.bad_sub_batches, bad.next_offset
        line = "events cannot be delivered channel=%s from=%d to=%d reason=%s bad_sub_batches=%s"
        log.warning(line, self.stream.name, bad.offset, behind - 1, bad.reason, fate.value)
        if self._wanted.stays_at_bad:
            self._failed()
            return False
        self._records, self._place = records_instead(bad, fate), 0
        if not self._records:
            self._next_position = behind
        self._looked_at = _LOOKED_AT_BYTES
        return True

    # The reader

    def _open(self) -> None:
        """Have a reader found for the next position."""
        if not self._is_opening:
            self._is_opening = True
            opening = reader_from(
                self._log,
                self._next_position,
                self._go_on,
                stays_at_bad=self._wanted.stays_at_bad,
                opener=self._sources.opener,
            )
            run(opening, self._opened)

    def _opened(self, outcome: RecordReader | BaseException) -> None:
        self._is_opening = False
        if isinstance(outcome, BaseException):
            log.error("channel cannot be read channel=%s error=%s", self.stream.name, outcome)
            self._failed()
        elif self.is_closed:
            outcome.close()
        else:
            self._reader = outcome
            self.wake()

    def _go_on(self) -> None:
        """Go on if the client takes something: the reader has more, or it is the turn of this."""
        self._hold()
        self.wake()

    def _hold(self) -> None:
        """Hold the frames until the client takes more, but not for long."""
        if self._reader is not None and (self._records or self._reader.holds_memory):
            self._holding.begin(self._let_go)

    def _let_go(self) -> None:
        """Keep nothing in memory while the client takes nothing."""
        self._rest()
        self.wake()

    def _rest(self) -> None:
        """Keep nothing in memory but the place: the client takes nothing now."""
        self._holding.end()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._records, self._place = [], 0

    def details(self) -> ConsumerDetails:
        """Return the details that administrators see."""
        return ConsumerDetails(
            number=self.number,
            stream=self.stream,
            properties={},
            window=self._window.room_bytes,
            consumed=self._sent_count,
            offset=self._last_position,
            offset_lag=self._log.committed_next_offset - self._next_position,
            is_active=True,
            is_single=False,
        )

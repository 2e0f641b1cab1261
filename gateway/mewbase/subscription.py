"""A subscription: the records of a channel from a position on, as RECEV frames."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.broker.connections import ConsumerDetails
from gateway.broker.slices import Slice
from gateway.broker.stream import Stream
from gateway.log.log import StreamLog
from gateway.log.records.reading import Record, RecordReader, Unreadable, reader_from
from gateway.mewbase.durable import Durable
from gateway.mewbase.events import NoEvents, event_of, records_instead
from gateway.mewbase.matcher import Matcher
from gateway.mewbase.window import Window
from gateway.mewbase.wire.writing import received
from gateway.pending import run
from gateway.server.front import Piece, Ports, Source
from gateway.settings.mewbase import BadSubBatches

log = logging.getLogger(__name__)

_PIECE_BYTES: Final = 64 * 1024
"""Frames are joined to pieces of about this size."""
_REST_MS: Final = 100
"""Time after which a client that takes nothing costs no memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
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
    bad_sub_batches: BadSubBatches = BadSubBatches.SKIP


class Subscription(Source):
    """One subscription of a connection.

    Attributes:
        number: Its id on the connection.
        stream: The channel's stream.
    """

    def __init__(
        self,
        number: int,
        stream: Stream,
        stream_log: StreamLog,
        wanted: Wanted,
        window: Window,
        ports: Ports,
        failed: Callable[[], object],
    ) -> None:
        """Begin without a reader; `failed` is called if the channel cannot be read further."""
        super().__init__()
        self.number = number
        self.stream = stream
        self._log = stream_log
        self._wanted = wanted
        self._window = window
        self._ports = ports
        self._failed = failed
        self._next_position = wanted.position
        self._reader: RecordReader | None = None
        self._records: list[Record] = []
        self._place = 0
        self._is_opening = False
        self._is_closed = False
        self._keep_reader: Callable[[], object] | None = None
        self._sent_count = 0
        self._last_position = -1

    def wake(self) -> None:
        """Have the server ask for events."""
        self._ports.wake(self)

    def acknowledge(self, position: int | None) -> None:
        """Take the client's word that it has an event and all before it, or only the oldest."""
        if self._is_closed:
            return  # the place may be another connection's by now
        self._window.acknowledge(position)
        self._keep_place()
        if not self._window.is_full:
            self.wake()

    def close(self) -> None:
        """Deliver nothing more."""
        if not self._is_closed:
            self._is_closed = True
            self._keep_place()
            self._rest()
            if self._wanted.durable is not None:
                self._wanted.durable.close()

    @property
    def is_closed(self) -> bool:
        """True if it delivers nothing more: it has ended, or another connection has its place."""
        return self._is_closed

    @property
    def durable(self) -> Durable | None:
        """The keeper of its place; None if it is not durable."""
        return self._wanted.durable

    def _keep_place(self) -> None:
        """Move the place of a durable one behind all that was acknowledged, or is not wanted."""
        if self._wanted.durable is not None:
            oldest = self._window.oldest
            self._wanted.durable.move(self._next_position if oldest is None else oldest)

    def wants_more(self) -> bool:
        """Tell whether the client takes more."""
        return not self._is_closed and not self._window.is_full

    def next(self, scratch: bytearray) -> Piece | None:
        """Return the next events; None while there are none, or too many are on their way."""
        del scratch
        self.is_sifting = False
        self._cancel_rest()
        if not self.wants_more():
            return None
        if self._reader is None:
            self._open()
            return None
        frames = self._frames()
        if self._window.is_full:
            self._rest()
        elif self._place < len(self._records):
            self._keep_reader = self._ports.later(_REST_MS, self._rest)
        return Piece(b"".join(frames)) if frames else None

    def _frames(self) -> list[bytes]:
        """Return the frames of the next piece; sets `is_sifting` if it found none in its time."""
        frames: list[bytes] = []
        size, time_slice, wanted = 0, Slice(), self._wanted
        while size < _PIECE_BYTES and not self._window.is_full and self._has_record(frames):
            position, timestamp_ms, record = self._records[self._place]
            self._place += 1
            self._next_position = max(self._next_position, position + 1)
            event = event_of(record)
            is_matched = wanted.matcher is None or wanted.matcher.matches(event)
            if timestamp_ms >= wanted.since_ms and is_matched:
                frame = received(self.number, timestamp_ms, position, event)
                frames.append(frame)
                size += len(frame)
                self._window.sent(position, len(frame))
                self._last_position = position
            if wanted.matcher is not None and time_slice.is_over():
                self.is_sifting = not frames
                break
        self._sent_count += len(frames)
        if not frames and wanted.durable is not None:
            self._keep_place()  # behind what it does not want: no acknowledgement may ever come
        return frames

    def _has_record(self, frames: list[bytes]) -> bool:
        """Return whether there is a record at the place, after reading on if need be.

        `frames` are sent before anything that ends the subscription is told.
        """
        while self._place >= len(self._records):
            self._records, self._place = [], 0
            if self._reader is None:
                return False
            found = self._reader.next()
            if found is None:
                if self._reader.failure is not None:
                    self._failed()
                return False
            if isinstance(found, Unreadable):
                if self._stays_at_bad and frames:
                    return False
                if not self._stand_in(found):
                    return False
            else:
                self._records = found
        return True

    @property
    def _stays_at_bad(self) -> bool:
        return self._wanted.bad_sub_batches is BadSubBatches.FAIL

    def _stand_in(self, bad: Unreadable) -> bool:
        """Take what stands for the events of a sub-batch; False if that ends the subscription."""
        fate, behind = self._wanted.bad_sub_batches, bad.next_offset
        line = "events cannot be delivered channel=%s from=%d to=%d reason=%s bad_sub_batches=%s"
        log.warning(line, self.stream.name, bad.offset, behind - 1, bad.reason, fate.value)
        try:
            self._records = records_instead(bad, fate)
        except NoEvents:
            self._failed()
            return False
        self._next_position = behind
        return True

    # The reader

    def _open(self) -> None:
        """Have a reader found for the next position."""
        if not self._is_opening:
            self._is_opening = True
            opening = reader_from(
                self._log, self._next_position, self.wake, stays_at_bad=self._stays_at_bad
            )
            run(opening, self._opened)

    def _opened(self, outcome: RecordReader | BaseException) -> None:
        self._is_opening = False
        if isinstance(outcome, BaseException):
            log.error("channel cannot be read channel=%s error=%s", self.stream.name, outcome)
            self._failed()
        elif self._is_closed:
            outcome.close()
        else:
            self._reader = outcome
            self.wake()

    def _rest(self) -> None:
        """Keep nothing in memory but the place: the client takes nothing now."""
        self._cancel_rest()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._records, self._place = [], 0

    def _cancel_rest(self) -> None:
        if self._keep_reader is not None:
            self._keep_reader()
            self._keep_reader = None

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

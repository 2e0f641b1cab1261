"""A subscription: the records of a channel from a position on, as RECEV frames."""

import logging
from collections.abc import Callable
from typing import Final

from gateway.broker.connections import ConsumerDetails
from gateway.broker.stream import Stream
from gateway.log.log import StreamLog
from gateway.log.records.reading import Record, RecordReader, Unreadable
from gateway.mewbase.events import event_of
from gateway.mewbase.wire.writing import received
from gateway.server.front import Ports, Region

log = logging.getLogger(__name__)

_PIECE_BYTES: Final = 64 * 1024
"""Frames are joined to pieces of about this size."""


class Events:
    """Some RECEV frames: what the server sends in one piece."""

    __slots__ = ("head", "region")

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.region: Region | None = None


class Subscription:
    """One subscription of a connection; a `Source` of the server.

    Attributes:
        number: Its id on the connection.
        stream: The channel's stream.
        is_queued: Whether the server will ask it; the server's own note.
        is_sifting: False: there is always something to send, or nothing at all.
    """

    is_sifting = False

    def __init__(
        self,
        number: int,
        stream: Stream,
        stream_log: StreamLog,
        ports: Ports,
        failed: Callable[[], object],
    ) -> None:
        """Begin without a reader; `failed` is called if the channel cannot be read further."""
        self.number = number
        self.stream = stream
        self.is_queued = False
        self._log = stream_log
        self._ports = ports
        self._failed = failed
        self._reader: RecordReader | None = None
        self._records: list[Record] = []
        self._place = 0
        self._sent_count = 0
        self._last_position = -1

    def wake(self) -> None:
        """Have the server ask for events."""
        self._ports.wake(self)

    def begin(self, reader: RecordReader) -> None:
        """Deliver what a reader gives, from now on."""
        self._reader = reader
        self.wake()

    def close(self) -> None:
        """Deliver nothing more."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._records = []

    @property
    def wants_more(self) -> bool:
        """True while it delivers."""
        return self._reader is not None

    def next(self, scratch: bytearray) -> Events | None:
        """Return the next events; None while there are none."""
        del scratch
        frames: list[bytes] = []
        size = 0
        while size < _PIECE_BYTES and self._has_record():
            position, timestamp_ms, record = self._records[self._place]
            self._place += 1
            frame = received(self.number, timestamp_ms, position, event_of(record))
            frames.append(frame)
            size += len(frame)
            self._last_position = position
        self._sent_count += len(frames)
        return Events(b"".join(frames)) if frames else None

    def _has_record(self) -> bool:
        """Tell whether there is a record at the place, after reading on if need be."""
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
                line = "events cannot be delivered channel=%s from=%d to=%d reason=%s"
                name, behind = self.stream.name, found.next_offset
                log.warning(line, name, found.offset, behind - 1, found.reason)
            else:
                self._records = found
        return True

    def details(self) -> ConsumerDetails:
        """Return the details that administrators see."""
        lag = self._log.committed_next_offset - 1 - self._last_position
        return ConsumerDetails(
            number=self.number,
            stream=self.stream,
            properties={},
            window=0,
            consumed=self._sent_count,
            offset=self._last_position,
            offset_lag=lag,
            is_active=True,
            is_single=False,
        )

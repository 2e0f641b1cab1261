# cython: language_level=3, annotation_typing=False, nonecheck=True
"""A subscription: a cursor with credit, and the frames that it becomes: the hot path out."""

from collections.abc import Mapping
from typing import Final, Protocol

from gateway.broker.connections import ConsumerDetails
from gateway.broker.streams.streams import Stream
from gateway.log.derived.filters import filter_of
from gateway.log.log import StreamLog
from gateway.log.reading.cursor import Cursor
from gateway.server.front import DeliverySource, Ports, SendPiece
from gateway.stream.kernel.publish import deliver_of
from gateway.stream.session import Session

DELIVER_HEAD_BYTES: Final = 13
"""Key, version, subscription and committed chunk id of a Deliver v2: with it the largest chunk
fills a frame of the server's largest size exactly."""


class Reader(Protocol):
    """A connection, as its subscriptions see it."""

    @property
    def session(self) -> Session: ...

    @property
    def ports(self) -> Ports: ...

    def lose_readers(self, stream: Stream) -> None:
        """Drop the subscriptions to a stream whose next part cannot be read."""
        ...

    def reads_at(self, stream: Stream, offset: int) -> None:
        """Note that the user reads there."""
        ...


class CreditSubscription(DeliverySource):
    """One subscription of a connection.

    Attributes:
        credit: Chunks that may be sent; may be negative, since the client may take credit back.
        is_single: True if it is in a group with a single active consumer.
        consumed: Number of records sent.
        next_offset: Offset behind the last of them.
    """

    def __init__(
        self,
        subscription_id: int,
        stream: Stream,
        log: StreamLog,
        credit: int,
        properties: Mapping[str, str],
        reader: Reader,
    ) -> None:
        """Begin with the request's values, for a connection that reads."""
        self.subscription_id = subscription_id
        self.stream = stream
        self.log = log
        self.credit = credit
        self.properties = properties
        super().__init__()
        self.is_single = False
        self.consumed = 0
        self.next_offset = 0
        self._reader = reader
        self._session = reader.session
        self._ports = reader.ports
        self._cursor: Cursor | None = None
        self._is_closed = False

    def begin(self, position: int, *, chunk_bytes_max: int, takes_regions: bool) -> None:
        """Start reading at a position; from now on `wake` leads to deliveries."""
        self._cursor = Cursor(
            self.log,
            position,
            self.wake,
            chunk_bytes_max=chunk_bytes_max,
            takes_regions=takes_regions,
            wanted=filter_of(self.properties),
        )

    @property
    def is_reading(self) -> bool:
        """True if it has begun, and was not paused since."""
        return self._cursor is not None

    def pause(self) -> None:
        """Deliver nothing until `begin` is called again; the credit stays."""
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def add_credit(self, credit: int) -> None:
        """Allow more chunks (or fewer: i16)."""
        had_credit = self.credit > 0
        self.credit += credit
        if not had_credit and self.credit > 0:  # else it waits for nothing but a commit
            self._ports.wake(self)
        self._reader.reads_at(self.stream, self.next_offset)

    def next(self, scratch: bytearray) -> SendPiece | None:
        """Return the next frame; None without credit, or while there is none."""
        self.is_sifting = False
        if self.credit <= 0 or self._cursor is None or self._is_closed:
            return None
        chunk = self._cursor.next(scratch)
        if chunk is None:
            self.is_sifting = self._cursor.is_sifting
            if self._cursor.failure is not None:
                self._reader.lose_readers(self.stream)
            return None
        self.credit -= 1
        self.next_offset = chunk.next_offset
        self.consumed += chunk.next_offset - chunk.chunk_id
        head = deliver_of(
            self._session.deliver_version,
            self.subscription_id,
            self.log.last_chunk_id,
            chunk.size,
            chunk.head,
        )
        return SendPiece(head, chunk.region)

    def wants_more(self) -> bool:
        """Return whether the client takes another chunk."""
        return self.credit > 0

    def details(self) -> ConsumerDetails:
        """Return the details that administrators see."""
        log = self.log
        seen = self.next_offset if self.consumed else log.first_offset
        is_behind = self.is_reading and not log.is_empty
        return ConsumerDetails(
            number=self.subscription_id,
            stream=self.stream,
            properties=self.properties,
            window=self.credit,
            consumed=self.consumed,
            offset=self.next_offset - 1 if self.consumed else -1,
            offset_lag=max(0, log.committed_next_offset - seen) if is_behind else 0,
            is_active=self.is_reading,
            is_single=self.is_single,
        )

    def close(self) -> None:
        """Deliver nothing more."""
        self._is_closed = True
        if self._cursor is not None:
            self._cursor.close()

    def wake(self) -> None:
        """Notify the connection that there may be something to deliver."""
        if not self._is_closed and self.credit > 0:
            self._ports.wake(self)

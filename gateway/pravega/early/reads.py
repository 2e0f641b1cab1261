"""The reads of one connection in the early dialect.

A read is answered by as many SegmentReads as it takes for the length that it suggests, or for what
is stored. One piece at a time is read and sent, of each read in turn, so a slow client costs little
memory. A read that finds nothing waits, and is told by one byte that it can go on.
"""

from collections import deque
from typing import Final

from gateway.pravega.early.context import EarlyConnection
from gateway.server.front import DeliverySource, SendPiece
from hutch.pravega.early_messages import ReadSegment, SegmentRead
from store.api import READ_BYTES_MAX, Cancel, ReadResult
from store.errors import StoreError

READ_BYTES_MIN: Final = 8


class _Read:
    """A read, and how far it is answered.

    Attributes:
        segment: Name of the segment.
        offset: Where the next piece begins.
        left: Bytes that may still be sent.
        is_begun: Whether a piece has been sent.
    """

    __slots__ = ("is_begun", "left", "offset", "segment")

    def __init__(self, request: ReadSegment) -> None:
        self.segment = request.segment
        self.offset = request.offset
        self.left = max(request.suggested_length, READ_BYTES_MIN)
        self.is_begun = False


class EarlyReads(DeliverySource):
    """Takes reads, and gives their answers to the server."""

    def __init__(self, connection: EarlyConnection) -> None:
        super().__init__()
        self._connection = connection
        self._turns: deque[_Read] = deque()
        self._waiting: dict[_Read, Cancel] = {}
        self._is_reading = False
        self._ready: bytes | None = None
        self._is_holding = False

    def ask(self, request: ReadSegment) -> None:
        """Answer a read, once there are bytes; with too many reads the client is not read."""
        if not self._connection.may_touch(request.segment):
            return
        self._turns.append(_Read(request))
        self._go_on()
        if self._count() >= self._connection.context.wire.reads_max:
            self._is_holding = True
            self._connection.ports.hold()

    def _count(self) -> int:
        return len(self._turns) + len(self._waiting) + self._is_reading

    def _go_on(self) -> None:
        if self._turns and not self._is_reading and self._ready is None:
            self._is_reading = True
            self._read(self._turns.popleft())
        if self._is_holding and self._count() < self._connection.context.wire.reads_max:
            self._is_holding = False
            self._connection.ports.release()

    def _read(self, read: _Read) -> None:
        def done(outcome: ReadResult | StoreError) -> None:
            self._is_reading = False
            if self._connection.is_over:
                return
            if isinstance(outcome, StoreError):
                self._connection.close(outcome)
                return
            if outcome.data or outcome.end_of_segment:
                self._answer(read, outcome)
            elif not read.is_begun:
                self._wait(read)
            self._go_on()

        size = min(read.left, READ_BYTES_MAX)
        self._connection.context.store.read(read.segment, read.offset, size, done=done)

    def _answer(self, read: _Read, outcome: ReadResult) -> None:
        flags = outcome.at_tail, outcome.end_of_segment
        piece = SegmentRead(read.segment, read.offset, *flags, outcome.data)
        read.offset += len(outcome.data)
        read.left -= len(outcome.data)
        read.is_begun = True
        if read.left and not any(flags):
            self._turns.append(read)
        self._ready = self._connection.frame_of(piece)
        self._connection.ports.wake(self)

    def _wait(self, read: _Read) -> None:
        """Wake the read when there is a byte at its offset."""

        def done(outcome: ReadResult | StoreError) -> None:
            del self._waiting[read]
            if isinstance(outcome, StoreError):
                self._connection.close(outcome)
                return
            self._turns.append(read)
            self._go_on()

        store = self._connection.context.store
        self._waiting[read] = store.read(read.segment, read.offset, 1, done=done, wait=True)

    # As a source

    def next(self, scratch: bytearray) -> SendPiece | None:  # noqa: ARG002  # it has its bytes
        """Return the piece that is ready."""
        frame, self._ready = self._ready, None
        self._go_on()
        return None if frame is None else SendPiece(frame)

    def wants_more(self) -> bool:
        """Return whether a piece is ready."""
        return self._ready is not None

    def stop(self) -> None:
        """Cancel all of them."""
        for cancel in self._waiting.values():
            cancel()
        self._waiting.clear()
        self._turns.clear()
        self._ready = None

"""The reads of one connection: those that wait for data, and answers that wait for the client."""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from gateway.server.front import DeliverySource, SendPiece
from hutch.pravega.codec import encode
from hutch.pravega.messages import ReadSegment, SegmentRead
from store.api import READ_BYTES_MAX, Cancel, ReadResult
from store.errors import PositionOutOfRange, SegmentSealed, StoreClosed, StoreError

if TYPE_CHECKING:
    from gateway.server.front import Ports
    from hutch.pravega.layout import WireMessage
    from store.api import Operations

READ_BYTES_MIN: Final = 8
_TAIL_BYTES_MAX: Final = 64 * 1024
"""Largest answer to a read that has waited: many of them may be answered at once."""
_AHEAD: Final = 4
"""Reads that are answered before the client has taken what came before."""


class Replies(Protocol):
    """The connection that reads belong to, which answers and refuses."""

    @property
    def store(self) -> Operations:
        """The store that is read."""

    def reply(self, message: WireMessage) -> None:
        """Send a message."""

    def refuse(self, request_id: int, segment: str, error: StoreError, *, offset: int) -> None:
        """Send the refusal for an error of the store."""

    def close(self, reason: str) -> None:
        """End the connection."""


class Reads(DeliverySource):
    """Takes reads, and gives their answers to the server.

    Answers come in the order in which the store has them.
    """

    def __init__(self, connection: Replies, ports: Ports, reads_max: int) -> None:
        """Begin; above `reads_max` open reads nothing more is taken from the client."""
        super().__init__()
        # The connection has this, and stops it before it goes.
        self._connection: Replies = weakref.proxy(connection)
        self._store = connection.store
        self._reads_max = reads_max
        self._ports = ports
        self._asked: deque[ReadSegment] = deque()
        self._waiting: dict[int, tuple[ReadSegment, Cancel]] = {}
        self._next_key = 0
        self._under_way = 0
        self._ready: deque[bytes] = deque()
        self._is_holding = False
        self._is_over = False

    # Asked

    def ask(self, request: ReadSegment) -> None:
        """Answer a read, once there are bytes and room for them."""
        self._asked.append(request)
        self._go_on()
        if len(self._asked) + len(self._waiting) >= self._reads_max:
            self._is_holding = True
            self._ports.hold()

    def _go_on(self) -> None:
        while self._asked and self._under_way + len(self._ready) < _AHEAD:
            self._under_way += 1
            self._read(self._asked.popleft())
        if self._is_holding:
            open_reads = len(self._asked) + len(self._waiting)
            if open_reads < self._reads_max:
                self._is_holding = False
                self._ports.release()

    def _read(self, request: ReadSegment) -> None:
        def done(outcome: ReadResult | StoreError) -> None:
            self._under_way -= 1
            if self._is_over:
                return
            if isinstance(outcome, ReadResult) and not outcome.data and not outcome.end_of_segment:
                self._wait(request)
            else:
                self._answer(request, outcome)
            self._go_on()

        size = min(max(request.suggested_length, READ_BYTES_MIN), READ_BYTES_MAX)
        self._store.read(request.segment, request.offset, size, done=done)

    def _wait(self, request: ReadSegment) -> None:
        """Answer when there are bytes at the offset."""
        key = self._next_key
        self._next_key += 1

        def done(outcome: ReadResult | StoreError) -> None:
            del self._waiting[key]
            if isinstance(outcome, StoreClosed):
                self._give_up(request)
                return
            if isinstance(outcome, ReadResult) and not outcome.data:
                outcome = SegmentSealed(f"segment {request.segment!r} was sealed")
            self._answer(request, outcome)
            self._go_on()

        size = min(max(request.suggested_length, READ_BYTES_MIN), _TAIL_BYTES_MAX)
        cancel = self._store.read(request.segment, request.offset, size, done=done, wait=True)
        self._waiting[key] = request, cancel

    # Answered

    def _answer(self, request: ReadSegment, outcome: ReadResult | StoreError) -> None:
        if isinstance(outcome, StoreError):
            segment = request.segment
            self._connection.refuse(request.request_id, segment, outcome, offset=request.offset)
            if isinstance(outcome, PositionOutOfRange):
                self._connection.close(str(outcome))
            return
        answer = SegmentRead(
            request.segment,
            request.offset,
            outcome.at_tail,
            outcome.end_of_segment,
            outcome.data,
            request.request_id,
        )
        self._ready.append(encode(answer))
        self._ports.wake(self)

    def next(self, scratch: bytearray) -> SendPiece | None:  # noqa: ARG002  # it has its bytes
        """Return the next answer."""
        frame = SendPiece(self._ready.popleft()) if self._ready else None
        self._go_on()
        return frame

    def wants_more(self) -> bool:
        """Return whether there is another answer."""
        return bool(self._ready)

    # The end

    @property
    def open_requests(self) -> list[int]:
        """The ids of the requests that are not answered, and are not being read."""
        waiting = [request for request, _ in self._waiting.values()]
        return [request.request_id for request in (*self._asked, *waiting)]

    def farewell(self) -> None:
        """Send the answers that are ready, and answer reads that wait without bytes, as Pravega."""
        while self._ready:
            self._ports.send(self._ready.popleft())
        for request, cancel in self._waiting.values():
            cancel()
            self._give_up(request)
        self._waiting.clear()

    def _give_up(self, request: ReadSegment) -> None:
        no_bytes = SegmentRead(
            request.segment,
            request.offset,
            at_tail=True,
            end_of_segment=False,
            data=b"",
            request_id=request.request_id,
        )
        self._connection.reply(no_bytes)

    def stop(self) -> None:
        """Cancel all of them: the connection is over."""
        self._is_over = True
        for _, cancel in self._waiting.values():
            cancel()
        self._waiting.clear()
        self._asked.clear()
        self._ready.clear()

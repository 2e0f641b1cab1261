"""The appends of one connection: frames to units, and those of each writer to the store as one.

What one read from the socket brings is walked at once. The appends in it become one append of each
writer, which has the last one's number: its acknowledgement stands for all of them. A conditional
append stays by itself.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final
from uuid import UUID

from gateway.pravega.traffic import AppendsUnderWay
from hutch.pravega import messages as m
from hutch.pravega.block import append_pieces
from hutch.pravega.codec import HEAD, HEAD_BYTES, PAYLOAD_BYTES_MAX, decode
from hutch.pravega.commands import BY_CLASS, CommandSender
from hutch.pravega.error_messages import ErrorMessage, InvalidEventNumber
from hutch.pravega.errors import WireError
from store.api import APPEND_BYTES_MAX, Appended
from store.errors import EventNumberTooLow, LengthMismatch, SegmentSealed, StoreError, WriterFenced

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from gateway.pravega.connection import SegmentConnection
    from gateway.pravega.writer import SetUp
    from gateway.server.front import Ports

_BLOCK: Final = BY_CLASS[m.AppendBlock].code
_END: Final = BY_CLASS[m.AppendBlockEnd].code
_CONDITIONAL: Final = frozenset(
    (BY_CLASS[m.ConditionalAppend].code, BY_CLASS[m.ConditionalBlockEnd].code)
)
CODES: Final = _CONDITIONAL | {_BLOCK, _END}
"""Commands that are taken here."""

_ID_BYTES: Final = 16
_END_HEAD: Final = struct.Struct(">16sii")
_END_TAIL: Final = struct.Struct(">iqq")
_OLD_END_TAIL: Final = struct.Struct(">iq")
"""An AppendBlockEnd: writer, size of whole events, size of data | data | count, number, request."""
_ILLEGAL_ARGUMENT: Final = 0


class Appends:
    """Takes the appends of one connection."""

    def __init__(self, connection: SegmentConnection, ports: Ports) -> None:
        self._connection = connection
        self._ports = ports
        self._under_way = AppendsUnderWay(connection.context.under_way)
        self._boundaries = connection.context.boundaries
        self._traffic = connection.context.traffic
        self._block: Buffer | None = None
        self._block_writer = b""
        self._blocks = 0
        self._gathered: list[SetUp] = []

    @property
    def block_bytes(self) -> int:
        """Bytes of the block whose End has not come."""
        return 0 if self._block is None else memoryview(self._block).nbytes

    @property
    def unfinished(self) -> int:
        """Number of the block whose End has not come; 0 if there is none."""
        return 0 if self._block is None else self._blocks

    def take(self, buffer: bytearray, position: int, end: int) -> int:
        """Take the appends at the front of [position, end) and issue them; return where to go on.

        Raises:
            WireError: One is malformed, or not allowed; those before it are issued.
        """
        view = memoryview(buffer)
        count = 0
        try:
            while end - position >= HEAD_BYTES:
                code, length = HEAD.unpack_from(buffer, position)
                begin = position + HEAD_BYTES
                frame_end = begin + length
                if not 0 <= length <= PAYLOAD_BYTES_MAX or frame_end > end:
                    break
                if code == _END:
                    self._take_end(view, begin, frame_end)
                elif code == _BLOCK:
                    self._begin_block(view[begin:frame_end])
                elif code in _CONDITIONAL:
                    self._take_conditional(code, view[begin:frame_end])
                else:
                    break
                count += code != _BLOCK
                position = frame_end
        finally:
            for set_up in self._gathered:
                self._issue_gathered(set_up)
            self._gathered.clear()
            if isinstance(self._block, memoryview):
                self._block = bytes(self._block)  # the buffer is used again
            self._ports.taken(count, self._under_way)
        return position

    # Frames

    def _begin_block(self, payload: memoryview) -> None:
        if len(payload) < _ID_BYTES:
            raise WireError("a block is cut short")
        writer_id = bytes(payload[:_ID_BYTES])
        self.no_block("another block")
        self._set_up_of(writer_id)
        self._block, self._block_writer = payload[_ID_BYTES:], writer_id
        self._blocks += 1

    def _take_end(self, view: memoryview, begin: int, end: int) -> None:
        if end - begin < _END_HEAD.size:
            raise WireError("AppendBlockEnd is cut short")
        writer_id, whole, size = _END_HEAD.unpack_from(view, begin)
        first = begin + _END_HEAD.size
        tail = first + size
        if size < 0 or tail + _OLD_END_TAIL.size > end:
            raise WireError(f"AppendBlockEnd: data of {size} bytes in {end - first}")
        request_id = m.UNKNOWN
        if tail + _OLD_END_TAIL.size == end:
            count, number = _OLD_END_TAIL.unpack_from(view, tail)
        elif tail + _END_TAIL.size <= end:
            count, number, request_id = _END_TAIL.unpack_from(view, tail)
        else:
            raise WireError("AppendBlockEnd is cut short")
        set_up = self._set_up_of(writer_id)
        if self._block is None and count > 0:
            self._gather(set_up, view[first:tail], count, number, request_id)
            return
        if self._block is not None and writer_id != self._block_writer:
            raise WireError("a block and its End are of two writers")
        message = m.AppendBlockEnd(
            set_up.writer_id, whole, bytes(view[first:tail]), count, number, request_id
        )
        block, self._block = self._block, None
        try:
            pieces = append_pieces(block, message)
        except WireError as error:
            self._refuse(set_up, request_id, str(error))
            raise
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._gather(set_up, data, count, number, request_id)

    def _take_conditional(self, code: int, payload: memoryview) -> None:
        message = decode(code, payload, CommandSender.CLIENT)
        self.no_block("a conditional append")
        if isinstance(message, m.ConditionalAppend):
            data = HEAD.pack(0, len(message.event)) + message.event
        else:
            assert isinstance(message, m.ConditionalBlockEnd)
            data = message.data
        set_up = self._set_up_of(message.writer_id.bytes)
        if set_up.is_broken:
            self._ports.settled(1)
            return
        self._issue_gathered(set_up)
        number, expected = message.event_number, message.expected_offset
        self._check(set_up, number)
        self._issue(set_up, data, number, message.request_id, 1, 1, expected)

    def no_block(self, other: str) -> None:
        """Raise WireError if a block waits for its End."""
        if self._block is not None:
            raise WireError(f"{other} where the End of a block must come")

    def _set_up_of(self, writer_id: bytes) -> SetUp:
        set_up = self._connection.set_ups.get(writer_id)
        if set_up is None:
            raise WireError(f"an append of writer {UUID(bytes=writer_id)}, which is not set up")
        return set_up

    # To the store

    def _check(self, set_up: SetUp, number: int) -> None:
        if number < max(set_up.last_number, 0):
            raise WireError(f"event number {number} is below {set_up.last_number}")

    def _gather(
        self, set_up: SetUp, data: Buffer, events: int, number: int, request_id: int
    ) -> None:
        """Put an append behind those of the writer that came with it."""
        size = len(data)  # type: ignore[arg-type]  # bytes, or a view of bytes
        if set_up.is_broken:
            self._ports.settled(1)
            return
        self._check(set_up, number)
        if size > APPEND_BYTES_MAX:
            text = f"an append of {size} bytes is above {APPEND_BYTES_MAX}"
            self._refuse(set_up, request_id, text)
            raise WireError(text)
        if number == set_up.last_number:  # sent again: acknowledged, and not written
            if not set_up.count:
                self._issue(set_up, b"", number, request_id, 1, 0)
            else:
                set_up.count += 1
            return
        if set_up.size + size > APPEND_BYTES_MAX:
            self._issue_gathered(set_up)
        if not set_up.count:
            self._gathered.append(set_up)
        set_up.pieces.append(data)
        set_up.size += size
        set_up.count += 1
        set_up.events += events
        set_up.number = number
        set_up.request_id = request_id

    def _issue_gathered(self, set_up: SetUp) -> None:
        """Hand the store all that is gathered of a writer, as one append."""
        count = set_up.count
        if not count:
            return
        pieces, set_up.pieces = set_up.pieces, []
        events = set_up.events
        set_up.count = set_up.size = set_up.events = 0
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._issue(set_up, data, set_up.number, set_up.request_id, count, events)

    def _issue(
        self,
        set_up: SetUp,
        data: Buffer,
        number: int,
        request_id: int,
        count: int,
        events: int,
        expected_length: int | None = None,
    ) -> None:
        """Append; answer when the store does.

        Args:
            set_up: The writer.
            data: What to store.
            number: The last event's number.
            request_id: Of the last append.
            count: Appends of the client that it is made of.
            events: Events in it, as the client tells.
            expected_length: Length that the segment must have; None: any.
        """
        size = len(data)  # type: ignore[arg-type]  # bytes, or a view of bytes

        def done(outcome: Appended | StoreError) -> None:
            self._under_way.end(size)
            self._ports.settled(count)
            if isinstance(outcome, EventNumberTooLow):  # the number that the set-up began with
                outcome = Appended(set_up.writer.length, 0, number)
            if isinstance(outcome, StoreError):
                self._failed(set_up, number, request_id, outcome)
                return
            previous, set_up.acknowledged = set_up.acknowledged, number
            length = outcome.position + outcome.size
            self._boundaries.note(set_up.segment, set_up.created_at, outcome.position)
            if size:
                self._traffic.note(set_up.segment, size, events)
            self._connection.reply(
                m.DataAppended(set_up.writer_id, number, previous, request_id, length)
            )

        self._under_way.begin(size)
        set_up.writer.append(data, number, done=done, expected_length=expected_length)

    # Refused

    def _failed(self, set_up: SetUp, number: int, request_id: int, error: StoreError) -> None:
        if isinstance(error, LengthMismatch):
            failed = m.ConditionalCheckFailed(set_up.writer_id, number, request_id)
            self._connection.reply(failed)
        elif isinstance(error, WriterFenced):
            text = str(error)
            self._connection.reply(InvalidEventNumber(set_up.writer_id, request_id, text, number))
            self._connection.close(text)
        elif not set_up.is_broken:
            set_up.is_broken = True
            # The event's number stands for an offset, as with Pravega.
            offset = number if isinstance(error, SegmentSealed) else m.UNKNOWN
            self._connection.refuse(request_id, set_up.segment, error, offset=offset)

    def _refuse(self, set_up: SetUp, request_id: int, text: str) -> None:
        """Report the fault of an append; the connection is closed then."""
        self._connection.reply(ErrorMessage(request_id, set_up.segment, text, _ILLEGAL_ARGUMENT))

"""A server of Pravega's wire protocol that acknowledges and stores nothing: what a client reaches.

python -m compat.bench.acknowledging PORT    until it is ended

Appends are counted, not kept. A segment reads as its first event again and again, so that each
event is to have the same bytes. The controller beside it is Hutch's, which tells clients this port.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from hutch.pravega.block import append_pieces
from hutch.pravega.codec import FRAME_BYTES_MAX, HEAD, HEAD_BYTES, decode, encode
from hutch.pravega.commands import BY_CLASS, CommandSender
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import (
    AppendBlock,
    AppendBlockEnd,
    AppendSetup,
    CreateSegment,
    DataAppended,
    GetSegmentAttribute,
    GetStreamSegmentInfo,
    Hello,
    KeepAlive,
    ReadSegment,
    SegmentAttribute,
    SegmentCreated,
    SegmentRead,
    SetupAppend,
    StreamSegmentInfo,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

READY: Final = b"acknowledging ready\n"
BUFFER_BYTES: Final = 1 << 20
READ_BYTES_MAX: Final = 1 << 20
NONE_YET: Final = -(1 << 63)
"""Number of a writer that has none, and value of an attribute that is not there."""
_BLOCK: Final = BY_CLASS[AppendBlock].code


@dataclass(slots=True)
class Counted:
    """A segment, as far as it is counted.

    Attributes:
        event: Its first event with its head; empty before the first append.
        length: Bytes that were appended.
    """

    event: bytes = b""
    length: int = 0

    def add(self, pieces: Sequence[Buffer], events: int) -> None:
        """Count events, all as large as the first one."""
        if not self.event:
            appended = b"".join(pieces)
            _, size = HEAD.unpack_from(appended)
            self.event = appended[: HEAD_BYTES + size]
        self.length += events * len(self.event)

    def read(self, offset: int, most: int) -> bytes:
        """Return bytes from an offset on."""
        size = max(min(most, self.length - offset, READ_BYTES_MAX), 0)
        if not size:
            return b""
        begin = offset % len(self.event)
        return (self.event * (2 + size // len(self.event)))[begin : begin + size]


class Acknowledging(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, segments: dict[str, Counted]) -> None:
        """Begin; `segments` are those of all connections, by their names."""
        self._segments: Final = segments
        self._buffer: Final = bytearray(BUFFER_BYTES + FRAME_BYTES_MAX)
        self._filled = 0
        self._block: memoryview | None = None
        self._writers: dict[object, tuple[Counted, int]] = {}
        self._answers: Final[dict[type[WireMessage], Callable[..., WireMessage]]] = {
            Hello: lambda hello: hello,
            KeepAlive: lambda alive: alive,
            CreateSegment: self._create,
            SetupAppend: self._set_up,
            AppendBlockEnd: self._append,
            GetSegmentAttribute: lambda asked: SegmentAttribute(asked.request_id, NONE_YET),
            GetStreamSegmentInfo: self._info,
            ReadSegment: self._read,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is no subclass

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return room for what comes next."""
        del sizehint
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Answer the frames that are whole."""
        self._filled += nbytes
        view, at, kept, answers = memoryview(self._buffer), 0, 0, []
        while self._filled - at >= HEAD_BYTES:
            code, length = HEAD.unpack_from(view, at)
            end = at + HEAD_BYTES + length
            if end > self._filled:
                break
            payload = view[at + HEAD_BYTES : end]
            at = end
            if code == _BLOCK:
                self._block = payload[16:]
                continue
            answers.append(self._answer(decode(code, payload, CommandSender.CLIENT)))
            self._block, kept = None, at
        # A block stays where it is until its end has come.
        self._filled -= kept
        self._buffer[: self._filled] = view[kept : kept + self._filled]
        self._block = None
        if answers:
            self._transport.write(b"".join(map(encode, answers)))

    def _answer(self, asked: WireMessage) -> WireMessage:
        return self._answers[type(asked)](asked)

    def _create(self, asked: CreateSegment) -> WireMessage:
        self._segments[asked.segment] = Counted()
        return SegmentCreated(asked.request_id, asked.segment)

    def _set_up(self, asked: SetupAppend) -> WireMessage:
        segment = self._segments.setdefault(asked.segment, Counted())
        self._writers[asked.writer_id] = segment, NONE_YET
        return AppendSetup(asked.request_id, asked.segment, asked.writer_id, NONE_YET)

    def _append(self, end: AppendBlockEnd) -> WireMessage:
        segment, before = self._writers[end.writer_id]
        segment.add(append_pieces(self._block, end), end.event_count)
        self._writers[end.writer_id] = segment, end.last_event_number
        return DataAppended(
            end.writer_id, end.last_event_number, before, end.request_id, segment.length
        )

    def _info(self, asked: GetStreamSegmentInfo) -> WireMessage:
        segment = self._segments.setdefault(asked.segment, Counted())
        return StreamSegmentInfo(
            *(asked.request_id, asked.segment, True, False, False, 0, segment.length, 0)
        )

    def _read(self, asked: ReadSegment) -> WireMessage:
        segment = self._segments.setdefault(asked.segment, Counted())
        data = segment.read(asked.offset, asked.suggested_length)
        is_last = asked.offset + len(data) == segment.length
        return SegmentRead(*(asked.segment, asked.offset, is_last, False), data, asked.request_id)


async def _serve(port: int) -> None:
    segments: dict[str, Counted] = {}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Acknowledging(segments), "127.0.0.1", port)
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    await server.serve_forever()


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(int(sys.argv[1])))
    else:
        uvloop.run(_serve(int(sys.argv[1])))

"""The chunks of a stream one by one, as they are stored: records are taken from them."""

from collections.abc import Callable
from typing import Final

from gateway.log.damage.verification import verify
from gateway.log.kernel.chunks import MALFORMED
from gateway.log.log import StreamLog
from gateway.log.open_chunk import ChunkDelivery
from gateway.log.reading.cursor import Cursor
from gateway.log.reading.known_chunks import find_behind
from hutch.formats.chunk import (
    DATA_POSITION,
    EVENT_HEAD_BYTES,
    HEADER_BYTES,
    unpack_header,
)

_WINDOW_BYTES: Final = 64 * 1024
"""Bytes that are read and checked at once: many small chunks, or all of a larger one."""


class StoredChunks(Cursor):
    """A cursor that joins nothing, reads no regions, and checks all that it gives.

    A client that gets chunks checks their checksums itself. Here that is done for callers that get
    records, and the seals are checked too.
    """

    def __init__(self, stream_log: StreamLog, position: int, wake: Callable[[], object]) -> None:
        super().__init__(
            stream_log, position, wake, chunk_bytes_max=_WINDOW_BYTES, takes_regions=False
        )
        self.takes_shared = False  # they may be joined
        self._window = b""
        # Positions in the segment: the window's start, and the end of its checked chunks.
        self._window_from = self._sound_to = 0
        # The chunk that was given last: its position, and the offset of its first record.
        self._last = (position, 0)

    def go_back(self) -> int:
        """Step back before the last chunk, so that it is read again; return its first offset."""
        self.position, self.next_offset = self._last
        self._window, self._sound_to = b"", 0
        return self.next_offset

    def take_here(self, available: int, scratch: bytearray) -> ChunkDelivery | None:
        """Return the chunk at the cursor; None if it has to be fetched, or was damaged."""
        del scratch
        if not self._window_from <= self.position < self._sound_to and not self._look(available):
            return None
        place = self.position - self._window_from
        start = place + EVENT_HEAD_BYTES
        header = unpack_header(self._window, start)
        size = HEADER_BYTES + header.data_bytes
        self._last = (self.position, header.chunk_id)
        self.position += EVENT_HEAD_BYTES + int.from_bytes(self._window[place + 4 : start], "big")
        chunk = self._window[start : start + size]
        if self.position >= self._sound_to:
            self._window = b""  # a reader that waits at the tail holds no memory
        return ChunkDelivery(header.chunk_id, header.chunk_id + header.records, size, chunk, None)

    def _look(self, available: int) -> bool:
        """Read and check the next window; False if its first chunk is missing or damaged."""
        begin = self.position
        # Where reading failed once, only one chunk is read, and nothing behind it.
        size = DATA_POSITION if self.failed_at == begin else _WINDOW_BYTES
        window = self.log.reader.read_cached(begin, min(available, size)) or b""
        if len(window) < DATA_POSITION:
            self.fetch(begin, DATA_POSITION)
            return False
        event_bytes = EVENT_HEAD_BYTES + int.from_bytes(window[4:EVENT_HEAD_BYTES], "big")
        if event_bytes > available:
            self.skip_bad(MALFORMED)
            return False
        if len(window) < event_bytes:
            window += self.read(begin + len(window), event_bytes - len(window))
        if len(window) < event_bytes:
            self.fetch(begin, event_bytes)
            return False
        # The first offset is believed: its seal covers it, or the cursor has compared it.
        first = unpack_header(window, EVENT_HEAD_BYTES).chunk_id
        found = verify(memoryview(window), self.log.seal_seed, first)
        if not found.end:
            # The index knows the chunk behind the span; this looks for one before that.
            end = min(self.log.index.span_end(begin, 0), self.log.committed_length)
            window += self.read(begin + len(window), end - begin - len(window))
            self.skip_bad(found.reason, find_behind(self.log, begin, window, found.reason))
            return False
        self._window, self._window_from, self._sound_to = window, begin, begin + found.end
        return True

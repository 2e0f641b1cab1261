"""Finds, ahead of a cursor, the chunks that a filter lets through, and reads little of the others.

If pages of filter values are stored (`gateway.log.derived.filter_pages`), only these are read.
Elsewhere only the header of a large chunk and the filter values behind its trailer are read; small
chunks are walked many at once. The work of one call is bounded: a filter may let nothing through
for a long time, and the event loop must serve others meanwhile.
"""

import logging
from collections import deque
from typing import Final

from gateway.log.derived.filter_pages import FilterPage, FilterPages
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.kernel.chunks import BAD_SEAL, check_seals, walk_chunks
from gateway.log.log import StreamLog
from gateway.pending import Pending
from hutch.formats.chunk import (
    DATA_POSITION,
    EVENT_HEAD_BYTES,
    HEADER_BYTES,
    SEAL_BYTES,
    crc32,
    unpack_header,
)

log = logging.getLogger(__name__)

LARGE_BYTES: Final = 32 * 1024
"""Chunks of at least this size are looked at one by one."""

WINDOW_BYTES: Final = 64 * 1024
_LOOKS_A_CALL: Final = 24
_COLD_SMALL_BYTES: Final = 1024 * 1024
_MAGIC_AND_VERSION: Final = 0x50


class Sieve:
    """Results of the filter for the chunks ahead of one cursor.

    Attributes:
        missing: After `sift`: (position, size) of bytes that are needed but not in memory.
        loading: After `sift`: a load of pages to wait for instead.
    """

    def __init__(self, stream_log: StreamLog, wanted: SubscriptionFilter) -> None:
        self.missing: tuple[int, int] | None = None
        self.loading: Pending[None] | None = None
        self._log = stream_log
        self._filter = wanted
        self._ranges: deque[tuple[int, int]] = deque()
        self._sifted_to = 0
        self._asked: tuple[int, int] | None = None
        # The rest of a page's runs: the end of each, and whether it is wanted (None: ask chunks).
        self._runs: deque[tuple[int, bool | None]] = deque()

    def sift(self, position: int, end: int) -> tuple[int, int]:
        """Look for chunks that are let through in [position, end), which are bounds of chunks.

        Returns:
            (where, size): whole chunks that are let through begin at `where` and have `size` bytes.
            Size 0: nothing is let through before `where`. Then `missing` or `loading` says what
            must come first. If both are None and `where` is before `end`, call again.
        """
        self.missing = self.loading = None
        ranges = self._ranges
        for _ in range(_LOOKS_A_CALL):
            while ranges and ranges[0][1] <= position:
                ranges.popleft()
            if ranges:
                start, stop = ranges[0]
                position = max(position, start)
                return position, stop - position
            position = max(position, self._sifted_to)
            if position >= end or not self._look(position, end):
                break
        return position, 0

    def _look(self, position: int, end: int) -> bool:
        """Judge the chunk at a position, and more if that is cheap; False if it is not at hand."""
        runs = self._runs
        while runs and runs[0][0] <= position:
            runs.popleft()
        pages = self._log.saved.filter_pages
        if not runs and pages is not None:
            if not pages.is_loaded:
                self.loading = pages.load()
                return False
            if not self._enter_page(pages, position, end):
                return False
        if not runs:
            return self._ask_chunks(position, end)
        if runs[0][1] is None:
            return self._ask_chunks(position, min(end, runs[0][0]))
        while runs and (verdict := runs[0][1]) is not None:
            stop, _ = runs.popleft()
            self._note(position, stop, is_wanted=verdict)
            position = stop
        return True

    def _enter_page(self, pages: FilterPages, position: int, end: int) -> bool:
        """Use the page of this position, if there is one; False if it is not at hand."""
        index = pages.find(position)
        if index is None:
            return True
        page = self._read_page(pages, index)
        if page is None:
            return self.loading is None
        if not pages.is_verified(index) and not self._verify(pages, index, page, end):
            return self.missing is None
        stop = page.first
        for size, packed in page.runs():
            stop += size
            if stop > position:
                verdict = None if packed is None else self._filter.lets_through(packed)
                self._runs.append((stop, verdict))
        return True

    def _read_page(self, pages: FilterPages, index: int) -> FilterPage | None:
        """Read a page; None if it has to be fetched first, or was dropped as damaged."""
        try:
            page = pages.read(index)
        except ValueError as error:
            log.error(  # noqa: TRY400  # for the operator
                "filter page is dropped stream=%s position=%d error=%s",
                self._log.stream,
                pages.drop(index),
                error,
            )
            return None
        if page is None:
            self.loading = pages.fetch(index)
        return page

    def _verify(self, pages: FilterPages, index: int, page: FilterPage, end: int) -> bool:
        """Return whether the stream has the chunks that a page describes; drop the page if not.

        Also False, with `missing` set, if the stream has to be read first.
        """
        head: bytes | None = b""
        if page.last_position + DATA_POSITION <= page.end <= end:
            head = self._log.reader.read_cached(page.last_position, DATA_POSITION)
            if head is None or len(head) < DATA_POSITION:
                if self._miss(page.last_position, end, DATA_POSITION):
                    return False
                head = b""
        if not head or not page.describes(head):
            pages.drop(index)
            return False
        pages.verify(index)
        return True

    def _ask_chunks(self, position: int, end: int) -> bool:
        """Judge the chunk at a position from the stream itself, and more if they are small."""
        reader = self._log.reader
        head = reader.read_cached(position, min(end - position, DATA_POSITION))
        if head is None or len(head) < DATA_POSITION:
            return self._wait_or_leave(position, end, position, LARGE_BYTES)
        event_bytes = EVENT_HEAD_BYTES + int.from_bytes(head[4:8], "big")
        if event_bytes < LARGE_BYTES:
            return self._walk(position, end, event_bytes)
        header = unpack_header(head, EVENT_HEAD_BYTES)
        rest = DATA_POSITION + header.data_bytes
        if (
            head[:4] != bytes(4)
            or head[EVENT_HEAD_BYTES] != _MAGIC_AND_VERSION
            or rest + header.trailer_bytes + SEAL_BYTES > event_bytes
            or event_bytes > end - position
        ):
            self._leave(position, end)
            return True
        behind = reader.read_cached(position + rest, event_bytes - rest)
        if behind is None or len(behind) < event_bytes - rest:
            return self._wait_or_leave(position, end, position + rest, event_bytes - rest)
        seal = crc32(behind[:-SEAL_BYTES], crc32(head[EVENT_HEAD_BYTES:], self._log.seal_seed))
        if behind[-SEAL_BYTES:] != seal.to_bytes(SEAL_BYTES, "big"):
            self._leave(position, end)
            return True
        packed = behind[header.trailer_bytes : -SEAL_BYTES]
        self._note(position, position + event_bytes, is_wanted=self._filter.lets_through(packed))
        return True

    def _walk(self, position: int, end: int, event_bytes: int) -> bool:
        """Judge all whole small chunks in a window."""
        size = min(end - position, WINDOW_BYTES)
        window = self._log.reader.read_cached(position, size)
        if window is None or len(window) < min(size, max(event_bytes, DATA_POSITION)):
            return self._wait_or_leave(position, end, position, _COLD_SMALL_BYTES)
        _, consumed, chunks = walk_chunks(window, 0, len(window))
        reason, sound = check_seals(window, 0, len(window), self._log.seal_seed)
        lets_through = self._filter.lets_through
        for place, event_size, _, _, _, _, data_bytes, trailer_bytes in chunks:
            if reason == BAD_SEAL and place >= sound:
                consumed = place
                break
            rest = place + EVENT_HEAD_BYTES + HEADER_BYTES + data_bytes + trailer_bytes
            behind = place + event_size
            self._note(
                position + place,
                position + behind,
                is_wanted=lets_through(window[rest : behind - SEAL_BYTES]),
            )
        if not consumed:
            self._leave(position, end)
        return True

    def _miss(self, position: int, end: int, size: int) -> bool:
        """Ask for bytes; False if they were already asked for and are still not at hand."""
        is_new = self._asked != (position, size)
        self._asked = position, size
        self.missing = (position, min(size, end - position)) if is_new else None
        return is_new

    def _wait_or_leave(self, position: int, end: int, missing_at: int, size: int) -> bool:
        """Ask for bytes of a chunk; if they do not come, its size or its file is damaged."""
        if self._miss(missing_at, end, size):
            return False
        self._leave(position, end)
        return True

    def _leave(self, position: int, end: int) -> None:
        """Leave bytes that are no chunk to the cursor, up to the next chunk in the index."""
        self._note(position, min(self._log.index.span_end(position, 0), end), is_wanted=True)

    def _note(self, start: int, stop: int, *, is_wanted: bool) -> None:
        self._sifted_to = stop
        if not is_wanted:
            return
        if self._ranges and self._ranges[-1][1] == start:
            self._ranges[-1] = self._ranges[-1][0], stop
        else:
            self._ranges.append((start, stop))

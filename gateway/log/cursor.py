# cython: language_level=3, annotation_typing=False, nonecheck=True
"""A reader of one stream that gives one chunk at a time, ready to be sent.

A large chunk is given as a region of a file (for sendfile). Small chunks in a row are joined into
one. What may have to come from the disk is read (and, if this process did not write it, checked)
by a thread of the store first: `next` then gives nothing and `wake` is called when it is there.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.log.chunk import (
    CRC_POSITION,
    CRC_TABLE,
    DATA_POSITION,
    EVENT_HEAD_BYTES,
    HEADER_BYTES,
    crc32,
    pack_header,
    unpack_header,
)
from gateway.log.filters import SubscriptionFilter
from gateway.log.index import NO_END
from gateway.log.kernel.chunks import (
    BAD_CRC,
    MALFORMED,
    NEEDS_BYTES,
    NOT_JOINABLE,
    join_chunks,
    verify_chunks,
    walk_chunks,
)
from gateway.log.log import StreamLog
from gateway.log.open_chunk import DELIVER_HEAD_BYTES
from gateway.log.salvage import next_chunk
from gateway.log.sieve import Sieve
from store.api import APPEND_BYTES_MAX, FileRegion
from store.errors import SegmentTruncated, StoreError

log = logging.getLogger(__name__)

_GLANCE_BYTES: Final = 4096
_ALONE_BYTES: Final = 64 * 1024
"""A chunk of this size goes alone, from its file; smaller ones are worth a copy to be joined."""
_WARM_BYTES: Final = 64 * 1024 * 1024
"""What was written this recently is taken to be in memory without asking."""
_CHECK_BYTES: Final = 4 * 1024 * 1024
"""What is read and checked at once, and how far ahead of the cursor."""
_SMALL_BYTES: Final = 4096
"""Below this average a kernel checks the chunks: it costs nothing to start, but more per byte."""


@dataclass(slots=True)
class Delivery:
    """One chunk for a consumer: its header and data, either in memory or in a file.

    Attributes:
        chunk_id: Offset of its first record.
        next_offset: Offset after its last record.
        size: Bytes of header and data.
        head: The first bytes (all of them if there is no region).
        region: The rest.
    """

    chunk_id: int
    next_offset: int
    size: int
    head: bytes
    region: FileRegion | None


class Cursor:
    """Reads chunks from `position` on, or those of them that a filter lets through.

    Attributes:
        is_sifting: `next` gave nothing because it had looked at enough chunks that the filter does
            not let through: call it again, after others had their turn.
    """

    def __init__(
        self,
        stream_log: StreamLog,
        position: int,
        wake: Callable[[], object],
        *,
        frame_bytes_max: int,
        takes_regions: bool,
        wanted: SubscriptionFilter | None = None,
    ) -> None:
        self.log = stream_log
        self.position = position
        self._wake = wake
        self._takes_regions = takes_regions
        self._joined_bytes_max = frame_bytes_max - DELIVER_HEAD_BYTES - HEADER_BYTES
        self._window_bytes = _GLANCE_BYTES
        self._verified_to = position
        self._damaged: deque[tuple[int, int]] = deque()
        self._is_waiting = False
        self._is_checking = False
        self._is_closed = False
        self._was_late = False
        self.is_sifting = False
        self._sieve = None if wanted is None else Sieve(stream_log, wanted)
        # Who skips most of it wants little of what lies ahead.
        self._ahead_bytes = 0 if wanted else _CHECK_BYTES

    def close(self) -> None:
        """Stop; `wake` is not called any more."""
        self._is_closed = True
        self.log.forget(self._woken)

    def next(self, scratch: bytearray) -> Delivery | None:
        """Return the next chunk, or None; then `wake` will be called when there may be one.

        Args:
            scratch: Room for a joined chunk's data; its content does not matter.
        """
        self.is_sifting = False
        if self._is_waiting or self._is_closed:
            return None
        delivery = None
        while delivery is None and not self._is_waiting and self.log.failure is None:
            self._step_over()
            available = self.log.committed_length - self.position
            if available <= 0:
                self._is_waiting = True
                self.log.when_more(self._woken)
            elif self._sieve is not None and not (available := self._sift(self._sieve)):
                if self.is_sifting:
                    break
            elif self.position < self._verified_to or self._is_verified():
                delivery = self._next(available, scratch)
        if self._sieve is None and self.position + _CHECK_BYTES > self._verified_to:
            self._check_ahead()
        return delivery

    def _step_over(self) -> None:
        """Go past what was truncated or is known to be damaged."""
        if self.position < self.log.start:
            log.log(
                logging.DEBUG if self._was_late else logging.INFO,
                "reader goes on with the oldest chunk stream=%s first_offset=%d bytes_missed=%d",
                self.log.stream,
                self.log.first_offset,
                self.log.start - self.position,
            )
            self._was_late = True
            self.position = self.log.start
        while self._damaged and self.position >= self._damaged[0][0]:
            self.position = max(self.position, self._damaged.popleft()[1])

    def _sift(self, sieve: Sieve) -> int:
        """Go to what the filter lets through; return how many bytes of it, 0 if it is not known."""
        end = self.log.committed_length
        self.position, size = sieve.sift(self.position, end)
        if sieve.missing is not None:
            self._fetch(*sieve.missing)
        elif sieve.loading is not None:
            self._is_waiting = True
            sieve.loading.when_settled(self._woken)
        self.is_sifting = not size and not self._is_waiting and self.position < end
        return size

    def _next(self, available: int, scratch: bytearray) -> Delivery | None:
        """Give what is at the cursor; None if it has to be fetched, or was damaged."""
        shared, begin = self.log.shared, self.position
        if shared is not None and shared[0] == begin and self._sieve is None:
            delivery: Delivery | None
            _, self.position, delivery = shared
            return delivery
        glance = self.log.reader.read_cached(begin, min(available, _GLANCE_BYTES))
        if glance is None or len(glance) < DATA_POSITION:
            self._fetch(begin, DATA_POSITION)
            return None
        event_bytes = EVENT_HEAD_BYTES + int.from_bytes(glance[4:8], "big")
        if event_bytes > available:
            self._skip_bad(begin, MALFORMED)
            return None
        if event_bytes >= _ALONE_BYTES:
            return self._alone(glance, event_bytes)
        delivery = self._joined(glance, event_bytes, available, scratch)
        if delivery is not None and self._sieve is None and self.log.has_company:
            self.log.share(begin, self.position, delivery)
        return delivery

    def _woken(self) -> None:
        self._is_waiting = False
        if not self._is_closed:
            self._wake()

    # Giving

    def _alone(self, glance: bytes, event_bytes: int) -> Delivery | None:
        """Give one stored chunk from its file (or its bytes, for a connection without sendfile)."""
        reader = self.log.reader
        header = unpack_header(glance, EVENT_HEAD_BYTES)
        size = HEADER_BYTES + header.data_bytes
        position = self.position + EVENT_HEAD_BYTES
        if EVENT_HEAD_BYTES + size > event_bytes:
            self._skip_bad(self.position, MALFORMED)
            return None
        is_recent = self.position >= max(
            self.log.committed_length - _WARM_BYTES, self.log.trusted_position
        )
        if not is_recent and not reader.is_cached(position, size):
            self._fetch(self.position, event_bytes)
            return None
        region = reader.region(position, size) if self._takes_regions else None
        head = b""
        if region is None:
            head = self._read(position, size)
            if len(head) < size:
                self._fetch(self.position, event_bytes)
                return None
        self.position += event_bytes
        return Delivery(header.chunk_id, header.chunk_id + header.records, size, head, region)

    def _read(self, position: int, size: int) -> bytes:
        """Read cached bytes, in as many pieces as the store likes; short if some are not there."""
        pieces: list[bytes] = []
        while size > 0:
            piece = self.log.reader.read_cached(position, size)
            if not piece:
                break
            pieces.append(piece)
            position += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _joined(
        self, glance: bytes, event_bytes: int, available: int, scratch: bytearray
    ) -> Delivery | None:
        """Give a run of small chunks as one, or the first as it is if it must go alone."""
        source = glance
        wanted = min(available, max(self._window_bytes, event_bytes))
        if len(glance) < wanted:
            source = self.log.reader.read_cached(self.position, wanted) or b""
        if len(source) < event_bytes:
            self._fetch(self.position, event_bytes)
            return None
        reason, place, written, count, records = join_chunks(
            source, len(source), scratch, self._joined_bytes_max, CRC_TABLE
        )
        # Read more at once only while it is joined: what is not would be read again and again.
        if reason == NEEDS_BYTES:
            self._window_bytes = min(self._window_bytes * 4, self._joined_bytes_max)
        elif count <= 1:
            self._window_bytes = _GLANCE_BYTES
        header = unpack_header(source, EVENT_HEAD_BYTES)
        if count == 0 and reason != NOT_JOINABLE:
            self._skip_bad(self.position, reason)
            return None
        if count <= 1:
            self.position += event_bytes
            size = HEADER_BYTES + header.data_bytes
            head = source[EVENT_HEAD_BYTES : EVENT_HEAD_BYTES + size]
            return Delivery(header.chunk_id, header.chunk_id + header.records, size, head, None)
        self.position += place
        data = memoryview(scratch)[:written]
        joined = header._replace(
            entries=records,
            records=records,
            crc=crc32(data),
            data_bytes=written,
            trailer_bytes=0,
        )
        head = pack_header(joined) + data
        return Delivery(header.chunk_id, header.chunk_id + records, len(head), head, None)

    # Fetching

    def _is_verified(self) -> bool:
        """Tell whether what begins here has been checked; if not, wait for it."""
        if self.position >= self._verified_to:
            self._verified_to = max(self.log.index.verified_end(self.position), self.position)
            if self.position >= self.log.trusted_position:
                self._verified_to = NO_END
        if self.position < self._verified_to:
            return True
        self._is_waiting = True
        self._check_ahead()
        return False

    def _check_ahead(self) -> None:
        """Have what follows the verified bytes checked, unless that is under way."""
        position = self._verified_to
        if not self._is_checking and position < self.log.trusted_position:
            self._is_checking = True
            self._check(position, self.log.index.span_end(position, self._ahead_bytes))

    def _check(self, position: int, end: int) -> None:
        """Have the chunks in [position, end) checked: whole spans, if the index is right."""
        trusted = self.log.trusted_position
        size = min(end - position, trusted - position, APPEND_BYTES_MAX)

        def done(outcome: tuple[int, int] | StoreError) -> None:
            self._is_checking = False
            if isinstance(outcome, StoreError):
                self._failed(outcome)
                return
            reason, consumed = outcome
            if consumed:
                reached = position + consumed
                self._verified_to = max(self._verified_to, reached)
                self.log.index.verify(position, reached, is_rest_trusted=reached == trusted)
            elif reason == NEEDS_BYTES and size < min(trusted - position, APPEND_BYTES_MAX):
                self._is_checking = True
                self._check(position, trusted)  # an end that is not a chunk's: the index is wrong
                return
            elif reason == BAD_CRC:
                self._skip_bad(position, reason)
            else:
                self._search(position, reason)
                return
            if self._is_waiting:
                self._woken()

        self.log.reader.check(position, size, verify, done=done, fills=True)

    def _search(self, position: int, reason: int) -> None:
        """Go past what is no chunk, to the next whole one."""
        self._is_checking = True
        index = self.log.index
        end = min(index.span_end(position, 0), self.log.trusted_position)
        known = index.first_from(end)
        end_offset = index.offsets[known] if known < len(index) else self.log.committed_next_offset
        before = index.first_from(position + 1)
        first_offset = index.offsets[before - 1] if before else 0

        def done(outcome: int | StoreError | None) -> None:
            self._is_checking = False
            if isinstance(outcome, StoreError):
                self._failed(outcome)
                return
            self._skip_bad(position, reason, None if outcome is None else position + outcome)
            if self._is_waiting:
                self._woken()

        self.log.reader.check(
            position,
            min(end - position, APPEND_BYTES_MAX),
            lambda view: next_chunk(view, first_offset, end_offset),
            done=done,
            fills=True,
        )

    def _fetch(self, position: int, size: int) -> None:
        """Have bytes (and some of what follows) read into memory by the store's thread, then wake.

        The bytes are dropped: they stay with the operating system.
        """
        self._is_waiting = True
        size = max(size, min(self.log.committed_length - position, self._ahead_bytes))

        def done(outcome: int | StoreError) -> None:
            if isinstance(outcome, StoreError):
                self._failed(outcome)
            else:
                self._woken()

        self.log.reader.check(position, min(size, APPEND_BYTES_MAX), len, done=done)

    def _failed(self, error: StoreError) -> None:
        """Go on after the oldest chunks were given up; else the stream cannot be read."""
        if isinstance(error, SegmentTruncated):
            self._woken()
        elif not self._is_closed:
            self.log.read_failed(error)

    def _skip_bad(self, position: int, reason: int, found: int | None = None) -> None:
        """Go past what is damaged: it is not delivered.

        That is one chunk if only its data is; if its sizes cannot be trusted, all up to the next
        chunk that was `found` or that the index knows.
        """
        end = min(self.log.index.span_end(position, 0), self.log.committed_length)
        if position < self.log.trusted_position:
            end = min(end, self.log.trusted_position)
        head = self.log.reader.read_cached(position, EVENT_HEAD_BYTES)
        if reason == BAD_CRC and head is not None and len(head) == EVENT_HEAD_BYTES:
            end = position + EVENT_HEAD_BYTES + int.from_bytes(head[4:], "big")
        end = end if found is None else found
        log.error(
            "damaged chunk is not delivered stream=%s position=%d bytes=%d",
            self.log.stream,
            position,
            end - position,
        )
        self._verified_to = end
        if self.position == position:
            self.position = end
        else:
            self._damaged.append((position, end))


def verify(view: memoryview) -> tuple[int, int]:
    """Check the CRC of all whole chunks of stored bytes; thread-safe.

    Returns:
        As `verify_chunks`: the reason it stopped, and where.
    """
    reason, end, chunks = walk_chunks(view, 0, len(view))
    if len(chunks) * _SMALL_BYTES > len(view):
        return verify_chunks(view, 0, len(view), CRC_TABLE)
    for place, _, _, _, _, _, data_bytes, _ in chunks:
        data = place + DATA_POSITION
        crc = int.from_bytes(view[place + CRC_POSITION : place + CRC_POSITION + 4], "big")
        if crc32(view[data : data + data_bytes]) != crc:
            return BAD_CRC, place
    return reason, end

# cython: language_level=3, annotation_typing=False, nonecheck=True
"""A reader of one stream that gives one chunk at a time, ready to be sent.

A large chunk is given as a region of a file (for sendfile). Small chunks in a row are joined into
one. Bytes that may not be in memory are first read by a thread of the store, which also checks them
if this process did not write them. `next` then gives nothing; `wake` is called when they are there.
"""

import logging
from collections.abc import Callable
from typing import Final

from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.kernel.chunks import (
    MALFORMED,
    NEEDS_BYTES,
    NOT_JOINABLE,
    join_chunks,
)
from gateway.log.log import Readers, StreamLog
from gateway.log.open_chunk import ChunkDelivery
from gateway.log.reading.filter_scan import Sieve
from gateway.log.reading.known_chunks import find_behind, say_damaged
from gateway.log.reading.lookahead import PIECES_AHEAD, Lookahead
from gateway.pending import nothing
from hutch.formats.chunk import (
    ALONE_BYTES,
    DATA_POSITION,
    EVENT_HEAD_BYTES,
    HEADER_BYTES,
    crc32,
    pack_header,
    unpack_header,
)
from store.api import APPEND_BYTES_MAX
from store.errors import NoSuchSegment, SegmentTruncated, StoreClosed, StoreError

log = logging.getLogger(__name__)

_GLANCE_BYTES: Final = 4096
_WARM_BYTES: Final = 64 * 1024 * 1024
"""The last bytes of a stream that are taken to be in memory without asking."""
_CHECK_BYTES: Final = 8 * 1024 * 1024
"""Bytes that are read and checked at once."""
_AHEAD_BYTES: Final = PIECES_AHEAD * _CHECK_BYTES


class Cursor:
    """Reads chunks from `position` on, or those of them that a filter lets through.

    Attributes:
        is_sifting: `next` gave nothing because it had already passed many chunks that the filter
            does not let through. Call it again after others had their turn.
        failure: Why the bytes here cannot be read; the cursor gives nothing more then.
        next_offset: The offset behind the last record that was given.
        failed_at: The position where reading failed once.
        takes_shared: It may give what another reader got, joined as that one wanted it.
    """

    def __init__(
        self,
        stream_log: StreamLog,
        position: int,
        wake: Callable[[], object],
        *,
        chunk_bytes_max: int,
        takes_regions: bool,
        wanted: SubscriptionFilter | None = None,
    ) -> None:
        self.log = stream_log
        self.position = position
        self._wake = wake
        self._takes_regions = takes_regions
        self._joined_bytes_max = chunk_bytes_max - HEADER_BYTES
        self._window_bytes = _GLANCE_BYTES
        self.next_offset = 0
        self._is_waiting = False
        self._is_closed = False
        self._was_late = False
        self.failure: StoreError | None = None
        self.failed_at = -1
        self._fetched_at = -1  # the position that was fetched last
        self.is_sifting = False
        self._sieve = None if wanted is None else Sieve(stream_log, wanted)
        self.takes_shared = wanted is None
        # A reader with a filter skips most of the stream, so little is read ahead for it.
        self._ahead_bytes = 0 if wanted else _CHECK_BYTES
        self._call_woken = self._woken  # made once: each look-up makes an object
        self._lookahead = Lookahead(
            stream_log, position, self._ahead_bytes, self._call_woken, self._end_or_retry
        )

    def close(self) -> None:
        """Stop; `wake` is not called any more, and nothing here refers back to the reader."""
        self._is_closed = True
        self.log.readers.forget(self._call_woken)
        self._wake = self._call_woken = nothing
        self._lookahead.close()

    def next(self, scratch: bytearray) -> ChunkDelivery | None:
        """Return the next chunk. None: `wake` will be called when there may be one.

        Args:
            scratch: Room for a joined chunk's data, with any content.
        """
        self.is_sifting = False
        if self._is_waiting or self._is_closed or self.failure is not None:
            return None
        readers = self.log.readers
        if readers.shared_at == self.position and self.takes_shared and self.log.failure is None:
            return self._take_shared(readers)
        try:
            return self._find_next(scratch)
        except StoreError as error:
            self._failed(error)
            return None

    def _take_shared(self, readers: Readers) -> ChunkDelivery:
        """Return the delivery of another reader here, or of the chunk in memory at its commit."""
        delivery = readers.shared
        assert delivery is not None
        self.position = readers.shared_end
        self.next_offset = delivery.next_offset
        return delivery

    def _find_next(self, scratch: bytearray) -> ChunkDelivery | None:
        """Look for the next chunk. Raises StoreError if the bytes here cannot be read."""
        delivery = None
        ahead = self._lookahead
        while (
            delivery is None
            and not self._is_waiting
            and not self.is_sifting
            and self.log.failure is None
        ):
            self._step_over()
            available = self.log.committed_length - self.position
            if available <= 0:
                self._is_waiting = True
                self.log.readers.when_more(self._call_woken)
            elif self._sieve is not None and not (available := self._sift(self._sieve)):
                continue
            elif self.position < ahead.verified_to or ahead.is_verified(self.position):
                begin = self.position
                delivery = self.take_here(available, scratch)
                if delivery is not None and delivery.chunk_id < self.next_offset:
                    self._refuse(begin, delivery)
                    delivery = None
            else:
                self._is_waiting = True
        if delivery is not None:
            self.next_offset = delivery.next_offset
        if self._sieve is None and self.position + _AHEAD_BYTES > ahead.verified_to:
            ahead.go_on(self.position)
        return delivery

    def _step_over(self) -> None:
        """Skip chunks that were truncated or are known to be damaged."""
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
        if self._lookahead.damaged:
            self.position = self._lookahead.past_damage(self.position)

    def _sift(self, sieve: Sieve) -> int:
        """Skip to the next chunk of the filter; return its size in bytes, 0 if it is not known."""
        end = self.log.committed_length
        self.position, size = sieve.sift(self.position, end)
        if sieve.missing is not None:
            self.fetch(*sieve.missing, fills=True)  # the sieve leaves what does not come
        elif sieve.loading is not None:
            self._is_waiting = True
            sieve.loading.when_settled(self._call_woken)
        self.is_sifting = not size and not self._is_waiting and self.position < end
        return size

    def take_here(self, available: int, scratch: bytearray) -> ChunkDelivery | None:
        """Return the chunk at the cursor; None if it has to be fetched, or was damaged."""
        readers, begin = self.log.readers, self.position
        if self.failed_at == begin:
            self._window_bytes = DATA_POSITION  # one chunk, and nothing behind it
        glance_bytes = min(available, self._window_bytes, _GLANCE_BYTES)
        glance = self.log.reader.read_cached(begin, glance_bytes)
        if glance is None or len(glance) < DATA_POSITION:
            self.fetch(begin, DATA_POSITION)
            return None
        event_bytes = EVENT_HEAD_BYTES + int.from_bytes(glance[4:8], "big")
        if event_bytes > available:
            self.skip_bad(MALFORMED)
            return None
        if event_bytes >= ALONE_BYTES:
            return self._alone(glance, event_bytes)
        delivery = self._joined(glance, event_bytes, available, scratch)
        if delivery is not None and self._sieve is None and readers.has_company:
            readers.share(begin, self.position, delivery)
        return delivery

    def _woken(self) -> None:
        self._is_waiting = False
        if not self._is_closed:
            self._wake()

    # Giving

    def _alone(self, glance: bytes, event_bytes: int) -> ChunkDelivery | None:
        """Return one stored chunk from its file (as bytes for a connection without sendfile)."""
        reader = self.log.reader
        header = unpack_header(glance, EVENT_HEAD_BYTES)
        size = HEADER_BYTES + header.data_bytes
        position = self.position + EVENT_HEAD_BYTES
        if EVENT_HEAD_BYTES + size > event_bytes:
            self.skip_bad(MALFORMED)
            return None
        is_recent = self.position >= max(
            self.log.committed_length - _WARM_BYTES, self.log.index.trusted_position
        )
        takes_region = self._takes_regions
        if not is_recent and not reader.is_cached(position, size):
            if self._fetched_at != self.position:
                self._fetched_at = self.position
                self.fetch(self.position, event_bytes)
                return None
            takes_region = False  # the system has dropped it, the store has not
        region = reader.region(position, size) if takes_region else None
        if region is not None and region.size < size:  # damage may put it into two files
            region.release()
            region = None
        head = b""
        if region is None:
            head = self._whole(glance, EVENT_HEAD_BYTES, size)
            if len(head) < size:
                self.fetch(self.position, event_bytes)
                return None
        self.position += event_bytes
        return ChunkDelivery(header.chunk_id, header.chunk_id + header.records, size, head, region)

    def _refuse(self, begin: int, delivery: ChunkDelivery) -> None:
        """Drop a chunk that lies behind higher offsets: it is in the wrong place."""
        if delivery.region is not None:
            delivery.region.release()
        say_damaged(self.log, begin, self.position)

    def _whole(self, glance: bytes, place: int, size: int) -> bytes:
        """Read bytes at a place behind the cursor; short if some of them are not there.

        They may come in pieces. Damage may spread them over two files. Bytes that were only just
        fetched are partly in the glance, so that a store need give them only once.
        """
        data = self.read(self.position + place, size)
        if len(data) < size:
            behind = len(glance)
            rest = self.read(self.position + behind, place + size - behind)
            data = glance[place : place + size] + rest
        return data

    def read(self, position: int, size: int) -> bytes:
        """Read cached bytes, in as many pieces as the store gives; short if some are not there."""
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
    ) -> ChunkDelivery | None:
        """Return a run of small chunks as one, or the first as it is if it must go alone."""
        source = glance
        wanted = min(available, max(self._window_bytes, event_bytes))
        if len(glance) < wanted:
            source = self.log.reader.read_cached(self.position, wanted) or b""
        if len(source) < event_bytes:
            source = self._whole(glance, 0, event_bytes)
        if len(source) < event_bytes:
            self.fetch(self.position, event_bytes)
            return None
        reason, place, written, count, records = join_chunks(
            source,
            len(source),
            scratch,
            self._joined_bytes_max,
            self.log.seal_seed,
        )
        # Read more at once only while chunks are joined; others would be read repeatedly.
        if reason == NEEDS_BYTES:
            self._window_bytes = min(self._window_bytes * 4, self._joined_bytes_max)
        elif count <= 1:
            self._window_bytes = _GLANCE_BYTES
        header = unpack_header(source, EVENT_HEAD_BYTES)
        if count == 0 and reason != NOT_JOINABLE:
            self.skip_bad(reason, find_behind(self.log, self.position, source, reason))
            return None
        if count <= 1:
            self.position += event_bytes
            size = HEADER_BYTES + header.data_bytes
            head = source[EVENT_HEAD_BYTES : EVENT_HEAD_BYTES + size]
            return ChunkDelivery(
                header.chunk_id, header.chunk_id + header.records, size, head, None
            )
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
        return ChunkDelivery(header.chunk_id, header.chunk_id + records, len(head), head, None)

    # Fetching

    def fetch(self, position: int, size: int, *, fills: bool = False) -> None:
        """Have the store's thread read bytes (and some that follow) into memory, then wake.

        The bytes are dropped here: they stay in the operating system's cache.
        """
        self._is_waiting = True
        if self.failed_at != self.position:
            size = max(size, min(self.log.committed_length - position, self._ahead_bytes))

        def done(outcome: int | StoreError) -> None:
            if isinstance(outcome, StoreError):
                self._failed(outcome)
            else:
                self._woken()

        size = min(size, APPEND_BYTES_MAX)
        self.log.reader.check(position, size, len, done=done, fills=fills)

    def _failed(self, error: StoreError) -> None:
        """Try again, but only once at a position."""
        is_again = self.failed_at == self.position
        self.failed_at = self.position
        self._end_or_retry(error, is_again)

    def _end_or_retry(self, error: StoreError, is_again: bool) -> None:  # noqa: FBT001 - a callback
        """Go on after a failure; a second one at its position ends this reader alone."""
        if self._is_closed:
            return
        if isinstance(error, NoSuchSegment | StoreClosed):
            self.log.fail(error)
            return
        if is_again and not isinstance(error, SegmentTruncated):
            self.failure = error
            log.error(
                "stream cannot be read stream=%s position=%d error=%s",
                self.log.stream,
                self.position,
                error,
            )
        self._woken()

    def skip_bad(self, reason: int, found: int = 0) -> None:
        """Skip the damaged bytes here, up to the next chunk (at `found`, if one was found)."""
        self.position = self._lookahead.skip(self.position, reason, found)

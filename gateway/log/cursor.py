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
    MALFORMED,
    NEEDS_BYTES,
    NOT_JOINABLE,
    join_chunks,
)
from gateway.log.log import StreamLog
from gateway.log.salvage import next_chunk
from gateway.log.sieve import Sieve
from gateway.log.skipping import ONE_CHUNK, end_of_damage, find_behind, say_damaged
from gateway.log.verifying import Verified, verify
from store.api import APPEND_BYTES_MAX, FileRegion
from store.errors import NoSuchSegment, SegmentTruncated, StoreClosed, StoreError

log = logging.getLogger(__name__)

_GLANCE_BYTES: Final = 4096
_ALONE_BYTES: Final = 64 * 1024
"""A chunk of this size goes alone, from its file; smaller ones are worth a copy to be joined."""
_WARM_BYTES: Final = 64 * 1024 * 1024
"""What was written this recently is taken to be in memory without asking."""
_CHECK_BYTES: Final = 4 * 1024 * 1024
"""What is read and checked at once, and how far ahead of the cursor."""


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
        failure: Why what lies here cannot be read; nothing more is given then.
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
        # Checked from the start of a span on: its offset is in the index.
        self._verified_to = position
        if position < stream_log.trusted_position:
            self._verified_to = max(stream_log.index.span_start(position), stream_log.start)
        self._known: tuple[int, int | None] = (0, None)
        """A position behind checked chunks, and the offset of the next one."""
        self._next_offset = 0
        """Behind what was given last."""
        self._damaged: deque[tuple[int, int]] = deque()
        self._is_waiting = False
        self._is_checking = False
        self._is_closed = False
        self._was_late = False
        self.failure: StoreError | None = None
        # Where reading, and checking, failed once.
        self._failed_at = self._unchecked_at = -1
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
        if self._is_waiting or self._is_closed or self.failure is not None:
            return None
        try:
            return self._find_next(scratch)
        except StoreError as error:
            self._failed(error)
            return None

    def _find_next(self, scratch: bytearray) -> Delivery | None:
        """Look for the next chunk. Raises StoreError: what is here cannot be read."""
        delivery = None
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
                self.log.when_more(self._woken)
            elif self._sieve is not None and not (available := self._sift(self._sieve)):
                continue
            elif self.position < self._verified_to or self._is_verified():
                begin = self.position
                delivery = self._next(available, scratch)
                if delivery is not None and delivery.chunk_id < self._next_offset:
                    self._refuse(begin, delivery)
                    delivery = None
        if delivery is not None:
            self._next_offset = delivery.next_offset
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
            self._fetch(*sieve.missing, fills=True)  # the sieve leaves what does not come
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
        if self._failed_at == begin:
            self._window_bytes = DATA_POSITION  # one chunk, and nothing behind it
        glance_bytes = min(available, self._window_bytes, _GLANCE_BYTES)
        glance = self.log.reader.read_cached(begin, glance_bytes)
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
        if region is not None and region.size < size:  # damage may put it into two files
            region.release()
            region = None
        head = b""
        if region is None:
            head = self._read(position, size)
            if len(head) < size:
                self._fetch(self.position, event_bytes)
                return None
        self.position += event_bytes
        return Delivery(header.chunk_id, header.chunk_id + header.records, size, head, region)

    def _refuse(self, begin: int, delivery: Delivery) -> None:
        """Drop what was found behind higher offsets: it lies in the wrong place."""
        if delivery.region is not None:
            delivery.region.release()
        say_damaged(self.log, begin, self.position)

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
            source = self._read(self.position, event_bytes)  # damage may put it into two files
        if len(source) < event_bytes:
            self._fetch(self.position, event_bytes)
            return None
        reason, place, written, count, records = join_chunks(
            source,
            len(source),
            scratch,
            self._joined_bytes_max,
            CRC_TABLE,
            self.log.seals.seed,
            self.log.seals.begin - self.position,
        )
        # Read more at once only while it is joined: what is not would be read again and again.
        if reason == NEEDS_BYTES:
            self._window_bytes = min(self._window_bytes * 4, self._joined_bytes_max)
        elif count <= 1:
            self._window_bytes = _GLANCE_BYTES
        header = unpack_header(source, EVENT_HEAD_BYTES)
        if count == 0 and reason != NOT_JOINABLE:
            self._skip_bad(
                self.position, reason, find_behind(self.log, self.position, source, reason)
            )
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
            index = self.log.index
            verified_end = index.verified_end(self.position)
            if self.position >= self.log.trusted_position:
                self._verified_to = NO_END
            elif verified_end > self.position:
                self._verified_to = verified_end
            else:
                span_start = max(index.span_start(self.position), self.log.start)
                self._verified_to = max(self._verified_to, span_start)
        if self.position < self._verified_to:
            return True
        self._is_waiting = True
        self._check_ahead()
        return False

    def _check_ahead(self) -> None:
        """Have what follows the verified bytes checked, unless that is under way."""
        position = self._verified_to
        if self._is_checking or position >= self.log.trusted_position:
            return
        if self._unchecked_at != position:
            self._is_checking = True
            self._check(position, self.log.index.span_end(position, self._ahead_bytes))
        elif self._is_waiting:  # the cursor has come to what could not be read: by one chunk
            head = self.log.reader.read_cached(position, EVENT_HEAD_BYTES) or b""
            self._is_checking = True
            event_bytes = EVENT_HEAD_BYTES + int.from_bytes(head[4:], "big")
            self._check(position, position + max(event_bytes, DATA_POSITION))

    def _check(self, position: int, end: int) -> None:
        """Have the chunks in [position, end) checked: whole spans, if the index is right."""
        size = min(end - position, self.log.trusted_position - position, APPEND_BYTES_MAX)
        known_at, known = self._known
        first = known if known_at == position else None
        marks = self.log.marks(position, position + size)
        seals = self.log.seals.behind(position)
        self.log.reader.check(
            position,
            size,
            lambda view: verify(view, seals, first, None, marks),
            done=lambda outcome: self._looked(position, size, outcome),
            fills=True,
        )

    def _looked(self, position: int, size: int, outcome: Verified | StoreError) -> None:
        """Go on with what a check found."""
        self._is_checking = False
        rest = min(self.log.trusted_position - position, APPEND_BYTES_MAX)
        if isinstance(outcome, StoreError):
            is_again = self._unchecked_at == position
            self._unchecked_at = position
            self._failed(outcome, is_again=is_again)
            return
        if outcome.end:
            self._checked(position, outcome)
        elif outcome.reason == NEEDS_BYTES and size < rest:
            self._is_checking = True
            # An end that is not a chunk's: the index is wrong.
            self._check(position, self.log.trusted_position)
            return
        elif outcome.reason in ONE_CHUNK:
            self._skip_bad(position, outcome.reason, position + outcome.damaged_bytes)
            self._known = self._verified_to, outcome.following
        elif self.log.start < position < min(self.position, self.log.seals.begin):
            self._distrust(position)
        else:
            self._search(position, outcome.reason)
            return
        if self._is_waiting:
            self._woken()

    def _checked(self, position: int, outcome: Verified) -> None:
        """Note that chunks from `position` on are sound."""
        index, reached = self.log.index, position + outcome.end
        self._verified_to = max(self._verified_to, reached)
        self._known = reached, outcome.next
        if outcome.first is not None and index.offset_at(position) not in {None, outcome.first}:
            log.warning("index is wrong stream=%s position=%d", self.log.stream, position)
            index.correct(position, outcome.first)
        is_rest_trusted = reached == self.log.trusted_position
        index.verify(position, reached, is_rest_trusted=is_rest_trusted)

    def _distrust(self, position: int) -> None:
        """Go on where no chunk without a seal begins between a span's start and the cursor in it.

        If the index says so, it is wrong; else there is damage, and the cursor is behind it.
        """
        index = self.log.index
        if index.offset_at(position) is None:
            self._verified_to = self.position
            return
        log.warning("index is wrong stream=%s position=%d", self.log.stream, position)
        index.drop(position)
        self._verified_to = max(index.span_start(self.position), self.log.start)

    def _search(self, position: int, reason: int) -> None:
        """Go past what is no chunk, to the next whole one."""
        self._is_checking = True
        size, first_offset, end_offset = self.log.span_around(position)
        seals = self.log.seals.behind(position)

        def done(outcome: int | StoreError | None) -> None:
            self._is_checking = False
            if isinstance(outcome, StoreError):
                self._failed(outcome)
                return
            self._skip_bad(position, reason, 0 if outcome is None else position + outcome)
            if self._is_waiting:
                self._woken()

        self.log.reader.check(
            position,
            min(size, APPEND_BYTES_MAX),
            lambda view: next_chunk(view, seals, first_offset, end_offset),
            done=done,
            fills=True,
        )

    def _fetch(self, position: int, size: int, *, fills: bool = False) -> None:
        """Have bytes (and some of what follows) read into memory by the store's thread, then wake.

        The bytes are dropped: they stay with the operating system.
        """
        self._is_waiting = True
        if self._failed_at != self.position:
            size = max(size, min(self.log.committed_length - position, self._ahead_bytes))

        def done(outcome: int | StoreError) -> None:
            if isinstance(outcome, StoreError):
                self._failed(outcome)
            else:
                self._woken()

        size = min(size, APPEND_BYTES_MAX)
        self.log.reader.check(position, size, len, done=done, fills=fills)

    def _failed(self, error: StoreError, *, is_again: bool | None = None) -> None:
        """Try again, once at a place; what cannot be read then ends this reader and no other."""
        if self._is_closed:
            return
        if isinstance(error, NoSuchSegment | StoreClosed):
            self.log.read_failed(error)
            return
        if is_again is None:
            is_again = self._failed_at == self.position
            self._failed_at = self.position
        if is_again and not isinstance(error, SegmentTruncated):
            self.failure = error
            log.error(
                "stream cannot be read stream=%s position=%d error=%s",
                self.log.stream,
                self.position,
                error,
            )
        self._woken()

    def _skip_bad(self, position: int, reason: int, found: int = 0) -> None:
        """Go past what is damaged, to the next chunk that was `found`: it is not delivered."""
        end = found if found > position else end_of_damage(self.log, position, reason)
        say_damaged(self.log, position, end)
        self._verified_to = end
        if self.position == position:
            self.position = end
        else:
            self._damaged.append((position, end))

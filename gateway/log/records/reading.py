"""Records out of a stream's log, from an exact offset on, with their offsets and times.

They are taken from the stored chunks, one chunk at a time. Each call gives a run of adjacent
records of a chunk, or one sub-batch. The cursor beneath reads from the disk, and checks the chunks:
no call here waits.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.log.chunk import HEADER_BYTES, unpack_header
from gateway.log.entries import (
    RECORD_HEAD,
    SUB_BATCH_FLAG,
    UNCOMPRESSED_BYTES_MAX,
    SubBatch,
    sub_batch_at,
)
from gateway.log.locating import StartKind, locate, tell_removed
from gateway.log.log import StreamLog
from gateway.log.open_chunk import Delivery
from gateway.log.records.decompressing import CODECS
from gateway.log.records.stored_chunks import StoredChunks
from gateway.log.sub_batches import BadSubBatch, require_records, uncompressed
from store.errors import StoreError

Record = tuple[int, int, bytes]
"""A record's offset, the time of its chunk in milliseconds since 1970, and its bytes."""

_NO_SCRATCH: Final = bytearray()
_FIRST_SUB_BATCH_HEAD: Final = SUB_BATCH_FLAG << 24
"""The lowest u32 that is a sub-batch's head."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A sub-batch whose records cannot be given.

    Attributes:
        offset: Offset of the first of them that was wanted.
        next_offset: Offset behind the last of them.
        timestamp_ms: Timestamp of the chunk.
        reason: What is wrong with it: a clause that says what a publisher sent.
        body: Its bytes as they were sent, without its head; None if the first of its records was
            not wanted, so that of two readers that meet within it one alone has them.
    """

    offset: int
    next_offset: int
    timestamp_ms: int
    reason: str
    body: bytes | None


class RecordReader:
    """Gives the records of a stream in order, and waits at its tail for more.

    Damaged chunks are skipped, and so are records that were removed before they were read: the
    offsets then have a gap. They never go back.

    Attributes:
        next_offset: Offset of the next wanted record; none before it is given any more.
    """

    def __init__(
        self,
        stream_log: StreamLog,
        position: int,
        offset: int,
        wake: Callable[[], object],
        *,
        sub_batch_bytes_max: int = UNCOMPRESSED_BYTES_MAX,
        stays_at_bad: bool = False,
    ) -> None:
        """Begin at a chunk; see `reader_from` for how it is found.

        Args:
            stream_log: The stream's open log.
            position: Position of the chunk with `offset`, or of one before it.
            offset: Offset of the first wanted record. It may lie behind the tail.
            wake: Called when `next` may have records again after it had none.
            sub_batch_bytes_max: The largest uncompressed size of a sub-batch that is opened.
            stays_at_bad: Whether it goes no further than a sub-batch that cannot be opened, and
                gives it again at each call.
        """
        self.next_offset = offset
        self._sub_batch_bytes_max = sub_batch_bytes_max
        self._stays_at_bad = stays_at_bad
        self._chunks = StoredChunks(stream_log, position, wake)
        # The chunk being decoded: header and data, the place to go on, and the offset there.
        self._chunk = b""
        self._place = 0
        self._offset = 0
        self._timestamp_ms = 0

    @property
    def failure(self) -> StoreError | None:
        """The reason why the next bytes cannot be read; the reader gives nothing more then."""
        return self._chunks.failure or self._chunks.log.failure

    def close(self) -> None:
        """Give nothing more; `wake` is not called any more."""
        self._chunk = b""
        self._chunks.close()

    def next(self) -> list[Record] | Unreadable | None:
        """Return the next records, all of one chunk, or a sub-batch that cannot be opened.

        None: there is no record now, and `wake` will be called; or there is a `failure`.
        """
        found: list[Record] | Unreadable | None = None
        while not found:
            while self._place >= len(self._chunk):
                chunk = self._chunks.next(_NO_SCRATCH)
                if chunk is None:
                    self._chunk = b""
                    return None
                self._begin(chunk)
            found = self._take()
        return found

    def _begin(self, chunk: Delivery) -> None:
        header = unpack_header(chunk.head, 0)
        self._chunk, self._place = chunk.head, HEADER_BYTES
        self._offset, self._timestamp_ms = header.chunk_id, header.timestamp_ms

    def _take(self) -> list[Record] | Unreadable:
        """Take the records up to the next sub-batch, or one sub-batch; empty if none is wanted."""
        chunk, offset, wanted = self._chunk, self._offset, self.next_offset
        found: list[Record] | Unreadable
        if chunk[self._place] & SUB_BATCH_FLAG:
            sub_batch = sub_batch_at(chunk, self._place)
            end, behind = sub_batch.end, offset + sub_batch.records
            found = [] if behind <= wanted else self._opened(sub_batch, offset)
        else:
            found, end = _records_in(chunk, self._place, offset, self._timestamp_ms)
            behind = offset + len(found)
        if isinstance(found, Unreadable):
            if self._stays_at_bad:
                return found
        elif offset < wanted:
            del found[: wanted - offset]
        self._place, self._offset = end, behind
        self.next_offset = max(wanted, behind)
        return found

    def _opened(self, sub_batch: SubBatch, offset: int) -> list[Record] | Unreadable:
        """Return the records of a sub-batch whose first record has this offset."""
        try:
            raw = uncompressed(self._chunk, sub_batch, CODECS, self._sub_batch_bytes_max)
            found, end = _records_in(raw, 0, offset, self._timestamp_ms)
            require_records(sub_batch, len(raw), len(found), end)
        except BadSubBatch as error:
            is_first_wanted = offset >= self.next_offset
            return Unreadable(
                max(offset, self.next_offset),
                offset + sub_batch.records,
                self._timestamp_ms,
                str(error),
                self._chunk[sub_batch.start : sub_batch.end] if is_first_wanted else None,
            )
        return found


async def reader_from(
    stream_log: StreamLog,
    offset: int,
    wake: Callable[[], object],
    *,
    sub_batch_bytes_max: int = UNCOMPRESSED_BYTES_MAX,
    stays_at_bad: bool = False,
) -> RecordReader:
    """Return a reader whose first record has this offset, or the oldest one that is left.

    For the arguments see RecordReader.

    Raises:
        StoreError: The segment cannot be read.
        CorruptChunk: It does not hold chunks where it should.
    """
    start = await locate(stream_log, StartKind.OFFSET, offset)
    tell_removed(stream_log, offset)
    return RecordReader(
        stream_log,
        start.position,
        offset,
        wake,
        sub_batch_bytes_max=sub_batch_bytes_max,
        stays_at_bad=stays_at_bad,
    )


def _records_in(
    source: bytes, position: int, offset: int, timestamp_ms: int
) -> tuple[list[Record], int]:
    """Take records from a position on, up to a sub-batch or the end; return where they end.

    They end behind the end if the last one is cut off, or its head, which is no record then.
    """
    # The loop takes a fifth of a microsecond a record, and makes no call to our functions.
    found: list[Record] = []
    add, head_at, head_bytes = found.append, RECORD_HEAD.unpack_from, RECORD_HEAD.size
    limit = len(source)
    try:
        while position < limit:
            (size,) = head_at(source, position)
            if size >= _FIRST_SUB_BATCH_HEAD:
                break
            start = position + head_bytes
            position = start + size
            add((offset, timestamp_ms, source[start:position]))
            offset += 1
    except struct.error:
        return found, limit + 1
    return found, position

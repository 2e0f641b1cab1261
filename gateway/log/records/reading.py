"""Records out of a stream's log, from an exact offset on, with their offsets and times.

They are taken from the stored chunks, one chunk at a time. Each call gives a run of adjacent
records of a chunk, or of one sub-batch. The cursor beneath reads from the disk, and checks the
chunks. Large sub-batches are opened on a thread. No call here waits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from mmap import mmap
from typing import Final

from gateway.log.kernel.records import behind
from gateway.log.log import StreamLog
from gateway.log.open_chunk import ChunkDelivery
from gateway.log.reading.locations import StartKind, locate, tell_removed
from gateway.log.records.decompressing import (
    CODECS,
    LARGE_BYTES,
    check_records,
    decompressed_apart,
)
from gateway.log.records.openings import Make, Opener, SubBatchOpening
from gateway.log.records.stored_chunks import StoredChunks
from hutch.formats.chunk import HEADER_BYTES, unpack_header
from hutch.formats.entries import (
    RECORD_HEAD,
    SUB_BATCH_FLAG,
    UNCOMPRESSED_BYTES_MAX,
    SubBatch,
    SubBatchCodec,
    sub_batch_at,
)
from hutch.formats.sub_batches import BadSubBatch, uncompressed
from store.errors import StoreError

Record = tuple[int, int, bytes]
"""A record's offset, the time of its chunk in milliseconds since 1970, and its bytes."""

_NO_SCRATCH: Final = bytearray()
_FIRST_SUB_BATCH_HEAD: Final = SUB_BATCH_FLAG << 24
"""The lowest u32 that is a sub-batch's head."""
_RUN_BYTES: Final = 64 * 1024
"""A run of records ends behind the one that reaches this: some 3 ms where all are empty."""


@dataclass(frozen=True, slots=True)
class UnreadableSubBatch:
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
    """Reader of the records of a stream in order; waits at its tail for more.

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
        opener: Opener | None = None,
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
            opener: Opens large sub-batches on a thread; None: they are opened in place.
        """
        self.next_offset = offset
        self._sub_batch_bytes_max = sub_batch_bytes_max
        self._stays_at_bad = stays_at_bad
        self._opener = opener
        self._wake = wake
        self._chunks = StoredChunks(stream_log, position, wake)
        # The chunk being decoded: header and data, the place to go on, and the offset there.
        self._chunk = b""
        self._place = 0
        self._offset = 0
        self._timestamp_ms = 0
        # The large sub-batch that is open, or waits for that; the open one's records, its place in
        # them, and the offset there; the one that it stays at.
        self._opening: SubBatchOpening | None = None
        self._opened: bytes | mmap = b""
        self._opened_bytes = self._opened_place = self._opened_offset = 0
        self._bad: UnreadableSubBatch | None = None
        self._failure: StoreError | None = None

    @property
    def failure(self) -> StoreError | None:
        """The reason why the next bytes cannot be read; the reader gives nothing more then."""
        return self._failure or self._chunks.failure or self._chunks.log.failure

    @property
    def holds_memory(self) -> bool:
        """True while it keeps a chunk or a large sub-batch, or others from opening theirs.

        Not while it waits for the thread: then it has nothing to give.
        """
        opening = self._opening
        if opening is not None and opening.is_being_opened:
            return False
        has_turn = opening is not None and opening.has_turn
        return bool(self._chunk) or self._opened_bytes > 0 or has_turn

    @property
    def has_sub_batch_to_itself(self) -> bool:
        """True while a large sub-batch is open and no other waits: to open it again takes long."""
        opening = self._opening
        return opening is not None and opening.outcome is not None and not opening.is_awaited

    def close(self) -> None:
        """Stop; `wake` is not called any more."""
        self._chunk, self._bad = b"", None
        self._close_sub_batch()
        self._chunks.close()

    def next(self) -> list[Record] | UnreadableSubBatch | None:
        """Return the next records, all of one chunk, or a sub-batch that cannot be opened.

        None: there is no record now, and `wake` will be called; or there is a `failure`.
        """
        found: list[Record] | UnreadableSubBatch | None = self._bad
        while not found and self._failure is None:
            if self._opened_place < self._opened_bytes:
                found = self._take_opened()
            elif self._opening is not None and not self._opening.is_ready:
                if self._opening.outcome is None:
                    return None
                found = self._begin_opened(self._opening.outcome)
            elif self._place < len(self._chunk):
                found = self._take()
            else:
                chunk = self._chunks.next(_NO_SCRATCH)
                if chunk is None:
                    return None
                self._begin(chunk)
        return found or None

    def _begin(self, chunk: ChunkDelivery) -> None:
        header = unpack_header(chunk.head, 0)
        if self._opening is not None and header.chunk_id != self._offset:
            self._close_sub_batch()  # its chunk was removed while it waited
        self._chunk, self._place = chunk.head, HEADER_BYTES
        self._offset, self._timestamp_ms = header.chunk_id, header.timestamp_ms

    def _take(self) -> list[Record] | UnreadableSubBatch:
        """Take records up to the next sub-batch, or open one; empty if none is wanted, or yet."""
        chunk, offset, wanted = self._chunk, self._offset, self.next_offset
        if chunk[self._place] & SUB_BATCH_FLAG:
            head = sub_batch_at(chunk, self._place)
            if offset + head.records > wanted:
                return self._open(head)
            self._go_behind(head)
            return []
        found, self._place = _records_in(chunk, self._place, offset, self._timestamp_ms)
        self._drop_taken()
        self._offset = offset + len(found)
        if offset < wanted:
            del found[: wanted - offset]
        self.next_offset = max(wanted, self._offset)
        return found

    def _drop_taken(self) -> None:
        """Hold no chunk of which all is taken: this may be followed by a wait at the tail."""
        if self._place >= len(self._chunk):
            self._chunk = b""

    # Sub-batches

    def _go_behind(self, head: SubBatch) -> None:
        self._place, self._offset = head.end, self._offset + head.records
        self._drop_taken()

    def _open(self, head: SubBatch) -> list[Record] | UnreadableSubBatch:
        """Open the sub-batch at the place, or have it opened, or wait for that."""
        size, most = head.uncompressed_bytes, self._sub_batch_bytes_max
        is_large = head.codec != SubBatchCodec.NONE and LARGE_BYTES < size <= most
        if is_large and self._opener is not None:
            make = partial(decompressed_apart, self._chunk, head, most)
            self._open_apart(self._opener, size, make)
            return []
        outcome: bytes | BadSubBatch
        try:
            outcome = uncompressed(self._chunk, head, CODECS, most)
            check_records(outcome, head)
        except BadSubBatch as error:
            outcome = error
        return self._begin_opened(outcome)

    def _open_apart(self, opener: Opener, size: int, make: Make) -> None:
        if self._opening is None:
            self._opening = opener.open(size, self._wake, self._give_back)
        if self._opening.has_turn:
            self._opening.begin(make)
        else:
            self._go_back()  # many may wait, for long

    def _go_back(self) -> None:
        """Have the chunk read again. Its first offset is what it is known by."""
        self._chunk, self._offset = b"", self._chunks.go_back()

    def _give_back(self) -> None:
        """Close the large sub-batch; it is opened again for the next call, in its turn."""
        if self._opening is not None and self._opening.outcome is not None:
            self._go_back()
        self._close_sub_batch()

    def _begin_opened(
        self, outcome: bytes | mmap | BaseException
    ) -> list[Record] | UnreadableSubBatch:
        """Return the first wanted records of an opened sub-batch, or why it is unreadable."""
        head = sub_batch_at(self._chunk, self._place)
        offset, wanted = self._offset, self.next_offset
        if isinstance(outcome, BadSubBatch):
            bad = self._unreadable(head, str(outcome))
            self._close_sub_batch()
            self._go_behind(head)
            if self._stays_at_bad:
                self._bad = bad
            else:
                self.next_offset = self._offset
            return bad
        if isinstance(outcome, BaseException):
            self._close_sub_batch()
            self._failure = StoreError(f"a sub-batch cannot be opened: {outcome!r}")
            return []
        self._opened, self._opened_bytes = outcome, len(outcome)
        self._opened_offset = max(offset, wanted)
        self._opened_place = behind(outcome, 0, max(wanted - offset, 0), self._opened_bytes)
        self._go_behind(head)
        return []

    def _unreadable(self, head: SubBatch, reason: str) -> UnreadableSubBatch:
        """Return the entry's description of the sub-batch at the place."""
        offset, wanted = self._offset, self.next_offset
        return UnreadableSubBatch(
            max(offset, wanted),
            offset + head.records,
            self._timestamp_ms,
            reason,
            self._chunk[head.start : head.end] if offset >= wanted else None,
        )

    def _take_opened(self) -> list[Record]:
        """Take some records of the open sub-batch; close it behind the last one."""
        found, self._opened_place = _records_in(
            self._opened, self._opened_place, self._opened_offset, self._timestamp_ms
        )
        self._opened_offset += len(found)
        self.next_offset = self._opened_offset
        if self._opened_place == self._opened_bytes:
            self._close_sub_batch()
        return found

    def _close_sub_batch(self) -> None:
        self._opened, self._opened_bytes, self._opened_place = b"", 0, 0
        if self._opening is not None:
            self._opening.close()
            self._opening = None


async def reader_from(
    stream_log: StreamLog,
    offset: int,
    wake: Callable[[], object],
    *,
    sub_batch_bytes_max: int = UNCOMPRESSED_BYTES_MAX,
    stays_at_bad: bool = False,
    opener: Opener | None = None,
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
        opener=opener,
    )


def _records_in(
    source: bytes | mmap, position: int, offset: int, timestamp_ms: int
) -> tuple[list[Record], int]:
    """Take a run of whole records from a position on; return where it ends.

    It ends at a sub-batch, at the end of the source, or when it is long enough.
    """
    # The loop takes a fifth of a microsecond a record, and makes no call to our functions.
    found: list[Record] = []
    add, head_at, head_bytes = found.append, RECORD_HEAD.unpack_from, RECORD_HEAD.size
    limit = len(source)
    if limit - position > _RUN_BYTES:
        limit = position + _RUN_BYTES
    while position < limit:
        (size,) = head_at(source, position)
        if size >= _FIRST_SUB_BATCH_HEAD:
            break
        start = position + head_bytes
        position = start + size
        add((offset, timestamp_ms, source[start:position]))
        offset += 1
    return found, position

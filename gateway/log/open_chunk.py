# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The chunk that a stream is filling, and the buffers for it; no I/O."""

import logging
from typing import Final, Protocol

from gateway.log.derived.filters import FILTER_BYTES_MAX, fold, pack_filters
from gateway.log.kernel.sealing import copy_of, seal_chunk, unfilled
from hutch.formats.chunk import (
    DATA_POSITION,
    ENTRIES_MAX,
    EVENT_HEAD_BYTES,
    HEADER_BYTES,
    SEAL_BYTES,
    crc32,
    pack_trailer,
)
from store.api import FileRegion

log = logging.getLogger(__name__)

TRAILER_BYTES_MAX: Final = 64 * 1024
"""A chunk is closed when its trailer has this size, so that readers meet few large trailers."""

_EXCESS_BYTES: Final = 1024 + 128
_BUFFER_SIZES: Final = (4 * 1024, 16 * 1024, 64 * 1024, 256 * 1024)
_KEPT_BYTES: Final = 8 * 1024 * 1024
"""Bytes of each size that are kept for the next chunks."""
_COPIED_BYTES: Final = 4096
"""Largest complete event, in bytes, that is copied: that costs less than a view of it."""
_NO_BUFFER: Final = bytearray()
_ENTRIES_MAX: Final = ENTRIES_MAX  # numbers of C when it is compiled
_SEAL_BYTES: Final = SEAL_BYTES
_EVENT_HEAD_BYTES: Final = EVENT_HEAD_BYTES
_BURST_ENTRIES_MIN: Final = 256
"""Entries of a chunk at first, when a batch read in one go is less than half a chunk. Whenever such
chunks are full, the number doubles, as in the reference. Credit counts chunks, and `last` means the
last chunk, so one large batch must not be a single chunk."""

_KERNEL_CRC_END: Final = DATA_POSITION + 256
"""Up to here the kernel's own CRC-32 costs less than a call of the library's, which is ten times as
fast a byte."""


class ConfirmSink(Protocol):
    """A publisher, as the log sees it."""

    def confirm(self, tokens: bytes, /) -> None:
        """Take the tokens of entries that are now stored: joined, in order, not looked at."""
        ...

    def lost(self) -> None:
        """Learn that entries will never be confirmed: the log has failed."""
        ...


def confirm_all(confirms: list[tuple[ConfirmSink, bytes]]) -> None:
    """Hand every sink its tokens, in order, in one call."""
    if len(confirms) == 1:
        sink, tokens = confirms[0]
        _confirm(sink, tokens)
        return
    by_sink: dict[ConfirmSink, list[bytes]] = {}
    for sink, tokens in confirms:
        by_sink.setdefault(sink, []).append(tokens)
    for sink, parts in by_sink.items():
        _confirm(sink, parts[0] if len(parts) == 1 else b"".join(parts))


def lose_all(confirms: list[tuple[ConfirmSink, bytes]]) -> None:
    """Notify every sink once that its entries are lost."""
    for sink in {sink for sink, _ in confirms}:
        sink.lost()


def _confirm(sink: ConfirmSink, tokens: bytes) -> None:
    try:
        sink.confirm(tokens)
    except Exception:
        # One publisher's error must not harm the others, nor the stream.
        log.exception("confirming to a publisher failed")


class ChunkDelivery:
    """One chunk for a consumer: its header and data, either in memory or in a file.

    Attributes:
        chunk_id: Offset of its first record.
        next_offset: Offset after its last record.
        size: Bytes of header and data.
        head: The first bytes (all of them if there is no region).
        region: The rest.
    """

    __slots__ = ("chunk_id", "head", "next_offset", "region", "size")

    def __init__(
        self,
        chunk_id: int,
        next_offset: int,
        size: int,
        head: bytes,
        region: FileRegion | None = None,
    ) -> None:
        self.chunk_id = chunk_id
        self.next_offset = next_offset
        self.size = size
        self.head = head
        self.region = region


class ChunkBuffers:
    """Buffers for open chunks, used again and again: fresh megabytes cost page faults.

    There are several sizes, each four times the one before. A chunk begins in the smallest that
    holds what is expected, and moves on when it is full. So the memory in use follows the bytes
    that wait, and not the number of streams.
    """

    def __init__(self, chunk_bytes_max: int) -> None:
        """Begin without buffers; a chunk has at most `chunk_bytes_max` of header and data.

        A single large entry may exceed that a little.
        """
        self.chunk_end_max = chunk_bytes_max + DATA_POSITION - HEADER_BYTES
        largest = chunk_bytes_max + _EXCESS_BYTES + TRAILER_BYTES_MAX + FILTER_BYTES_MAX
        self._sizes = [*(size for size in _BUFFER_SIZES if size < largest), largest]
        self._kept: list[list[bytearray]] = [[] for _ in self._sizes]

    def take(self, bytes_expected: int) -> bytearray:
        """Return the smallest buffer with that room, or the largest; its content is any."""
        return self._take_of(self._index_of(bytes_expected))

    def _index_of(self, bytes_expected: int) -> int:
        """Return the number of the smallest size with that room, or of the largest."""
        last = len(self._sizes) - 1
        for index in range(last):
            size = self._sizes[index]
            if size >= bytes_expected:
                return index
        return last

    def _take_of(self, index: int) -> bytearray:
        kept = self._kept[index]
        return kept.pop() if kept else unfilled(self._sizes[index])

    def take_larger(self, buffer: bytearray) -> bytearray | None:
        """Return a buffer of the next size; None if there is none."""
        index = self._index_of(len(buffer)) + 1
        return self._take_of(index) if index < len(self._sizes) else None

    def give_back(self, buffer: bytearray) -> None:
        """Take a buffer back; it may not be used any more."""
        size = len(buffer)
        kept = self._kept[self._index_of(size)]
        if len(kept) * size < _KEPT_BYTES:
            kept.append(buffer)


class ChunkSizes:
    """Sizes of the next chunks of a log, by those of the last.

    Attributes:
        burst_entries_max: Entries of a chunk, when a batch read in one go is less than half a one.
        bytes_usual: Bytes that the next chunk is expected to have at most.
    """

    __slots__ = ("_buffers", "burst_entries_max", "bytes_usual")

    def __init__(self, buffers: ChunkBuffers) -> None:
        self._buffers = buffers
        self.burst_entries_max = _BURST_ENTRIES_MIN
        self.bytes_usual = 0

    def begin(self, bytes_expected: int) -> "OpenChunk":
        """Return a new chunk; the expected bytes may be for a thousand streams."""
        return OpenChunk(self._buffers, min(bytes_expected, self.bytes_usual))

    def entries_max(self, bytes_expected: int) -> int:
        """Return how many entries a chunk gets that the expected bytes are to fill."""
        is_burst = 2 * bytes_expected <= self._buffers.chunk_end_max
        return self.burst_entries_max if is_burst else ENTRIES_MAX

    def note(self, written: int, entry_count: int) -> None:
        """Note the bytes and the entries of a chunk that is complete."""
        self.bytes_usual = 2 * written
        if entry_count >= self.burst_entries_max:
            self.burst_entries_max = min(2 * entry_count, ENTRIES_MAX)
        elif 4 * entry_count < self.burst_entries_max:
            self.burst_entries_max = max(self.burst_entries_max // 2, _BURST_ENTRIES_MIN)


class OpenChunk:
    """Entries that wait for the next append, and then are being appended.

    The kernel writes into `buffer` from `written` on.
    """

    __slots__ = (
        "_buffers",
        "_filter_bytes_uncounted",
        "_filter_digests",
        "buffer",
        "capacity",
        "chunk_id",
        "confirms",
        "entries_max",
        "entry_count",
        "event_bytes",
        "filters",
        "fresh",
        "is_unit",
        "packed_filters",
        "record_count",
        "sequence_bytes",
        "sequences",
        "timestamp_ms",
        "written",
    )

    def __init__(self, buffers: ChunkBuffers, bytes_expected: int) -> None:
        self._buffers = buffers
        self.buffer = self._buffers.take(bytes_expected)
        # Trailer and filter values come behind the entries: `finish` makes room for them.
        self._set_capacity()
        self.written = DATA_POSITION
        # The log lowers this where it wants smaller chunks.
        self.entries_max = _ENTRIES_MAX
        self.entry_count = 0
        self.record_count = 0
        self.sequences: dict[bytes, int] = {}
        self.sequence_bytes = 0
        self.filters: set[bytes] | None = None
        self._filter_digests: set[bytes] | None = None
        self._filter_bytes_uncounted = 0
        self.packed_filters = b""
        # Known when it is finished.
        self.chunk_id = 0
        self.timestamp_ms = 0
        self.event_bytes = 0
        self.fresh: ChunkDelivery | None = None
        self.is_unit = False
        # In order; grouped by sink when they are due.
        self.confirms: list[tuple[ConfirmSink, bytes]] = []

    @property
    def is_full(self) -> bool:
        """True if it should be appended although an append is under way."""
        return (
            self.written >= self._buffers.chunk_end_max
            or self.entry_count == _ENTRIES_MAX
            or self.sequence_bytes >= TRAILER_BYTES_MAX
        )

    def grow(self) -> bool:
        """Move to a larger buffer; False if there is none."""
        larger = self._buffers.take_larger(self.buffer)
        if larger is None:
            return False
        larger[: self.written] = memoryview(self.buffer)[: self.written]
        self._buffers.give_back(self.buffer)
        self.buffer = larger
        self._set_capacity()
        return True

    def _set_capacity(self) -> None:
        room = len(self.buffer)
        self.capacity = min(self._buffers.chunk_end_max, room)

    def took(self, written: int, entries: int, records: int) -> None:
        """Note the entries that the kernel has copied."""
        self.written = written
        self.entry_count += entries
        self.record_count += records

    def add_confirm(self, sink: ConfirmSink, tokens: bytes) -> None:
        """Confirm entries once the chunk is stored; `tokens` tell the sink which they are."""
        self.confirms.append((sink, tokens))

    def note_sequence(self, reference: bytes, publishing_id: int) -> None:
        """Put a publisher's last id into the trailer."""
        if reference not in self.sequences:
            self.sequence_bytes += len(reference) + 10
        self.sequences[reference] = publishing_id

    def is_all_of_kind(self, *, has_value: bool) -> bool:
        """Return whether all entries have filter values, or (if not `has_value`) none has."""
        if self.filters is None:
            return not has_value
        if has_value:
            return b"" not in self.filters
        return self.filters == {b""} and not self._filter_digests

    def bound_filters(self, bytes_taken: int) -> None:
        """Replace filter values by hashes when they are large; call when some may be new.

        Args:
            bytes_taken: Upper bound of the size of the values that were added.
        """
        self._filter_bytes_uncounted += bytes_taken
        if self._filter_bytes_uncounted <= FILTER_BYTES_MAX:
            return
        self._filter_bytes_uncounted = 0
        assert self.filters is not None
        if sum(len(value) + 2 for value in self.filters) > FILTER_BYTES_MAX:
            self._filter_digests = self._filter_digests or set()
            fold(self.filters, self._filter_digests)

    def finish(
        self, chunk_id: int, epoch: int, timestamp_ms: int, seal_seed: int
    ) -> bytes | memoryview:
        """Complete the event in the buffer and return it; call `release` when it was taken.

        It is a copy if it is small, and a view if not. The chunk's other fields stay until it is
        committed and confirmed. `seal_seed` is that of the segment in which it will lie.
        """
        data_end = self.written
        rest = trailer = pack_trailer(self.sequences) if self.sequences else b""
        if self.filters is not None:
            self.packed_filters = pack_filters(self.filters, self._filter_digests)
            rest += self.packed_filters
        rest_bytes = len(rest)
        event_end = data_end + rest_bytes + _SEAL_BYTES
        while event_end > len(self.buffer) and self.grow():
            pass
        if rest:
            memoryview(self.buffer)[data_end : event_end - SEAL_BYTES] = rest
        crc = -1
        if data_end > _KERNEL_CRC_END:
            crc = crc32(memoryview(self.buffer)[DATA_POSITION:data_end])
        seal_chunk(
            self.buffer,
            data_end,
            event_end,
            self.entry_count,
            self.record_count,
            timestamp_ms,
            epoch,
            chunk_id,
            crc,
            len(trailer),
            seal_seed,
        )
        self.chunk_id = chunk_id
        self.timestamp_ms = timestamp_ms
        self.event_bytes = event_end
        if event_end <= _COPIED_BYTES:
            return copy_of(self.buffer, 0, event_end)
        return memoryview(self.buffer)[:event_end]

    def keep(self) -> None:
        """Keep the delivery of the finished chunk for a consumer: readers wait for it."""
        end = self.written
        head = copy_of(self.buffer, _EVENT_HEAD_BYTES, end)
        next_offset = self.chunk_id + self.record_count
        self.fresh = ChunkDelivery(self.chunk_id, next_offset, len(head), head)

    def release(self) -> None:
        """Release the buffer."""
        self._buffers.give_back(self.buffer)
        self.buffer = _NO_BUFFER
        self.filters = self._filter_digests = None

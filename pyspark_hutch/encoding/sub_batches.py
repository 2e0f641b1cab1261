"""The messages of one stream as sub-batches of a fixed number of rows, in Publish frames.

Each has its publishing id (u64, big-endian) in front if there is a publisher; its form is in
`hutch.formats.entries`.

Source: RabbitMQ stream protocol, Publish.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from hutch.formats.entries import (
    SUB_BATCH_RECORDS_MAX,
    UNCOMPRESSED_BYTES_MAX,
    SubBatchCodec,
    pack_sub_batch,
)
from pyspark_hutch.encoding.arrays import big_endian
from pyspark_hutch.encoding.compression import compress
from pyspark_hutch.encoding.errors import MessageTooLarge
from pyspark_hutch.encoding.frames import (
    ID_BYTES,
    SIZE_BYTES,
    FrameLimits,
    Ids,
    MessagePacker,
    Packer,
    PublishFrame,
    frame_head,
    joined,
)
from pyspark_hutch.encoding.messages import Messages, concatenate

SUB_BATCH_BYTES: Final = 8 << 20
"""Bytes of a sub-batch before compression, so that waiting rows take little memory."""
ARRAYS_BYTES: Final = 2 << 10
"""Memory of the arrays of one call that waits, without their contents; roughly."""
ROW_BYTES: Final = 32
"""Memory for each row in them: the begin of its parts, its size and its publishing id."""


class SubBatchPacker:
    """Packs messages into sub-batches of a fixed number of rows, and these into frames.

    A sub-batch that would not fit a frame is halved until it does. Rows wait for their sub-batch to
    be full over any number of calls, so between two flushes the cuts depend on the rows alone.

    Args:
        stream: Names it in errors.
        publisher_id: The publisher that is declared for the stream; None for entries alone.
        limits: Of frames.
        codec: How sub-batches are compressed.
        records: How many rows a sub-batch has, from 1 to 65,535.
        sub_batch_bytes: It is full sooner if it has so many bytes, uncompressed; a single larger
            row has its own.
    """

    def __init__(
        self,
        stream: str,
        publisher_id: int | None,
        limits: FrameLimits,
        *,
        codec: SubBatchCodec,
        records: int,
        sub_batch_bytes: int = SUB_BATCH_BYTES,
    ) -> None:
        assert 1 <= records <= SUB_BATCH_RECORDS_MAX, "the field has 16 bits"
        assert 1 <= sub_batch_bytes <= UNCOMPRESSED_BYTES_MAX, "a server refuses more"
        self._stream = stream
        self._publisher_id = publisher_id
        self._limits = limits
        self._codec = codec
        self._records = records
        self._sub_batch_bytes = sub_batch_bytes
        self._waiting: list[tuple[Messages, Ids]] = []
        self._waiting_records = 0
        self._waiting_bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """Memory of the rows that wait: their bytes, and the arrays of numpy and Arrow."""
        arrays = ARRAYS_BYTES * len(self._waiting) + ROW_BYTES * self._waiting_records
        return self._waiting_bytes + arrays

    def add(self, messages: Messages, ids: Ids) -> Iterator[PublishFrame]:
        """Return frames of the sub-batches that became full.

        Args:
            messages: Of this stream, without filter values.
            ids: Their publishing ids; a sub-batch has that of its last row.

        Raises:
            MessageTooLarge: A message alone is a sub-batch that fits no frame. Nothing is to be
                added after that.
        """
        assert len(messages) == len(ids), "each row has its publishing id"
        assert messages.filters is None, "the protocol has no filter values on sub-batches"
        self._waiting.append((messages, ids))
        self._waiting_records += len(messages)
        self._waiting_bytes += int(messages.sizes.sum()) + SIZE_BYTES * len(messages)
        if self._waiting_records < self._records and self._waiting_bytes <= self._sub_batch_bytes:
            return iter(())
        return self._pack(is_all=False)

    def flush(self) -> Iterator[PublishFrame]:
        """Return frames of the rows that wait; the last sub-batch may have fewer rows."""
        return self._pack(is_all=True)

    def _pack(self, *, is_all: bool) -> Iterator[PublishFrame]:
        if not self._waiting:
            return
        messages = concatenate([messages for messages, _ in self._waiting])
        ids = np.concatenate([ids for _, ids in self._waiting])
        self._waiting, self._waiting_records, self._waiting_bytes = [], 0, 0
        yield from self._frames(self._sub_batches(messages, ids, is_all=is_all))

    def _sub_batches(
        self, messages: Messages, ids: Ids, *, is_all: bool
    ) -> Iterator[tuple[bytes, int, int]]:
        """Yield each full sub-batch, its publishing id and its rows; keep the rest waiting."""
        ends = np.cumsum(messages.sizes + SIZE_BYTES)
        first, done, count = 0, 0, len(messages)
        while first < count:
            following = int(np.searchsorted(ends, done + self._sub_batch_bytes, side="right"))
            following = max(min(following, first + self._records), first + 1)
            if following == count and following < first + self._records and not is_all:
                break
            yield from self._halved(messages, ids, first, following)
            first, done = following, int(ends[following - 1])
        if first < count:
            rest = np.arange(first, count)  # copied, so as not to keep the rows before them
            self._waiting = [(messages.take(rest), ids[rest])]
            self._waiting_records = count - first
            self._waiting_bytes = int(ends[-1]) - done

    def _halved(
        self, messages: Messages, ids: Ids, first: int, following: int
    ) -> Iterator[tuple[bytes, int, int]]:
        entry = self._entry(messages.between(first, following), int(ids[following - 1]))
        needed = self._limits.needed(len(entry))
        if needed <= self._limits.largest:
            yield entry, int(ids[following - 1]), following - first
            return
        if following == first + 1:
            raise MessageTooLarge(self._stream, "frame", needed, self._limits.largest)
        middle = (first + following) // 2
        yield from self._halved(messages, ids, first, middle)
        yield from self._halved(messages, ids, middle, following)

    def _entry(self, messages: Messages, publishing_id: int) -> bytes:
        items = joined(b"", big_endian(messages.sizes, SIZE_BYTES), list(messages.parts))
        if len(items) > UNCOMPRESSED_BYTES_MAX:
            raise MessageTooLarge(self._stream, "sub-batch", len(items), UNCOMPRESSED_BYTES_MAX)
        body = compress(self._codec, items)
        before = b"" if self._publisher_id is None else publishing_id.to_bytes(ID_BYTES, "big")
        return before + pack_sub_batch(self._codec, len(messages), len(items), body)

    def _frames(self, sub_batches: Iterator[tuple[bytes, int, int]]) -> Iterator[PublishFrame]:
        """Put as many sub-batches into each frame as it may have."""
        held: list[tuple[bytes, int, int]] = []
        size = 0
        for each in sub_batches:
            fits = size + len(each[0]) <= self._limits.entry_bytes
            if held and not (fits and len(held) < self._limits.entries_max):
                yield self._frame(held)
                held, size = [], 0
            held.append(each)
            size += len(each[0])
        if held:
            yield self._frame(held)

    def _frame(self, held: list[tuple[bytes, int, int]]) -> PublishFrame:
        entries = b"".join(entry for entry, _, _ in held)
        return PublishFrame(
            data=frame_head(1, self._publisher_id, len(held), len(entries)) + entries,
            ids=np.array([publishing_id for _, publishing_id, _ in held], np.uint64),
            records=sum(records for _, _, records in held),
        )


@dataclass(frozen=True, slots=True)
class Packing:
    """The use of sub-batches, and their compression.

    Attributes:
        compression: none, gzip, snappy, lz4 or zstd.
        sub_batch_size: Rows in a sub-batch; 1 without compression is no sub-batch.
    """

    compression: str = "none"
    sub_batch_size: int = 1

    @property
    def option(self) -> str:
        """The option that asks for sub-batches, as an error shows it; empty if none does."""
        if self.compression != "none":
            return f"compression={self.compression}"
        return f"subBatchSize={self.sub_batch_size}" if self.sub_batch_size > 1 else ""

    def packer(self, stream: str, publisher_id: int | None, limits: FrameLimits) -> Packer:
        """Make the packer of a stream's messages; without a publisher, of entries alone."""
        if not self.option:
            return MessagePacker(stream, publisher_id, limits)
        codec = SubBatchCodec[self.compression.upper()]
        return SubBatchPacker(
            stream, publisher_id, limits, codec=codec, records=self.sub_batch_size
        )

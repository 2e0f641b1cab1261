"""One record added to a log by the server itself, for somebody who does not publish by frames."""

from typing import Final

from gateway.log.log import StreamLog
from gateway.log.open_chunk import OpenChunk
from gateway.pending import Pending
from store.errors import StoreError

_SIZE_BYTES: Final = 4
_NO_ID: Final = bytes(8)
RECORD_BYTES_MAX: Final = 1024 * 1024 - 1024
"""What surely fits into a chunk, and into a frame of a client that reads it."""


class RecordTooLarge(ValueError):
    """The record fits into no chunk."""


class _Sink:
    """Who waits until the record is stored."""

    def __init__(self) -> None:
        self.stored: Pending[bool] = Pending()

    def confirm(self, publishing_ids: bytes) -> None:
        """It is stored."""
        del publishing_ids
        self.stored.settle(True)  # noqa: FBT003  # the outcome

    def lost(self) -> None:
        """It is not, and the log says why."""
        self.stored.settle(False)  # noqa: FBT003


def _room(log: StreamLog, size: int) -> OpenChunk:
    """Return the log's chunk with room for so many bytes. Raises RecordTooLarge, StoreError."""
    chunk = log.open_chunk(size)
    while chunk.written + size > chunk.capacity:
        if chunk.entry_count:
            chunk = log.make_room(size)
        elif not chunk.grow():
            raise RecordTooLarge("the message fits into no chunk")
    return chunk


async def add_record(log: StreamLog, record: bytes, filter_value: bytes | None = None) -> None:
    """Add a record, and wait until it is stored as a confirm would promise it.

    Args:
        log: Of the stream; open.
        record: At most RECORD_BYTES_MAX.
        filter_value: Of the record, None if it has none.

    Raises:
        RecordTooLarge: It fits into no chunk.
        StoreError: The log has failed.
    """
    size = _SIZE_BYTES + len(record)
    if len(record) > RECORD_BYTES_MAX:
        raise RecordTooLarge(f"a message has {RECORD_BYTES_MAX} bytes at most")
    if log.read_only is not None:
        raise log.read_only
    chunk = _room(log, size)
    begin, end = chunk.written, chunk.written + size
    chunk.buffer[begin : begin + _SIZE_BYTES] = len(record).to_bytes(_SIZE_BYTES, "big")
    chunk.buffer[begin + _SIZE_BYTES : end] = record
    if filter_value is not None and chunk.filters is None:
        # Entries that are there already came without a value.
        chunk.filters = {b""} if chunk.entry_count else set()
    if chunk.filters is not None:
        chunk.filters.add(filter_value or b"")
        chunk.bound_filters(size)
    sink = _Sink()
    chunk.took(end, 1, 1)
    chunk.add_confirm(sink, _NO_ID)
    if not await sink.stored:
        raise log.failure or StoreError("the record was not stored")

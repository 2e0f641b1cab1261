"""Records into a stream's log, without waiting; a sink learns later which are stored.

A record is copied into the chunk that the log is filling, along with those of other writers. It is
appended at the end of the turn of the event loop; if an append is under way, it waits for that one.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from gateway.log.log import StreamLog
from gateway.log.open_chunk import OpenChunk
from hutch.formats.entries import RECORD_HEAD

RECORD_BYTES_MAX: Final = 1024 * 1024 - 1024
"""Largest record: it fits into a chunk, and into a frame of a client that reads it."""
RECORDS_UNDER_WAY_MAX: Final = 50_000
"""As many as a connection may have unconfirmed, unless a setting says otherwise."""
BYTES_UNDER_WAY_MAX: Final = 8 * 1024 * 1024
"""A quarter of the bytes under way at which a stream's publishers are no longer read."""

_HEAD_BYTES: Final = RECORD_HEAD.size


class RecordTooLarge(ValueError):
    """The record fits into no chunk."""


class NoRoom(RuntimeError):
    """Too much is under way; `when_room` says when to go on."""


class RecordSink(Protocol):
    """The caller that puts records, as the log sees it. Calls follow the order of the records."""

    def committed(self, count: int) -> None:
        """Learn that the oldest `count` records under way are stored, as a confirm promises it."""
        ...

    def lost(self, count: int) -> None:
        """Learn that the oldest `count` records under way will never be: the log has failed."""
        ...


class _Part:
    """The records of one writer in one chunk.

    Attributes:
        is_stored: None while they are under way.
    """

    __slots__ = ("bytes", "chunk", "count", "is_stored", "settled")

    def __init__(self, chunk: OpenChunk, settled: Callable[[], object]) -> None:
        self.chunk = chunk
        self.count = 0
        self.bytes = 0
        self.is_stored: bool | None = None
        self.settled = settled

    def confirm(self, publishing_ids: bytes) -> None:
        """Note that the chunk is stored."""
        del publishing_ids
        self.is_stored = True
        self.settled()

    def lost(self) -> None:
        """Note that the chunk will never be stored."""
        self.is_stored = False
        self.settled()


class RecordWriter:
    """Puts records into one stream's log.

    Attributes:
        waiting_count: Records under way.
        waiting_bytes: Their size, with their heads.
    """

    def __init__(
        self,
        stream_log: StreamLog,
        sink: RecordSink,
        *,
        records_max: int = RECORDS_UNDER_WAY_MAX,
        bytes_max: int = BYTES_UNDER_WAY_MAX,
    ) -> None:
        """Prepare to put records.

        Args:
            stream_log: The stream's open log.
            sink: Learns whether each record was stored.
            records_max: Most records under way.
            bytes_max: Most bytes under way; a single larger record is allowed.
        """
        self.waiting_count = 0
        self.waiting_bytes = 0
        self._log = stream_log
        self._sink = sink
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._parts: deque[_Part] = deque()
        self._waiting: list[Callable[[], object]] = []

    def put(self, record: bytes, filter_value: bytes | None = None) -> None:
        """Put a record behind all earlier ones. If this raises, the record was not put.

        Args:
            record: At most RECORD_BYTES_MAX.
            filter_value: Filter value of the record, None if it has none.

        Raises:
            NoRoom: Too much is under way.
            RecordTooLarge: It fits into no chunk.
            StoreError: The log has failed, or can only be read.
        """
        size = _HEAD_BYTES + len(record)
        if self.waiting_count and not self._has_room(size):
            raise NoRoom("too much is under way")
        chunk = self._room_for(size)
        begin, end = chunk.written, chunk.written + size
        RECORD_HEAD.pack_into(chunk.buffer, begin, size - _HEAD_BYTES)
        chunk.buffer[begin + _HEAD_BYTES : end] = record
        if filter_value is not None or chunk.filters is not None:
            _note_filter(chunk, filter_value or b"")
        chunk.took(end, 1, 1)
        if not self._parts or self._parts[-1].chunk is not chunk:
            self._parts.append(_Part(chunk, self._settle))
            chunk.add_confirm(self._parts[-1], b"")
        part = self._parts[-1]
        part.count += 1
        part.bytes += size
        self.waiting_count += 1
        self.waiting_bytes += size

    def when_room(self, callback: Callable[[], object]) -> None:
        """Call `callback` once no more than half of the limits is under way.

        It is called at once if that is so already. Nothing is under way after the log has failed.
        """
        if self._is_half_empty():
            callback()
        else:
            self._waiting.append(callback)

    def _has_room(self, size: int) -> bool:
        return (
            self.waiting_count < self._records_max and self.waiting_bytes + size <= self._bytes_max
        )

    def _is_half_empty(self) -> bool:
        return (
            2 * self.waiting_count <= self._records_max
            and 2 * self.waiting_bytes <= self._bytes_max
        )

    def _room_for(self, size: int) -> OpenChunk:
        """Return the log's chunk with room for a record with its head."""
        if size - _HEAD_BYTES > RECORD_BYTES_MAX:
            raise RecordTooLarge(f"a message has {RECORD_BYTES_MAX} bytes at most")
        log = self._log
        if log.read_only is not None:
            raise log.read_only
        chunk = log.open_chunk(size)
        while chunk.written + size > chunk.capacity or chunk.entry_count >= chunk.entries_max:
            if chunk.entry_count:
                chunk = log.make_room(size)
            elif not chunk.grow():
                raise RecordTooLarge("the message fits into no chunk")
        return chunk

    def _settle(self) -> None:
        """Notify the sink of records that are no longer under way.

        A log that fails loses the open chunk before those on their way, but the sink learns in
        order. So news of a part waits for the parts before it.
        """
        try:
            while self._parts and (is_stored := self._parts[0].is_stored) is not None:
                part = self._parts.popleft()
                del part.chunk  # which refers to it
                self.waiting_count -= part.count
                self.waiting_bytes -= part.bytes
                if is_stored:
                    self._sink.committed(part.count)
                else:
                    self._sink.lost(part.count)
        finally:
            if self._waiting and self._is_half_empty():
                waiting, self._waiting = self._waiting, []
                for callback in waiting:
                    callback()


def _note_filter(chunk: OpenChunk, value: bytes) -> None:
    if chunk.filters is None:
        # The entries that are there already have no value.
        chunk.filters = {b""} if chunk.entry_count else set()
    chunk.filters.add(value)
    chunk.bound_filters(len(value) + 2)  # as it is counted there

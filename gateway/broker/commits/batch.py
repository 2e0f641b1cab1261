"""Records for several streams that one commit publishes; no I/O.

The records of a stream become one chunk, which lies in the commit's row for that stream.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from gateway.broker.commits.rows import chunk_row_bytes
from gateway.broker.errors import PreconditionFailed
from gateway.broker.streams.catalogue import Stream
from hutch.formats.chunk import DATA_POSITION, ENTRIES_MAX, SEAL_BYTES
from hutch.formats.entries import RECORD_HEAD
from store.api import ENTRY_BYTES_MAX, TABLE_BATCH_BYTES_MAX

_OTHER_ROWS_BYTES: Final = 8 * 1024
"""Room for the rows that name no stream: the last number, and the head with the user's name."""
_ALL_BYTES_MAX: Final = TABLE_BATCH_BYTES_MAX - _OTHER_ROWS_BYTES
_AROUND_DATA: Final = DATA_POSITION + SEAL_BYTES


@dataclass(slots=True)
class BatchRecords:
    """Records for one stream.

    Attributes:
        stream: The stream.
        data: They as a chunk has them.
        count: Number of records.
    """

    stream: Stream
    data: bytearray = field(default_factory=bytearray)
    count: int = 0


class CommitBatch:
    """Records that become visible together.

    Attributes:
        records: Their number.
        size_bytes: Size of the rows that a commit of them has.
    """

    def __init__(self) -> None:
        self.records = 0
        self.size_bytes = 0
        self._by_generation: dict[int, BatchRecords] = {}

    def __iter__(self) -> Iterator[BatchRecords]:
        return iter(self._by_generation.values())

    def bytes_with(self, stream: Stream, record: bytes) -> int:
        """Return the size that it would have with one more record.

        Raises:
            PreconditionFailed: It would be too large for one commit.
        """
        some = self._by_generation.get(stream.entry.generation)
        begun = chunk_row_bytes(stream.name, _AROUND_DATA) if some is None else 0
        added = begun + RECORD_HEAD.size + len(record)
        row_bytes = added if some is None else added + self._row_bytes(some)
        shown = f"the records for stream {stream.name!r}"
        if row_bytes > ENTRY_BYTES_MAX:
            raise PreconditionFailed(
                f"{shown} have {row_bytes} bytes, and one commit may have {ENTRY_BYTES_MAX} for a "
                "stream"
            )
        if some is not None and some.count >= ENTRIES_MAX:
            raise PreconditionFailed(f"{shown} are {ENTRIES_MAX}, as many as one commit may have")
        if self.size_bytes + added > _ALL_BYTES_MAX:
            raise PreconditionFailed(
                f"the records have {self.size_bytes + added} bytes, and one commit may have "
                f"{_ALL_BYTES_MAX}"
            )
        return self.size_bytes + added

    def add(self, stream: Stream, record: bytes) -> None:
        """Put a record behind all others of its stream.

        Raises:
            PreconditionFailed: The batch would be too large for one commit.
        """
        self.size_bytes = self.bytes_with(stream, record)
        some = self._by_generation.setdefault(stream.entry.generation, BatchRecords(stream))
        some.data += RECORD_HEAD.pack(len(record))
        some.data += record
        some.count += 1
        self.records += 1

    @staticmethod
    def _row_bytes(some: BatchRecords) -> int:
        return chunk_row_bytes(some.stream.name, _AROUND_DATA + len(some.data))

"""Chunks as a server delivers them, to batches of rows.

    Deliver   | header 48 | data                          | whatever
    data      | entry | entry | …
    entry     | a message or a sub-batch: `hutch.formats.entries`

Source: RabbitMQ's stream protocol, and the log of its osiris (`hutch.formats.chunk`).
"""

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from hutch.formats.amqp.sections import Source
from hutch.formats.chunk import HEADER_BYTES, ChunkHeader, crc32, unpack_header
from hutch.formats.entries import RECORD_HEAD, SUB_BATCH_HEAD, SubBatch, sub_batch_at
from hutch.formats.sub_batches import BadSubBatch, require_records, uncompressed
from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding.bodies import BEYOND, DONE, FULL, ODD, SUB_BATCH, body_of
from pyspark_hutch.decoding.codecs import CODECS
from pyspark_hutch.decoding.faults import DamagedChunk, UnopenedSubBatches
from pyspark_hutch.decoding.open_batch import OpenBatch, RunPlace
from pyspark_hutch.decoding.ways import Way, fastest_way

_MAGIC_AND_VERSION: Final = 0x50
_USER_CHUNK: Final = 0
_KINDS_MAX: Final = 2
_OFFSET_MAX: Final = (1 << 63) - 1
_DATA_BYTES_MAX: Final = (1 << 31) - 1 - HEADER_BYTES
"""Limit that makes places in a chunk fit into 31 bits; a server's frame is far smaller."""
_SMALL_ENTRIES_MAX: Final = 256

_Batches = Generator[pa.RecordBatch, None, tuple[int, int, int]]
"""Batches that became full; at the end why and where it stopped, and how many records it took."""


class _Entries(NamedTuple):
    """Entries that are left to take, and the known facts about them."""

    source: Source
    position: int
    limit: int
    place: RunPlace


class Decoder:
    """Gathers the records of chunks into batches of about 10,000 rows or 8 MB.

    A batch never refers to the memory of a chunk.
    """

    def __init__(self, wanted: WantedColumns, way: Way | None = None) -> None:
        self._stream = wanted.stream
        self._way = way or fastest_way()
        self._gathered = OpenBatch(wanted)
        self._bad = UnopenedSubBatches(wanted.stream, wanted.bad_sub_batches)

    def add(self, chunk: Source, low: int, high: int) -> Iterator[pa.RecordBatch]:
        """Take the records of a chunk with low <= offset < high; yield batches that became full.

        Nothing is done before the batches are asked for, and the chunk's memory may be used
        otherwise as soon as there are no more. Records before `low` and from `high` on are not
        looked at. Raises DamagedChunk and UnopenedSubBatch.

        Args:
            chunk: Header and data; bytes behind them do not count.
            low: The first offset.
            high: The offset after the last.
        """
        header = self._header(chunk, low)
        if header is None or low >= high:
            return
        if header.chunk_id >= high or header.chunk_id + header.records <= low:
            return
        limit = HEADER_BYTES + header.data_bytes
        if crc32(memoryview(chunk)[HEADER_BYTES:limit]) != header.crc:
            raise self._damage(header.chunk_id, "its data has another checksum")
        place = RunPlace(header.chunk_id, header.timestamp_ms, header.chunk_id, 0)
        is_cut = header.chunk_id < low or header.chunk_id + header.records > high
        if is_cut or not self._take_all(chunk, limit, header, place):
            yield from self._chunk(_Entries(chunk, HEADER_BYTES, limit, place), header, low, high)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are left, and log the sub-batches that could not be opened."""
        self._bad.tell()
        if self._gathered.row:
            yield self._gathered.batch()

    def _header(self, chunk: Source, low: int) -> ChunkHeader | None:
        """Return a chunk's header; None if it has no records of users."""
        if len(chunk) < HEADER_BYTES:
            raise DamagedChunk(self._stream, low, f"a chunk of {len(chunk)} bytes has no header")
        header = unpack_header(chunk, 0)
        kind = chunk[1]
        reason = None
        if chunk[0] != _MAGIC_AND_VERSION or kind > _KINDS_MAX:
            reason = f"{bytes(chunk[:2]).hex()} does not begin a chunk"
        elif header.chunk_id + header.records > _OFFSET_MAX:
            reason = f"{header.records} records do not fit behind it"
        elif header.data_bytes > min(len(chunk) - HEADER_BYTES, _DATA_BYTES_MAX):
            reason = f"{header.data_bytes} bytes of data are not all there"
        if reason is not None:
            raise DamagedChunk(self._stream, header.chunk_id, reason)
        return header if kind == _USER_CHUNK else None

    def _take_all(self, source: Source, limit: int, header: ChunkHeader, place: RunPlace) -> bool:
        """Take a small chunk of records alone at once, if it is one; streams may have only such."""
        gathered = self._gathered
        before, count = gathered.row, header.entries
        if (
            count != header.records
            or count > min(gathered.rows_left(), _SMALL_ENTRIES_MAX)
            or header.data_bytes > gathered.budget()
        ):
            return False
        reason, position, row, used = self._take_records(
            source, HEADER_BYTES, limit, count, header.data_bytes
        )
        if reason != DONE or position != limit or row - before != count:
            return False
        if count:
            gathered.took(row, used, limit - HEADER_BYTES - 4 * count, place, source)
        return True

    def _chunk(
        self, entries: _Entries, header: ChunkHeader, low: int, high: int
    ) -> Iterator[pa.RecordBatch]:
        """Take runs of simple entries and sub-batches by turns, up to the end or to `high`."""
        source, position, limit, place = entries
        end = header.chunk_id + header.records
        while place.entry < header.entries and place.offset < high:
            left = header.entries - place.entry
            run = _Entries(source, position, limit, place)
            reason, position, count = yield from self._records(run, left, low, high)
            place = place._replace(offset=place.offset + count, entry=place.entry + count)
            if reason == BEYOND:
                raise self._damage(place.offset, "an entry reaches past the chunk's end")
            if reason == SUB_BATCH:
                run = _Entries(source, position, limit, place)
                position, records = yield from self._sub_batch(run, low, high)
                place = place._replace(offset=place.offset + records, entry=place.entry + 1)
        if place.entry == header.entries and (position != limit or place.offset != end):
            counted = place.offset - header.chunk_id
            raise self._damage(
                header.chunk_id,
                f"{header.records} records in {header.data_bytes} bytes are {counted} records"
                f" in {position - HEADER_BYTES} bytes",
            )

    def _records(self, entries: _Entries, count: int, low: int, high: int) -> _Batches:
        """Take records behind one another that are wanted; counts those it passed over too."""
        source, position, limit, place = entries
        skipped = 0
        if place.offset < low:
            most = min(count, low - place.offset)
            reason, position, skipped = self._way.skip_records(source, position, limit, most)
            if reason != DONE:
                return reason, position, skipped
            place = _further(place, skipped)
        count = min(count - skipped, high - place.offset)
        run = _Entries(source, position, limit, place)
        reason, position, taken = yield from self._take(run, count)
        return reason, position, skipped + taken

    def _take(self, entries: _Entries, count: int) -> _Batches:
        """Take `count` records, or those in front of an entry that is none."""
        source, position, limit, place = entries
        gathered = self._gathered
        reason, left = DONE, count
        while left > 0 and reason not in {SUB_BATCH, BEYOND}:
            if not gathered.rows_left():
                yield gathered.batch()
            first, before = position, gathered.row
            reason, position, row, used = self._take_records(
                source, position, limit, min(left, gathered.rows_left()), gathered.budget()
            )
            got = row - before
            if got:
                gathered.took(row, used, position - first - 4 * got, place, source)
                place = _further(place, got)
                left -= got
            if reason == FULL:
                if not gathered.make_room(RECORD_HEAD.unpack_from(source, position)[0]):
                    yield gathered.batch()
            elif reason == ODD:
                position = self._odd(source, position, place)
                place = _further(place, 1)
                left -= 1
        return reason, position, count - left

    def _take_records(
        self, source: Source, position: int, limit: int, count: int, budget: int
    ) -> tuple[int, int, int, int]:
        """Take at most `count` records into the open batch, by the loops."""
        gathered = self._gathered
        return self._way.take_records(
            source,
            position,
            limit,
            count,
            budget,
            gathered.is_amqp,
            gathered.bodies,
            gathered.used,
            gathered.has_bodies,
            gathered.ends,
            gathered.kinds,
            gathered.row,
            gathered.extents,
            gathered.step,
        )

    def _odd(self, source: Source, position: int, place: RunPlace) -> int:
        """Take a message whose body must be put together; returns the position after it."""
        start = position + RECORD_HEAD.size
        end: int = start + RECORD_HEAD.unpack_from(source, position)[0]
        message = bytes(source[start:end])
        kind, body = body_of(message)
        self._gathered.put(kind, body, message, place)
        return end

    def _sub_batch(
        self, entries: _Entries, low: int, high: int
    ) -> Generator[pa.RecordBatch, None, tuple[int, int]]:
        """Take a sub-batch; return the position after it, and how many records it has."""
        source, position, limit, place = entries
        if position + SUB_BATCH_HEAD.size > limit:
            raise self._damage(place.offset, "an entry reaches past the chunk's end")
        head = sub_batch_at(source, position)
        if head.end > limit:
            raise self._damage(place.offset, "a sub-batch reaches past the chunk's end")
        if head.records and place.offset + head.records > low:
            try:
                raw = self._opened(source, head)
            except BadSubBatch as bad:
                yield from self._instead(bad, source, place, low, high)
            else:
                inner = _Entries(raw, 0, len(raw), place._replace(sub=0))
                yield from self._records(inner, head.records, low, high)
        return head.end, head.records

    def _opened(self, source: Source, head: SubBatch) -> bytes:
        """Return the records of a sub-batch behind one another; raise BadSubBatch.

        All of it is looked at before a row is made, so that two tasks which meet in it judge alike.
        """
        raw = uncompressed(source, head, CODECS)
        _, stop, count = self._way.skip_records(raw, 0, len(raw), head.records)
        require_records(head, len(raw), count, stop)
        return raw

    def _instead(
        self, bad: BadSubBatch, source: Source, place: RunPlace, low: int, high: int
    ) -> Iterator[pa.RecordBatch]:
        """Deal with a sub-batch that cannot be opened as the option says; raises UnopenedSubBatch.

        Its one row has its first offset: it belongs to the range that this lies in.
        """
        head, gathered = bad.head, self._gathered
        first = max(low, place.offset)
        self._bad.meet(bad, place.offset, min(high, place.offset + head.records) - first)
        if self._bad.is_raw and first == place.offset:
            body = bytes(source[head.start : head.end])
            if not (gathered.rows_left() and gathered.make_room(len(body))):
                yield gathered.batch()
            gathered.put_bad(bad, body, place)

    def _damage(self, offset: int, reason: str) -> DamagedChunk:
        return DamagedChunk(self._stream, offset, reason)


def _further(place: RunPlace, count: int) -> RunPlace:
    """Return the place `count` records further on."""
    if place.sub < 0:
        return place._replace(offset=place.offset + count, entry=place.entry + count)
    return place._replace(offset=place.offset + count, sub=place.sub + count)

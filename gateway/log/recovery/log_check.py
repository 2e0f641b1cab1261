"""Check everything that is stored of a stream: its chunks, and what is derived from them.

The check reads as an opening does, but from the first chunk on, and changes nothing. Besides, the
chunks judge the stored index and the snapshot, which an opening believes.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Self

from gateway.log.damage.flaws import Flaw, Part, Sink
from gateway.log.damage.verification import Chunk
from gateway.log.derived.filter_pages import FilterPages
from gateway.log.derived.index import ENTRY_BYTES, unpack_entries
from gateway.log.derived.saved import KeptSnapshots
from gateway.log.derived.sequences import PublisherSequences
from gateway.log.derived.snapshot import Snapshot
from gateway.log.kernel.chunks import BAD_CRC, BAD_HEADER, BAD_SEAL, NOT_NEXT, walk_chunks
from gateway.log.names import writer_of
from gateway.log.recovery.chunk_walk import SLICE_BYTES, Damage, Trailer, walk
from gateway.log.recovery.log_opening import LogNames, end_offset
from gateway.log.recovery.restoration import check_bytes, read_index, restore
from gateway.pending import asked
from hutch.formats.chunk import seal_seed
from store.api import APPEND_BYTES_MAX, Reader, SegmentStore
from store.errors import NoSuchSegment, StoreError

_REASONS: Final = {
    BAD_CRC: "the checksum of a chunk's data does not match",
    NOT_NEXT: "a chunk's offset does not follow the one before it",
    BAD_SEAL: "the checksum of a chunk's header does not match",
    BAD_HEADER: "a chunk's header does not fit its data",
}
_REFERENCES_MAX: Final = 1 << 20


class StreamCheck:
    """The check of one stream; takes what the walk over its chunks finds.

    Args:
        store: Holds its segments.
        names: The names of these.
        table: Tracking table with its snapshot.
        generation: The stream's, under which the table has the snapshot.
        first: Offset of the first record that was ever stored.
        walked: Told the number of bytes of each slice.

    Attributes:
        chunks: Number of sound chunks.
        records: Number of records in them.
        start: Position of the first byte that is there.
        flaws: Everything that is damaged.
    """

    def __init__(
        self,
        store: SegmentStore,
        names: LogNames,
        table: str,
        generation: int,
        *,
        first: int = 0,
        walked: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._store, self._names = store, names
        self._table, self._generation = table, generation
        self._first = first
        self._walked = walked
        self.chunks = self.records = self.start = self._at = 0
        self.flaws: list[Flaw] = []
        self._is_whole = True  # the bytes end with a chunk
        self._index = StoredIndex("", 0, b"", 0, self.flaws.append)
        # The snapshot, until the chunks before its end were compared; and whether it fits.
        self._snapshot: Snapshot | None = None
        self._is_fitting = False
        # The publishing ids of the snapshot, and those of the chunks.
        self._known, self._seen = (PublisherSequences("", _REFERENCES_MAX) for _ in range(2))

    async def run(self) -> Self:
        """Check the stream, and return this. Raises StoreError if its chunks cannot be read."""
        store, names, found = self._store, self._names, self.flaws.append
        segment, seed = names.data_segment, seal_seed(names.data_segment)
        reader: Reader = await asked(lambda done: store.open_reader(segment, done=done))
        writer = writer_of(segment)
        number: int = await asked(lambda done: store.get_attribute(segment, writer, done=done))
        last = end_offset(number, reader)
        start = self._at = self.start = reader.start
        begun, entries = await read_index(store, names.index_segment, found)
        self._index = StoredIndex(names.index_segment, begun, entries or b"", start, found)
        await self._load_snapshot(reader, seed, last)
        following = await walk(reader, seed, start, None if start else self._first, self)
        self._count_to(reader.length)
        self._compare_snapshot()
        self._index.end(reader.length)
        if self._is_whole and None not in {following, last} and following != last:
            what = f"the next offset is {last} by the writer's number, {following} by the chunks"
            found(Flaw(Part.CHUNKS, what, segment, reader.length))
        await FilterPages(store, names.filter_segment).load(found)
        return self

    def flaws_of(self, part: Part) -> list[Flaw]:
        """Return the flaws of one part."""
        return [flaw for flaw in self.flaws if flaw.part is part]

    async def _load_snapshot(self, reader: Reader, seed: int, last: int | None) -> None:
        """Read the snapshot as an opening does."""
        snapshot, found = None, self._snapshot_flaw
        try:
            snapshot = await KeptSnapshots(self._store, self._table).load(self._generation, found)
        except NoSuchSegment:
            pass
        except StoreError as error:
            found(f"it cannot be read: {error}")
        if not self.flaws_of(Part.SNAPSHOT):
            fitting = await restore(self._known, reader, seed, snapshot, last, found)
            self._is_fitting = fitting is snapshot
        # One whose chunks are gone, or were lost in a power cut, cannot be compared.
        is_there = snapshot is not None and reader.start < snapshot.position <= reader.length
        if is_there and not self.flaws_of(Part.SNAPSHOT):
            self._snapshot = snapshot

    # The walk

    def take(self, position: int, chunks: Sequence[Chunk], trailers: Sequence[Trailer]) -> None:
        """Count and compare sound chunks whose places count from a position."""
        self._count_to(position)
        self._is_whole = self._is_whole or bool(chunks)
        self.chunks += len(chunks)
        self.records += sum(chunk[3] for chunk in chunks)
        self._index.compare(position, chunks)
        for place, trailer in trailers:
            if self._snapshot is not None and position + place >= self._snapshot.position:
                self._compare_snapshot()
            if not self._seen.take(trailer):
                self._chunk_flaw("the publishing ids behind a chunk are damaged", position + place)

    def pass_over(self, damage: Damage) -> None:
        """Report damage; what is stored of it cannot be compared."""
        what = _REASONS.get(damage.reason, "no chunk begins where one should")
        if not damage.is_chunk:
            what += f", no chunk is in {damage.end - damage.begin} bytes"
        if damage.offset is not None:
            what += f", at offset {damage.offset}"
        self._chunk_flaw(what, damage.begin)
        self._is_whole = damage.is_chunk
        self._index.skip(damage.end)
        if self._snapshot is not None and damage.begin < self._snapshot.position:
            self._snapshot = None

    def _compare_snapshot(self) -> None:
        """Compare the snapshot with the chunks before its end, once they are all taken."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is None:
            return
        if not self._is_fitting:
            place = snapshot.last_chunk_position
            self._snapshot_flaw(f"it does not describe the chunk at byte {place}")
            return
        for reference, last_id in self._seen.all().items():
            if self._known.last(reference) not in {None, last_id}:
                what = f"the last publishing id of {reference!r} is not that of the chunks"
                self._snapshot_flaw(what)
        if self._seen.mark not in {0, self._known.mark}:
            self._snapshot_flaw("the mark of the last unit is not that of the chunks")

    def _chunk_flaw(self, what: str, position: int) -> None:
        self.flaws.append(Flaw(Part.CHUNKS, what, self._names.data_segment, position))

    def _snapshot_flaw(self, what: str) -> None:
        self.flaws.append(Flaw(Part.SNAPSHOT, what, self._table))

    def _count_to(self, position: int) -> None:
        self._walked(position - self._at)
        self._at = position


class StoredIndex:
    """Compares the stored index with the chunks, which come in their order.

    Entries behind the end and entries stored twice are no damage: a crash leaves them.
    """

    def __init__(self, segment: str, begun: int, entries: bytes, start: int, found: Sink) -> None:
        """Begin with entries of a segment, the first at a position, of chunks from `start` on."""
        self._segment = segment
        self._found = found
        self._entries = enumerate(unpack_entries(entries))
        self._begun, self._start = begun, start
        self._place = 0
        self._next: tuple[float, int, int] = (0, 0, 0)
        self._advance()

    def compare(self, position: int, chunks: Sequence[Chunk]) -> None:
        """Compare entries with chunks whose places count from a position."""
        for place, _, chunk_id, _, timestamp_ms, *_ in chunks:
            at = position + place
            self.end(at)
            if self._next[0] == at:
                if self._next[1:] != (chunk_id, timestamp_ms):
                    self._flaw(f"the entry of the chunk at byte {at} has not its offset and time")
                self._advance()

    def skip(self, position: int) -> None:
        """Skip the entries before a position: the chunks there are damaged."""
        while self._next[0] < position:
            self._advance()

    def end(self, position: int) -> None:
        """Judge the entries before a position that were not found to have a chunk."""
        while self._next[0] < position:
            self._flaw(f"an entry points to byte {self._next[0]}, where no chunk begins")
            self._advance()

    def _flaw(self, what: str) -> None:
        self._found(Flaw(Part.INDEX, what, self._segment, self._place))

    def _advance(self) -> None:
        for number, entry in self._entries:
            if entry[0] >= self._start:  # others are before the start, or stored twice
                self._place = self._begun + number * ENTRY_BYTES
                self._next = entry
                self._start = entry[0] + 1
                return
        self._next = (math.inf, 0, 0)


async def chunks_from(
    store: SegmentStore, segment: str, position: int
) -> Iterator[tuple[int, Chunk, bytes]]:
    """Return the chunks of the first slice from a position on, each with its place and bytes.

    Empty at the end, and where no chunk is. Raises StoreError.
    """
    reader: Reader = await asked(lambda done: store.open_reader(segment, done=done))

    def look(view: memoryview) -> list[tuple[int, Chunk, bytes]]:
        _, _, chunks = walk_chunks(view, 0, len(view))
        return [
            (position + chunk[0], chunk, bytes(view[chunk[0] : chunk[0] + chunk[1]]))
            for chunk in chunks
        ]

    for size in (SLICE_BYTES, APPEND_BYTES_MAX):
        if position < reader.length:
            found = await check_bytes(reader, position, size, look)
            if found:
                return iter(found)
    return iter(())

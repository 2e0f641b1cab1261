"""Check everything that is stored of a stream: its chunks, and what is derived from them.

The segment is walked in slices, so memory does not grow with it. The check finds all that a start
or a reader would find: `gateway.log.verifying` judges chunks, the chunks judge the stored index and
the snapshot that describe them, and checksums judge filter pages.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from gateway.log.checking_derived import (
    Flaw,
    IndexCheck,
    Part,
    SnapshotCheck,
    check_filter_pages,
    load_snapshot,
)
from gateway.log.kernel.chunks import (
    BAD_CRC,
    BAD_HEADER,
    BAD_SEAL,
    MALFORMED,
    NEEDS_BYTES,
    NOT_NEXT,
    walk_chunks,
)
from gateway.log.names import writer_of
from gateway.log.opening import LogNames
from gateway.log.restoring import check_bytes, find_chunk, read_whole
from gateway.log.sequences import MARKS_END
from gateway.log.verifying import NO_SIZE, Chunk, Verified, verify
from gateway.pending import Pending
from hutch.formats.chunk import DATA_POSITION, next_offset_and_epoch, seal_seed, unpack_trailer
from store.api import (
    ABSENT,
    APPEND_BYTES_MAX,
    Reader,
    SegmentStore,
)
from store.errors import NoSuchSegment, StoreError

_SLICE_BYTES: Final = 1024 * 1024

_NO_CHUNK: Final = "no chunk begins where one should"
_REASONS: Final = {
    BAD_CRC: "the checksum of a chunk's data does not match",
    NOT_NEXT: "a chunk's offset does not follow the one before it",
    BAD_SEAL: "the checksum of a chunk's header does not match",
    MALFORMED: _NO_CHUNK,
    BAD_HEADER: "a chunk's header does not fit its data",
}

PublishingId = tuple[int, bytes, int]
"""Place of a chunk in a slice, a publisher's reference, and its last id in the chunk.

The empty reference has the mark of a unit.
"""

Looked = tuple[Verified, list[Chunk], list[PublishingId], list[int], int]
"""The result of the check, the sound chunks, their publishing ids, the places of those with a
damaged trailer, and the size of a damaged chunk behind the sound ones."""


class StreamReport:
    """Findings of the check of one stream.

    Attributes:
        chunks: Number of sound chunks.
        records: Number of records in them.
        start: Position of the first byte that is there.
        flaws: Everything that is damaged.
    """

    def __init__(self) -> None:
        self.chunks = 0
        self.records = 0
        self.start = 0
        self.flaws: list[Flaw] = []


class StreamCheck:
    """The check of one stream.

    Args:
        store: Holds its segments.
        names: The names of these.
        table: Tracking table with its snapshot.
        generation: The stream's, under which the table has the snapshot.
        first: Offset of the first record that was ever stored.
        walked: Told the number of bytes of each slice.
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
        self._store = store
        self._names = names
        self._table, self._generation = table, generation
        self._first = first
        self._walked = walked
        self._report = StreamReport()
        self._seed = seal_seed(names.data_segment)

    async def run(self) -> StreamReport:
        """Check the stream. Raises StoreError if its chunks cannot be read."""
        opened: Pending[Reader] = Pending()
        self._store.open_reader(self._names.data_segment, done=opened.settle)
        reader = await opened
        self._report.start = reader.start
        flaws = self._report.flaws
        index = IndexCheck(flaws, self._names.index_segment, await self._stored_index(), reader)
        stored = await load_snapshot(self._store, self._table, self._generation)
        snapshot = SnapshotCheck(flaws, self._table, stored, reader)
        await self._walk(reader, index, snapshot)
        await check_filter_pages(self._store, self._names.filter_segment, flaws)
        return self._report

    def _flaw(self, what: str, position: int, offset: int | None = None) -> None:
        if offset is not None:
            what += f", at offset {offset}"
        self._report.flaws.append(Flaw(Part.CHUNKS, what, self._names.data_segment, position))

    async def _walk(self, reader: Reader, index: IndexCheck, snapshot: SnapshotCheck) -> None:
        position, size = reader.start, _SLICE_BYTES
        following = None if reader.start else self._first
        last = await self._end_offset(reader)
        while position < reader.length:
            look = partial(_look, seed=self._seed, first=following)
            looked = await check_bytes(reader, position, size, look)
            verified, chunks, ids, broken, damaged_bytes = looked
            for place in broken:
                self._flaw("the publishing ids behind a chunk are damaged", position + place)
            self._report.chunks += len(chunks)
            self._report.records += sum(chunk[3] for chunk in chunks)
            index.compare(position, chunks)
            snapshot.compare(position, chunks, ids)
            begun, position = position, position + verified.end
            following = verified.next
            if damaged_bytes:
                self._flaw(_REASONS.get(verified.reason, _NO_CHUNK), position, verified.next)
                position += damaged_bytes
                following = verified.following
            elif verified.reason in NO_SIZE or (not chunks and size >= APPEND_BYTES_MAX):
                self._flaw(_REASONS.get(verified.reason, _NO_CHUNK), position, verified.next)
                found = await find_chunk(reader, self._seed, position)
                position = reader.length if found is None else found
                following = None
            if position > begun + verified.end:
                index.skip(position)
                snapshot.give_up()
            size = _SLICE_BYTES if position > begun else APPEND_BYTES_MAX
            self._walked(position - begun)
        if following is not None and last is not None and following != last:
            what = f"the next offset is {last} by the writer's number, {following} by the chunks"
            self._flaw(what, reader.length)
        index.end()

    async def _end_offset(self, reader: Reader) -> int | None:
        """Return the offset behind the last chunk by the writer's number; None if it says none."""
        segment = self._names.data_segment
        got: Pending[int] = Pending()
        self._store.get_attribute(segment, writer_of(segment), done=got.settle)
        number = await got
        if number == ABSENT or not reader.length:
            return None
        return next_offset_and_epoch(number)[0]

    async def _stored_index(self) -> tuple[int, bytes]:
        """Read the whole stored index, which is small, and the position where it begins."""
        segment = self._names.index_segment
        try:
            return await read_whole(self._store, segment)
        except NoSuchSegment:
            return 0, b""
        except StoreError as error:
            self._report.flaws.append(Flaw(Part.INDEX, f"it cannot be read: {error}", segment))
            return 0, b""


def _look(view: memoryview, seed: int, first: int | None) -> Looked:
    """On a thread of the store: check the chunks of a slice."""
    verified = verify(view, seed, first)
    _, _, chunks = walk_chunks(view, 0, len(view))
    sound = [chunk for chunk in chunks if chunk[0] < verified.end]
    has_size = verified.reason not in {NEEDS_BYTES, *NO_SIZE}
    damaged = chunks[len(sound) : len(sound) + 1] if has_size else []
    ids: list[PublishingId] = []
    broken: list[int] = []
    for place, _, _, _, _, _, data_bytes, trailer_bytes in sound:
        size = 0
        trailer_at = place + DATA_POSITION + data_bytes
        for reference, last_id in unpack_trailer(view[trailer_at : trailer_at + trailer_bytes]):
            if not reference and not 0 < last_id < MARKS_END:
                break  # zeros are neither a publisher nor a mark
            size += 2 + len(reference) + 8
            ids.append((place, reference, last_id))
        if size != trailer_bytes:
            broken.append(place)
    return verified, sound, ids, broken, sum(chunk[1] for chunk in damaged)


async def chunks_from(
    store: SegmentStore, segment: str, position: int
) -> Iterator[tuple[int, Chunk, bytes]]:
    """Return the chunks of the first slice from a position on, each with its place and bytes.

    Empty at the end, and where no chunk is. Raises StoreError.
    """
    opened: Pending[Reader] = Pending()
    store.open_reader(segment, done=opened.settle)
    reader = await opened

    def look(view: memoryview) -> list[tuple[int, Chunk, bytes]]:
        _, _, chunks = walk_chunks(view, 0, len(view))
        return [
            (position + chunk[0], chunk, bytes(view[chunk[0] : chunk[0] + chunk[1]]))
            for chunk in chunks
        ]

    for size in (_SLICE_BYTES, APPEND_BYTES_MAX):
        if position < reader.length:
            found = await check_bytes(reader, position, size, look)
            if found:
                return iter(found)
    return iter(())

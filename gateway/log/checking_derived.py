"""Check what is derived from a stream's chunks: stored index, snapshot, filter pages.

All of it can be rebuilt from the chunks, so damage costs no more than that. The exception: only a
snapshot knows the publishers whose chunks were removed.
"""

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from gateway.log.filter_pages import Page
from gateway.log.index import ENTRY_BYTES, are_sound, unpack_entries
from gateway.log.names import snapshot_key
from gateway.log.sequences import PublisherSequences
from gateway.log.snapshot import Snapshot, unpack_head
from gateway.log.verifying import Chunk
from gateway.pending import Pending
from hutch.formats.chunk import seal_seed
from store.api import Reader, SegmentStore, TableEntry
from store.errors import NoSuchSegment, StoreError

T = TypeVar("T")

_PAGE_SIZE_BYTES: Final = 4
_PAGE_BYTES_MAX: Final = 1024 * 1024
_REFERENCES_MAX: Final = 1 << 20


class Part(enum.Enum):
    """Part of a stream that is damaged."""

    CHUNKS = "chunks"
    INDEX = "index"
    FILTERS = "filter pages"
    SNAPSHOT = "snapshot"


class Flaw(NamedTuple):
    """One damaged place.

    Attributes:
        part: The part of the stream.
        what: What is wrong there.
        segment: The segment, or the table of the snapshot.
        position: Byte in the segment; None where there is no one place.
    """

    part: Part
    what: str
    segment: str
    position: int | None = None


class IndexCheck:
    """Compares the stored index with the chunks, which come in their order.

    Entries behind the end and entries stored twice are no damage: a crash leaves them.
    """

    def __init__(
        self, flaws: list[Flaw], segment: str, stored: tuple[int, bytes], reader: Reader
    ) -> None:
        """Begin; `stored` is the position where the index begins, and its bytes."""
        self._flaws = flaws
        self._segment = segment
        self._length = reader.length
        self._place, entries = stored[0] - ENTRY_BYTES, stored[1]
        seed = seal_seed(segment)
        if not are_sound(entries, seed):
            places = range(0, len(entries), ENTRY_BYTES)
            place = next(at for at in places if not are_sound(entries[at : at + ENTRY_BYTES], seed))
            what = "the checksum of an entry does not match"
            flaws.append(Flaw(Part.INDEX, what, segment, stored[0] + place))
            entries = b""
        self._entries = unpack_entries(entries)
        self._begun = reader.start
        self._next: tuple[int, int, int] | None = None
        self._advance()

    def compare(self, position: int, chunks: list[Chunk]) -> None:
        """Compare entries with chunks whose places count from a position."""
        for place, _, chunk_id, _, timestamp_ms, *_ in chunks:
            at = position + place
            while self._next is not None and self._next[0] < at:
                self._flaw(f"an entry points to byte {self._next[0]}, where no chunk begins")
            if self._next is None:
                return
            if self._next[0] == at:
                if self._next[1:] != (chunk_id, timestamp_ms):
                    self._flaw(f"the entry of the chunk at byte {at} has not its offset and time")
                else:
                    self._advance()

    def skip(self, position: int) -> None:
        """Skip the entries before a position: the chunks there are damaged."""
        while self._next is not None and self._next[0] < position:
            self._advance()

    def end(self) -> None:
        """Judge the entries that are left when all chunks were compared."""
        while self._next is not None and self._next[0] < self._length:
            self._flaw(f"an entry points to byte {self._next[0]}, where no chunk begins")

    def _flaw(self, what: str) -> None:
        self._flaws.append(Flaw(Part.INDEX, what, self._segment, self._place))
        self._advance()

    def _advance(self) -> None:
        for entry in self._entries:
            self._place += ENTRY_BYTES
            if entry[0] >= self._begun:  # others are before the start, or stored twice
                self._next = entry
                self._begun = entry[0] + 1
                return
        self._next = None


class SnapshotCheck:
    """Compares the stored snapshot with the chunks, which come in their order."""

    def __init__(
        self, flaws: list[Flaw], table: str, stored: Snapshot | str | None, reader: Reader
    ) -> None:
        """Begin; `stored` is the snapshot, None if there is none, or what is wrong with it."""
        self._flaws = flaws
        self._table = table
        self._snapshot: Snapshot | None = None
        self._ids: dict[bytes, int] = {}
        self._seen: dict[bytes, int] = {}
        if isinstance(stored, str):
            self._flaw(stored)
        elif stored is None:
            if reader.start:  # no chunk is removed before a snapshot knows of it
                self._flaw("it is lost, and chunks that it knew of were removed")
        else:
            sequences = PublisherSequences("", _REFERENCES_MAX)
            sequences.restore(stored.parts)
            if sequences.damaged:
                self._flaw("publishing ids in it are damaged or were lost")
            elif stored.position < reader.start:
                self._flaw("it is older than the removal of chunks that it knows nothing of")
            self._ids = sequences.all() | {b"": sequences.mark}
            # A snapshot whose chunks are gone, or were lost in a power cut, cannot be compared.
            if reader.start < stored.position <= reader.length:
                self._snapshot = stored

    def compare(
        self, position: int, chunks: list[Chunk], ids: list[tuple[int, bytes, int]]
    ) -> None:
        """Compare it with chunks and publishing ids whose places count from a position."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        for place, reference, last_id in ids:
            if position + place < snapshot.position:
                self._seen[reference] = last_id
        for place, size, chunk_id, records, timestamp_ms, *_ in chunks:
            end = position + place + size
            if end < snapshot.position:
                continue
            found = (position + place, end, chunk_id, chunk_id + records, timestamp_ms)
            said = (
                snapshot.last_chunk_position,
                snapshot.position,
                snapshot.last_chunk_id,
                snapshot.next_offset,
                snapshot.timestamp_ms,
            )
            if found != said:
                self._flaw(f"it does not describe the chunk at byte {position + place}")
            self._compare_ids()
            self._snapshot = None
            return

    def give_up(self) -> None:
        """Stop comparing: the publishing ids of a damaged chunk are not known."""
        self._snapshot = None

    def _compare_ids(self) -> None:
        wrong = [
            reference
            for reference, last_id in self._seen.items()
            if self._ids.get(reference, last_id) != last_id
        ]
        for reference in wrong:
            what = f"last publishing id of {reference!r}" if reference else "mark of the last unit"
            self._flaw(f"the {what} is not that of the chunks")

    def _flaw(self, what: str) -> None:
        self._flaws.append(Flaw(Part.SNAPSHOT, what, self._table))


async def load_snapshot(store: SegmentStore, table: str, generation: int) -> Snapshot | str | None:
    """Read the snapshot of a stream; None if there is none, a text if something is wrong."""
    try:
        (head,) = await _read_rows(store, table, [snapshot_key(generation, 0)])
        if head is None or not head.value:
            return None
        decoded = unpack_head(head.value)
        if decoded is None:
            return "its head is damaged"
        snapshot, count = decoded
        keys = [snapshot_key(generation, number + 1) for number in range(count)]
        parts = [part for part in await _read_rows(store, table, keys) if part is not None]
    except NoSuchSegment:
        return None
    except StoreError as error:
        return f"it cannot be read: {error}"
    if len(parts) < count:
        return "some of its parts are missing"
    snapshot.parts.extend(part.value for part in parts)
    return snapshot if snapshot.is_of(head.value) else "its parts are not those of its head"


async def _read_rows(
    store: SegmentStore, table: str, keys: list[bytes]
) -> Sequence[TableEntry | None]:
    found: Pending[Sequence[TableEntry | None]] = Pending()
    store.read_table(table, keys, done=found.settle)
    return await found


async def check_filter_pages(store: SegmentStore, segment: str, flaws: list[Flaw]) -> None:
    """Check the checksum of every stored page."""
    try:
        opened: Pending[Reader] = Pending()
        store.open_reader(segment, done=opened.settle)
        reader = await opened
        position = reader.start
        while position < reader.length:
            checked: Pending[tuple[int, str]] = Pending()
            reader.check(position, _PAGE_BYTES_MAX, _checked_pages, done=checked.settle)
            size, wrong = await checked
            position += size
            if wrong:
                flaws.append(Flaw(Part.FILTERS, wrong, segment, position))
                return
    except NoSuchSegment:
        return
    except StoreError as error:
        flaws.append(Flaw(Part.FILTERS, f"they cannot be read: {error}", segment))


def _checked_pages(view: memoryview) -> tuple[int, str]:
    """On a thread of the store: return the size of the sound pages, and the next one's fault."""
    position = 0
    while position < len(view):
        size = int.from_bytes(view[position : position + _PAGE_SIZE_BYTES], "big")
        if position + size > len(view) and position:
            break
        try:
            Page(bytes(view[position : position + size]))
        except ValueError as error:
            return position, str(error)
        position += size
    return position, ""

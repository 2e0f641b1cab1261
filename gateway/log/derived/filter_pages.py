"""Filter values of chunks, gathered in a segment of their own, so that skipping reads little.

`FilterNotes` collects them as chunks are committed. `FilterPages` stores them beside the sparse
index, and finds them again. They are derived and may have gaps: where no page is, the chunks
themselves are read. The pages stay in the file; only their positions are in memory.

    page   | u32 size of all | u64 first position | u64 end | u64 position of the last chunk
           | u64 its id | u64 its epoch | run | run | … | u64 xxh3 of all before
    run    | u32 bytes of chunks | u16 size | filter values as behind a chunk |

A run is a row of chunks with the same filter values. Size 0xFFFF says that they differ, so that the
chunks have to be read. A page is believed if its last chunk is still where it says: after a power
cut there may be others, of a later epoch.
"""

import logging
import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from xxhash import xxh3_64_digest

from gateway.log.damage.flaws import Flaw, Part, Sink
from gateway.log.names import writer_of
from gateway.pending import Pending, nothing, start
from hutch.formats.chunk import EVENT_HEAD_BYTES, unpack_header
from store.api import ABSENT, Appended, Reader, SegmentStore, Writer
from store.errors import NoSuchSegment, SegmentExists, StoreError

log = logging.getLogger(__name__)

RUN_BYTES: Final = 8 * 1024
"""Chunks of different values become one run up to this size, and are read one by one later."""
PAGE_BYTES: Final = 16 * 1024
PAGE_COVERS_BYTES: Final = 64 * 1024 * 1024
NOTES_BYTES_MAX: Final = 256 * 1024
"""If more than this waits to be stored, the oldest pages are dropped."""
TRIM_PAGES: Final = 64
"""Number of pages for truncated chunks alone at which the stored ones are trimmed."""

_RUN_COVERS_MAX: Final = 1 << 30
_HEAD: Final = struct.Struct(">IQQQQQ")
_RUN: Final = struct.Struct(">IH")
_DIFFERENT: Final = 0xFFFF
_CHECK_BYTES: Final = 8
_LOAD_BYTES: Final = 1024 * 1024

Run = tuple[int, bytes | None]
"""Bytes of chunks, and their filter values; None if those differ."""

Head = tuple[int, int, int]
"""Size of a page, the first position that it covers, and the end."""


class FilterNotes:
    """Filter values of committed chunks that are not stored in pages yet. Bounded."""

    def __init__(self, epoch: int) -> None:
        self.has_values = False
        self._epoch = epoch
        self._pages: list[bytes] = []
        self._pages_bytes = 0
        self._first = self._end = self._last_position = self._last_id = 0
        self._runs: list[Run] = []
        self._runs_bytes = 0

    def note(self, position: int, size: int, chunk_id: int, packed: bytes) -> None:
        """Take a committed chunk's filter values; positions grow, and may leave gaps."""
        if position != self._end:
            self._close_page()
        if not self._runs:
            self._first = position
        self.has_values = self.has_values or bool(packed)
        values = packed if len(packed) <= size // 64 + 64 else None
        last_size, last_values = self._runs[-1] if self._runs else (_RUN_COVERS_MAX, None)
        if values == last_values and last_size + size < _RUN_COVERS_MAX:
            self._runs[-1] = last_size + size, values
        elif last_size < RUN_BYTES and size < RUN_BYTES:
            self._runs_bytes -= len(last_values or b"")
            self._runs[-1] = last_size + size, None
        else:
            self._runs.append((size, values))
            self._runs_bytes += _RUN.size + len(values or b"")
        self._end = position + size
        self._last_position, self._last_id = position, chunk_id
        if self._runs_bytes >= PAGE_BYTES or self._end - self._first >= PAGE_COVERS_BYTES:
            self._close_page()

    def take(self) -> list[bytes]:
        """Return the pages of all that was noted, to be stored."""
        self._close_page()
        pages, self._pages = self._pages, []
        self._pages_bytes = 0
        return pages

    def _close_page(self) -> None:
        if not self._runs:
            return
        runs = b"".join(
            _RUN.pack(size, _DIFFERENT if values is None else len(values)) + (values or b"")
            for size, values in self._runs
        )
        size = _HEAD.size + len(runs) + _CHECK_BYTES
        page = runs.join(
            (
                _HEAD.pack(
                    size, self._first, self._end, self._last_position, self._last_id, self._epoch
                ),
                b"",
            )
        )
        page += xxh3_64_digest(page)
        self._runs = []
        self._runs_bytes = 0
        self._pages.append(page)
        self._pages_bytes += len(page)
        while self._pages_bytes > NOTES_BYTES_MAX:
            self._pages_bytes -= len(self._pages.pop(0))


class FilterPage:
    """One stored page."""

    def __init__(self, stored: bytes) -> None:
        """Take a page apart; ValueError if it is damaged."""
        if len(stored) < _HEAD.size + _CHECK_BYTES:
            raise ValueError("a page is cut short")
        if xxh3_64_digest(stored[:-_CHECK_BYTES]) != stored[-_CHECK_BYTES:]:
            raise ValueError("a page is damaged")
        head = _HEAD.unpack_from(stored)
        _, self.first, self.end, self.last_position, self.last_id, self.epoch = head
        self._stored = stored

    def describes(self, head: bytes) -> bool:
        """Return whether `head`, read at the stream's `last_position`, is the page's last chunk."""
        header = unpack_header(head, EVENT_HEAD_BYTES)
        return (header.chunk_id, header.epoch) == (self.last_id, self.epoch)

    def runs(self) -> Iterator[Run]:
        """Yield the runs, in order."""
        stored, position = self._stored, _HEAD.size
        end = len(stored) - _CHECK_BYTES
        while position < end:
            size, values_bytes = _RUN.unpack_from(stored, position)
            position += _RUN.size
            if values_bytes == _DIFFERENT:
                yield size, None
            else:
                yield size, stored[position : position + values_bytes]
                position += values_bytes


class FilterPages:
    """The stored pages of one stream: their places and their contents."""

    def __init__(self, store: SegmentStore, segment: str) -> None:
        self._store = store
        self._segment = segment
        self._reader: Reader | None = None
        self._writer: Writer | None = None
        self._loading: Pending[None] | None = None
        self._is_broken = False
        # For each page: the first position that it covers, the end, its own place and size.
        self._firsts = array("Q")
        self._ends = array("Q")
        self._places = array("Q")
        self._sizes = array("I")
        self._verified: set[int] = set()

    @property
    def is_loaded(self) -> bool:
        """True if the places of the pages are known."""
        return self._loading is not None and self._loading.is_settled

    def load(self, found: Sink | None = None) -> Pending[None]:
        """Learn which pages there are; never fails: pages that cannot be read are left out.

        `found`: told what is wrong; then checksums are compared too, which else a reader does.
        """
        if self._loading is None:
            self._loading = start(self._load(found or nothing, FilterPage if found else bytes))
        return self._loading

    async def _load(self, found: Sink, judge: Callable[[bytes], object]) -> None:
        try:
            await self._open_reader()
            assert self._reader is not None
            position = self._reader.start
            while position < self._reader.length and not self._is_broken:
                looked: Pending[list[Head]] = Pending()
                look = partial(_heads, judge=judge)
                self._reader.check(position, _LOAD_BYTES, look, done=looked.settle)
                heads = await looked
                for size, first, end in heads:
                    self._add(position, size, first, end)
                    position += size
                self._is_broken = not heads
                if not heads:
                    log.error(
                        "filter pages are damaged segment=%s position=%d", self._segment, position
                    )
                    found(Flaw(Part.FILTERS, "a page is damaged", self._segment, position))
        except NoSuchSegment:
            return
        except StoreError as error:
            self._is_broken = True
            log.warning("filter pages cannot be read segment=%s error=%s", self._segment, error)
            found(Flaw(Part.FILTERS, f"they cannot be read: {error}", self._segment))

    async def _open_reader(self) -> None:
        opened: Pending[Reader] = Pending()
        self._store.open_reader(self._segment, done=opened.settle)
        self._reader = await opened

    def _add(self, place: int, size: int, first: int, end: int) -> None:
        # The later page is right: a power cut may have shortened the stream in between.
        while self._ends and self._ends[-1] > first:
            self._remove(len(self._ends) - 1)
        self._firsts.append(first)
        self._ends.append(end)
        self._places.append(place)
        self._sizes.append(size)

    def _remove(self, index: int) -> None:
        self._verified.discard(self._places[index])
        for each in (self._firsts, self._ends, self._places):
            del each[index]
        del self._sizes[index]

    # Finding

    def find(self, position: int) -> int | None:
        """Return the number of the page that covers a position, valid up to the next change."""
        index = bisect_right(self._firsts, position) - 1
        return index if index >= 0 and self._ends[index] > position else None

    def read(self, index: int) -> FilterPage | None:
        """Return a page; None if it is not in memory: see `fetch`. ValueError if it is damaged."""
        assert self._reader is not None
        stored = self._reader.read_cached(self._places[index], self._sizes[index])
        if stored is None or len(stored) < self._sizes[index]:
            return None
        return FilterPage(stored)

    def fetch(self, index: int) -> Pending[None]:
        """Have a page read into memory; if that fails it is dropped."""
        assert self._reader is not None
        place = self._places[index]
        fetched: Pending[None] = Pending()

        def done(outcome: int | StoreError) -> None:
            if isinstance(outcome, StoreError) and place in self._places:
                self._remove(self._places.index(place))
            fetched.settle(None)

        self._reader.check(place, self._sizes[index], len, done=done)
        return fetched

    def drop(self, index: int) -> int:
        """Drop a page, which is not believed any more; return its place in its segment."""
        place = self._places[index]
        self._remove(index)
        return place

    def is_verified(self, index: int) -> bool:
        """Return whether the page was found to describe the stream."""
        return self._places[index] in self._verified

    def verify(self, index: int) -> None:
        """Note that the page was found to describe the stream."""
        self._verified.add(self._places[index])

    # Storing

    async def append(self, notes: FilterNotes, stream_start: int) -> None:
        """Store the notes, and trim pages that describe only chunks before `stream_start`.

        Raises:
            StoreError: The store refused; the notes that were not stored become a gap.
        """
        pages = notes.take()
        if not notes.has_values:
            return
        await self.load()
        if self._is_broken:
            return
        try:
            writer = self._writer or await self._open_writer()
            number = 0 if writer.event_number == ABSENT else writer.event_number
            for page in pages:
                number += 1
                appended: Pending[Appended] = Pending()
                writer.append(page, number, done=appended.settle)
                place = (await appended).position
                _, first, end, *_ = _HEAD.unpack_from(page)
                self._add(place, len(page), first, end)
            await self._trim(stream_start)
        except StoreError:
            self._writer = None  # its session may be dead: the next time opens another
            raise

    async def _open_writer(self) -> Writer:
        if self._reader is None:
            created: Pending[None] = Pending()
            self._store.create_segment(self._segment, done=created.settle)
            with suppress(SegmentExists):
                await created
            await self._open_reader()
        opened: Pending[Writer] = Pending()
        self._store.open_writer(self._segment, writer_of(self._segment), done=opened.settle)
        self._writer = await opened
        return self._writer

    async def _trim(self, stream_start: int) -> None:
        count = bisect_right(self._ends, stream_start)
        if count < TRIM_PAGES:
            return
        place = self._places[count] if count < len(self._places) else self._places[-1]
        truncated: Pending[None] = Pending()
        self._store.truncate_segment(self._segment, place, done=truncated.settle)
        await truncated
        for _ in range(min(count, len(self._places) - 1)):
            self._remove(0)


def _heads(view: memoryview, judge: Callable[[bytes], object]) -> list[Head]:
    """On a thread of the store: return the heads of whole pages, before one that `judge` refuses.

    It does so by a ValueError.
    """
    found: list[Head] = []
    position = 0
    while position + _HEAD.size <= len(view):
        size, first, end, *_ = _HEAD.unpack_from(view, position)
        if size < _HEAD.size or end <= first or position + size > len(view):
            break
        try:
            judge(bytes(view[position : position + size]))
        except ValueError:
            break
        found.append((size, first, end))
        position += size
    return found

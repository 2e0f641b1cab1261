"""Space before the start of a segment, given back to the file system where its file stays.

    file   | given up                         | start: kept ...
           | hole, in whole units      |

A hole may be made when nothing can come back to the bytes: a durable checkpoint holds the
truncation, so that recovery looks at nothing before it, and no reader that began before the
truncation still reads there. Where a file system makes no holes, files go whole, and nothing else.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from mmap import PAGESIZE
from typing import Final, NamedTuple

from store.errors import DiskFull, StoreError
from store.files import Files
from store.local.reserve import Reserve
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import DataFile, OpenFiles, path_of
from store.local.state.segment import Segment
from store.local.threads import Worker

log = logging.getLogger(__name__)

UNIT_BYTES: Final = PAGESIZE * PAGESIZE // 8
"""Holes end at a multiple of this, 2 MiB where pages have 4 KiB.

This is the largest piece of the page cache. If a piece is only partly in the hole, the system
clears that part in place, even if a socket still has to send it: `sendfile` hands over the pages
themselves, and returns before they are sent.
"""

# Space that leads to a checkpoint, and the time since the last one; less on a full disk.
SOON_BYTES: Final = 16 * 1024 * 1024
SOON_S: Final = 10.0
FULL_S: Final = 1.0
AGAIN_S: Final = 5.0

# At once: appends to the file wait meanwhile.
_SLICE_BYTES: Final = 8 * 1024 * 1024


class Hole(NamedTuple):
    """Space that could be given back: the bytes of a file before `end`."""

    segment: Segment
    file: DataFile
    end: int


class Holes:
    """Follows truncated ranges until their space is given back. All is the loop's, if not said."""

    def __init__(
        self,
        files: Files,
        catalogue: Catalogue,
        open_files: OpenFiles,
        reserve: Reserve,
        *,
        submit: Callable[[Callable[[], object]], object],
        call_soon_threadsafe: Callable[..., object],
        look: Callable[[], object],
    ) -> None:
        """Begin with nothing to give back.

        Args:
            files: The data directory.
            catalogue: Tells what was truncated.
            open_files: Tells when a file is no longer read.
            reserve: Is taken again when there is space.
            submit: Does a job on a thread.
            call_soon_threadsafe: Calls a function on the loop's thread.
            look: Is called when `want_checkpoint` may have changed its answer.
        """
        self._files = files
        self._catalogue = catalogue
        self._reserve = reserve
        self._submit = submit
        self._call_soon_threadsafe = call_soon_threadsafe
        self._look = look
        self._clock = Worker("holes")
        self._stopping = threading.Event()
        self._is_waiting = False
        self._can_punch = True
        self._sizes: dict[Segment, int] = {}
        self._bytes = 0
        self._last_at = -math.inf
        open_files.left = self._give_back

    def stop(self) -> None:
        """Schedule no further look."""
        self._stopping.set()

    def stop_threads(self) -> None:
        """End the thread; `stop` was called before."""
        self._clock.stop_threads()

    @property
    def is_counting(self) -> bool:
        """True if space can be given back, so that `want_checkpoint` may change its answer."""
        return bool(self._bytes or self._catalogue.truncated)

    def want_checkpoint(self) -> bool:
        """Return whether a checkpoint should be made now, so that space can be given back.

        If only a little later, `look` is called then.
        """
        if not self.is_counting:
            return False
        self._count()
        is_short = self._catalogue.is_full or self._reserve.is_short
        if not self._bytes or not (is_short or self._bytes >= SOON_BYTES):
            return False
        wait_s = self._last_at + (FULL_S if is_short else SOON_S) - time.monotonic()
        if wait_s <= 0:
            return True
        if not self._is_waiting:
            self._is_waiting = True
            self._clock.submit(partial(self._wait, wait_s))
        return False

    def _wait(self, wait_s: float) -> None:
        if not self._stopping.wait(wait_s):
            self._call_soon_threadsafe(self._waited)

    def _waited(self) -> None:
        self._is_waiting = False
        if not self._stopping.is_set():
            self._look()

    def _count(self) -> None:
        """Note all truncations since the last call."""
        truncated, self._catalogue.truncated = self._catalogue.truncated, []
        if not self._can_punch:
            return
        for segment in truncated:
            hole = hole_of(segment)
            size = 0 if hole is None else hole.end - hole.file.punched
            self._bytes += size - self._sizes.get(segment, 0)
            self._sizes[segment] = size

    def capture(self) -> list[Hole]:
        """Return the holes of the checkpoint that begins now; to `made` or `not_made` after it."""
        self._count()
        found = [hole for segment in self._sizes if (hole := hole_of(segment)) is not None]
        self._sizes.clear()
        self._bytes = 0
        self._last_at = time.monotonic()
        self._catalogue.is_full = False
        return found

    def in_room(self, holes: list[Hole], write: Callable[[], object]) -> None:
        """Write a checkpoint; on a full disk, if it holds any, in the room that is kept.

        Any thread. Raises what `write` raises.
        """
        try:
            write()
        except DiskFull:
            if not holes or self._reserve.is_short:
                raise
            # It needs the room no more when it is in the place of the last one.
            self._reserve.lend(write)

    def made(self, holes: Iterable[Hole]) -> None:
        """Release the holes of a durable checkpoint, as soon as they are no longer read."""
        for hole in holes:
            hole.file.hole_end = max(hole.file.hole_end, hole.end)
            self._give_back(hole.file)

    def not_made(self, holes: Iterable[Hole]) -> None:
        """Wait for the next checkpoint, and try that not at once."""
        self._catalogue.truncated.extend(hole.segment for hole in holes)
        self._last_at = time.monotonic() + AGAIN_S

    def _give_back(self, file: DataFile) -> None:
        end = _whole_units(min(file.hole_end, min(file.reads, default=file.hole_end)))
        if end > file.punched and not file.dead:
            begin, file.punched = file.punched, end
            self._submit(partial(self._punch, file, begin, end))

    def _punch(self, file: DataFile, begin: int, end: int) -> None:
        try:
            self._can_punch = punch(self._files, file, begin, end)
        except StoreError as error:
            if not file.dead:
                log.warning("space not given back file=%d error=%s", file.number, error)
        self._reserve.take()


def hole_of(segment: Segment) -> Hole | None:
    """Return the part of a segment's first file whose space could be released."""
    state = segment.committed
    # What is damaged stays for a person to look at.
    if segment.dead or segment.corrupt or not state.extents:
        return None
    base, file = state.extents[0]
    end = _whole_units(state.start - base)
    return Hole(segment, file, end) if end > file.punched else None


def punch(files: Files, file: DataFile, begin: int, end: int) -> bool:
    """Make a hole in a file; tells whether its file system can. Any thread."""
    handle = files.open(path_of(file.number))
    try:
        return all(
            handle.punch(position, min(_SLICE_BYTES, end - position))
            for position in range(begin, end, _SLICE_BYTES)
        )
    finally:
        handle.close()


def punch_all(files: Files, segments: Iterable[Segment]) -> None:
    """Release unneeded space, at an opening after its checkpoint is durable."""
    for hole in filter(None, map(hole_of, segments)):
        try:
            if not punch(files, hole.file, 0, hole.end):
                return
            hole.file.punched = hole.end
        except StoreError as error:
            log.warning("space not given back file=%d error=%s", hole.file.number, error)


def _whole_units(size: int) -> int:
    return size - size % UNIT_BYTES

"""The take-over of a data directory of format version 1, by its first opening in version 2.

    recovered by the rules of version 1  →  tables are written anew, with checksums, in new files
    →  a journal file of version 2  →  synced  →  the checkpoint of version 2 is renamed into place

That rename is the take-over. Killed before it, the directory is of version 1 still: with some files
more that belong to no segment, which either version removes. Killed after it, it is of version 2:
with some files that version 1 needed, which the checkpoint lists as loose.
"""

import contextlib
import logging
import time
from collections.abc import Iterator
from itertools import islice
from typing import Final

from store.api import TAKEN_OVER
from store.errors import CorruptSegment, DiskFull, StoreError
from store.local.catalogue import Catalogue
from store.local.data_file import DATA_DIRECTORY, path_of
from store.local.files import File, Files
from store.local.journal_damage import Evidence
from store.local.journal_files import JOURNAL_DIRECTORY
from store.local.leftovers import leftovers
from store.local.recovery import Recovered
from store.local.segment import Extent, Segment
from store.local.table_entries import bytes_of_entry, seed_of
from store.local.table_loading import load_tables
from store.local.version_1 import stored_entries

log = logging.getLogger(__name__)

SLICE_BYTES: Final = 1024 * 1024
SAY_AGAIN_S: Final = 5.0


@contextlib.contextmanager
def taken_over(files: Files, recovered: Recovered) -> Iterator[None]:
    """Convert a store of version 1 to version 2, and let the caller make that durable.

    A store of version 2 is left as it is.

    Args:
        files: The data directory.
        recovered: The store as it was found; of version 1, its catalogue is changed to version 2.

    Raises:
        DiskFull: There is no room; nothing was changed.
    """
    if recovered.version != 1:
        yield
        return
    began = time.monotonic()
    catalogue = recovered.catalogue
    # Of a take-over that was cut off; their numbers are used again.
    for name in leftovers(files, catalogue):
        if int(name) >= catalogue.next_file:
            files.remove(path_of(int(name)))
    before = _paths(files)
    try:
        tables = _take_over(files, catalogue)
        load_tables(files, catalogue, recovered.findings)
        yield
    except DiskFull as error:
        with contextlib.suppress(StoreError):
            for path in _paths(files) - before:
                files.remove(path)
        raise DiskFull(
            "there is no room to take the store over from version 1 of its format, nothing was"
            f" changed: free some space, all tables are written anew ({error})"
        ) from error
    log.info(
        "store was taken over from version 1 of its format segments=%d tables=%d seconds=%.1f",
        len(catalogue.segments),
        tables,
        time.monotonic() - began,
    )


def _paths(files: Files) -> set[str]:
    return {
        f"{directory}/{name}"
        for directory in (JOURNAL_DIRECTORY, DATA_DIRECTORY)
        for name in files.names(directory)
    }


def _take_over(files: Files, catalogue: Catalogue) -> int:
    """Bring all segments into the form of version 2; gives the count of tables."""
    tables = [segment for segment in catalogue.segments.values() if segment.is_table]
    writer = TableWriter(files, catalogue, tables)
    for segment in catalogue.segments.values():
        state = segment.committed
        if segment.is_table:
            writer.write(segment)
        elif state.length:
            state.set_attributes([(TAKEN_OVER.bytes, state.length)])
        segment.pending = state.copy()
        segment.block()
    files.sync_directory(DATA_DIRECTORY)
    return len(tables)


class TableWriter:
    """Writes tables anew, as a compaction does: the live entries, behind all that there was.

    An entry keeps its version, and no later one can get it: versions are positions. Bytes that are
    no entries are kept behind them: for the loading of tables, which says so and sets them aside.
    """

    def __init__(self, files: Files, catalogue: Catalogue, tables: list[Segment]) -> None:
        self._files = files
        self._catalogue = catalogue
        self._total = sum(table.committed.length - table.committed.start for table in tables)
        self._done = 0
        self._say_at = time.monotonic() + SAY_AGAIN_S
        # Of the table that is being written: its files, its length, and what is to be written next.
        self._extents: list[Extent] = []
        self._file: File | None = None
        self._length = self._written = 0
        self._pieces: list[bytes] = []

    def write(self, segment: Segment) -> None:
        """Write one table; its state is that of the new one then. Nothing is durable yet but files.

        Raises:
            StoreError: Something could not be written.
        """
        state = segment.committed
        latest, count, end = self._read(segment)
        seed = seed_of(segment.name)
        self._extents = []
        self._length = self._written = state.length
        try:
            for entry in islice(stored_entries(self._files, segment), count):
                if latest.get(entry.key) == entry.position:
                    self._add(
                        bytes_of_entry(seed, self._length, entry.key, entry.value, entry.version),
                        segment,
                    )
                self._progress(entry.size)
            if end < state.length:
                self._set_aside(segment)
                self._keep_damaged(segment, end)
            self._sync()
        finally:
            self._close()
        state.start, state.length, state.extents = state.length, self._length, self._extents
        segment.corrupt = False

    def _read(self, segment: Segment) -> tuple[dict[bytes, int], int, int]:
        """Give the places of the live entries by key, the count of all, and where they end."""
        latest: dict[bytes, int] = {}
        count, end = 0, segment.committed.start
        try:
            for entry in stored_entries(self._files, segment):
                if entry.value is None:
                    latest.pop(entry.key, None)
                else:
                    latest[entry.key] = entry.position
                count += 1
                end = entry.position + entry.size
        except CorruptSegment as error:
            log.warning("table cannot be read to its end segment=%s error=%s", segment.name, error)
        # Nothing is certain about bytes that differ from those that were written.
        return latest, count, segment.committed.start if segment.corrupt else end

    def _set_aside(self, segment: Segment) -> None:
        """Keep copies of the files as they are: they go with the take-over."""
        evidence = Evidence(self._files, seed_of(segment.name))
        for _, data_file in segment.committed.extents:
            if data_file.made:
                evidence.copy(path_of(data_file.number))

    def _keep_damaged(self, segment: Segment, position: int) -> None:
        """Keep what is behind the last entry; a zero for a file of which nothing can be read."""
        state = segment.committed
        while position < state.length:
            data_file, place, size = state.place_of(position, SLICE_BYTES)
            data = b""
            if data_file.made:
                file = self._files.open(path_of(data_file.number))
                try:
                    data = file.read_at(size, place)
                finally:
                    file.close()
            self._add(data or bytes(1), segment)
            position += size

    def _add(self, piece: bytes, segment: Segment) -> None:
        """Write a piece, which lies in one file, sooner or later."""
        if self._file is not None:
            base, data_file = self._extents[-1]
            if self._length + len(piece) - base > data_file.size_max:
                self._sync()
                self._close()
        if self._file is None:
            data_file = self._catalogue.new_file(segment)
            self._file = self._files.open(path_of(data_file.number), create=True)
            data_file.made = data_file.in_directory = True
            self._extents.append(Extent(self._length, data_file))
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length - self._written >= SLICE_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._file is not None:
            place = self._written - self._extents[-1].base
            self._file.write_at(b"".join(self._pieces), place)
            self._written = self._length
            self._pieces.clear()

    def _sync(self) -> None:
        self._flush()
        if self._file is not None:
            self._file.sync()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _progress(self, size: int) -> None:
        self._done += size
        now = time.monotonic()
        if now >= self._say_at:
            self._say_at = now + SAY_AGAIN_S
            log.info(
                "store is being taken over from version 1 of its format bytes=%d of=%d",
                self._done,
                self._total,
            )

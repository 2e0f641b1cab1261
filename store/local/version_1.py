"""Version 1 of the store's format, which is only read: by the take-over of a data directory.

Its differences, beside those of the checkpoint (checkpoint_file) and of frames (records):

Table entries had no checksum:

    entry   | format | key size | value size | version | key | value
    bytes   | 1      | 4        | 4          | 8       |

Frames did not say which of them were synced. But after a frame that was acknowledged with a sync, a
frame of another round followed only when that sync had succeeded. So if such a frame lies behind
the journal's end, and then one of a later round, everything before that was on the disk once.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from store.api import ENTRY_BYTES_MAX, KEY_BYTES_MAX
from store.errors import CorruptSegment
from store.local.data_file import path_of
from store.local.files import Files
from store.local.journal_files import numbers_in
from store.local.journal_files import path_of as journal_path_of
from store.local.records import FILE_MAGIC, Frame
from store.local.segment import Segment
from store.local.table_entries import StoredEntry

_HEAD: Final = struct.Struct("<Biiq")
_FORMAT: Final = 1
_REMOVED: Final = -1
_OWN_POSITION: Final = -1
_STORED_BYTES_MAX: Final = _HEAD.size + ENTRY_BYTES_MAX


def was_synced(frames: Iterable[Frame]) -> bool:
    """Tell whether frames behind the end of a journal show that what was before them was synced."""
    synced_at: int | None = None
    for frame in frames:
        # All frames of a round have its time, so another time is another round.
        if synced_at is not None and frame.at_ms != synced_at:
            return True
        if synced_at is None and any(record.durable for record in frame.records):
            synced_at = frame.at_ms
    return False


def remove_unfinished(files: Files) -> None:
    """Remove the journal files of a take-over that was cut off; version 1 has none like them."""
    for number in numbers_in(files):
        file = files.open(journal_path_of(number))
        try:
            is_later = file.read_at(len(FILE_MAGIC), 0) == FILE_MAGIC
        finally:
            file.close()
        if is_later:
            files.remove(journal_path_of(number))


def entries_of(data: bytes, position: int) -> Iterator[StoredEntry]:
    """Decode the whole table entries at the beginning of `data`, which lies at `position`.

    Raises:
        CorruptSegment: What stands there is no entry.
    """
    at = 0
    while at + _HEAD.size <= len(data):
        form, key_size, value_size, version = _HEAD.unpack_from(data, at)
        if (
            form != _FORMAT
            or not 0 < key_size <= KEY_BYTES_MAX
            or not _REMOVED <= value_size <= ENTRY_BYTES_MAX
        ):
            raise CorruptSegment(f"no table entry at position {position + at}")
        value_at = at + _HEAD.size + key_size
        end = value_at + max(0, value_size)
        if end > len(data):
            return
        own = position + at
        yield StoredEntry(
            own,
            end - at,
            data[at + _HEAD.size : value_at],
            None if value_size == _REMOVED else data[value_at:end],
            own if version == _OWN_POSITION else version,
        )
        at = end


def stored_entries(files: Files, segment: Segment) -> Iterator[StoredEntry]:
    """Read the entries of a table, a megabyte or so at a time.

    Raises:
        CorruptSegment: What comes next is no entry.
    """
    state = segment.committed
    position = state.start
    while position < state.length:
        data_file, place, size = state.place_of(position, state.length)
        if not data_file.made:
            raise CorruptSegment(f"data file {data_file.number} is missing")
        file = files.open(path_of(data_file.number))
        try:
            end = position + size
            while position < end:
                data = file.read_at(min(end - position, _STORED_BYTES_MAX), place)
                entry = None
                for entry in entries_of(data, position):
                    yield entry
                if entry is None:
                    raise CorruptSegment(f"no table entry at position {position}")
                place += entry.position + entry.size - position
                position = entry.position + entry.size
        finally:
            file.close()

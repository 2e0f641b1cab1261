"""The bytes of a table: entries one after another in the table's segment. Pure.

Little-endian:

    entry   | checksum | format | key size | value size | version | key | value |
    bytes   | 8        | 1      | 4        | 4          | 8       |

`format` is 2. A value size of -1 marks a removal. `version` is -1 where it is the entry's own
position in the segment; compaction writes an entry again with the version that it had.
The checksum is XXH3 of all that follows it, seeded with the hash of the segment's name and the
entry's position: an entry of another table, or of another place, does not check out.

Source: Pravega's table entries, whose header has the same fields but for the checksum.
"""

import re
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

from store.api import ENTRY_BYTES_MAX, KEY_BYTES_MAX
from store.errors import CorruptSegment

_CHECKSUM: Final = struct.Struct("<Q")
_HEAD: Final = struct.Struct("<Biiq")
ENTRY_HEAD_BYTES: Final = _CHECKSUM.size + _HEAD.size
_FORMAT: Final = 2
_REMOVED: Final = -1
_OWN_POSITION: Final = -1

STORED_ENTRY_BYTES_MAX: Final = ENTRY_HEAD_BYTES + ENTRY_BYTES_MAX

# What may be the head of an entry behind its checksum, seen by the format and upper bytes of sizes.
_MAYBE_HEAD: Final = re.compile(rb"\x02..\0\0(?:...\0|\xff{4})", re.DOTALL)


class StoredEntry(NamedTuple):
    """An entry as it was read; `value` None marks a removal."""

    position: int
    size: int
    key: bytes
    value: bytes | None
    version: int


def seed_of(name: str) -> int:
    """Return the hash of a segment's name, with which the checksums of its entries are seeded."""
    return xxh3_64_intdigest(name.encode())


def parts_of_entry(
    seed: int, position: int, key: bytes, value: bytes | None, version: int | None = None
) -> tuple[bytes, bytes]:
    """Encode an entry, as its checksum and the rest: many are joined by their writer at once.

    Args:
        seed: Of the segment's name.
        position: Where in the segment the entry will be.
        key: Its key.
        value: None: a removal.
        version: None: its position.
    """
    value_size = _REMOVED if value is None else len(value)
    head = _HEAD.pack(_FORMAT, len(key), value_size, _OWN_POSITION if version is None else version)
    content = b"".join((head, key, value or b""))
    return _CHECKSUM.pack(xxh3_64_intdigest(content, seed ^ position)), content


def entries_of(data: bytes | memoryview, position: int, seed: int) -> Iterator[StoredEntry]:
    """Decode the whole entries at the beginning of `data`, which lies at `position`.

    Raises:
        CorruptSegment: What stands there is no entry, or is not what was written.
    """
    view = memoryview(data)
    at = 0
    while True:
        entry = _entry_at(view, at, position + at, seed)
        if entry is None:
            return
        yield entry
        at += entry.size


def find_entry(data: bytes | memoryview, position: int, seed: int, limit: int) -> int | None:
    """Find the first place in `data` at which an entry checks out.

    Args:
        data: What lies at `position`.
        position: In the segment.
        seed: Of the segment's name.
        limit: Places from there on are not looked at.
    """
    view = memoryview(data)
    at = 0
    while True:
        found = _MAYBE_HEAD.search(view, at + _CHECKSUM.size)
        if found is None:
            return None
        at = found.start() - _CHECKSUM.size
        if at >= limit:
            return None
        try:
            if _entry_at(view, at, position + at, seed) is not None:
                return at
        except CorruptSegment:
            pass
        at += 1


def _entry_at(view: memoryview, at: int, position: int, seed: int) -> StoredEntry | None:
    """Decode the entry at a place of `view`, None if it is not all there. Raises CorruptSegment."""
    if at + ENTRY_HEAD_BYTES > len(view):
        return None
    content_at = at + _CHECKSUM.size
    form, key_size, value_size, version = _HEAD.unpack_from(view, content_at)
    if (
        form != _FORMAT
        or not 0 < key_size <= KEY_BYTES_MAX
        or not _REMOVED <= value_size <= ENTRY_BYTES_MAX
    ):
        raise CorruptSegment(f"no table entry at position {position}")
    value_at = at + ENTRY_HEAD_BYTES + key_size
    end = value_at + max(0, value_size)
    if end > len(view):
        return None
    (checksum,) = _CHECKSUM.unpack_from(view, at)
    if xxh3_64_intdigest(view[content_at:end], seed ^ position) != checksum:
        raise CorruptSegment(f"the checksum of the table entry at position {position} is wrong")
    return StoredEntry(
        position,
        end - at,
        bytes(view[at + ENTRY_HEAD_BYTES : value_at]),
        None if value_size == _REMOVED else bytes(view[value_at:end]),
        position if version == _OWN_POSITION else version,
    )

"""The bytes of a table: entries one after another in the table's segment. Pure.

Little-endian:

    entry   | format | key size | value size | version | key | value
    bytes   | 1      | 4        | 4          | 8       |

`format` is 1. A value size of -1 marks a removal. `version` is -1 where it is the entry's own
position in the segment; compaction writes an entry again with the version that it had.
Checksums are the journal's business.

Source: Pravega's table entries, whose header has the same fields.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from store.api import ENTRY_BYTES_MAX, KEY_BYTES_MAX
from store.errors import CorruptSegment

_HEAD: Final = struct.Struct("<Biiq")
ENTRY_HEAD_BYTES: Final = _HEAD.size
_FORMAT: Final = 1
_REMOVED: Final = -1
_OWN_POSITION: Final = -1

STORED_ENTRY_BYTES_MAX: Final = ENTRY_HEAD_BYTES + ENTRY_BYTES_MAX


class StoredEntry(NamedTuple):
    """An entry as it was read; `value` None marks a removal."""

    position: int
    size: int
    key: bytes
    value: bytes | None
    version: int


def bytes_of_entry(key: bytes, value: bytes | None, version: int | None = None) -> bytes:
    """Encode an entry; `version` None: its position, `value` None: a removal."""
    value_size = _REMOVED if value is None else len(value)
    head = _HEAD.pack(_FORMAT, len(key), value_size, _OWN_POSITION if version is None else version)
    return b"".join((head, key, value or b""))


def entries_of(data: bytes | memoryview, position: int) -> Iterator[StoredEntry]:
    """Decode the whole entries at the beginning of `data`, which lies at `position`.

    Raises:
        CorruptSegment: What stands there is no entry.
    """
    at = 0
    while at + ENTRY_HEAD_BYTES <= len(data):
        form, key_size, value_size, version = _HEAD.unpack_from(data, at)
        if (
            form != _FORMAT
            or not 0 < key_size <= KEY_BYTES_MAX
            or not _REMOVED <= value_size <= ENTRY_BYTES_MAX
        ):
            raise CorruptSegment(f"no table entry at position {position + at}")
        key_at = at + ENTRY_HEAD_BYTES
        value_at = key_at + key_size
        end = value_at + max(0, value_size)
        if end > len(data):
            return
        value = None if value_size == _REMOVED else bytes(data[value_at:end])
        own = position + at
        yield StoredEntry(
            own,
            end - at,
            bytes(data[key_at:value_at]),
            value,
            own if version == _OWN_POSITION else version,
        )
        at = end

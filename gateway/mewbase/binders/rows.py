"""Rows of a binder's table; pure bytes.

    d + id of a document    the document, as BSON
    p + name of projection  generation u64, next position u64   how far the projection has come

The generation is that of the channel's stream: another stream of the name has another one.
"""

import struct
from typing import Final, NamedTuple

from store.api import ENTRY_BYTES_MAX

DOCUMENT: Final = b"d"
PLACE: Final = b"p"
ID_BYTES_MAX: Final = 1_024
"""Longest id: all ids of a binder are in memory."""
_PLACE: Final = struct.Struct(">QQ")


class Place(NamedTuple):
    """Place of a projection: the generation of its channel, and the position of its next event."""

    generation: int
    position: int

    def pack(self) -> bytes:
        """Encode for the table."""
        return _PLACE.pack(*self)

    @classmethod
    def unpack(cls, value: bytes) -> "Place":
        """Undo `pack`. Raises struct.error if it was never packed."""
        return cls(*_PLACE.unpack(value))


def document_key(name: bytes) -> bytes:
    """Return the key of a document."""
    return DOCUMENT + name


def name_in(key: bytes) -> bytes:
    """Return the id of a document in its key."""
    return key[len(DOCUMENT) :]


def place_key(projection: str) -> bytes:
    """Return the key of a projection's place."""
    return PLACE + projection.encode()


def has_room(name: bytes, document: bytes) -> bool:
    """Return whether a document fits into a row."""
    return len(name) + len(document) < ENTRY_BYTES_MAX

"""The last publishing id of each named publisher of a stream; no I/O.

An id at or below the last is a duplicate. Beyond a limit the least recently used references are
dropped (and logged): after that, old ids of theirs would be stored again.

If the stored ids are damaged, any publisher's last id may be unknown. The next snapshot keeps that
fact, so that named publishers are refused rather than trusted by a guess.

The *mark* is the number of the last unit (`gateway.log.units`) that the stream has. It is stored as
the id of the empty reference, which no publisher has, but it is no publisher's: it is not counted,
not forgotten, and not listed. Marks grow, so that damage before the last one does not matter.
"""

import logging
import struct
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from gateway.log.derived.snapshot import PART_BYTES
from hutch.formats.chunk import pack_trailer, unpack_trailer

log = logging.getLogger(__name__)


def pack_id(reference: bytes, value: int) -> bytes:
    """Encode one reference with its id, as it stands in a part of a snapshot."""
    return struct.pack(f">B{len(reference)}sQ", len(reference), reference, value)


UNKNOWN: Final = b"\xff"
"""A part that ends inside a reference; it marks ids that were lost."""

MARKS_END: Final = 1 << 63
"""Marks are below this. In a snapshot it is added to the mark if a later one may be lost."""

NO_MARK_KNOWN: Final = pack_id(b"", MARKS_END)
"""A part that says that a later mark than those before may have been lost."""


class PublisherSequences:
    """Reference (bytes, ≤ 255) → last publishing id, most recently used last.

    Attributes:
        damaged: Stored bytes that are no references with ids. While there are any, the last ids
            of named publishers are not known.
        mark: That of the last unit, 0 if there is none.
        is_mark_known: False if a later mark may have been lost with damage.
    """

    def __init__(self, stream: str, references_max: int) -> None:
        self._stream = stream
        self._references_max = references_max
        self._last: OrderedDict[bytes, int] = OrderedDict()
        self.damaged = b""
        self.mark = 0
        self.is_mark_known = True

    def __len__(self) -> int:
        return len(self._last)

    def last(self, reference: bytes) -> int | None:
        """Return the last committed id, None if unknown."""
        return self._last.get(reference)

    def all(self) -> dict[bytes, int]:
        """Return every reference with its last id."""
        return dict(self._last)

    def record(self, reference: bytes, publishing_id: int) -> None:
        """Note a publisher's last id; beyond the limit, drop the least recently used reference."""
        self._last[reference] = publishing_id
        self._last.move_to_end(reference)
        if len(self._last) > self._references_max:
            dropped, _ = self._last.popitem(last=False)
            log.warning(
                "publisher reference forgotten stream=%s reference=%r references_max=%d",
                self._stream,
                dropped,
                self._references_max,
            )

    def note_mark(self, mark: int) -> None:
        """Note the mark of a chunk; marks below the last one say nothing."""
        if mark >= self.mark:
            self.mark = mark
            self.is_mark_known = True

    def pack(self) -> list[bytes]:
        """Encode all, in parts of little more than 512 KiB.

        The mark is first, so that other damage does not reach it. References follow, oldest first,
        then damaged bytes.
        """
        parts: list[bytes] = []
        if self.mark or not self.is_mark_known:
            parts.append(pack_id(b"", self.mark | (0 if self.is_mark_known else MARKS_END)))
        part = bytearray()
        for reference, publishing_id in self._last.items():
            part += pack_id(reference, publishing_id)
            if len(part) > PART_BYTES:
                parts.append(bytes(part))
                part.clear()
        if part:
            parts.append(bytes(part))
        if self.damaged:
            parts.append(self.damaged)
        return parts

    def restore(self, parts: Iterable[bytes]) -> None:
        """Take over parts that `pack` made, as far as they make sense."""
        has_mark = False
        for part in parts:
            position = 0
            while position < len(part):
                end = position + 1 + part[position]
                reference, value = part[position + 1 : end], int.from_bytes(part[end : end + 8])
                if end + 8 > len(part) or not (reference or value):
                    log.error("publishing ids are damaged stream=%s", self._stream)
                    self.damaged = part[position:]
                    break
                if reference:
                    self.record(reference, value)
                else:
                    has_mark = True
                    self.mark = max(self.mark, value % MARKS_END)
                    self.is_mark_known = value < MARKS_END
                position = end + 8
        if self.damaged and not has_mark:
            self.is_mark_known = False

    def take(self, trailer: bytes) -> bool:
        """Take over the ids of a chunk's trailer; return False if it is damaged."""
        size = 0
        for reference, publishing_id in unpack_trailer(trailer):
            if reference:
                self.record(reference, publishing_id)
            elif 0 < publishing_id < MARKS_END:
                self.note_mark(publishing_id)
            else:  # zeros are neither a publisher nor a mark
                break
            size += len(pack_trailer({reference: publishing_id}))
        if size != len(trailer):
            self.lose()
        return size == len(trailer)

    def lose(self) -> None:
        """Note that ids of unknown publishers were lost, and perhaps a mark."""
        if not self.damaged:
            log.error("publishing ids are damaged stream=%s", self._stream)
        self.damaged = UNKNOWN
        self.is_mark_known = False

    def clear(self) -> None:
        """Forget everything, to begin anew from the chunks."""
        self._last.clear()
        self.damaged = b""
        self.mark = 0
        self.is_mark_known = True

"""The last publishing id of each named publisher of a stream; no I/O.

An id at or below the last is a duplicate. Beyond a limit the least recently used references are
dropped (and logged): after that, old ids of theirs would be stored again.

If the stored ids are damaged, any publisher's last id may be unknown. The next snapshot keeps that
fact, so that named publishers are refused rather than trusted by a guess.
"""

import logging
import struct
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from gateway.log.chunk import pack_trailer, unpack_trailer
from gateway.log.snapshot import PART_BYTES

log = logging.getLogger(__name__)

UNKNOWN: Final = b"\xff"
"""A part that ends inside a reference; it marks ids that were lost."""


class PublisherSequences:
    """Reference (bytes, ≤ 255) → last publishing id, most recently used last.

    Attributes:
        damaged: Stored bytes that are no references with ids. While there are any, the last ids
            of named publishers are not known.
    """

    def __init__(self, stream: str, references_max: int) -> None:
        self._stream = stream
        self._references_max = references_max
        self._last: OrderedDict[bytes, int] = OrderedDict()
        self.damaged = b""

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

    def pack(self) -> list[bytes]:
        """Encode all, oldest first, in parts of little more than 512 KiB; then damaged bytes."""
        parts: list[bytes] = []
        part = bytearray()
        for reference, publishing_id in self._last.items():
            part += struct.pack(f">B{len(reference)}sQ", len(reference), reference, publishing_id)
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
        for part in parts:
            position = 0
            while position < len(part):
                end = position + 1 + part[position]
                if end + 8 > len(part):
                    log.error("publishing ids are damaged stream=%s", self._stream)
                    self.damaged = part[position:]
                    break
                self.record(part[position + 1 : end], int.from_bytes(part[end : end + 8], "big"))
                position = end + 8

    def take(self, trailer: bytes) -> None:
        """Take over the ids of a chunk's trailer."""
        size = 0
        for reference, publishing_id in unpack_trailer(trailer):
            if reference:  # zeros are no publisher
                self.record(reference, publishing_id)
                size += len(pack_trailer({reference: publishing_id}))
        if size != len(trailer):
            self.lose()

    def lose(self) -> None:
        """Note that ids of unknown publishers were lost."""
        if not self.damaged:
            log.error("publishing ids are damaged stream=%s", self._stream)
        self.damaged = UNKNOWN

    def clear(self) -> None:
        """Forget everything, to begin anew from the chunks."""
        self._last.clear()
        self.damaged = b""

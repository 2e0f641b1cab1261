"""The last publishing id of each named publisher of a stream; no I/O.

An id at or below the last is a duplicate. The least recently used references are dropped beyond a
limit (and logged): after that their old ids would be stored again.
"""

import logging
import struct
from collections import OrderedDict
from collections.abc import Iterable

log = logging.getLogger(__name__)

_PART_BYTES_MAX = 512 * 1024


class PublisherSequences:
    """Reference (bytes, ≤ 255) → last publishing id, most recently used last."""

    def __init__(self, stream: str, references_max: int) -> None:
        self._stream = stream
        self._references_max = references_max
        self._last: OrderedDict[bytes, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last)

    def last(self, reference: bytes) -> int | None:
        """Return the last id that is committed, None if unknown."""
        return self._last.get(reference)

    def all(self) -> dict[bytes, int]:
        """Return every reference with its last id."""
        return dict(self._last)

    def record(self, reference: bytes, publishing_id: int) -> None:
        """Note that `publishing_id` is the last; drops the least recently used over the limit."""
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
        """Encode all, oldest first, in parts of at most 512 KiB."""
        parts: list[bytes] = []
        part = bytearray()
        for reference, publishing_id in self._last.items():
            part += struct.pack(f">B{len(reference)}sQ", len(reference), reference, publishing_id)
            if len(part) > _PART_BYTES_MAX:
                parts.append(bytes(part))
                part.clear()
        if part:
            parts.append(bytes(part))
        return parts

    def restore(self, parts: Iterable[bytes]) -> None:
        """Take over what `pack` gave."""
        for part in parts:
            position = 0
            while position < len(part):
                end = position + 1 + part[position]
                (publishing_id,) = struct.unpack_from(">Q", part, end)
                self.record(part[position + 1 : end], publishing_id)
                position = end + 8

"""Frames of the early dialect, and messages that are sent in parts.

    frame   | code | length | payload ...
    bytes   | 4    | 4      | length, below 2^24

The parts of a message, one behind the other, are a whole frame with its head.
"""

from __future__ import annotations

from typing import Final

from hutch.pravega.codec import HEAD, HEAD_BYTES, DialectCodec
from hutch.pravega.early_messages import EARLY_COMMANDS, FIRST, LAST, MIDDLE, PartialMessage
from hutch.pravega.errors import WireError

EARLY: Final = DialectCodec(EARLY_COMMANDS, payload_bytes_max=0xFFFFFF)
WHOLE_BYTES_MAX: Final = 1 << 24
"""Size of the largest message that is sent in parts, with its head."""
PART_HEAD_BYTES: Final = HEAD_BYTES + 1
"""Bytes of a PartialMessage before its data."""


class MessageParts:
    """Joins the parts of one message after the other.

    Attributes:
        sent_bytes: Size of the frames that brought the message, or of those so far.
    """

    def __init__(self) -> None:
        self.sent_bytes = 0
        self._data: bytearray | None = None

    @property
    def kept_bytes(self) -> int:
        """Bytes that are kept of an unfinished message."""
        return 0 if self._data is None else len(self._data)

    @property
    def is_open(self) -> bool:
        """True between the first part of a message and its last."""
        return self._data is not None

    def take(self, part: PartialMessage) -> bytes | None:
        """Take a part; return the frame when it is whole.

        Raises:
            WireError: The part does not stand in its place, or the frame is not what its head says.
        """
        data = self._data
        if part.part not in {FIRST, MIDDLE, LAST}:
            raise WireError(f"a part of kind {part.part}")
        if (part.part == FIRST) is (data is not None):
            words = "a middle or last part without a first one", "a first part before the last one"
            raise WireError(words[data is not None])
        if data is None:
            self._data = data = bytearray()
            self.sent_bytes = 0
        data += part.data
        self.sent_bytes += PART_HEAD_BYTES + len(part.data)
        size = EARLY.frame_bytes(data, 0, len(data))
        self._check(len(data), size, is_last=part.part == LAST)
        if part.part != LAST:
            return None
        self._data = None
        return bytes(data)

    def _check(self, length: int, size: int, *, is_last: bool) -> None:
        if size > WHOLE_BYTES_MAX:
            raise WireError(f"a message of {size} bytes in parts")
        if size and length > size:
            raise WireError(f"parts of {length} bytes for a message of {size}")
        if is_last and (length < size or not size):
            raise WireError(f"the last part of a message after {length} bytes of {size}")


def cut(frame: bytes, part_bytes_max: int) -> bytes:
    """Return the frame as parts of limited size in bytes, one behind the other.

    Args:
        frame: A whole frame.
        part_bytes_max: Size of the largest frame, above PART_HEAD_BYTES; 0 for no limit.

    Returns:
        The frame itself where it is small enough, or too large to be sent in parts.
    """
    if not part_bytes_max or not part_bytes_max < len(frame) <= WHOLE_BYTES_MAX:
        return frame
    step = part_bytes_max - PART_HEAD_BYTES
    code = EARLY.by_class[PartialMessage].code
    parts = bytearray()
    for start in range(0, len(frame), step):
        data = frame[start : start + step]
        kind = FIRST if not start else LAST if start + step >= len(frame) else MIDDLE
        parts += HEAD.pack(code, 1 + len(data)) + bytes((kind,)) + data
    return bytes(parts)

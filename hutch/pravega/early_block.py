"""Forms a block of the early dialect from the messages that bring it.

    BeginAppendBlock  Event …                    EndAppendBlock            all, or the first
    BeginAppendBlock  Event …  PartialMessage …  EndAppendBlock  the rest  all, with the cut one

Stored are the Event frames as they stand, with their heads: today's clients store an event so, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hutch.pravega.codec import HEAD, HEAD_BYTES
from hutch.pravega.errors import WireError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from hutch.pravega.early_messages import BeginAppendBlock, EndAppendBlock


class Block:
    """One block, while it comes in and when it is whole.

    Attributes:
        connection_id: The appender's.
        start: Offset at which it begins.
        data: What is stored of it.
        is_ended: Whether its EndAppendBlock has come. The cut event may still be incomplete.
    """

    def __init__(self, begin: BeginAppendBlock, bytes_max: int) -> None:
        """Begin a block.

        Args:
            begin: Its first message.
            bytes_max: Most bytes of events that may be kept of it.

        Raises:
            WireError: The offset or the length is negative.
        """
        if begin.offset < 0 or begin.length_before_end < 0:
            raise WireError(f"a block at {begin.offset} of {begin.length_before_end} bytes")
        self.connection_id = begin.connection_id
        self.start = begin.offset
        self.data = bytearray()
        self.is_ended = False
        self._room = begin.length_before_end
        self._bytes_max = bytes_max
        self._length = 0

    @property
    def end(self) -> int:
        """Offset behind it, once it is whole."""
        return self.start + len(self.data)

    def add(self, event: Buffer, sent_bytes: int) -> None:
        """Add an event.

        Args:
            event: Its frame.
            sent_bytes: Size of the frames that brought it.

        Raises:
            WireError: There is no room for it before the end, or the block is too large.
        """
        self._spend(sent_bytes)
        self.data += event
        self._bound(len(self.data))

    def _spend(self, sent_bytes: int) -> None:
        self._room -= sent_bytes
        if self._room < 0:
            raise WireError("more messages in a block than its beginning said")

    def _bound(self, size: int) -> None:
        if size > self._bytes_max:
            raise WireError(f"a block of {size} bytes, and {self._bytes_max} is the most")

    def finish(self, end: EndAppendBlock, cut_bytes: int | None) -> bool:
        """Take the end.

        Args:
            end: The message.
            cut_bytes: Size of the frames that brought the first parts of a cut event; None if
                there is none.

        Returns:
            True if the block is whole; False if the rest of the cut event follows.

        Raises:
            WireError: Its numbers are not those of the block.
        """
        if end.connection_id != self.connection_id:
            raise WireError(f"the end of a block of {end.connection_id} in one of another")
        if end.block_length < 0 or end.offset != self.start + end.block_length:
            raise WireError(
                f"a block of {end.block_length} bytes from {self.start} to {end.offset}"
            )
        self._bound(end.block_length)
        self._spend(cut_bytes or 0)
        self.is_ended = True
        self._length = end.block_length
        if (cut_bytes is not None) is not (end.block_length > len(self.data)):
            cut = "with" if cut_bytes is not None else "without"
            length = end.block_length
            raise WireError(f"a block of {length} bytes {cut} a cut event at {len(self.data)}")
        if cut_bytes is not None:
            return False
        self._drop_behind(end.block_length)
        return True

    def _drop_behind(self, length: int) -> None:
        position = 0
        if length < len(self.data):
            while position < length:
                position += HEAD_BYTES + HEAD.unpack_from(self.data, position)[1]
            if position != length:
                raise WireError(f"a block of {length} bytes ends within an event")
            del self.data[length:]

    def complete(self, event: Buffer) -> None:
        """Add the cut event, which is whole now. Raises WireError: it has not the size promised."""
        self.data += event
        if len(self.data) != self._length:
            raise WireError(f"a block of {self._length} bytes has {len(self.data)}")

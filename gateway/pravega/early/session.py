"""One conversation in the early dialect: frames to requests; no I/O."""

from typing import Final

from hutch.pravega import early_messages as m
from hutch.pravega.codec import HEAD, HEAD_BYTES
from hutch.pravega.commands import CommandSender
from hutch.pravega.early_block import Block
from hutch.pravega.early_codec import EARLY, MessageParts
from hutch.pravega.errors import WireError
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import Event
from store.api import APPEND_BYTES_MAX

_PART: Final = EARLY.by_class[m.PartialMessage].code
_EVENT: Final = EARLY.by_class[Event].code
_END: Final = EARLY.by_class[m.EndAppendBlock].code
_KEEP_ALIVE: Final = EARLY.by_class[m.KeepAlive].code

Request = WireMessage | Block
"""A message that asks for something, or a whole block, to be stored."""


class Conversation:
    """Puts parts and blocks together, and sees that each message comes where it may."""

    def __init__(self, block_bytes_max: int = APPEND_BYTES_MAX) -> None:
        self._block_bytes_max = block_bytes_max
        self._parts = MessageParts()
        self._block: Block | None = None
        self._begun = 0

    @property
    def kept_bytes(self) -> int:
        """Bytes that are kept of a block and of a message that are not whole."""
        return self._parts.kept_bytes + (0 if self._block is None else len(self._block.data))

    @property
    def unfinished(self) -> int:
        """Number of the block or message that is not whole; 0 if there is none."""
        return self._begun if self._block is not None or self._parts.is_open else 0

    def take(self, frame: memoryview) -> Request | None:
        """Take a whole frame from the client; it is copied where it is kept.

        Returns:
            What it asks for; None if it only brings a part of that. A BeginAppendBlock is
            returned too, so that a block that nothing takes is refused at its beginning.

        Raises:
            WireError: The frame may not come here, or its content is wrong.
        """
        code = HEAD.unpack_from(frame)[0]
        if code == _PART:
            return self._take_part(frame)
        if self._parts.is_open and not self._may_interrupt(code):
            raise WireError(f"command {code} between the parts of a message")
        if code == _KEEP_ALIVE and self._parts.is_open:
            return _decoded(code, frame)
        return self._take_whole(code, frame, len(frame))

    def _may_interrupt(self, code: int) -> bool:
        block = self._block
        return code == _KEEP_ALIVE or (code == _END and block is not None and not block.is_ended)

    def _take_part(self, frame: memoryview) -> Request | None:
        part = _decoded(_PART, frame)
        assert isinstance(part, m.PartialMessage)
        self._begun += not self._parts.is_open
        whole = self._parts.take(part)
        if whole is None:
            return None
        code = HEAD.unpack_from(whole)[0]
        if code == _PART:
            raise WireError("a part of a message in parts")
        return self._take_whole(code, memoryview(whole), self._parts.sent_bytes)

    def _take_whole(self, code: int, frame: memoryview, sent_bytes: int) -> Request | None:
        block = self._block
        if block is not None:
            return self._take_in_block(block, code, frame, sent_bytes)
        if code in {_EVENT, _END}:
            raise WireError(f"command {code} outside a block")
        message = _decoded(code, frame)
        if isinstance(message, m.BeginAppendBlock):
            self._block = Block(message, self._block_bytes_max)
            self._begun += 1
        return message

    def _take_in_block(
        self, block: Block, code: int, frame: memoryview, sent_bytes: int
    ) -> Block | None:
        if code == _EVENT:
            if not block.is_ended:
                block.add(frame, sent_bytes)
                return None
            block.complete(frame)
        elif code == _END and not block.is_ended:
            end = _decoded(code, frame)
            assert isinstance(end, m.EndAppendBlock)
            cut_bytes = self._parts.sent_bytes if self._parts.is_open else None
            if not block.finish(end, cut_bytes):
                return None
        else:
            raise WireError(f"command {code} within a block")
        self._block = None
        return block


def _decoded(code: int, frame: memoryview) -> WireMessage:
    return EARLY.decode(code, frame[HEAD_BYTES:], CommandSender.CLIENT)

"""The bytes that the generator sends: control requests, and Publish frames built beforehand.

Not the project's codec on purpose: a generator that shared code with one of the servers
would share its mistakes.

A block is a run of equal Publish frames that is sent again and again; between two
sendings only the bytes of the publishing ids that differ are overwritten:

    block  | frame | frame | frame | ...
    frame  | u32 size | u16 2 | u16 1 | u8 publisher | u32 count | message | message | ...
    message| u48 block number, u16 slot | u32 body size | body
            (a publishing id of 8 bytes)
"""

import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import Final

PUBLISH: Final = 0x02
PUBLISH_CONFIRM: Final = 0x03
PUBLISH_ERROR: Final = 0x04
DELIVER: Final = 0x08
CREDIT: Final = 0x09
METADATA_UPDATE: Final = 0x10
TUNE: Final = 0x14
CLOSE: Final = 0x16
HEARTBEAT: Final = 0x17
RESPONSE_BIT: Final = 0x8000

# Size, key, version, publisher id, message count.
PUBLISH_HEAD: Final = struct.Struct(">IHHBI")
ID_BYTES: Final = 8
ENTRY_HEAD_BYTES: Final = 4
# A slot is the low half-word of a publishing id, so a block has at most this many messages.
BLOCK_MESSAGES_MAX: Final = 0x1_0000
# Big enough that a system call costs nothing per message, small enough for a core's cache.
BLOCK_BYTES: Final = 1 << 20
FRAME_BYTES_MAX: Final = 1 << 20
BLOCK_NUMBER_BYTES: Final = 6
BODY_PATTERN: Final = b"hutch and rabbitmq read the same bytes; "


def body_of(body_bytes: int) -> bytes:
    """Return the body that every message of this size has, so a reader knows what to expect."""
    return (BODY_PATTERN * (body_bytes // len(BODY_PATTERN) + 1))[:body_bytes]


def entry_of(body_bytes: int) -> bytes:
    """Return one message as a chunk stores it: u32 size, body."""
    return struct.pack(">I", body_bytes) + body_of(body_bytes)


def text(value: str) -> bytes:
    """Encode a protocol string: u16 size, UTF-8 bytes."""
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded


def text_map(values: Mapping[str, str]) -> bytes:
    """Encode a protocol map: u32 count, then key and value strings."""
    pairs = b"".join(text(key) + text(value) for key, value in values.items())
    return struct.pack(">I", len(values)) + pairs


def frame(key: int, payload: bytes) -> bytes:
    """Put size, key and version 1 in front of a payload."""
    return struct.pack(">IHH", 4 + len(payload), key, 1) + payload


def credit_frame(*, subscription_id: int, credit: int) -> bytes:
    """Ask for more chunks; `credit` is 1 to 32,767 because the field is signed."""
    return frame(CREDIT, struct.pack(">BH", subscription_id, credit))


def publish_frame(*, publisher_id: int, publishing_ids: Sequence[int], body: bytes) -> bytes:
    """Build a whole Publish frame of simple entries that all have the same body."""
    tail = struct.pack(">I", len(body)) + body
    messages = b"".join(struct.pack(">Q", number) + tail for number in publishing_ids)
    size = PUBLISH_HEAD.size - 4 + len(messages)
    head = PUBLISH_HEAD.pack(size, PUBLISH, 1, publisher_id, len(publishing_ids))
    return head + messages


class PublishBlock:
    """A reusable run of Publish frames whose ids are unique over all sendings.

    The publishing ids of sending number b are b << 16 | slot, slots counting from 0.

    Attributes:
        view: The bytes to send, after `stamp`.
        frame_bytes: Bytes of one frame with its size prefix; all frames have the same.
        message_count: Messages in the block.
    """

    def __init__(
        self,
        *,
        body_bytes: int,
        messages_per_frame: int,
        publisher_ids: Sequence[int] = (0,),
        frames_each: int = 1,
    ) -> None:
        """Build the frames, taking the publishers in turn.

        Args:
            body_bytes: Size of every message's body.
            messages_per_frame: Messages in every frame, at least 1.
            publisher_ids: With several, the block is one frame for each, in this order.
            frames_each: And that so many times over.

        Raises:
            ValueError: A frame would pass the protocol's 1 MiB, or a block its 65,536 ids.
        """
        self.messages_per_frame = messages_per_frame
        self._message_bytes = ID_BYTES + ENTRY_HEAD_BYTES + body_bytes
        self.frame_bytes = PUBLISH_HEAD.size + messages_per_frame * self._message_bytes
        if self.frame_bytes - 4 > FRAME_BYTES_MAX:
            raise ValueError(f"a frame of {self.frame_bytes} bytes is larger than the protocol's")
        if len(publisher_ids) == 1:
            self.frame_count = min(
                max(1, BLOCK_BYTES // self.frame_bytes), BLOCK_MESSAGES_MAX // messages_per_frame
            )
        else:
            self.frame_count = len(publisher_ids) * frames_each
        self.message_count = self.frame_count * messages_per_frame
        if not 0 < self.message_count <= BLOCK_MESSAGES_MAX:
            raise ValueError(f"a block cannot have {self.message_count} messages")
        body = body_of(body_bytes)
        self._data = bytearray().join(
            publish_frame(
                publisher_id=publisher_ids[index % len(publisher_ids)],
                publishing_ids=range(index * messages_per_frame, (index + 1) * messages_per_frame),
                body=body,
            )
            for index in range(self.frame_count)
        )
        self._stamped = bytes(BLOCK_NUMBER_BYTES)
        self.view = memoryview(self._data)

    def stamp(self, block_number: int) -> None:
        """Write the block number into every publishing id, touching only bytes that change."""
        wanted = block_number.to_bytes(BLOCK_NUMBER_BYTES, "big")
        for column, (old, new) in enumerate(zip(self._stamped, wanted, strict=True)):
            if old != new:
                self._fill(column, new)
        self._stamped = wanted

    def _fill(self, column: int, value: int) -> None:
        # Ids lie at equal distances both along a frame and from frame to frame; walking the
        # longer way makes fewer, longer strided copies, a nanosecond or two for each message.
        data = self._data
        first = PUBLISH_HEAD.size + column
        if self.frame_count >= self.messages_per_frame:
            run = bytes([value]) * self.frame_count
            for slot in range(self.messages_per_frame):
                data[first + slot * self._message_bytes :: self.frame_bytes] = run
            return
        run = bytes([value]) * self.messages_per_frame
        for index in range(self.frame_count):
            start = first + index * self.frame_bytes
            stop = (index + 1) * self.frame_bytes
            data[start : stop : self._message_bytes] = run


def ids_of_block(block_number: int, message_count: int) -> "array[int]":
    """Return the publishing ids of one sending of a block, ascending."""
    first = block_number << 16
    return array("Q", range(first, first + message_count))


def slot_of(publishing_id: int) -> int:
    """Return which message of its block a publishing id names."""
    return publishing_id & (BLOCK_MESSAGES_MAX - 1)

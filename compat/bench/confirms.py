"""Confirms as they arrive: counted by their headers at once, examined id by id afterwards.

Everything received is kept, in one arena, because looking at single ids would make the
generator dearer than the servers that it measures.
"""

import socket
import ssl
import struct
from array import array
from typing import Final

from compat.bench.errors import BenchError, CheckFailed
from compat.bench.frames import (
    CLOSE,
    HEARTBEAT,
    METADATA_UPDATE,
    PUBLISH_CONFIRM,
    PUBLISH_ERROR,
    ids_of_block,
    slot_of,
)

# Size, key, version, publisher id, id count.
CONFIRM_HEAD: Final = struct.Struct(">IHHBI")
ID_BYTES: Final = 8
# A confirm of its own for each message is the most a server can send.
CONFIRM_BYTES_MAX: Final = CONFIRM_HEAD.size + ID_BYTES
ARENA_SLACK_BYTES: Final = 1 << 16
RECEIVE_BYTES: Final = 1 << 20


class ConfirmArena:
    """Receives confirms from a socket and counts them.

    Attributes:
        confirmed: Messages confirmed so far.
        frames: Confirm frames so far.
    """

    def __init__(self, message_count: int) -> None:
        """Make room for the confirms of so many messages; unused room costs no memory."""
        self._data = bytearray(message_count * CONFIRM_BYTES_MAX + ARENA_SLACK_BYTES)
        self._view = memoryview(self._data)
        self._filled = 0
        self._walked = 0
        self.confirmed = 0
        self.frames = 0

    def receive(self, source: socket.socket) -> bool:
        """Take what the socket has, up to 1 MiB.

        Returns:
            Whether there was anything.

        Raises:
            BenchError: The server hung up or sent something else than confirms.
        """
        room = self._view[self._filled : self._filled + RECEIVE_BYTES]
        if not room:
            raise CheckFailed("server sent more confirms than there were messages")
        try:
            received = source.recv_into(room)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        if not received:
            raise BenchError("server hung up while confirms were awaited")
        self._filled += received
        self._walk()
        return True

    def _walk(self) -> None:
        unpack = CONFIRM_HEAD.unpack_from
        data, position, filled = self._data, self._walked, self._filled
        while filled - position >= CONFIRM_HEAD.size:
            size, key, _version, _publisher, count = unpack(data, position)
            if filled - position < 4 + size:
                break
            if key == PUBLISH_CONFIRM:
                if size != CONFIRM_HEAD.size - 4 + count * ID_BYTES:
                    raise CheckFailed(f"a confirm of {count} ids has size {size}")
                self.confirmed += count
                self.frames += 1
            elif key != HEARTBEAT:
                raise unexpected(key)
            position += 4 + size
        self._walked = position

    def check(self, *, block_count: int, block_messages: int, slots_of_publisher: int = 0) -> None:
        """Require every id of the sendings of a block exactly once, in any order.

        Args:
            block_count: How often the block was sent.
            block_messages: Messages in the block.
            slots_of_publisher: With several publishers, how many slots of the block each has, in
                the order of their ids; the confirm must be for the right one too.

        Raises:
            CheckFailed: An id is missing, twice or never sent.
        """
        received = self._ids(slots_of_publisher)
        expected = array("Q")
        for number in range(block_count):
            expected.extend(ids_of_block(number, block_messages))
        if received == expected:
            return
        if array("Q", sorted(received)) == expected:
            return
        missing = set(expected) - set(received)
        foreign = set(received) - set(expected)
        raise CheckFailed(
            f"{len(received)} ids confirmed of {len(expected)} sent: "
            f"{len(missing)} missing, {len(foreign)} never sent, "
            f"{len(received) - len(set(received))} more than once"
        )

    def _ids(self, slots_of_publisher: int) -> "array[int]":
        ids = array("Q")
        position = 0
        while position < self._walked:
            size, key, _version, publisher, _count = CONFIRM_HEAD.unpack_from(self._data, position)
            if key == PUBLISH_CONFIRM:
                some = array("Q")
                some.frombytes(self._view[position + CONFIRM_HEAD.size : position + 4 + size])
                some.byteswap()
                if slots_of_publisher and any(
                    slot_of(number) // slots_of_publisher != publisher for number in some
                ):
                    raise CheckFailed(f"publisher {publisher} got a confirm of another's")
                ids.extend(some)
            position += 4 + size
        return ids


def unexpected(key: int) -> BenchError:
    """Return the error for a command that came among confirms."""
    reasons = {
        PUBLISH_ERROR: "server refused messages with a publish error",
        METADATA_UPDATE: "server took the stream away",
        CLOSE: "server closed the connection",
    }
    return BenchError(reasons.get(key, f"unexpected command {key:#06x} among confirms"))

"""Messages of the log, each of which names the one before it by its hash. Pure.

    message | format | kind | cluster | term | number | at_ms | before | hash | body ...
    bytes   | 2      | 1    | 16      | 8    | 8      | 8     | 16     | 16   |

`number` grows by one. `term` is the number of the fence with which the member began that wrote the
message. `at_ms` is that member's time, which never falls. `hash` is that of all other bytes of the
message, so that nothing of a damaged one is used. `before` is the hash of the message before, so
that a message that is missing is seen at the next one.
"""

import enum
import struct
from dataclasses import dataclass
from typing import Final, Self

from xxhash import xxh3_128

from store.errors import StoreError

FORMAT: Final = 1
_HEAD: Final = struct.Struct("<HB16sQQQ16s")
_FORMAT: Final = struct.Struct("<H")
_HASH_BYTES: Final = 16
HEAD_BYTES: Final = _HEAD.size + _HASH_BYTES
CLUSTER_BYTES: Final = 16
"""Size of the id of a cluster."""
NOTHING_BEFORE: Final = bytes(16)
"""Hash of what is before the first message."""


class UnreadableMessage(StoreError):
    """A message of the log is damaged, of another cluster, or does not follow the one before."""


class OtherMessageFormat(UnreadableMessage):
    """A message was written by another version."""


class MessageKind(enum.IntEnum):
    """Kinds of messages."""

    OPERATIONS = 1
    """Changes of files, in their order."""
    FENCE = 2
    """A member begins a term: nothing of an earlier term follows. Its body is a `Fence`."""
    HAND_OVER = 3
    """The active one has ended in good order; nothing of its term follows."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The beginning of a term.

    Attributes:
        member: Name of the member that begins it.
        has_base: The first message alone: its directory had files already, which are in no message.
    """

    member: str
    has_base: bool = False

    def pack(self) -> bytes:
        """Return its bytes."""
        return bytes((self.has_base,)) + self.member.encode()

    @classmethod
    def unpack(cls, body: bytes | memoryview | bytearray) -> Self:
        """Return the fence of a body. Raises UnreadableMessage."""
        try:
            return cls(str(body[1:], "utf-8"), bool(body[0]))
        except (IndexError, UnicodeDecodeError) as error:
            raise UnreadableMessage("the beginning of a term names no member") from error


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        kind: What its body is.
        cluster: Id of the cluster, 16 bytes.
        term: Number of the fence that its writer began with.
        number: Its own.
        at_ms: Time of its writer.
        before: Hash of the message before.
        body: Operations, or a name.
    """

    kind: MessageKind
    cluster: bytes
    term: int
    number: int
    at_ms: int
    before: bytes
    body: bytes | memoryview | bytearray

    def pack(self) -> bytes:
        """Return its bytes."""
        numbers = (self.term, self.number, self.at_ms)
        head = _HEAD.pack(FORMAT, self.kind, self.cluster, *numbers, self.before)
        return b"".join((head, _digest(head, self.body), self.body))

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return the message of some bytes. Raises UnreadableMessage."""
        if len(data) < HEAD_BYTES:
            raise UnreadableMessage(f"a message of {len(data)} bytes has no head")
        (number,) = _FORMAT.unpack_from(data)
        if number != FORMAT:
            raise OtherMessageFormat(
                f"a message has format {number}, and this version reads format {FORMAT}: start a"
                f" version of Hutch that writes it"
            )
        _, kind, cluster, term, place, at_ms, before = _HEAD.unpack_from(data)
        body = memoryview(data)[HEAD_BYTES:]
        if hash_of(data) != _digest(memoryview(data)[: _HEAD.size], body):
            raise UnreadableMessage(f"a message of {len(data)} bytes is damaged")
        try:
            known = MessageKind(kind)
        except ValueError as error:
            raise UnreadableMessage(f"a message of kind {kind} is not known") from error
        return cls(known, cluster, term, place, at_ms, before, body)


def hash_of(data: bytes) -> bytes:
    """Return the hash that a message says of itself."""
    return data[_HEAD.size : HEAD_BYTES]


def _digest(head: bytes | memoryview, body: bytes | memoryview | bytearray) -> bytes:
    whole = xxh3_128(head)
    whole.update(body)
    return whole.digest()


@dataclass(frozen=True, slots=True)
class Link:
    """A place in the chain of messages: the number of the last one that is known, and its hash."""

    number: int = 0
    term: int = 0
    hash: bytes = NOTHING_BEFORE

    def after(self, data: bytes, cluster: bytes) -> tuple["Link", Message]:
        """Return the link of the next message, and that.

        Raises:
            UnreadableMessage: It does not follow; the words say why.
        """
        message = Message.unpack(data)
        if message.cluster != cluster:
            raise UnreadableMessage(f"message {message.number} is of another cluster")
        if message.number != self.number + 1:
            raise UnreadableMessage(f"message {message.number} comes behind {self.number}")
        if message.before != self.hash:
            raise UnreadableMessage(f"message {message.number} follows another than is known here")
        expected = message.number if message.kind is MessageKind.FENCE else self.term
        if message.term != expected:
            raise UnreadableMessage(f"message {message.number} is of another term: {message.term}")
        return Link(message.number, message.term, hash_of(data)), message

    def followed_by(self, data: bytes) -> "Link":
        """Return the link of a message of this term that was made to follow."""
        return Link(self.number + 1, self.term, hash_of(data))


BEGINNING: Final = Link()
"""The place before the first message."""

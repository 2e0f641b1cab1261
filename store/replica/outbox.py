"""Operations that wait to be sent, and the chain of messages that they become. Pure."""

from collections import deque
from collections.abc import Callable

from store.replica.message import HEAD_BYTES, Link, Message, MessageKind
from store.replica.operations import Operation, pack, size_of


class Outbox:
    """The end of a member's chain of messages. One thread at a time calls it.

    Attributes:
        link: The last message that was made.
    """

    def __init__(
        self, cluster: bytes, link: Link, message_bytes_max: int, now_ms: Callable[[], int]
    ) -> None:
        """Begin behind a message.

        Args:
            cluster: Id of the cluster.
            link: The message.
            message_bytes_max: Size of the largest message.
            now_ms: The time.
        """
        self.link = link
        self._cluster = cluster
        self._body_max = message_bytes_max - HEAD_BYTES
        self._now_ms = now_ms
        self._at_ms = 0
        self._waiting: deque[Operation] = deque()
        self._waiting_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def data_bytes_max(self) -> int:
        """Size of the largest data of one operation."""
        return self._body_max // 2

    @property
    def has_whole(self) -> bool:
        """True if what waits fills a message."""
        return self._waiting_bytes >= self._body_max

    def add(self, operation: Operation) -> None:
        """Put an operation behind the others."""
        self._waiting.append(operation)
        self._waiting_bytes += size_of(operation)

    def take(self) -> tuple[bytes, list[Operation]]:
        """Return the next message, and the operations in it; something waits."""
        operations: list[Operation] = []
        size = 0
        while self._waiting:
            more = size_of(self._waiting[0])
            if operations and size + more > self._body_max:
                break
            size += more
            operations.append(self._waiting.popleft())
        self._waiting_bytes -= size
        return self.message(MessageKind.OPERATIONS, pack(operations)), operations

    def message(self, kind: MessageKind, body: bytes | bytearray) -> bytes:
        """Return the bytes of a message at the end of the chain."""
        self._at_ms = max(self._at_ms, self._now_ms())
        link = self.link
        numbers = (link.term, link.number + 1, self._at_ms, link.hash)
        data = Message(kind, self._cluster, *numbers, body).pack()
        self.link = link.followed_by(data)
        return data

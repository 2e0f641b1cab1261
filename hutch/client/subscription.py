"""A subscription of a client: records in their order, credit given back chunk by chunk."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Self

from hutch.client.connection import Connection
from hutch.client.entries import records_of
from hutch.client.errors import ClientError, refusal
from hutch.formats.sub_batches import Decompress


class Subscription:
    """Yields `(offset, record)`; made by `Client.subscribe`.

    An iteration ends by ServerSilent when nothing comes for the client's time limit, and may be
    begun again; it has no other end.

    Attributes:
        stream: The stream.
        subscription_id: Its number on the connection.
    """

    def __init__(
        self,
        connection: Connection,
        take: Callable[[float], None],
        stream: str,
        *,
        first: int = 0,
        codecs: Mapping[int, Decompress],
    ) -> None:
        """Prepare one under a new id; `take` takes in the next thing that is pushed.

        Args:
            connection: Its connection.
            take: Takes in the next frame that is pushed, until a moment of `time.monotonic()`.
            stream: The stream.
            first: Records below this offset are left out: a chunk begins where it was written.
            codecs: Functions that open sub-batches.
        """
        self.stream: Final = stream
        self.subscription_id: Final = connection.new_subscription_id()
        self._connection = connection
        self._take = take
        self._first = first
        self._codecs = codecs
        self._chunks: deque[bytes] = deque()
        self._records: Iterator[tuple[int, bytes]] = iter(())
        self._failure: ClientError | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[int, bytes]:
        return self.next()

    def next(self, timeout_s: float | None = None) -> tuple[int, bytes]:
        """Return the next record with its offset.

        Args:
            timeout_s: The longest wait, if not that of the client.

        Raises:
            ServerSilent: None came in time; the subscription goes on.
            ServerGone: The stream was deleted, or the connection ended.
            ClientError: The connection is of no further use, or a record cannot be read.
        """
        patience_s = self._connection.timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + patience_s
        while True:
            for offset, record in self._records:
                if offset >= self._first:
                    return offset, record
            while not self._chunks:
                if self._failure is not None:
                    raise self._failure
                self._take(deadline)
            self._connection.credit(self.subscription_id, 1)
            self._records = records_of(self._chunks.popleft(), self._codecs)

    def close(self) -> None:
        """End the subscription."""
        self._chunks.clear()
        self._connection.unsubscribe(self.subscription_id)

    def deliver(self, chunk: bytes) -> None:
        """Take in a chunk."""
        self._chunks.append(chunk)

    def end(self, code: int) -> None:
        """Note that the stream has gone or moved: no more chunks come."""
        self._failure = refusal(f"stream {self.stream!r}", code)

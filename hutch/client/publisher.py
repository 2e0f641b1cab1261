"""A publisher of a client: records in, confirms awaited."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from hutch.client.connection import Connection
from hutch.client.errors import ClientError, refusal
from hutch.stream import messages as m

FRAME_BYTES_MAX: Final = 1 << 20
"""The largest Publish frame: a server that takes larger ones gains nothing by them."""

IN_FLIGHT_MAX: Final = 10_000
"""Records that may wait for their confirm."""

_HEAD_BYTES: Final = 9
_ENTRY_HEAD_BYTES: Final = 12


class Publisher:
    """Publishes to one stream; made by `Client.publisher`.

    Attributes:
        stream: The target.
        next_id: Publishing id of the next record; a program that sends again sets it.
        unconfirmed: Records that are sent and not confirmed.
        is_open: Whether the server still knows it.
    """

    def __init__(
        self,
        connection: Connection,
        take: Callable[[float], None],
        publisher_id: int,
        stream: str,
        next_id: int,
    ) -> None:
        """Take a publisher that is declared; `take` takes in the next thing that is pushed."""
        self.stream: Final = stream
        self.publisher_id: Final = publisher_id
        self.next_id = next_id
        self.unconfirmed = 0
        self.is_open = True
        self._connection = connection
        self._take = take
        self._failure: ClientError | None = None

    def send(self, records: Iterable[bytes]) -> None:
        """Send records; waits only while too many are unconfirmed.

        Raises:
            ValueError: A record does not fit into a frame of this server.
            Refused: The server refused a record that was sent before.
            ClientError: The connection is of no further use.
        """
        limit = min(self._connection.frame_bytes_max or FRAME_BYTES_MAX, FRAME_BYTES_MAX)
        batch: list[bytes] = []
        size = _HEAD_BYTES
        for record in records:
            entry_bytes = _ENTRY_HEAD_BYTES + len(record)
            if _HEAD_BYTES + entry_bytes > limit:
                raise ValueError(f"a record of {len(record)} bytes does not fit into a frame")
            if size + entry_bytes > limit or len(batch) == IN_FLIGHT_MAX:
                self._send_frame(batch)
                batch, size = [], _HEAD_BYTES
            batch.append(record)
            size += entry_bytes
        if batch:
            self._send_frame(batch)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until all that was sent is confirmed.

        Args:
            timeout_s: The longest wait for the next confirm, if not that of the client.

        Raises:
            Refused: The server refused a record; its code says why.
            ServerSilent: Nothing was confirmed in time.
            ClientError: The connection is of no further use.
        """
        self._wait_for_room(0, timeout_s)

    def close(self) -> None:
        """Wait for all confirms, and end the publisher."""
        self.flush()
        self.is_open = False
        request = m.DeletePublisher(self.publisher_id)
        self._connection.must("delete_publisher", request, f"a publisher of {self.stream!r}")

    def _send_frame(self, records: list[bytes]) -> None:
        self._wait_for_room(IN_FLIGHT_MAX - len(records))
        first, self.next_id = self.next_id, self.next_id + len(records)
        self.unconfirmed += len(records)
        self._connection.publish(self.publisher_id, enumerate(records, first))

    def _wait_for_room(self, waiting_max: int, timeout_s: float | None = None) -> None:
        patience_s = self._connection.timeout_s if timeout_s is None else timeout_s
        while self.unconfirmed > waiting_max and self._failure is None:
            before, deadline = self.unconfirmed, time.monotonic() + patience_s
            while self.unconfirmed == before and self._failure is None:
                self._take(deadline)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def confirmed(self, count: int) -> None:
        """Note that a number of records are stored."""
        self.unconfirmed = max(0, self.unconfirmed - count)

    def refused(self, errors: Iterable[m.PublishingError]) -> None:
        """Note that records are refused; the next call raises."""
        for error in errors:
            self.unconfirmed = max(0, self.unconfirmed - 1)
            about = f"record {error.publishing_id} for stream {self.stream!r}"
            self._failure = self._failure or refusal(about, error.code)

    def end(self, code: int) -> None:
        """Note that the stream has gone or moved: no more is confirmed."""
        self.unconfirmed = 0
        self.is_open = False
        self._failure = refusal(f"stream {self.stream!r}", code)

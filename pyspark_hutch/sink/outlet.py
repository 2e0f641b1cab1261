"""One producer of one stream: its frames that are not confirmed, and what it may leave out."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from pyspark_hutch.client.connection import Connection
from pyspark_hutch.client.errors import Refused, in_words
from pyspark_hutch.encoding.frames import Frame, Packer
from pyspark_hutch.shared.wire import messages as m
from pyspark_hutch.shared.wire.codes import ResponseCode

PUBLISHERS_MAX: Final = 256
"""Publishers of one connection: their ids have 8 bits."""


@dataclass(slots=True)
class Outlet:
    """What a task publishes to one stream under one name.

    Attributes:
        stream: The target.
        reference: The producer's name; empty for none.
        number: Of this outlet in its task, from 0.
        packer: Makes frames for it.
        unconfirmed: Frames that were sent, the oldest first.
        confirmed_entries: Of the oldest of these.
    """

    stream: str
    reference: str
    number: int
    packer: Packer
    unconfirmed: deque[Frame] = field(default_factory=deque)
    confirmed_entries: int = 0

    @property
    def publisher_id(self) -> int:
        """The id on its connection."""
        return self.number % PUBLISHERS_MAX

    @property
    def slot(self) -> int:
        """Which of several connections to a server it uses."""
        return self.number // PUBLISHERS_MAX

    def declare(self, connection: Connection) -> None:
        """Make it known to a server; raises Refused."""
        request = m.DeclarePublisher(self.publisher_id, self.reference, self.stream)
        connection.must("declare_publisher", request, f"publishing to stream {self.stream!r}")

    def forget(self, connection: Connection) -> None:
        """End it, so that the next task may use the connection."""
        connection.request("delete_publisher", m.DeletePublisher(self.publisher_id))

    def last_id(self, connection: Connection) -> int:
        """Return the last id that the server has of this producer; 0 if it knows none.

        Raises:
            Refused: The user may not read the stream, which this question needs.
        """
        request = m.QueryPublisherSequence(self.reference, self.stream)
        reply = connection.ask(m.PublisherSequence, "query_publisher_sequence", request)
        if reply.code != ResponseCode.OK:
            raise Refused(f"stream {self.stream!r} {in_words(reply.code)}", reply.code)
        return reply.sequence

    def confirm(self, entries: int) -> tuple[int, int]:
        """Take a confirm; return how many frames, and how many rows, are done by it."""
        self.confirmed_entries += entries
        frames = rows = 0
        while self.unconfirmed and self.confirmed_entries >= len(self.unconfirmed[0].ids):
            frame = self.unconfirmed.popleft()
            self.confirmed_entries -= len(frame.ids)
            frames += len(frame.data)
            rows += frame.records
        return frames, rows

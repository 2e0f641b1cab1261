"""One producer of one stream: its unconfirmed frames, and the last id that the server has."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from hutch.client.connection import IDS, Connection
from hutch.client.errors import BadAnswer, require_ok
from hutch.stream import messages as m
from pyspark_hutch.encoding.frames import Packer, PublishFrame


class ConfirmedFrames(NamedTuple):
    """Frames and rows that a confirm has completed.

    Attributes:
        frames: Frames with all entries confirmed now.
        frame_bytes: Of these.
        rows: In these.
    """

    frames: int
    frame_bytes: int
    rows: int


@dataclass(slots=True)
class Outlet:
    """One publisher: rows of a task for one stream, under one name.

    Attributes:
        stream: The target.
        reference: The producer's name; empty for none.
        number: Of this outlet in its task, from 0.
        packer: Makes frames for it; None until a server has said how large they may be.
        waiting_bytes: Memory of the rows in it that are in no frame yet.
        last_id: The highest publishing id that the server had of it; 0 for none.
        unconfirmed: Frames that were sent, the oldest first.
        confirmed_entries: Of the oldest of these.
    """

    stream: str
    reference: str
    number: int
    packer: Packer | None = None
    waiting_bytes: int = 0
    last_id: int = 0
    unconfirmed: deque[PublishFrame] = field(default_factory=deque)
    confirmed_entries: int = 0

    @property
    def publisher_id(self) -> int:
        """The id on its connection."""
        return self.number % IDS

    @property
    def slot(self) -> int:
        """The number of its connection among those to a server."""
        return self.number // IDS

    @property
    def open_packer(self) -> Packer:
        """The packer, after a server has taken the publisher."""
        assert self.packer is not None, "an open outlet has one"
        return self.packer

    def declare(self, connection: Connection) -> None:
        """Make it known to a server, which then has confirmed none of the frames that wait.

        Raises:
            Refused: The stream does not exist, or the user may not write to it.
            ServerGone: The stream cannot be written now.
        """
        request = m.DeclarePublisher(self.publisher_id, self.reference, self.stream)
        code = connection.ask(m.Status, "declare_publisher", request).code
        require_ok(f"stream {self.stream!r} cannot be published to: it", code)
        self.confirmed_entries = 0

    def ask_last_id(self, connection: Connection) -> None:
        """Learn the last id that the server has of this producer.

        Raises:
            Refused: The user may not read the stream, which this question needs.
            ServerGone: The stream cannot be used now.
        """
        request = m.QueryPublisherSequence(self.reference, self.stream)
        reply = connection.ask(m.PublisherSequence, "query_publisher_sequence", request)
        require_ok(f"stream {self.stream!r}", reply.code)
        self.last_id = reply.sequence

    def confirm(self, entries: int) -> ConfirmedFrames:
        """Take a confirm of a number of entries, the oldest that are not confirmed.

        Raises:
            BadAnswer: There are not that many.
        """
        self.confirmed_entries += entries
        frames = frame_bytes = rows = 0
        while self.unconfirmed and self.confirmed_entries >= len(self.unconfirmed[0].ids):
            frame = self.unconfirmed.popleft()
            self.confirmed_entries -= len(frame.ids)
            frames += 1
            frame_bytes += len(frame.data)
            rows += frame.records
        if self.confirmed_entries and not self.unconfirmed:
            raise BadAnswer(f"stream {self.stream!r}: more was confirmed than was published")
        return ConfirmedFrames(frames, frame_bytes, rows)

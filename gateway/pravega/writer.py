"""A writer that a connection has set up on a segment."""

from uuid import UUID

from store.api import Writer


class SetUp:
    """A writer's session.

    Attributes:
        writer_id: The writer's.
        segment: Name of the segment that it appends to.
        writer: Its session with the store.
        acknowledged: The last number that the client knows to be stored.
        is_broken: An append has failed. What the client had sent on behind it is dropped, until it
            sets the writer up again.
    """

    __slots__ = ("acknowledged", "is_broken", "segment", "writer", "writer_id")

    def __init__(self, writer_id: UUID, segment: str, writer: Writer) -> None:
        self.writer_id = writer_id
        self.segment = segment
        self.writer = writer
        self.acknowledged = writer.event_number
        self.is_broken = False

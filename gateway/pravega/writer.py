"""A writer that a connection has set up on a segment."""

from uuid import UUID

from typing_extensions import Buffer

from store.api import Writer


class SetUp:
    """A writer's session, and the appends of it that one read from the socket has brought.

    Attributes:
        writer_id: The writer's.
        segment: Name of the segment that it appends to.
        created_at: Time of the segment's creation, as its attribute has it.
        writer: Its session with the store.
        expires_ms: When its token expires, in milliseconds since the epoch; None: never.
        acknowledged: The last number that the client knows to be stored.
        is_broken: An append has failed. What the client had sent on behind it is dropped, until it
            sets the writer up again.
        pieces: Data of the appends that are gathered.
        size: Bytes of them.
        count: How many they are.
        events: Events in them, as the client tells.
        number: The last one's number.
        request_id: The last one's; before the first, that of the set-up.
    """

    __slots__ = (
        "acknowledged",
        "count",
        "created_at",
        "events",
        "expires_ms",
        "is_broken",
        "number",
        "pieces",
        "request_id",
        "segment",
        "size",
        "writer",
        "writer_id",
    )

    def __init__(self, writer_id: UUID, segment: str, created_at: int, writer: Writer) -> None:
        self.writer_id = writer_id
        self.segment = segment
        self.created_at = created_at
        self.writer = writer
        self.expires_ms: int | None = None
        self.acknowledged = writer.event_number
        self.is_broken = False
        self.pieces: list[Buffer] = []
        self.size = 0
        self.count = 0
        self.events = 0
        self.number = 0
        self.request_id = 0

    @property
    def last_number(self) -> int:
        """The number that the next append has to be above."""
        return self.number if self.count else self.writer.event_number

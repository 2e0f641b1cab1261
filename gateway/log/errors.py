"""What can go wrong in a log, in words of chunks and offsets."""


class LogError(Exception):
    """Base of what a log reports."""


class NothingRemoved(LogError):
    """Chunks that should go have stayed: what is known of publishers could not be stored before."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"nothing removed from stream {stream!r}: its snapshot is not stored")


class CorruptChunk(LogError):
    """Stored bytes are not the chunk they should be.

    Attributes:
        stream: The stream's name.
        position: Where in its segment.
        reason: What is wrong.
    """

    def __init__(self, stream: str, position: int, reason: str) -> None:
        super().__init__(f"corrupt chunk in stream {stream!r} at position {position}: {reason}")
        self.stream = stream
        self.position = position
        self.reason = reason

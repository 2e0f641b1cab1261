"""Errors of a log, in terms of chunks and offsets."""


class LogError(Exception):
    """Base of a log's errors."""


class NothingRemoved(LogError):
    """Chunks that should go were kept: their publishers' last ids could not be stored first."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"nothing removed from stream {stream!r}: its snapshot is not stored")


class CorruptChunk(LogError):
    """Stored bytes are not the chunk they should be.

    Attributes:
        stream: The stream's name.
        position: Its position in the segment.
        reason: What is wrong.
    """

    def __init__(self, stream: str, position: int, reason: str) -> None:
        super().__init__(f"corrupt chunk in stream {stream!r} at position {position}: {reason}")
        self.stream = stream
        self.position = position
        self.reason = reason

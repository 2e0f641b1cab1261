"""Errors about damaged chunks."""


class DamagedChunk(ValueError):
    """A chunk that is not what a server stores.

    Attributes:
        stream: The stream it came from.
        offset: The record at which it is damaged, as far as that can be told.
        reason: What is wrong, in a few words.
    """

    def __init__(self, stream: str, offset: int, reason: str) -> None:
        super().__init__(stream, offset, reason)
        self.stream = stream
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"stream {self.stream!r} is damaged at offset {self.offset}: {self.reason}"

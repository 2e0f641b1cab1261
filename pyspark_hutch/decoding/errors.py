"""Errors about what a server delivers: damaged chunks, and what publishers should not have sent."""


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


class UnopenedSubBatch(ValueError):
    """A sub-batch that does not hold what its publisher said, in a chunk that is as it was stored.

    Attributes:
        stream: The stream it came from.
        offset: The offset of its first record.
        reason: What is wrong: a clause that says what a publisher sent.
    """

    def __init__(self, stream: str, offset: int, reason: str) -> None:
        super().__init__(stream, offset, reason)
        self.stream = stream
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"stream {self.stream!r}: at offset {self.offset} {self.reason}. "
            "Set badSubBatches to skip or raw to go on."
        )

"""Errors in rows that are to be written, each in one line."""


class EncodingError(ValueError):
    """Rows that cannot be written as they are."""


class BadColumn(EncodingError):
    """A column that is missing, has a wrong type or holds a value that cannot be written."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(column, reason)
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return f"column {self.column!r}: {self.reason}"


class MessageTooLarge(EncodingError):
    """A message that fits no frame that the server takes, or no sub-batch.

    Attributes:
        what: The thing that is too small for it, `frame` or `sub-batch`.
        size: The bytes that it needs there.
        limit: The bytes that there are.
    """

    def __init__(self, stream: str, what: str, size: int, limit: int) -> None:
        super().__init__(stream, what, size, limit)
        self.stream = stream
        self.what = what
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"stream {self.stream!r}: a message needs a {self.what} of {self.size:,} bytes, "
            f"and the server takes at most {self.limit:,}"
        )


class NoRoute(EncodingError):
    """A row whose routing key or stream leads to no partition of the super stream."""

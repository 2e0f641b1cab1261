"""Rights of the controller's callers."""

import enum
from typing import Protocol


class Right(enum.Enum):
    """Effect of a call on the stream that it names."""

    CONFIGURE = "configure"
    WRITE = "write"
    READ = "read"


class Caller(Protocol):
    """A client that has made a call."""

    def may(self, right: Right, scope: str, stream: str) -> bool:
        """Tell whether it has a right on a stream; on its scope if the stream is ''."""
        ...


class Anyone:
    """Every client where there are no users: it may do everything."""

    def may(self, right: Right, scope: str, stream: str) -> bool:  # noqa: ARG002
        """Allow everything."""
        return True

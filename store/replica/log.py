"""DurableLog: a replicated log, as the store's replica uses it.

Messages have positions that grow, not always by one: a log also holds the members' beats. A message
is stored on the condition that the last message before it is the one that its writer expects, so of
two that write only one goes on. Which machine holds what, and when, is the log's business.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from store.errors import StoreError

T_co = TypeVar("T_co", covariant=True)

NOTHING: Final = 0
"""Position before the first message."""


class LogError(StoreError):
    """The log cannot be used as it is; the message says why, and what to do."""


class LogAway(LogError):
    """The log does not answer now: it may later."""


class LogGap(LogError):
    """Messages are not there any more, or not whole; `first` is the first position that is."""

    def __init__(self, message: str, first: int) -> None:
        super().__init__(message)
        self.first = first


class Unstored(enum.Enum):
    """Outcomes of an append that has no position."""

    OVERTAKEN = "overtaken"
    """The last message is not the expected one: nothing was stored."""
    UNKNOWN = "unknown"
    """It may be stored or not, now or later: ask for the last message."""


Outcome: TypeAlias = int | Unstored
"""The position at which a message is stored, or why it has none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message with its position."""

    position: int
    data: bytes


class Answer(Protocol[T_co]):
    """The result of a call, which is still to come."""

    def wait(self) -> T_co:
        """Wait for it, without end. Raises LogError."""
        ...


class DurableLog(Protocol):
    """A log on several machines. Any thread may call all of it.

    Attributes:
        bytes_max: Size of the largest message.
        trouble: Why the last outcome was not known.
    """

    bytes_max: int
    trouble: str

    def append(self, data: bytes, after: int | Answer[Outcome]) -> Answer[Outcome]:
        """Store a message, if it comes behind the last one that is expected.

        Args:
            data: The message.
            after: Position of the last message, or the answer of an earlier append, which may be
                under way: behind one that is not stored nothing is. A position that the earlier one
                might have will not do, since another member's message may be there.
        """
        ...

    def last(self) -> Entry | None:
        """Return the last message, by those that decide; None if there is none. Waits.

        What is under way may still be stored later. Raises LogAway.
        """
        ...

    def read(self, position: int, count_max: int) -> Sequence[Entry]:
        """Return messages from a position on, in their order; none if there are no more. Waits.

        What it reads from may lag behind: that it returns nothing does not mean that nothing is
        stored.

        Raises:
            LogGap: One of them is not there.
            LogAway: The log does not answer.
        """
        ...

    def trim(self, position: int) -> None:
        """Remove the messages below a position, but never the last one. Raises LogAway.

        Whether a reader at a position misses anything is known as long as the message before that
        is there: it is the one to trim to.
        """
        ...

    def beat(self, member: str, data: bytes) -> Answer[bool]:
        """Say that a member lives. The answer is whether the log has it: then it goes on."""
        ...

    def beats(self) -> dict[str, tuple[int, bytes]]:
        """Return each member's last beat: a number that grows, and its data. Raises LogAway."""
        ...

    def forget(self, member: str) -> None:
        """Remove the beats of a member; a later one is its first. Raises LogAway."""
        ...

    def size(self) -> int:
        """Return the bytes that the log has. Raises LogAway."""
        ...

    def close(self) -> None:
        """Close it; calls that wait end with LogAway."""
        ...

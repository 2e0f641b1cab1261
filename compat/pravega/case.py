"""Cases: steps on named connections, each with the kinds of answers that a real Pravega gives.

    case("a segment twice", ask(create(), gives=SegmentCreated), ask(create(), gives=Exists))

The kinds say how much to wait for, and are held against the real server. The values in the answers
are its own: they are the expectation of Hutch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import DataAppended

TAG: Final = "~~~~~~~~"
"""Stands in names for the play, so that no two plays share a segment."""
# Tokens that stand for values of earlier answers; no server gives such numbers itself.
_TOKENS: Final = 2**62


class Closed:
    """End of the connection, as an answer."""


class Acked(NamedTuple):
    """Acknowledgement of a writer's events up to a number, in one answer or several."""

    number: int
    writer: UUID


Answer: TypeAlias = type[WireMessage] | type[Closed] | Acked


class Kind(Enum):
    """Kinds of remembered values; each is numbered by first appearance, from 1."""

    VERSION = 0
    LENGTH = 1
    POSITION = 2

    def nth(self, number: int) -> int:
        """Return what stands in a message to send for the value of that number."""
        return _TOKENS + self.value * 1000 + number


def remembered(value: int) -> tuple[Kind, int] | None:
    """Return kind and number that a value of a message stands for; None for a plain value."""
    kind, number = divmod(value - _TOKENS, 1000)
    return (Kind(kind), number) if 0 <= kind < len(Kind) else None


TRANSIENT: Final = "<transient segment>"
"""Stands for the last name that the server invented."""
CONTINUATION: Final = b"<continuation>"
"""Stands for the last place at which an iteration goes on."""


class Action(Enum):
    """Kinds of steps."""

    SEND = "send"
    WALK = "walk"
    READ = "read"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    Attributes:
        action: What it does.
        connection: On which connection; it is made when it is first named.
        sends: Messages, or bytes as they are, in one write. To `WALK` and `READ`, one request.
        gives: What a real Pravega answers.
        label: Names the step in the list of differences.
        is_unordered: The answers may come in any order.
        is_loose: A real Pravega answers now this, now that. Compared are acknowledgements, and
            the end of the connection where `gives` has it.
        until: To `READ`: the offset at which it is done.
    """

    action: Action = Action.SEND
    connection: str = "A"
    sends: tuple[WireMessage | bytes, ...] = ()
    gives: tuple[Answer, ...] = ()
    label: str = ""
    is_unordered: bool = False
    is_loose: bool = False
    until: int = 0

    @property
    def kinds(self) -> list[str]:
        """Names of the answers, as they begin the lines of what came."""
        return [
            DataAppended.__name__ if isinstance(answer, Acked) else answer.__name__
            for answer in self.gives
        ]


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation on segments of its own.

    Attributes:
        name: What it shows.
        steps: In order.
    """

    name: str
    steps: tuple[Step, ...]


def case(name: str, *steps: Step) -> Case:
    """Return a case."""
    return Case(name, steps)


def ask(
    *sends: WireMessage | bytes,
    gives: Answer | tuple[Answer, ...] = (),
    on: str = "A",
    label: str = "",
    is_unordered: bool = False,
    is_loose: bool = False,
) -> Step:
    """Send, and wait for answers; with nothing to send, wait only."""
    answers = (gives,) if isinstance(gives, (type, Acked)) else gives
    return Step(
        sends=sends,
        gives=answers,
        connection=on,
        label=label,
        is_unordered=is_unordered,
        is_loose=is_loose,
    )


def walk(request: WireMessage, *, label: str = "") -> Step:
    """Iterate over a table from the request on until its end; the order is not compared."""
    return Step(action=Action.WALK, sends=(request,), label=label)


def read_all(request: WireMessage, *, until: int, label: str = "") -> Step:
    """Read from the request on, in as many answers as it takes."""
    return Step(action=Action.READ, sends=(request,), until=until, label=label)


def drop(on: str = "A") -> Step:
    """Close a connection."""
    return Step(action=Action.DROP, connection=on)

"""A row of the table of options: name, purpose, values and meaning."""

from dataclasses import dataclass
from enum import Flag, auto
from typing import Final

from pyspark_hutch.options.kinds import Kind


class Use(Flag):
    """The purposes of an option."""

    BATCH_READ = auto()
    STREAMING_READ = auto()
    BATCH_WRITE = auto()
    STREAMING_WRITE = auto()

    def __str__(self) -> str:
        return " or ".join(word for use, word in _USES.items() if use in self)


_USES: Final = {
    Use.BATCH_READ: "a batch read",
    Use.STREAMING_READ: "a streaming read",
    Use.BATCH_WRITE: "a batch write",
    Use.STREAMING_WRITE: "a streaming write",
}
READ: Final = Use.BATCH_READ | Use.STREAMING_READ
WRITE: Final = Use.BATCH_WRITE | Use.STREAMING_WRITE
ALL: Final = READ | WRITE


@dataclass(frozen=True, slots=True)
class Option:
    """An option.

    Attributes:
        name: As users write it; Spark hands it over in lower case.
        uses: What it is for.
        kind: What it takes; None if it is refused whatever it is.
        default: The text that stands in for it; None if nothing does.
        meaning: One line for the page of options. For a refused one the reason.
        without: What holds without it, for the page, where there is no default text.
        hidden: Whether its value may be or hold a password, which no error may show.
    """

    name: str
    uses: Use
    kind: Kind | None
    default: str | None
    meaning: str
    without: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Options that belong together, and the heading that they have on the page."""

    title: str
    options: tuple[Option, ...]

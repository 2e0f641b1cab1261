"""Damage that an opening or a check has found: the fault, and its place."""

import logging
from typing import NamedTuple

log = logging.getLogger(__name__)


class Damage(NamedTuple):
    """One damaged place.

    Attributes:
        what: What is wrong and what follows from it, as a sentence without its end.
        file: Path in the data directory; empty if no one file is meant.
        segment: Name of the segment; empty if none is touched or none is known.
        position: Byte in the file; None for the whole of it.
    """

    what: str
    file: str = ""
    segment: str = ""
    position: int | None = None

    def __str__(self) -> str:
        """Return the line for a log: the fault, then its place."""
        where = {"segment": self.segment, "file": self.file, "position": self.position}
        return " ".join(
            [
                self.what,
                *(f"{key}={value}" for key, value in where.items() if value not in {"", None}),
            ]
        )


class Findings:
    """Takes the damage that an opening finds and its repairs; each is a line of the log at once.

    Attributes:
        found: Damage.
        notes: Lines about what is left out and is no damage: a crash leaves it.
    """

    def __init__(self) -> None:
        self.found: list[Damage] = []
        self.notes: list[str] = []

    def clear(self) -> None:
        """Forget all, for an opening that begins once more."""
        self.found.clear()
        self.notes.clear()

    def add(self, damage: Damage) -> None:
        """Note one damaged place and log it."""
        self.found.append(damage)
        log.error("%s", damage)

    def note(self, line: str) -> None:
        """Note a thing that is left out, and log it."""
        self.notes.append(line)
        log.warning("%s", line)

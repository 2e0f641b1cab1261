"""The outcome of an import for each object, as a table for a person."""

import enum
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.command_line import visible

NAME_CHARACTERS_MAX: Final = 48


class ImportOutcome(enum.Enum):
    """Outcome of an object of the file."""

    IMPORTED = "imported"
    ADAPTED = "adapted"
    """Imported, but not just as the file has it."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One object of the file."""

    kind: str
    virtual_host: str
    name: str
    outcome: ImportOutcome
    reason: str = ""
    is_lost: bool = False
    """True if it is skipped and RabbitMQ would have it, so that it may be missed."""


def table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Lay out texts in columns; the last column is never cut."""
    shown = [[visible(cell) for cell in line] for line in (titles, *lines)]
    for line in shown:
        for column in range(len(line) - 1):
            if len(line[column]) > NAME_CHARACTERS_MAX:
                line[column] = f"{line[column][: NAME_CHARACTERS_MAX - 1]}…"
    widths = [max(len(line[column]) for line in shown) for column in range(len(titles))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in shown
    )


def report_table(rows: Sequence[ReportRow], *, is_dry_run: bool = False) -> str:
    """Write the report: a line for each object, then the sums.

    Args:
        rows: All of them.
        is_dry_run: Nothing was done: say what would be.
    """
    words = _WOULD if is_dry_run else _DID
    text = ""
    if rows:
        text = table(
            ("outcome", "kind", "virtual host", "name", "why"),
            [
                (words[row.outcome], row.kind, row.virtual_host, row.name, row.reason)
                for row in rows
            ],
        )
        text += "\n"
    return text + ("would be " if is_dry_run else "") + sums(rows) + "\n"


_WOULD: Final = {
    ImportOutcome.IMPORTED: "would import",
    ImportOutcome.ADAPTED: "would adapt",
    ImportOutcome.SKIPPED: "would skip",
}
_DID: Final = {outcome: outcome.value for outcome in ImportOutcome}


def sums(rows: Iterable[ReportRow]) -> str:
    """Say in one line how many objects there are of each outcome."""
    counts = Counter(row.outcome for row in rows)
    return ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in ImportOutcome)

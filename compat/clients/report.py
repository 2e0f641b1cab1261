"""The table that `make compat` prints and keeps in compat/README.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from compat.clients.comparison import PLAIN, Comparison, Crossing, Run, mark_of
from compat.clients.expected import CODECS, EXPECTED, OTHERWISE, expected
from compat.clients.messages import bodies, summary
from compat.clients.not_offered import NOT_OFFERED, VERSIONS
from compat.clients.servers import SERVERS

README: Final = Path(__file__).parents[1] / "README.md"
BEGIN: Final = "<!-- clients: written by `make compat` -->"
END: Final = "<!-- clients end -->"
YES: Final = "✓"
NO: Final = "✗"
MISSING: Final = "n/a"


def page(found: Comparison) -> str:
    """Return the tables as Markdown."""
    clients = [one for one in VERSIONS if one in found.offered and one not in found.broken]
    notes = Notes()
    lines = [
        "Each cell: the result on Hutch, the result on RabbitMQ. ✓: what `clients/SCENARIOS.md`",
        "says, or what a note says that this client does instead; ✗: anything else. n/a: the",
        "client's library does not offer it.",
        "",
        *table(
            ["", *(f"{client} {VERSIONS[client]}" for client in clients)],
            [
                [f"`{scenario}`", *(cell(found, client, scenario, notes) for client in clients)]
                for scenario in EXPECTED
            ],
        ),
        "",
        "What the client in the row wrote, read by the client in the column, byte for byte, on",
        f"Hutch and on RabbitMQ ({PLAIN}: no sub-entries; none, gzip, …: compressed ones):",
        "",
        *table(
            ["", *clients],
            [
                [writer, *(crossing_cell(found, writer, reader) for reader in clients)]
                for writer in clients
            ],
        ),
        "",
        *notes.lines(),
    ]
    return "\n".join(lines).rstrip() + "\n"


class Notes:
    """Numbered remarks, each kept once."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def mark(self, text: str) -> str:
        """Return the number of a remark."""
        if text not in self._texts:
            self._texts.append(text)
        return f"<sup>{self._texts.index(text) + 1}</sup>"

    def lines(self) -> list[str]:
        """Return them as a list."""
        return [f"{number}. {text}." for number, text in enumerate(self._texts, 1)]


def cell(found: Comparison, client: str, scenario: str, notes: Notes) -> str:
    """Return what a scenario came to."""
    if scenario not in found.offered[client]:
        reason = NOT_OFFERED.get(client, {}).get(scenario, "no reason is known")
        return f"{MISSING}{notes.mark(f'{client}: {reason}')}"
    wanted = expected(client, scenario)
    outcomes = {name: found.runs[Run(client, scenario, name)] for name in SERVERS}
    if wanted is None:
        wanted = outcomes["RabbitMQ"].result
    marks = " ".join(
        YES if outcome.is_ok and outcome.result == wanted else NO for outcome in outcomes.values()
    )
    _, reason = OTHERWISE.get((client, scenario), ({}, ""))
    return marks + (notes.mark(f"{client}: {reason}") if reason else "")


def crossing_cell(found: Comparison, writer: str, reader: str) -> str:
    """Return which codecs one client reads of another."""
    wanted = {"read": summary(bodies(0, 49, mark_of(writer)))}
    parts = []
    for codec in (PLAIN, *CODECS):
        outcomes = [found.crossings.get(Crossing(writer, codec, reader, name)) for name in SERVERS]
        if any(outcome is not None for outcome in outcomes):
            right = [outcome is not None and outcome.result == wanted for outcome in outcomes]
            parts.append(f"{codec} " + " ".join(YES if one else NO for one in right))
    return "<br>".join(parts) or MISSING


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def is_whole(found: Comparison) -> bool:
    """Return whether every client ran on both servers."""
    return not found.broken and set(found.offered) == set(VERSIONS)


def keep(text: str, readme: Path = README) -> bool:
    """Put the tables into the page; tell whether that changed it.

    Raises:
        ValueError: The page has no place for them.
    """
    page_text = readme.read_text(encoding="utf-8")
    before, begin, rest = page_text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{readme} has no place for the tables: {BEGIN} … {END}")
    changed = f"{before}{BEGIN}\n\n{text}\n{END}{after}"
    if changed == page_text:
        return False
    readme.write_text(changed, encoding="utf-8")
    return True

"""Writes the tables of the pages of the protocol's dialects.

    python -m gateway.pravega.document docs/pravega-wire.md docs/pravega-early.md

A page's own text stays as it is; what is between the two marks is generated from the dialect's
table of commands and its message classes.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from hutch.pravega.commands import COMMANDS, CommandCode, CommandSender
from hutch.pravega.early_messages import EARLY_COMMANDS
from hutch.pravega.layout import layout_of

BEGIN: Final = "<!-- begin commands -->\n"
END: Final = "\n<!-- end commands -->"
PAGES: Final = {"pravega-early.md": EARLY_COMMANDS}
"""The tables of pages; every other page has that of today's dialect."""
SENDERS: Final = {
    CommandSender.CLIENT: "client",
    CommandSender.SERVER: "server",
    CommandSender.BOTH: "both",
}


def commands_table(rows: Iterable[CommandCode] = COMMANDS) -> str:
    """Return a row for each command: its sender, its fields in order, and its purpose."""
    lines = ["| code | command | from | payload | purpose |", "|---|---|---|---|---|"]
    for row in rows:
        purpose = (row.message.__doc__ or "").partition("\n")[0]
        cells = (str(row.code), f"`{row.name}`", SENDERS[row.sender], payload_of(row), purpose)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def payload_of(row: CommandCode) -> str:
    """Return the fields of a command in words; those that may be absent stand in brackets."""
    layout = layout_of(row.message)
    named = (
        f"[`{name}` {wire.name}]" if name in layout.defaults else f"`{name}` {wire.name}"
        for name, wire in layout.fields
    )
    return " · ".join(named) or "none"


def rewritten(page: str, rows: Iterable[CommandCode] = COMMANDS) -> str:
    """Return the page with a new table of these rows.

    Raises:
        ValueError: The marks are not in it exactly once.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page needs one {BEGIN.strip()} and one {END.strip()}")
    above, _, rest = page.partition(BEGIN)
    return above + BEGIN + commands_table(rows) + END + rest.partition(END)[2]


def main(arguments: list[str]) -> int:
    """Write the tables of the pages that the arguments name; return the exit code."""
    if not arguments:
        sys.stderr.write("usage: python -m gateway.pravega.document docs/pravega-wire.md …\n")
        return 2
    for path in map(Path, arguments):
        rows = PAGES.get(path.name, COMMANDS)
        path.write_text(rewritten(path.read_text(encoding="utf-8"), rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

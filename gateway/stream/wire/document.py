"""Writes the tables of `docs/protocol.md`: `python -m gateway.stream.wire.document PAGE`.

The page's own text stays as it is; the parts between `<!-- begin NAME -->` and `<!-- end NAME -->`
are generated from the command table.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from .codes import ResponseCode
from .commands import ANY, COMMANDS, KERNEL, Command, Sender, State, Steps
from .layout import layout_of
from .messages import Message

KERNEL_PURPOSES: Final = {
    "publish": "Appends entries to the stream of a publisher.",
    "deliver": "Brings a chunk to a subscription.",
}
SENDERS: Final = {Sender.CLIENT: "client", Sender.SERVER: "server", Sender.BOTH: "both"}


def commands_table() -> str:
    """Return a row for each command: its purpose, its sender, its states and its permission."""
    lines = [
        "| key | command | from | versions | correlated | answer | state | permission | purpose |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in COMMANDS:
        versions = "1" if row.version_max == 1 else f"1 to {row.version_max}"
        cells = (
            f"`{row.key:02x}`",
            f"`{row.name}`",
            SENDERS[row.sender],
            versions,
            "yes" if row.is_correlated else "no",
            "no" if row.reply is None else "yes",
            states(row.steps),
            row.permission.value,
            purpose(row),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def layouts_table() -> str:
    """Return a row for each message: its fields in the order of the bytes."""
    lines = ["| command | message | fields |", "|---|---|---|"]
    for row in COMMANDS:
        for version, request in enumerate(row.requests, start=1):
            title = "request" if row.version_max == 1 else f"version {version}"
            lines.append(f"| `{row.name}` | {title} | {fields_of(request)} |")
        if row.reply is not None:
            lines.append(f"| | answer | {fields_of(row.reply)} |")
    return "\n".join(lines)


def codes_table() -> str:
    """Return a row for each response code."""
    rows = (f"| {code.value} | {code.phrase} |" for code in ResponseCode)
    return "\n".join(("| code | means |", "|---|---|", *rows))


def states(steps: Steps) -> str:
    """Return the states of a row in words, and the states that follow."""
    if steps is ANY:
        return "any"
    ways: dict[State, list[State]] = {}
    for state, to in steps.items():
        ways.setdefault(to, []).append(state)
    return "; ".join(
        _names(each) if each == [to] else f"{_names(each)} → {_names([to])}"
        for to, each in ways.items()
    )


def _names(states: Iterable[State]) -> str:
    return ", ".join((state.name or "").lower() for state in states)


def purpose(row: Command) -> str:
    """Return the first sentence of the documentation of a command's request."""
    if row.requests[0] is KERNEL:
        return KERNEL_PURPOSES[row.name]
    text = (row.requests[-1].__doc__ or "").partition("\n")[0]
    return text.replace("|", "\\|")


def fields_of(message_class: type[Message]) -> str:
    """Return the fields of a message in words."""
    if message_class is KERNEL:
        return "see below"
    named = [f"`{name}` {wire.name}" for name, wire in layout_of(message_class).fields]
    return " · ".join(named) or "none"


SECTIONS: Final = {
    "commands": commands_table,
    "layouts": layouts_table,
    "codes": codes_table,
}


def rewritten(page: str) -> str:
    """Return the page with new tables.

    Raises:
        ValueError: The marks of a section are not in the page exactly once.
    """
    for name, table in SECTIONS.items():
        begin, end = f"<!-- begin {name} -->\n", f"\n<!-- end {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page needs one {begin.strip()} and one {end.strip()}")
        above, _, rest = page.partition(begin)
        page = above + begin + table() + end + rest.partition(end)[2]
    return page


def main(arguments: list[str]) -> int:
    """Write the tables of the page that the argument names; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m gateway.stream.wire.document docs/protocol.md\n")
        return 2
    path = Path(arguments[0])
    path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

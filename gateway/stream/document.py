"""Writes the tables of the protocol's pages: `python -m gateway.stream.document PAGE ...`.

These are `docs/protocol.md` and `docs/protocol-pipeline.md`. A page's own text stays as it is; the
parts between `<!-- begin NAME -->` and `<!-- end NAME -->` are generated from the command tables.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from hutch.stream.codes import ResponseCode
from hutch.stream.commands import ANY, COMMANDS, KERNEL, Command, Sender, State, Steps
from hutch.stream.layout import layout_of
from hutch.stream.messages import Message
from hutch.stream.pipeline import PIPELINE

KERNEL_PURPOSES: Final = {
    "publish": "Appends entries to the stream of a publisher.",
    "deliver": "Brings a chunk to a subscription.",
}
SENDERS: Final = {Sender.CLIENT: "client", Sender.SERVER: "server", Sender.BOTH: "both"}


def commands_table(rows: Iterable[Command]) -> str:
    """Return a row for each command: its purpose, its sender, its states and its permission."""
    lines = [
        "| key | command | from | versions | correlated | answer | state | permission | purpose |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
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


def layouts_table(rows: Iterable[Command]) -> str:
    """Return a row for each message: its fields in the order of the bytes."""
    lines = ["| command | message | fields |", "|---|---|---|"]
    for row in rows:
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


SECTIONS: Final[Mapping[str, Mapping[str, Callable[[], str]]]] = {
    "protocol.md": {
        "commands": partial(commands_table, COMMANDS),
        "layouts": partial(layouts_table, COMMANDS),
        "codes": codes_table,
    },
    "protocol-pipeline.md": {
        "commands": partial(commands_table, PIPELINE),
        "layouts": partial(layouts_table, PIPELINE),
    },
}
"""The generated sections of each page."""


def rewritten(name: str, page: str) -> str:
    """Return a page with new tables.

    Args:
        name: The file's.
        page: The text as it stands.

    Raises:
        ValueError: It is no page of the protocol, or the marks of a section are not in it exactly
            once.
    """
    if name not in SECTIONS:
        raise ValueError(f"{name} is none of {', '.join(SECTIONS)}")
    for section, table in SECTIONS[name].items():
        begin, end = f"<!-- begin {section} -->\n", f"\n<!-- end {section} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page needs one {begin.strip()} and one {end.strip()}")
        above, _, rest = page.partition(begin)
        page = above + begin + table() + end + rest.partition(end)[2]
    return page


def main(arguments: list[str]) -> int:
    """Write the tables of the pages that the arguments name; return the exit code."""
    if not arguments:
        sys.stderr.write("usage: python -m gateway.stream.document docs/protocol.md ...\n")
        return 2
    for path in map(Path, arguments):
        page = rewritten(path.name, path.read_text(encoding="utf-8"))
        path.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

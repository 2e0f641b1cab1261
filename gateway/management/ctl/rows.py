"""Rows in the layout of RabbitMQ's tools: chosen columns with tabs between them.

Commands that scripts for RabbitMQ call by its names answer in it, so that the scripts can read it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from gateway.command_line import visible
from gateway.management.ctl.grammar import (
    COLUMNS,
    Argument,
    CtlCommand,
    WrongUse,
    argument,
    command,
)

Row = Mapping[str, Any]

NODE: Final = "rabbit@localhost"
"""As the management API calls the server."""

_LAYOUT: Final = (
    "Prints columns with tabs between them, as `--formatter table` of RabbitMQ's tools. What a\n"
    "client says of itself cannot leave its column."
)

_NO_TEXTS: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType({})

_LAYOUT_OPTIONS: Final = (
    argument("-q --quiet", "for RabbitMQ; there is no banner"),
    argument("--formatter", "json is the same as --json", choices=("table", "json")),
)
"""The options that RabbitMQ's tools take for the layout."""


def columns(*known: str, usual: Sequence[str] = ()) -> Argument:
    """Return the argument that chooses columns, as `a b` or `a,b`; all are usual by default."""

    def chosen(texts: Iterable[str]) -> list[str]:
        names = [name for text in texts for name in text.split(",") if name]
        for name in names:
            if name not in known:
                raise WrongUse(f"there is no column {name!r}, but {', '.join(known)}")
        return names or list(usual or known)

    return argument(f"{COLUMNS} COLUMN", f"of {', '.join(known)}", read=chosen, nargs="*")


def tabular(
    *arguments: Argument,
    uses: Sequence[str] = (),
    quoted: Sequence[str] = (),
    texts: Mapping[str, Callable[[Any], str]] = _NO_TEXTS,
) -> Callable[[Callable[..., Any]], CtlCommand]:
    """Make a command of a function, as `command` does; its rows have tabs between the columns.

    Args:
        arguments: Those of the layout come on top.
        uses: As in `CtlCommand`.
        quoted: Columns whose texts are quoted.
        texts: Makes the texts of columns whose values have several parts.
    """
    made = command(*_LAYOUT_OPTIONS, *arguments, uses=uses, shown=_tabbed(quoted, texts))

    def with_layout(function: Callable[..., Any]) -> CtlCommand:
        described = made(function)
        return replace(described, help=f"{described.help}\n\n{_LAYOUT}")

    return with_layout


def _tabbed(
    quoted: Sequence[str], texts: Mapping[str, Callable[[Any], str]]
) -> Callable[[Sequence[Row]], str]:
    """Return what shows rows as lines with tabs; texts in some columns are quoted."""

    def cell(name: str, value: object) -> str:
        return _cell(texts[name](value) if name in texts else value, name in quoted)

    def shown(rows: Sequence[Row]) -> str:
        lines = ["\t".join(rows[0])] if rows else []
        lines += ["\t".join(cell(*each) for each in row.items()) for row in rows]
        return "".join(f"{line}\n" for line in lines)

    return shown


def _cell(value: object, is_quoted: bool) -> str:  # noqa: FBT001  # of two positions
    if isinstance(value, dict):
        pairs = (f"{{{_quoted(name)},{_quoted(item)}}}" for name, item in value.items() if item)
        return f"[{','.join(pairs)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return visible(",".join(map(str, value)))
    if value is None:
        return ""
    return _quoted(str(value)) if is_quoted else visible(str(value))


def _quoted(text: str) -> str:
    return visible(json.dumps(text, ensure_ascii=False))

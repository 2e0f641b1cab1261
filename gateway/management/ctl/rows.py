"""Rows in the layout of RabbitMQ's tools: chosen columns with tabs between them.

Commands that scripts for RabbitMQ call by its names answer in it, so that the scripts can read it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from gateway.management.ctl.grammar import Argument, WrongUse, argument
from gateway.management.definitions.report import visible

Row = Mapping[str, Any]

NODE: Final = "rabbit@localhost"
"""As the management API calls the server."""

LAYOUT: Final = (
    "Prints columns with tabs between them, as `--formatter table` of RabbitMQ's tools. What a\n"
    "client says of itself cannot leave its column."
)


def layout_arguments() -> tuple[Argument, ...]:
    """Return the options that RabbitMQ's tools take for the layout."""
    return (
        argument("-q", "--quiet", action="store_true", help="for RabbitMQ; there is no banner"),
        argument("--formatter", choices=("table", "json"), help="json is the same as --json"),
    )


def columns_argument(known: Sequence[str]) -> Argument:
    """Return the argument that chooses columns."""
    return argument("columns", metavar="COLUMN", nargs="*", help=f"of {', '.join(known)}")


def chosen(texts: Iterable[str], known: Sequence[str], usual: Sequence[str]) -> list[str]:
    """Return which columns are asked for, as `a b` or `a,b`. Raises WrongUse."""
    columns = [column for text in texts for column in text.split(",") if column]
    for column in columns:
        if column not in known:
            raise WrongUse(f"there is no column {column!r}, but {', '.join(known)}")
    return columns or list(usual)


def picked(rows: Iterable[Row], columns: Sequence[str]) -> list[Row]:
    """Return rows with these columns alone, in this order."""
    return [{column: row[column] for column in columns} for row in rows]


def tabbed(*quoted: str) -> Callable[[Sequence[Row]], str]:
    """Return what shows rows as lines with tabs; texts in some columns are quoted."""

    def shown(rows: Sequence[Row]) -> str:
        lines = ["\t".join(rows[0])] if rows else []
        lines += ["\t".join(_cell(row[name], name in quoted) for name in row) for row in rows]
        return "".join(f"{line}\n" for line in lines)

    return shown


def _cell(value: object, is_quoted: bool) -> str:  # noqa: FBT001  # of two positions
    if isinstance(value, dict):
        pairs = (f"{{{_quoted(name)},{_quoted(item)}}}" for name, item in value.items() if item)
        return f"[{','.join(pairs)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(str(value)) if is_quoted else visible(str(value))


def _quoted(text: str) -> str:
    return visible(json.dumps(text, ensure_ascii=False))

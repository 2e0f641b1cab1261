"""Rows as RabbitMQ's tools print them: tables with tabs, JSON, Erlang's terms."""

from __future__ import annotations

import json

from compat.suites.shim.asking import USAGE, Failure
from compat.suites.shim.words import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Row = Mapping[str, Any]

FORMATTERS = ("table", "json")
_WRITTEN = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
}
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_TURNS = (*range(0x2028, 0x202F), *range(0x2066, 0x206A))
_ESCAPES = {
    **{code: f"\\x{{{code:X}}}" for code in (*_CONTROLS, *_TURNS, *range(0xD800, 0xE000))},
    **{ord(character): written for character, written in _WRITTEN.items()},
}
_IN_QUOTES = {**_ESCAPES, ord('"'): '\\"', ord("\\"): "\\\\"}


class Quoted(str):
    """A text that a table shows in quotes, as Erlang writes it."""

    __slots__ = ()


def visible(text: str) -> str:
    """Write a text so that it stays in its cell, and moves no cursor."""
    return text.translate(_ESCAPES)


def quoted(text: str) -> str:
    """Write a text as Erlang does."""
    return f'"{text.translate(_IN_QUOTES)}"'


def columns_of(words: Words, known: Sequence[str], usual: Sequence[str]) -> list[str]:
    """Return the columns that are asked for, as `a,b` or `a b`. Raises Failure."""
    wanted = [column.strip() for word in words.plain for column in word.split(",")]
    wanted = [column for column in wanted if column]
    if unknown := [column for column in wanted if column not in known]:
        raise Failure(f"info key(s) {', '.join(unknown)} are not supported", USAGE)
    return wanted or list(usual)


def formatted(words: Words, columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Print rows with these columns in the format that is asked for."""
    if words.options.get("formatter") == "json":
        chosen = [{column: row[column] for column in columns} for row in rows]
        return "[\n" + "\n,".join(json.dumps(row, separators=(",", ":")) for row in chosen) + "\n]"
    lines = ["\t".join(columns)] if words.has_titles else []
    lines += ["\t".join(_cell(row[column]) for column in columns) for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:  # noqa: ANN401  # whatever a row holds
    match value:
        case Quoted():
            return quoted(value)
        case str():
            return visible(value)
        case [[_, _, _], *_]:  # without empty texts, which readers of a table can't read
            pairs = (f"{{{quoted(name)},{quoted(item)}}}" for name, _, item in value if item)
            return f"[{','.join(pairs)}]"
        case list():
            return f"[{', '.join(map(visible, value))}]"
        case _:
            return str(value)

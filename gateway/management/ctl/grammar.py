"""How a `hutch ctl` command is written down: what it takes, what it asks, how its answer looks."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.broker.arguments import NAMES, MaxAge
from gateway.management.definitions.report import table, visible


class WrongUse(Exception):
    """What was typed cannot be meant; the message says why."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as argparse takes it."""

    names: tuple[str, ...]
    options: Mapping[str, Any]


def argument(*names: str, **options: Any) -> Argument:  # noqa: ANN401  # argparse's
    """Describe an argument."""
    return Argument(names, options)


Options = argparse.Namespace
Asked = Mapping[str, Any]
Ask = Callable[[str, Asked], Any]
"""Asks the server for a request by its name, and returns the answer."""


def _nothing(_: Options) -> Asked:
    return {}


def _silence(_: Any) -> str:  # noqa: ANN401  # whatever the server answers
    return ""


@dataclass(frozen=True, slots=True)
class Command:
    """One `hutch ctl` command.

    Attributes:
        name: As RabbitMQ calls it, where it has the like.
        summary: A line for the list of commands.
        arguments: What it takes.
        asked: Makes the arguments of the request; may read a password, may raise WrongUse.
        shown: Makes a text of the answer.
        examples: Lines that work as they stand.
        request: Its name where that is not the command's.
        more: What else its help says.
        conversation: Asks for what `asked` made, where that is not just the request.
    """

    name: str
    summary: str
    arguments: Sequence[Argument] = ()
    asked: Callable[[Options], Asked] = _nothing
    shown: Callable[[Any], str] = _silence
    examples: Sequence[str] = ()
    request: str = ""
    more: str = ""
    conversation: Callable[[Ask, Asked], Any] | None = None


def lines(answer: Sequence[str]) -> str:
    """Show names, one a line."""
    return "".join(f"{visible(name)}\n" for name in answer)


def listed(*columns: str) -> Callable[[Sequence[Mapping[str, Any]]], str]:
    """Return what shows a list of objects as a table with these fields as columns."""

    def shown(rows: Sequence[Mapping[str, Any]]) -> str:
        titles = [column.replace("_", " ") for column in columns]
        return table(titles, [[_cell(row.get(column)) for column in columns] for row in rows])

    return shown


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


HOST = argument(
    "-p",
    "--vhost",
    metavar="VHOST",
    default="/",
    help="virtual host (default: /)",
)
ANY_HOST = argument("-p", "--vhost", metavar="VHOST", help="only of this virtual host")


def number_pairs(texts: Sequence[str]) -> dict[str, int]:
    """Read `name=number` pairs. Raises WrongUse."""
    pairs: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        try:
            pairs[name] = int(number)
        except ValueError:
            equals = ""
        if not equals:
            raise WrongUse(f"{text!r} is not name=number, as max-connections=100")
    return pairs


def text_pairs(texts: Sequence[str]) -> dict[str, str]:
    """Read `name=value` pairs. Raises WrongUse."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise WrongUse(f"{text!r} is not name=value, as max-age=7D")
        pairs[name] = value
    return pairs


def stream_arguments(texts: Sequence[str]) -> dict[str, str]:
    """Read the arguments of a stream, which may be written as those of a queue, x-max-age=7D.

    Raises:
        WrongUse: One is not name=value, is none that streams have, is given twice, or is an age
            that is none. Clients may give such a one, and their streams keep everything.
    """
    given: dict[str, str] = {}
    for text in texts:
        for written, value in text_pairs([text]).items():
            name = written.removeprefix("x-")
            if name not in NAMES:
                raise WrongUse(f"streams have no argument {written!r}, but {', '.join(NAMES)}")
            if name in given:
                raise WrongUse(f"{name} is given twice")
            if name == "max-age" and MaxAge(value).seconds is None:
                raise WrongUse(f"max-age is {value[:40]!r}, which is no age above 0, as 7D or 36h")
            given[name] = value
    return given


def key_list(text: str) -> list[str]:
    """Read texts with commas between them."""
    return [key.strip() for key in text.split(",") if key.strip()]

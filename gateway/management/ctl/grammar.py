"""A `hutch ctl` command, described by a function: its name, its help, and what it asks the server.

A command that only asks for the request of its name is a function with no more than a docstring.
"""

import argparse
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from gateway.broker.naming import is_text
from gateway.broker.rules.arguments import NAMES, MaxAge
from gateway.command_line import visible
from gateway.management.definitions.report import table
from gateway.management.kinds.kind import ObjectKind
from gateway.management.kinds.virtual_hosts import HostedKind


class WrongUse(Exception):
    """The command line makes no sense; the message says why."""


Asked = dict[str, Any]
"""Arguments of a request, by their names."""
Ask = Callable[..., Any]
"""Asks the server for a request by its name, with its arguments and perhaps a body; returns the
answer."""


def _itself(typed: Any) -> Any:  # noqa: ANN401  # whatever argparse has made
    return typed


def _silence(_: Any) -> str:  # noqa: ANN401  # whatever the server answers
    return ""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a command, and of the request that it asks for.

    Attributes:
        names: As argparse takes them.
        options: The same.
        read: Makes what the request takes of what was typed; may raise WrongUse.
    """

    names: tuple[str, ...]
    options: Mapping[str, Any]
    read: Callable[[Any], Any]

    @property
    def dest(self) -> str:
        """The name of the request's argument."""
        long = max(self.names, key=len).lstrip("-").replace("-", "_")
        return str(self.options.get("dest", long))


def argument(
    usage: str,
    meaning: str,
    read: Callable[[Any], Any] = _itself,
    **options: Any,  # noqa: ANN401  # argparse's
) -> Argument:
    """Describe an argument.

    Args:
        usage: Its names and a word for its value, as "-p --vhost VHOST" or "name USER"; an option
            without such a word is a flag, unless it has choices.
        meaning: The line of the help.
        read: Makes what the request takes of what was typed; may raise WrongUse.
        options: More that argparse takes.
    """
    *names, last = usage.split()
    if last.startswith("-"):
        names.append(last)
        if "choices" not in options:
            options = {"action": "store_true", **options}
    else:
        options = {"metavar": last, **options}
    return Argument(tuple(names), {"help": meaning, **options}, read)


def add(parser: argparse.ArgumentParser, *arguments: Argument) -> None:
    """Have a parser take arguments."""
    for each in arguments:
        parser.add_argument(*each.names, **each.options)


def named(kind: str, dest: str = "name") -> Argument:
    """Describe an argument that is the name of something."""
    return argument(f"{dest} {kind.upper().replace(' ', '_')}", f"name of the {kind}")


def named_anew(kind: str) -> Argument:
    """Describe an argument that is the name of something that is made."""
    return argument(f"name {kind.upper().replace(' ', '_')}", f"name of the {kind}", new_name)


def new_name(text: str) -> str:
    """Read the name of something that is made. Raises WrongUse."""
    if not is_text(text):
        raise WrongUse(f"{text!r} has control characters, or is no Unicode text")
    return text


@dataclass(frozen=True, slots=True)
class CtlCommand:
    """One `hutch ctl` command.

    Attributes:
        name: As RabbitMQ calls it, where it has the like.
        help: Its first line is in the list of commands.
        arguments: Those of its request, unless `function` makes others of them.
        uses: The words behind its name in examples that work as they stand.
        shown: Makes a text of the answer.
        function: Asks the server, and returns what is shown, also as JSON. It may read a password,
            and may raise WrongUse.
    """

    name: str
    help: str
    arguments: Sequence[Argument]
    uses: Sequence[str]
    shown: Callable[[Any], str]
    function: Callable[[Ask, Asked], Any]

    @property
    def summary(self) -> str:
        """The line for the list of commands."""
        return self.help.partition("\n")[0].removesuffix(".")

    @property
    def examples(self) -> list[str]:
        """Lines that work as they stand."""
        return [f"hutch ctl {self.name} {words}".rstrip() for words in self.uses]

    def asks(self, options: argparse.Namespace) -> Asked:
        """Return what was typed, as it is read, by the names of arguments. Raises WrongUse."""
        return {
            each.dest: each.read(getattr(options, each.dest))
            for each in self.arguments
            if each.dest not in _OF_LAYOUT and getattr(options, each.dest) is not None
        }

    def does(self, ask: Ask, asked: Asked) -> Any:  # noqa: ANN401  # what JSON holds
        """Ask the server, and return the answer, perhaps only some of its columns."""
        columns = asked.pop(COLUMNS, None)
        answer = self.function(ask, asked)
        if columns is None:
            return answer
        return [{column: row[column] for column in columns} for row in answer]


def command(
    *arguments: Argument, uses: Sequence[str] = (), shown: Callable[[Any], str] = _silence
) -> Callable[[Callable[..., Any]], CtlCommand]:
    """Make a command of the function that has its name, and its help as docstring.

    A function without parameters says no more than that: the request of the same name is asked for.
    Any other is the attribute of `CtlCommand`, which the arguments of this are as well.
    """

    def made(function: Callable[..., Any]) -> CtlCommand:
        plain = _plain(
            function.__name__, function.__doc__ or "", *arguments, uses=uses, shown=shown
        )
        return replace(plain, function=function) if function.__code__.co_argcount else plain

    return made


def _plain(
    name: str,
    text: str,
    *arguments: Argument,
    uses: Sequence[str] = (),
    shown: Callable[[Any], str] = _silence,
) -> CtlCommand:
    """Make a command that asks for the request of its name."""
    help_ = inspect.cleandoc(text)
    return CtlCommand(name, help_, arguments, uses, shown, lambda ask, asked: ask(name, asked))


COLUMNS: Final = "columns"
"""The argument that chooses columns of the answer."""
_OF_LAYOUT: Final = frozenset(("quiet", "formatter"))
"""Arguments that are not the server's affair."""


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


_HOST: Final = partial(argument, "-p --vhost VHOST", dest="virtual_host")
HOST: Final = _HOST("virtual host (default: /)", default="/")
ANY_HOST: Final = _HOST("only of this virtual host")


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


def stream_arguments(texts: Sequence[str]) -> dict[str, str]:
    """Read the arguments of a stream, which may be written as those of a queue, x-max-age=7D.

    Raises:
        WrongUse: One is not name=value, is none that streams have, is given twice, or is an age
            that is none. Clients may give such a one, and their streams keep everything.
    """
    given: dict[str, str] = {}
    for text in texts:
        written, equals, value = text.partition("=")
        name = written.removeprefix("x-")
        if not equals:
            raise WrongUse(f"{text!r} is not name=value, as max-age=7D")
        if name not in NAMES:
            raise WrongUse(f"streams have no argument {written!r}, but {', '.join(NAMES)}")
        if name in given:
            raise WrongUse(f"{name} is given twice")
        if name == "max-age" and MaxAge(value).seconds is None:
            raise WrongUse(f"max-age is {value[:40]!r}, which is no age above 0, as 7D or 36h")
        given[name] = value
    return given


def json_value(text: str) -> Any:  # noqa: ANN401  # what JSON holds
    """Read JSON. Raises WrongUse."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{text[:40]!r} is not JSON: {error}") from None


def arguments_of(kind: ObjectKind[Any], *given: Argument) -> tuple[Argument, ...]:
    """Return an argument for each field of a kind of object: those given, and for the rest options.

    A field that is added to the kind can so be set without a change here.
    """
    names = {each.dest for each in given}
    rest = (
        argument(
            f"--{field.name.replace('_', '-')} {'TEXT' if field.type is str else 'JSON'}",
            f"{field.name} of the {kind.word}",
            read=_itself if field.type is str else json_value,
        )
        for field in kind.fields
        if field.name not in names
    )
    return (*given, *rest)


def commands_on(
    kind: HostedKind[Any], *fields: Argument, lists: str = "", sets: str = "", use: str = ""
) -> tuple[CtlCommand, CtlCommand, CtlCommand]:
    """Return the commands that list, set and clear the objects of a kind.

    Args:
        kind: The kind.
        fields: Its first fields, the name before all, where they are no options.
        lists: The help of the first, where there is more to say.
        sets: The help of the second.
        use: The words of an example of setting one, the name first.
    """
    name, *more = fields or (named(kind.word),)
    word, a = kind.word.replace(" ", "_"), "an" if kind.word[0] in "aeio" else "a"
    return (
        _plain(
            f"list_{kind.name}",
            lists or f"List the {kind.name.replace('_', ' ')}.",
            ANY_HOST,
            shown=listed("virtual_host", *kind.names()),
        ),
        _plain(
            f"set_{word}",
            sets or f"Set {a} {kind.word}.",
            *(HOST, *arguments_of(kind, name, *more)),
            uses=(use,) if use else (),
        ),
        _plain(f"clear_{word}", f"Delete {a} {kind.word}.", HOST, name, uses=use.split()[:1]),
    )

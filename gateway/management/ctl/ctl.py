"""`hutch ctl`: everyday changes to a running server."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from gateway.command_line import Parser, complain
from gateway.management.ctl import clients, scopes, service, streams, topology, users
from gateway.management.ctl.asking import ServerRefused, ServerUnreachable, ask
from gateway.management.ctl.grammar import Argument, CtlCommand, WrongUse, add, argument
from gateway.management.ctl.pointers import pointer_of
from gateway.settings.errors import ConfigError
from gateway.settings.sources import load

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNREACHABLE: Final = 69
"""As in RabbitMQ's tools (sysexits' EX_UNAVAILABLE)."""

GROUPS: Final = {
    title: [each for each in vars(module).values() if isinstance(each, CtlCommand)]
    for title, module in (
        ("users, permissions, virtual hosts", users),
        ("streams", streams),
        ("clients of streams", clients),
        ("super streams, exchanges, policies", topology),
        ("scopes of Pravega's clients", scopes),
        ("the server", service),
    )
}
COMMANDS: Final = {command.name: command for commands in GROUPS.values() for command in commands}

DESCRIPTION: Final = """\
Change a running server, or look at it. The server is found by its data directory: --data, or the
settings that --config or HUTCH_… variables give, as for `hutch serve`. A process that may open the
socket admin.sock there is an administrator.
"""
_EXIT_CODES: Final = f"""\
`hutch ctl COMMAND --help` describes a command. Names may be written with - for _.

exit codes: 0 done, {EXIT_FAILED} refused, {EXIT_USAGE} wrong use, \
{EXIT_UNREACHABLE} no server to ask
"""


def epilog() -> str:
    """Return the list of commands, by what they are about."""
    width = max(map(len, COMMANDS)) + 2
    lines: list[str] = []
    for title, commands in GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {command.name:{width}}{command.summary}" for command in commands]
        lines.append("")
    return "\n".join(lines) + "\n" + _EXIT_CODES


JSON: Final = argument("--json", "print the answer as JSON")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which server is meant."""
    option = partial(argument, default=argparse.SUPPRESS)
    add(
        parser,
        option("--data DIR", "data directory of the server (default: as for `hutch serve`)"),
        option("--config FILE", "TOML file with the server's settings. (HUTCH_CONFIG)"),
    )


def add_arguments(parser: Parser, given: Sequence[str]) -> None:
    """Add all commands; only those whose names are given are described in full."""
    parser.description = DESCRIPTION
    parser.epilog = epilog()
    add_place(parser)
    parser.pointer = pointer_of
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS.values():
        dashed = command.name.replace("_", "-")
        if not {command.name, dashed} & set(given):
            commands.add_parser(command.name)
            continue
        for name in {command.name: None, dashed: None}:
            described = commands.add_parser(
                name, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
            )
            add_command(described, command, JSON)


def add_command(parser: argparse.ArgumentParser, command: CtlCommand, *more: Argument) -> None:
    """Have a parser take what a command takes, and more; `run` runs the command."""
    parser.description = command.help
    if command.examples:
        parser.epilog = "Examples:\n" + "".join(f"  {line}\n" for line in command.examples)
    parser.set_defaults(parser=parser, described=command)
    add(parser, *command.arguments, *more)
    add_place(parser)


def data_directory(options: argparse.Namespace) -> Path:
    """Return the data directory that the flags and settings name. Raises ConfigError."""
    data, config = getattr(options, "data", None), getattr(options, "config", None)
    return load({} if data is None else {"--data": data}, config).settings.store.data_directory


def run(options: argparse.Namespace) -> int:
    """Run the command that `add_command` added; return the exit code."""
    command: CtlCommand = options.described

    def do() -> int:
        asked = command.asks(options)
        answer = command.does(partial(ask, data_directory(options)), asked)
        if getattr(options, "json", False) or getattr(options, "formatter", "") == "json":
            sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=True) + "\n")
        else:
            sys.stdout.write(command.shown(answer))
        return 0

    return within_edge(do)


def within_edge(do: Callable[[], int]) -> int:
    """Run a command, with a line on standard error and an exit code for what goes wrong."""
    try:
        return do()
    except (ConfigError, WrongUse) as error:
        return complain(str(error), EXIT_USAGE)
    except ServerUnreachable as error:
        return complain(str(error), EXIT_UNREACHABLE)
    except ServerRefused as error:
        return complain(str(error), EXIT_FAILED)

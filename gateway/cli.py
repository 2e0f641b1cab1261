"""The command `hutch`: start the server, show its settings, hash a password, administer it.

What a command needs is imported when it is chosen, so that `hutch --help` answers at once.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.command_line import Parser, complain, own_version
from gateway.commands.serving import (
    EXIT_CONFIG,
    EXIT_FAILED,
    add_flags,
    flags_of,
    run_server,
)

if TYPE_CHECKING:
    from gateway.serving.process import MakeServer

EXIT_INTERRUPTED: Final = 130

_DESCRIPTION: Final = """\
Hutch serves the RabbitMQ Streams protocol: point any RabbitMQ stream client at it.

  hutch serve                 listens on localhost:5552, keeps its data in ./data
  hutch ctl add_user app      changes the server that keeps its data in ./data
  hutch import definitions.json --dry-run
                              says what of a RabbitMQ it would take over
"""

_SERVE: Final = """\
Start the server. It prints one line beginning `hutch ready` when clients can connect, and stops
on SIGTERM or Ctrl-C: it takes no more connections, stores and confirms what has arrived, exits 0.

examples:
  hutch serve
      for clients on this machine: guest / guest at localhost:5552, data in ./data
  hutch serve --data /var/lib/hutch --host 0.0.0.0 --advertised-host streams.example.org \\
              --users /etc/hutch/users.toml
      for clients anywhere. They connect to the advertised host and port again, once they know
      where a stream lives, so that name must lead here from where they are.
  hutch serve --tls-cert server.pem --tls-key server-key.pem
      also for clients over TLS, at 5551
  hutch serve --log nats://a,nats://b,nats://c --member one
      as a member of a cluster: every change is kept by three servers of NATS JetStream before it
      is confirmed, and another member takes over when this one is gone
  hutch serve --config /etc/hutch/hutch.toml --log-format json
      for a service: see `hutch config --reference` for what the file may hold
"""

_DURABILITY: Final = """\
durability: what a confirmed message has survived
  disk       it is synced to the disk before it is confirmed, and survives a power cut. Many
             messages share one sync, so this costs little where clients publish in bulk.
  interval   it is confirmed once written and synced at most --interval-ms later, which is
             what a power cut can take
  os         the operating system has it and writes it when it likes (as RabbitMQ does)
  All three survive the death of the server, by kill -9 too.

settings: a flag counts before the environment (HUTCH_STREAM__PORT=5552), that before the file
  (--config or HUTCH_CONFIG), and that before the default. `hutch config` shows what is in force
  and where it came from; `hutch config --reference` describes every setting there is.
  A wrong setting stops the start with exit code 2 and a line for each that is wrong.
"""

_CONFIG: Final = """\
Print the settings in force as a TOML file, each with where it came from. Takes the flags of
`hutch serve`; start the server with the same ones and it will use just these settings.
"""

_HASH: Final = """\
Read a password (without echo, or from a pipe) and print its salted hash for the users file, in
RabbitMQ's form or as argon2id. The same password gives another hash each time.

example of a users file:
  [[users]]
  name = "app"
  password_hash = "…what this command printed…"
  hashing_algorithm = "rabbit_password_hashing_sha256"
"""


@dataclass(frozen=True)
class _Command:
    summary: str
    description: str
    epilog: str
    add_arguments: Callable[[Parser, Sequence[str]], None]
    run: Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process.

    Returns:
        0 when all went well, 1 when the server could not do its work, 2 when the command line or
        the configuration is wrong.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(given)
    options, surplus = parser.parse_known_args(given)
    if surplus:  # said with the usage of the command that has no such argument
        getattr(options, "parser", parser).refuse(surplus)
    if options.command is None:
        parser.print_help()
        return EXIT_CONFIG
    try:
        return _COMMANDS[options.command].run(options)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _parser(given: Sequence[str]) -> Parser:
    parser = Parser(
        "hutch", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.pointer = _pointer
    parser.add_argument("--version", action="version", version=f"hutch {own_version()}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    for name, command in _COMMANDS.items():
        subparser = commands.add_parser(
            name,
            help=command.summary,
            description=command.description,
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        subparser.set_defaults(parser=subparser)
        if name in given:  # describing the flags takes the settings, and those take time to import
            command.add_arguments(subparser, given)
    return parser


def _pointer(word: str) -> str:
    """Return the command of `hutch ctl` that was meant, or the step to take in its place."""
    from gateway.management.ctl.ctl import COMMANDS  # noqa: PLC0415 (see above)
    from gateway.management.ctl.pointers import pointer_of  # noqa: PLC0415

    name = word.replace("-", "_")
    return f"it is `hutch ctl {name}`" if name in COMMANDS else pointer_of(name)


# ------------------------------------------------------------------------------ serve and config


def _add_flags(parser: argparse.ArgumentParser, _given: Sequence[str]) -> None:
    from gateway.settings.sources import FLAGS  # noqa: PLC0415 (see above)

    add_flags(parser, FLAGS)


def _add_config_flags(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    parser.add_argument("--reference", action="store_true", help="describe every setting instead")
    _add_flags(parser, given)


def _serve(options: argparse.Namespace) -> int:
    from gateway.settings.sources import FLAGS  # noqa: PLC0415

    return run_server(options, FLAGS, _server)


def _server() -> "MakeServer":
    from gateway.serving.backend import server  # noqa: PLC0415

    return server


def _config(options: argparse.Namespace) -> int:
    from gateway.settings import page  # noqa: PLC0415
    from gateway.settings.errors import ConfigError  # noqa: PLC0415
    from gateway.settings.sources import FLAGS, load  # noqa: PLC0415

    if options.reference:
        print(page.reference(), end="")
        return 0
    try:
        print(page.effective(load(flags_of(options, FLAGS), options.config)), end="")
    except ConfigError as error:
        return complain(str(error), EXIT_CONFIG)
    return 0


# --------------------------------------------------------------------------------- hash-password


def _add_hash_flags(parser: argparse.ArgumentParser, _given: Sequence[str]) -> None:
    parser.add_argument(
        "--algorithm",
        choices=("sha256", "sha512", "md5", "argon2id"),
        default="sha256",
        help="sha256 (default), sha512 and md5 are RabbitMQ's; argon2id is slow to guess",
    )


def _hash_password(options: argparse.Namespace) -> int:
    from gateway.broker.access.passwords import Algorithm, PasswordHash  # noqa: PLC0415
    from gateway.management.ctl.grammar import WrongUse  # noqa: PLC0415
    from gateway.management.ctl.password import read_password  # noqa: PLC0415

    try:
        password = read_password()
    except WrongUse as error:
        return complain(str(error), EXIT_FAILED)
    print(PasswordHash.of(password, Algorithm[options.algorithm.upper()]))
    return 0


# ------------------------------------------------------------------------------- administration


def _add_ctl(parser: Parser, given: Sequence[str]) -> None:
    from gateway.management.ctl import ctl  # noqa: PLC0415

    ctl.add_arguments(parser, given)


def _ctl(options: argparse.Namespace) -> int:
    from gateway.management.ctl import ctl  # noqa: PLC0415

    return ctl.run(options)


def _add_import(parser: argparse.ArgumentParser, _given: Sequence[str]) -> None:
    from gateway.management.ctl import ctl, import_export  # noqa: PLC0415

    ctl.add_command(parser, import_export.import_definitions, ctl.JSON)


def _add_export(parser: argparse.ArgumentParser, _given: Sequence[str]) -> None:
    from gateway.management.ctl import ctl, import_export  # noqa: PLC0415

    ctl.add_command(parser, import_export.export_definitions)


def _add_bridge(parser: argparse.ArgumentParser, _given: Sequence[str]) -> None:
    from gateway.commands import bridge  # noqa: PLC0415

    parser.description, parser.epilog = bridge.DESCRIPTION, bridge.EPILOG
    bridge.add_arguments(parser)


def _bridge(options: argparse.Namespace) -> int:
    from gateway.commands import bridge  # noqa: PLC0415

    return bridge.run(options)


def _add_store(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    from gateway.commands import store  # noqa: PLC0415

    store.add_arguments(parser, given)


def _store(options: argparse.Namespace) -> int:
    from gateway.commands import store  # noqa: PLC0415

    return store.run(options)


def _add_leave(parser: argparse.ArgumentParser, _given: Sequence[str]) -> None:
    from gateway.commands import leave  # noqa: PLC0415

    parser.description = leave.DESCRIPTION
    leave.add_arguments(parser)


def _leave(options: argparse.Namespace) -> int:
    from gateway.commands import leave  # noqa: PLC0415

    return leave.run(options)


def _add_pipeline(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    from gateway.commands import pipeline  # noqa: PLC0415

    pipeline.add_arguments(parser, given)


def _pipeline(options: argparse.Namespace) -> int:
    from gateway.commands import pipeline  # noqa: PLC0415

    return pipeline.run(options)


_COMMANDS: Final = {
    "serve": _Command("start the server", _SERVE, _DURABILITY, _add_flags, _serve),
    "config": _Command(
        "show the settings in force and where they came from",
        _CONFIG,
        "",
        _add_config_flags,
        _config,
    ),
    "hash-password": _Command(
        "hash a password for the users file", _HASH, "", _add_hash_flags, _hash_password
    ),
    "ctl": _Command(
        "change a running server: users, permissions, virtual hosts, streams, …",
        "",
        "",
        _add_ctl,
        _ctl,
    ),
    "import": _Command("take over RabbitMQ's definitions", "", "", _add_import, _ctl),
    "export": _Command("write definitions for RabbitMQ", "", "", _add_export, _ctl),
    "store": _Command(
        "serve a segment store; check, mend and show one that is not served",
        "",
        "",
        _add_store,
        _store,
    ),
    "leave": _Command(
        "make a member of a cluster a plain store again",
        "",
        "",
        _add_leave,
        _leave,
    ),
    "pipeline": _Command(
        "move streams on Spark: to a lakehouse, from files, from stream to stream, a report",
        "",
        "",
        _add_pipeline,
        _pipeline,
    ),
    "bridge": _Command(
        "carry messages between queues, topics, exchanges and streams",
        "",
        "",
        _add_bridge,
        _bridge,
    ),
}

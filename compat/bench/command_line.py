"""The part of the command line that every benchmark has."""

import argparse
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat.bench.machine import REPOSITORY
from compat.broker.tree import cache_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSettings:
    """Settings of any benchmark.

    Attributes:
        hutch_command: What starts Hutch, up to and including `serve`.
        rabbitmq: Host and port of a broker that runs, None to start one.
        with_rabbitmq: Whether RabbitMQ is wanted at all.
        data: Folder for data, on the same file system as RabbitMQ's.
        page: File for the page, None to write none.
    """

    hutch_command: tuple[str, ...]
    rabbitmq: tuple[str, int] | None
    with_rabbitmq: bool
    data: Path
    page: Path | None


def shared_parser(
    program: str, description: str, titles: Mapping[str, str], *, word: str, rounds: str, page: Path
) -> argparse.ArgumentParser:
    """Return a parser of the shared arguments, for a benchmark to add its own.

    Args:
        program: Name of the module.
        description: One line.
        titles: Of all that it measures, by their names.
        word: For one of them.
        rounds: What becomes of the rounds, and how many there are by default.
        page: File that is written when all is measured.
    """
    width = max(map(len, titles))
    names = "\n".join(f"  {name:{width}}  {title}" for name, title in titles.items())
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}",
        description=description,
        epilog=f"{word}s:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="small counts, one round: a smoke test, no figures")
    only = f"only this {word}; may be repeated"
    add("--only", action="append", metavar=word.upper(), choices=tuple(titles), help=only)
    add("--rounds", type=positive, metavar="N", help=f"rounds to take the {rounds}")
    add("--rabbitmq", type=_host_and_port, metavar="HOST:PORT", help="a RabbitMQ that runs already")
    add("--no-rabbitmq", action="store_true", help="leave out what needs a RabbitMQ")
    add(
        "--hutch-command",
        default=shlex.join([sys.executable, "-m", "gateway", "serve"]),
        metavar="COMMAND",
        help="what starts Hutch (default: python -m gateway serve)",
    )
    add("--data", type=Path, metavar="DIR", help="folder for data (default: beside RabbitMQ's)")
    place = page.relative_to(REPOSITORY)
    written = f"write the page there (default: {place}, when all is measured)"
    add("--page", type=Path, metavar="FILE", help=written)
    return parser


def shared_settings(options: argparse.Namespace, page: Path, *, is_partial: bool) -> dict[str, Any]:
    """Return the fields of `SharedSettings`, by their names."""
    # A part of the table, or one of smoke-test counts, must not replace the page.
    return {
        "hutch_command": tuple(shlex.split(options.hutch_command)),
        "rabbitmq": options.rabbitmq,
        "with_rabbitmq": not options.no_rabbitmq,
        "data": options.data or cache_folder(),
        "page": options.page or (None if is_partial or options.quick else page),
    }


def positive(text: str) -> int:
    """Return a number of at least 1; raises ArgumentTypeError for another."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise argparse.ArgumentTypeError("must be host:port")
    return host, int(port)

"""The command line of the benchmark."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from compat.bench.machine import REPOSITORY
from compat.bench.rows import ROW_NAMES, ROWS
from compat.bench.scale import FULL, QUICK, Scale
from compat.broker.tree import cache_folder

PAGE: Final = REPOSITORY / "docs" / "benchmarks.md"
MODES: Final = ("os", "disk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line asks for.

    Attributes:
        scale: Counts and rounds.
        rows: Rows to measure.
        modes: Hutch's durabilities to measure.
        hutch_command: What starts Hutch, up to and including `serve`.
        rabbitmq: Host and port of a broker that runs, None to start one.
        with_rabbitmq: Whether RabbitMQ is measured at all.
        data: Folder for Hutch's data, on the same file system as RabbitMQ's.
        json: File for all samples, if any.
        page: File for the page, None to write none.
    """

    scale: Scale
    rows: tuple[str, ...]
    modes: tuple[str, ...]
    hutch_command: tuple[str, ...]
    rabbitmq: tuple[str, int] | None
    with_rabbitmq: bool
    data: Path
    json: Path | None
    page: Path | None


def parse(arguments: Sequence[str]) -> Settings:
    """Read the command line; ends the process with a message if it is wrong."""
    options = _parser().parse_args(arguments)
    scale = QUICK if options.quick else FULL
    if options.rounds is not None:
        scale = replace(scale, rounds=options.rounds)
    is_partial = options.only or options.mode or options.no_hutch or options.no_rabbitmq
    return Settings(
        scale=scale,
        rows=tuple(options.only or ROW_NAMES),
        modes=() if options.no_hutch else tuple(options.mode or MODES),
        hutch_command=tuple(shlex.split(options.hutch_command)),
        rabbitmq=options.rabbitmq,
        with_rabbitmq=not options.no_rabbitmq,
        data=options.data or cache_folder(),
        json=options.json,
        # A part of the table, or one of smoke-test counts, must not replace the page.
        page=options.page or (None if is_partial or options.quick else PAGE),
    )


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {row.name:18}{row.title}" for row in ROWS)
    parser = argparse.ArgumentParser(
        prog="python -m compat.bench",
        description="Measure Hutch and a real RabbitMQ in turn, and print medians and ratios.",
        epilog=f"rows:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="small counts, one round: a smoke test, no figures")
    add(
        "--only",
        action="append",
        metavar="ROW",
        choices=ROW_NAMES,
        help="only this row; may be repeated",
    )
    add("--mode", action="append", choices=MODES, help="only this durability of Hutch")
    add(
        "--rounds",
        type=_positive,
        metavar="N",
        help=f"rounds to take the median of (default: {FULL.rounds})",
    )
    add("--rabbitmq", type=_host_and_port, metavar="HOST:PORT", help="a RabbitMQ that runs already")
    add("--no-hutch", action="store_true", help="measure RabbitMQ alone")
    add("--no-rabbitmq", action="store_true", help="measure Hutch alone, without ratios")
    add(
        "--hutch-command",
        default=shlex.join([sys.executable, "-m", "gateway", "serve"]),
        metavar="COMMAND",
        help="what starts Hutch (default: python -m gateway serve)",
    )
    add(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder for Hutch's data (default: beside RabbitMQ's)",
    )
    add("--json", type=Path, metavar="FILE", help="write every sample of every round there")
    add(
        "--page",
        type=Path,
        metavar="FILE",
        help="write the page there (default: docs/benchmarks.md, when all is measured)",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise argparse.ArgumentTypeError("must be host:port")
    return host, int(port)

"""The command line of the benchmark."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from compat.bench.machine import REPOSITORY
from compat.broker.tree import cache_folder
from compat.spark_bench.scale import FULL, QUICK, Scale
from compat.spark_bench.work import Work
from compat.spark_bench.works import WORK_NAMES, WORKS

PAGE: Final = REPOSITORY / "docs" / "benchmarks-spark.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings from the command line.

    Attributes:
        scale: Counts and rounds.
        works: Those to measure.
        hutch_command: What starts Hutch, up to and including `serve`.
        rabbitmq: Host and port of a broker that runs, None to start one.
        with_rabbitmq: Whether RabbitMQ is wanted at all.
        data: Folder for the data of Hutch and for Parquet files.
        page: File for the page, None to write none.
    """

    scale: Scale
    works: tuple[Work, ...]
    hutch_command: tuple[str, ...]
    rabbitmq: tuple[str, int] | None
    with_rabbitmq: bool
    data: Path
    page: Path | None


def parse(arguments: Sequence[str]) -> Settings:
    """Read the command line; ends the process with a message if it is wrong."""
    options = _parser().parse_args(arguments)
    scale = QUICK if options.quick else FULL
    if options.rounds is not None:
        scale = replace(scale, rounds=options.rounds)
    if options.rows is not None:
        scale = replace(scale, rows=options.rows)
    is_partial = options.only or options.no_rabbitmq or options.rows
    return Settings(
        scale=scale,
        works=tuple(work for work in WORKS if work.name in (options.only or WORK_NAMES)),
        hutch_command=tuple(shlex.split(options.hutch_command)),
        rabbitmq=options.rabbitmq,
        with_rabbitmq=not options.no_rabbitmq,
        data=options.data or cache_folder(),
        # A part of the table, or one of smoke-test counts, must not replace the page.
        page=options.page or (None if is_partial or options.quick else PAGE),
    )


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {work.name:18}{work.title}" for work in WORKS)
    parser = argparse.ArgumentParser(
        prog="python -m compat.spark_bench",
        description="Measure Spark on streams against its own Parquet files, and print ratios.",
        epilog=f"works:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="few rows, one round: a smoke test, no figures")
    add(
        "--only",
        action="append",
        metavar="WORK",
        choices=WORK_NAMES,
        help="only this work; may be repeated",
    )
    add(
        "--rounds",
        type=_positive,
        metavar="N",
        help=f"rounds to take the best of (default: {FULL.rounds})",
    )
    add(
        "--rows",
        type=_positive,
        metavar="N",
        help=f"messages of 100 B in one measurement (default: {FULL.rows:,})",
    )
    add("--rabbitmq", type=_host_and_port, metavar="HOST:PORT", help="a RabbitMQ that runs already")
    add("--no-rabbitmq", action="store_true", help="leave out what needs a RabbitMQ")
    add(
        "--hutch-command",
        default=shlex.join([sys.executable, "-m", "gateway", "serve"]),
        metavar="COMMAND",
        help="what starts Hutch (default: python -m gateway serve)",
    )
    add("--data", type=Path, metavar="DIR", help="folder for data (default: beside RabbitMQ's)")
    add(
        "--page",
        type=Path,
        metavar="FILE",
        help="write the page there (default: docs/benchmarks-spark.md, when all is measured)",
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

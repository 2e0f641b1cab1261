"""The command line of the benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from compat.bench.command_line import SharedSettings, positive, shared_parser, shared_settings
from compat.bench.machine import REPOSITORY
from compat.spark_bench.scale import FULL, QUICK, Scale
from compat.spark_bench.waits import Wait
from compat.spark_bench.work import Work
from compat.spark_bench.works import TITLES, WAITS, WORKS

PAGE: Final = REPOSITORY / "docs" / "benchmarks-spark.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SharedSettings):
    """Settings from the command line.

    Attributes:
        scale: Counts and rounds.
        works: Those to measure.
        waits: The same.
    """

    scale: Scale
    works: tuple[Work, ...]
    waits: tuple[Wait, ...]


def parse(arguments: Sequence[str]) -> Settings:
    """Read the command line; ends the process with a message if it is wrong."""
    parser = shared_parser(
        "compat.spark_bench",
        "Measure Spark on streams against its own Parquet files, and print ratios.",
        TITLES,
        word="row",
        rounds=f"best of (default: {FULL.rounds})",
        page=PAGE,
    )
    rows = f"messages of 100 B in one measurement (default: {FULL.rows:,})"
    parser.add_argument("--rows", type=positive, metavar="N", help=rows)
    options = parser.parse_args(arguments)
    scale = QUICK if options.quick else FULL
    if options.rounds is not None:
        scale = replace(scale, rounds=options.rounds)
    if options.rows is not None:
        scale = replace(scale, rows=options.rows)
    is_partial = options.only or options.no_rabbitmq or options.rows
    chosen = options.only or TITLES
    return Settings(
        **shared_settings(options, PAGE, is_partial=bool(is_partial)),
        scale=scale,
        works=tuple(work for work in WORKS if work.name in chosen),
        waits=tuple(wait for wait in WAITS if wait.name in chosen),
    )

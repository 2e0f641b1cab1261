"""The command line of the benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from compat.bench.command_line import SharedSettings, shared_parser, shared_settings
from compat.bench.machine import REPOSITORY
from compat.bench.rows import ROW_NAMES, ROWS
from compat.bench.scale import FULL, QUICK, Scale

PAGE: Final = REPOSITORY / "docs" / "benchmarks.md"
MODES: Final = ("os", "disk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SharedSettings):
    """Settings of the command line.

    Attributes:
        scale: Counts and rounds.
        rows: Rows to measure.
        modes: Hutch's durabilities to measure.
        json: File for all samples, if any.
        with_pravega: Whether Pravega is wanted at all.
    """

    scale: Scale
    rows: tuple[str, ...]
    modes: tuple[str, ...]
    json: Path | None
    with_pravega: bool


def parse(arguments: Sequence[str]) -> Settings:
    """Read the command line; ends the process with a message if it is wrong."""
    parser = shared_parser(
        "compat.bench",
        "Measure Hutch and a real RabbitMQ in turn, and print medians and ratios.",
        {row.name: row.title for row in ROWS},
        word="row",
        rounds=f"median of (default: {FULL.rounds})",
        page=PAGE,
    )
    add = parser.add_argument
    add("--mode", action="append", choices=MODES, help="only this durability of Hutch")
    add("--no-hutch", action="store_true", help="measure RabbitMQ alone")
    add("--no-pravega", action="store_true", help="leave Pravega out")
    add("--json", type=Path, metavar="FILE", help="write every sample of every round there")
    options = parser.parse_args(arguments)
    scale = QUICK if options.quick else FULL
    if options.rounds is not None:
        scale = replace(scale, rounds=options.rounds)
    is_partial = options.only or options.mode or options.no_hutch or options.no_rabbitmq
    is_partial = is_partial or options.no_pravega
    return Settings(
        **shared_settings(options, PAGE, is_partial=bool(is_partial)),
        scale=scale,
        rows=tuple(options.only or ROW_NAMES),
        modes=() if options.no_hutch else tuple(options.mode or MODES),
        json=options.json,
        with_pravega=not options.no_pravega,
    )

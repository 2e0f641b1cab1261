"""The table of figures, the verdicts and the page `docs/benchmarks-spark.md`, as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from compat.bench.report import NOTHING, aligned, short
from compat.spark_bench.measuring import Figures
from compat.spark_bench.waits import ROUNDS_MAX, Wait, Waited
from compat.spark_bench.work import Figure, Target, Work

DISTURBED_MARK: Final = "~"
LEGEND: Final = (
    "rows/s are those of the fastest round, CPU is that of the cheapest: seconds per million rows, "
    "of the JVM, of its Python processes and of the server. "
    f"{DISTURBED_MARK} other processes used a quarter of a core or more meanwhile."
)
INTRODUCTION: Final = (
    "Spark reads and writes streams of a server on the same machine, in `local[2]`; both sides of "
    "a row are warm and are measured in turn. Best of {rounds} rounds, of {rows:,} messages of "
    "100 B, a quarter as many of 1 KiB or with properties, half as many in sub-batches. All is in "
    "the page cache."
)
WAITS_INTRODUCTION: Final = (
    "Milliseconds; medians of {rounds} rounds. Publishers and server are on the same machine, with "
    "durability `os`."
)
FIGURE_TITLES: Final[dict[Figure, str]] = {"rate": "rows/s", "cpu": "CPU"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that a report says.

    Attributes:
        figures: By work, of its sides.
        waits: The results of each wait.
        rounds: Of how many measurements.
        rows: Of 100 B in each.
        machine: What the figures depend on, by title.
        command: The command that made it.
        date: When, as year, month and day.
        failures: What could not be measured.
        skipped: What was left out, and why.
    """

    figures: Sequence[tuple[Work, Sequence[Figures]]]
    waits: Sequence[tuple[Wait, Waited]]
    rounds: int
    rows: int
    machine: Mapping[str, str]
    command: str
    date: str
    failures: Sequence[str]
    skipped: Sequence[str]


def table_of(run: Run) -> list[str]:
    """Return the lines of the table, in Markdown that can be read as it stands."""
    lines = [["work", "side", "rows/s", "CPU", "JVM", "Python", "server", "rows/s ÷", "CPU ÷"]]
    for work, sides in run.figures:
        for index, side in enumerate(sides):
            cpu = side.cpu
            numbers = [cpu.job, cpu.jvm, cpu.python, cpu.server]
            ratios = [NOTHING, NOTHING]
            if index == 0 and len(sides) > 1:
                ratios = [f"{ratio_of(sides, figure):.2f}" for figure in FIGURE_TITLES]
            rate = short(side.rate) + DISTURBED_MARK * side.is_disturbed
            title = work.title if index == 0 else ""
            lines.append([title, side.title, rate, *map(short, numbers), *ratios])
    return aligned(lines)


def ratio_of(sides: Sequence[Figures], figure: Figure) -> float:
    """Return Hutch's figure over the other side's."""
    ours, other = sides[0], sides[1]
    if figure == "rate":
        return ours.rate / other.rate
    return ours.cpu.job / max(other.cpu.job, 1e-9)


def waits_of(run: Run) -> list[str]:
    """Return the lines of the table of waits, likewise."""
    lines = [["wait", "figure", "Hutch, ms", "other", "ms", "÷"]]
    for wait, waited in run.waits:
        took = waited.took
        ours = short(took.ours_ms) + DISTURBED_MARK * waited.is_disturbed
        other, ratio = NOTHING, NOTHING
        if took.other_ms is not None and waited.ratio is not None:
            other, ratio = short(took.other_ms), f"{waited.ratio:.2f}"
        lines.append([wait.title, wait.figure, ours, wait.other or NOTHING, other, ratio])
    return aligned(lines)


def verdicts_of(run: Run) -> list[str]:
    """Return the lines of the table of targets: what is required, measured, whether reached."""
    lines = [["target", "required", "measured", "reached"]]
    for work, sides in run.figures:
        if len(sides) > 1:
            lines += [_verdict(work, sides, target) for target in work.targets]
    lines += [_verdict_of_wait(wait, waited) for wait, waited in run.waits]
    return aligned(lines)


def _verdict(work: Work, sides: Sequence[Figures], target: Target) -> list[str]:
    ratio = ratio_of(sides, target.figure)
    sense = "at least" if target.figure == "rate" else "at most"
    return [
        f"{work.title}: {FIGURE_TITLES[target.figure]}, Hutch ÷ {sides[1].title}",
        f"{sense} {short(target.bound)}",
        f"{ratio:.2f}",
        "yes" if target.is_reached(ratio) else "**no**",
    ]


def _meanings(run: Run) -> list[tuple[str, str]]:
    works = [(work.title, work.meaning) for work, _ in run.figures]
    return works + [(wait.title, wait.meaning) for wait, _ in run.waits]


def _verdict_of_wait(wait: Wait, waited: Waited) -> list[str]:
    if waited.ratio is None:
        measured, unit, base = short(waited.took.ours_ms), " ms", ""
    else:
        measured, unit, base = f"{waited.ratio:.2f}", "", f", Hutch ÷ {wait.other}"
    return [
        f"{wait.title}: {wait.figure}{base}",
        f"at most {wait.bound:g}{unit}",
        f"{measured}{unit}",
        "yes" if waited.is_reached(wait.bound) else "**no**",
    ]


def page_of(run: Run) -> str:
    """Return the page `docs/benchmarks-spark.md`."""
    facts = {**run.machine, "command": f"`{run.command}`", "date": run.date}
    parts = [
        "# Benchmarks of the Spark data source",
        "Written by `make bench-spark`; not edited by hand.",
        INTRODUCTION.format(rounds=run.rounds, rows=run.rows),
        "\n".join(f"- {title}: {text}" for title, text in facts.items()),
        "## Figures",
        "\n".join(table_of(run)),
        LEGEND,
        "## Waits",
        WAITS_INTRODUCTION.format(rounds=min(run.rounds, ROUNDS_MAX)),
        "\n".join(waits_of(run)),
        "## Targets",
        "\n".join(verdicts_of(run)),
        "## What each row means",
        "\n".join(f"- **{title}**: {meaning}" for title, meaning in _meanings(run)),
    ]
    if run.skipped:
        parts += ["## Not measured", "\n".join(f"- {line}" for line in run.skipped)]
    return "\n\n".join(parts) + "\n"

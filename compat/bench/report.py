"""The table of medians, the verdicts and the page `docs/benchmarks.md`, as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from compat.bench.jobs import Figures
from compat.bench.row import Metric, Row
from compat.bench.rows import ROWS
from compat.bench.servers import (
    ACKNOWLEDGING,
    CLUSTER,
    HUTCH_DISK,
    HUTCH_OS,
    NATS,
    PRAVEGA,
    RABBITMQ,
    TITLES,
    ServerName,
)
from compat.bench.targets import TARGETS, Medians, Target, Verdict, judge

# From this share of its time on, the generator is slower than the server.
BOTTLENECK_SHARE: Final = 0.9
# From this share of one core on, other work on the machine disturbs the figures.
DISTURBED_SHARE: Final = 0.25
BOTTLENECK_MARK: Final = "*"
DISTURBED_MARK: Final = "~"
# Work and figure, or target and bound; the others are numbers and stand right.
NAME_COLUMNS: Final = 2
NOTHING: Final = "-"
# By the reference of a table: whose figures are divided, what that is called there, and by whose.
RATIOS: Final[Mapping[ServerName, Sequence[tuple[ServerName, str, ServerName]]]] = {
    RABBITMQ: ((HUTCH_OS, "`os`", RABBITMQ), (HUTCH_DISK, "`disk`", RABBITMQ)),
    PRAVEGA: (
        *((HUTCH_OS, "`os`", PRAVEGA), (HUTCH_DISK, "`disk`", PRAVEGA)),
        *((HUTCH_OS, "`os`", ACKNOWLEDGING), (HUTCH_DISK, "`disk`", ACKNOWLEDGING)),
    ),
    NATS: ((CLUSTER, "cluster", HUTCH_DISK), (CLUSTER, "cluster", NATS)),
}
LEGEND: Final = (
    f"{BOTTLENECK_MARK} the generator used 90 % of its time or more: it is the bottleneck, and the "
    f"server could do more. {DISTURBED_MARK} other processes used a quarter of a core or more "
    "meanwhile. A ratio of messages/s is better when it is higher, all others when they are lower."
)


INTRODUCTION: Final = (
    "Hutch and RabbitMQ on one machine, measured in turn by the same generator, and Pravega for "
    "its own protocol; medians of {rounds} rounds. All servers but those of that protocol, and "
    "clusters, run during the whole measurement, and those that are not measured are idle."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that a report says.

    Attributes:
        medians: By row and server.
        rounds: Of how many measurements.
        machine: What the figures depend on, by title.
        versions: What each server says it is, by its title.
        command: The command that made it.
        date: When, as year, month and day.
        fsync_ms: A small fsync on the data's disk.
        failures: Measurements that could not be made.
        skipped: Rows that cannot be measured here, with the reason.
        busy_cores: Cores that other processes used before the first measurement.
        plots: Files of pictures beside the page, and the text that stands for each.
    """

    medians: Medians
    rounds: int
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    command: str
    date: str
    fsync_ms: float
    failures: Sequence[str]
    skipped: Sequence[str] = ()
    busy_cores: float = 0.0
    plots: Mapping[str, str] = field(default_factory=dict)


def tables_of(medians: Medians) -> list[str]:
    """Return the lines of a table for each server that Hutch is compared with."""
    tables = [table_of(medians, reference) for reference in RATIOS]
    return "\n\n".join("\n".join(table) for table in tables if table).splitlines()


def table_of(medians: Medians, reference: ServerName = RABBITMQ) -> list[str]:
    """Return the lines of a table, in Markdown that can be read as it stands; none without rows."""
    rows = [row for row in ROWS if row.name in medians and row.reference == reference]
    if not rows:
        return []
    servers = [name for name in TITLES if any(name in medians[row.name] for row in rows)]
    ratios = [each for each in RATIOS[reference] if {each[0], each[2]} <= set(servers)]
    heads = [
        *("work", "figure"),
        *(TITLES[name] for name in servers),
        *(f"{title} ÷ {TITLES[base]}" for _, title, base in ratios),
    ]
    lines = [heads]
    for row in rows:
        for index, metric in enumerate(row.metrics):
            figures = medians[row.name]
            cells = [row.title if index == 0 else "", metric.title]
            cells += [cell(figures.get(name, {}), metric) for name in servers]
            cells += [ratio(figures, metric, name, base) for name, _, base in ratios]
            lines.append(cells)
    return aligned(lines)


def cell(figures: Figures, metric: Metric) -> str:
    """Return a figure as the table prints it, with its marks."""
    value = figures.get(metric.key)
    if value is None:
        return NOTHING
    is_bottleneck = metric.key == "rate" and figures.get("generator_share", 0.0) >= BOTTLENECK_SHARE
    marks = BOTTLENECK_MARK * is_bottleneck + DISTURBED_MARK * is_disturbed(figures)
    return short(value / metric.unit_size) + marks


def ratio(
    row: Mapping[ServerName, Figures], metric: Metric, name: ServerName, reference: ServerName
) -> str:
    """Return a server's figure over the reference's."""
    value = row.get(name, {}).get(metric.key)
    base = row.get(reference, {}).get(metric.key)
    return NOTHING if value is None or not base else f"{value / base:.2f}"


def short(value: float) -> str:
    """Return a number with three digits that matter."""
    rounded = float(f"{value:.3g}")
    for size, letter in ((1_000_000, " M"), (1_000, " k")):
        if abs(rounded) >= size:
            return f"{rounded / size:.3g}{letter}"
    return f"{rounded:.3g}"


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as a Markdown table whose columns line up."""
    widths = [max(len(row[column]) for row in lines) for column in range(len(lines[0]))]

    def line_of(cells: Sequence[str]) -> str:
        padded = [
            text.ljust(width) if column < NAME_COLUMNS else text.rjust(width)
            for column, (text, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * width if column < NAME_COLUMNS else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return [line_of(lines[0]), line_of(rule), *(line_of(row) for row in lines[1:])]


def verdicts_of(medians: Medians, fsync_ms: float) -> list[str]:
    """Return a table of the targets of measured rows: required, measured, whether reached."""
    lines = [["target", "required", "measured", "reached"]]
    for target in TARGETS:
        if target.row not in medians:
            continue
        verdict = judge(target, medians, fsync_ms=fsync_ms)
        unit, times = (metric_of(target).unit_size, "") if target.base is None else (1, " times")
        lines.append(
            [
                title_of(target),
                f"{target.sense} {short(target.bound / unit)}{times}",
                NOTHING if verdict.value is None else short(verdict.value / unit),
                _word_of(verdict, fsync_ms),
            ]
        )
    return aligned(lines)


def warnings_of(run: Run) -> list[str]:
    """Return a sentence for each sign that the machine was not quiet; none if it was."""
    found = []
    if run.busy_cores >= DISTURBED_SHARE:
        found.append(busy_warning(run.busy_cores))
    disturbed = [
        row.title
        for row in ROWS
        if any(is_disturbed(figures) for figures in run.medians.get(row.name, {}).values())
    ]
    if disturbed:
        found.append(
            f"The machine was not quiet: other processes disturbed {len(disturbed)} of "
            f"{len(run.medians)} rows, whose figures are marked {DISTURBED_MARK} and are not to be "
            f"compared: {'; '.join(disturbed)}."
        )
    return found


def busy_warning(cores: float) -> str:
    """Return the sentence for other processes that used so much before the first measurement."""
    return (
        f"The machine was not quiet before the first measurement: other processes used "
        f"{cores:.2f} cores."
    )


def is_disturbed(figures: Figures) -> bool:
    """Return whether other work on the machine is in these figures."""
    return figures.get("others_share", 0.0) >= DISTURBED_SHARE


def title_of(target: Target) -> str:
    """Return a target as a phrase."""
    base = "" if target.base is None else f" ÷ {TITLES[target.base]}"
    return f"{row_of(target).title}: {metric_of(target).title}, {TITLES[target.subject]}{base}"


def row_of(target: Target) -> Row:
    """Return the row that a target is about."""
    return next(row for row in ROWS if row.name == target.row)


def metric_of(target: Target) -> Metric:
    """Return the line of its row that a target is about."""
    return next(metric for metric in row_of(target).metrics if metric.key == target.metric)


def _word_of(verdict: Verdict, fsync_ms: float) -> str:
    if verdict.is_reached is None:
        return "not measured" if verdict.value is None else f"not asked: fsync {fsync_ms:.2f} ms"
    return "yes" if verdict.is_reached else "**no**"


def page_of(run: Run) -> str:
    """Return the page `docs/benchmarks.md`."""
    facts = {**run.versions, **run.machine, "command": f"`{run.command}`", "date": run.date}
    parts = [
        "# Benchmarks",
        "Written by `make bench`; not edited by hand.",
        *(f"**Warning.** {warning}" for warning in warnings_of(run)),
        INTRODUCTION.format(rounds=run.rounds),
        "\n".join(f"- {title}: {text}" for title, text in facts.items()),
        "## Figures",
        "\n".join(tables_of(run.medians)),
        LEGEND,
        *(f"![{text}]({name})" for name, text in run.plots.items()),
        "## Targets",
        "\n".join(verdicts_of(run.medians, run.fsync_ms)),
        "## What each row means",
        "\n".join(f"- **{row.title}**: {row.meaning}" for row in _without_repeats(run.medians)),
    ]
    missing = [*run.failures, *run.skipped]
    if missing:
        parts += ["## Not measured", "\n".join(f"- {line}" for line in missing)]
    return "\n\n".join(parts) + "\n"


def _without_repeats(medians: Medians) -> list[Row]:
    seen: dict[str, Row] = {}
    for row in ROWS:
        if row.name in medians:
            first = seen.setdefault(row.meaning, row)
            if first is not row:
                title = f"{first.title}; {row.title}"
                seen[row.meaning] = Row(first.name, title, first.metrics, first.meaning)
    return list(seen.values())

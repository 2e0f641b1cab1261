"""The plots of `docs/benchmarks.md`, drawn by matplotlib (the extra `bench`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from compat.bench.ordinary_rows import PACES, STREAMS
from compat.bench.servers import HUTCH_DISK, HUTCH_OS, RABBITMQ, TITLES, ServerName
from compat.bench.targets import Medians

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LATENCY: Final = "benchmarks-latency.svg"
THROUGHPUT: Final = "benchmarks-streams.svg"
# The texts that stand for the plots where there are no pictures.
TEXTS: Final = {
    LATENCY: "Latency from publish to delivery against the rate, for Hutch and RabbitMQ",
    THROUGHPUT: "Messages a second against the number of streams, for Hutch and RabbitMQ",
}
# Colours that people with any sight of colours tell apart.
COLOURS: Final[dict[ServerName, str]] = {
    HUTCH_OS: "#0072b2",
    HUTCH_DISK: "#009e73",
    RABBITMQ: "#d55e00",
}
LATENCIES: Final = (("p50", "-"), ("p99", "--"))
# One stream is the ingest of the same messages, which has a larger window.
ONE_STREAM: Final = "ingest_100x100"
PER_FRAME: Final = 100
SIZE_INCHES: Final = (7, 4)


def draw(medians: Medians, folder: Path) -> list[str]:
    """Write the plots for which there are figures; return the names of the files.

    Raises:
        ImportError: matplotlib is missing; the extra `bench` has it.
    """
    rates = {pace: f"paced_{pace}" for pace in PACES}
    streams = {1: ONE_STREAM}
    streams |= {count: f"streams_{count}x{each}" for count, each in STREAMS if each == PER_FRAME}
    written = []
    if all(row in medians for row in rates.values()):
        _draw(folder / LATENCY, "messages/s", "µs from publish to delivery", rates, medians)
        written.append(LATENCY)
    if all(row in medians for row in streams.values()):
        label = f"messages/s, 100 B, {PER_FRAME} per frame"
        _draw(folder / THROUGHPUT, "streams", label, streams, medians, (("rate", "-"),))
        written.append(THROUGHPUT)
    return written


def _draw(
    path: Path,
    across: str,
    upward: str,
    rows: dict[int, str],
    medians: Medians,
    keys: tuple[tuple[str, str], ...] = LATENCIES,
) -> None:
    """Draw figures of rows against a number, on scales of powers of ten."""
    # Objects of this plot alone, not of pyplot, which keeps a state for all.
    import matplotlib as mpl  # noqa: PLC0415 - only `make bench` has it
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    for server in COLOURS:
        for key, style in keys:
            _line(axes, server, key, style, rows, medians)
    axes.set(xscale="log", yscale="log", xlabel=across, ylabel=upward)
    axes.set_xticks(list(rows), [f"{number:,}" for number in rows])
    axes.minorticks_off()
    axes.grid(visible=True, alpha=0.3)
    figure.legend(loc="outside right upper")
    # Without a date and with names of a fixed salt, the same figures give the same file.
    with mpl.rc_context({"svg.hashsalt": path.name}):
        figure.savefig(path, metadata={"Date": None})


def _line(
    axes: Axes, server: ServerName, key: str, style: str, rows: dict[int, str], medians: Medians
) -> None:
    points = {
        number: medians[row][server][key]
        for number, row in rows.items()
        if key in medians[row].get(server, {})
    }
    if points:
        title = TITLES[server].replace("`", "")
        label = title if key == "rate" else f"{title}, {key}"
        across, upward = list(points), list(points.values())
        axes.plot(across, upward, style, color=COLOURS[server], label=label, marker="o")

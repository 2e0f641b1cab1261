"""The whole run: every step on every server in turn, A B C A B C …, and the medians of it."""

import statistics
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from compat.bench.bridge_steps import BRIDGE_STEPS
from compat.bench.cluster_steps import CLUSTER_STEPS
from compat.bench.errors import BenchError
from compat.bench.jobs import Figures
from compat.bench.mewbase_steps import MEWBASE_STEPS
from compat.bench.ordinary_steps import ORDINARY_STEPS
from compat.bench.perf_test import PERF_TEST_STEPS
from compat.bench.quiet import await_quiet
from compat.bench.scale import Scale
from compat.bench.servers import Server, ServerName
from compat.bench.steps import STEPS as STREAM_STEPS
from compat.bench.steps import Results, Step
from compat.bench.wire_steps import WIRE_STEPS

STEPS: Final = (
    *(*STREAM_STEPS, *ORDINARY_STEPS, *PERF_TEST_STEPS),
    *(*BRIDGE_STEPS, *MEWBASE_STEPS, *WIRE_STEPS, *CLUSTER_STEPS),
)
# Tells a person how far the run is: one line of text.
Report = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """Result of a run.

    Attributes:
        samples: By row and server, the figures of each round in order.
        failures: A line for each measurement that could not be made.
    """

    samples: dict[str, dict[ServerName, list[Figures]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, server: ServerName, results: Results) -> None:
        """Take the figures of one round of one server."""
        for row, figures in results.items():
            self.samples.setdefault(row, {}).setdefault(server, []).append(figures)

    def medians(self) -> dict[str, dict[ServerName, Figures]]:
        """Return the median of every figure over the rounds."""
        return {
            row: {server: median_figures(rounds) for server, rounds in servers.items()}
            for row, servers in self.samples.items()
        }


def median_figures(rounds: Sequence[Figures]) -> Figures:
    """Return each figure's median over the rounds that have it."""
    keys = {key for figures in rounds for key in figures}
    return {
        key: statistics.median(figures[key] for figures in rounds if key in figures)
        for key in sorted(keys)
    }


def measure(
    servers: Sequence[Server], scale: Scale, wanted: Collection[str], report: Report
) -> Outcome:
    """Start the servers, and measure the wanted rows on each in turn.

    A measurement that fails is noted, the others go on.

    Raises:
        BenchError: A server does not start.
    """
    outcome = Outcome()
    for server in servers:
        server.start()
    time.sleep(scale.settle_s)
    rows = set(wanted)
    for step in STEPS:
        for part in step.parts(scale):
            chosen = rows.intersection(part)
            if chosen:
                _take_turns(servers, step, scale, chosen, outcome, report)
    return outcome


def _take_turns(
    servers: Sequence[Server],
    step: Step,
    scale: Scale,
    rows: set[str],
    outcome: Outcome,
    report: Report,
) -> None:
    for number in range(1 if step.once else scale.rounds):
        for server in servers:
            if server.name not in step.servers:
                continue
            results = _measure_one(server, step, scale, rows, outcome)
            for row, figures in results.items():
                report(f"round {number + 1}  {server.name:10}  {row:23}  {_line_of(figures)}")
            if not scale.is_quick:
                await_quiet(servers)


def _measure_one(
    server: Server, step: Step, scale: Scale, rows: set[str], outcome: Outcome
) -> Results:
    try:
        # A server that a former step brought down is started again.
        server.start()
        results = step.run(server, scale, rows)
    except (BenchError, OSError) as error:
        outcome.failures.append(f"{server.name}, {' '.join(sorted(rows))}: {error}")
        return {}
    outcome.add(server.name, results)
    return results


def _line_of(figures: Figures) -> str:
    return " ".join(f"{key}={value:.6g}" for key, value in figures.items())

"""A wait: a row whose figures are milliseconds; medians of its rounds count."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from compat.spark_bench.measuring import DISTURBED_SHARE
from compat.spark_bench.usage import Meter
from compat.spark_bench.work import Servers

if TYPE_CHECKING:
    from compat.spark_bench.scale import Scale
    from compat.spark_bench.stage import Stage

ROUNDS_MAX: Final = 3


class Took(NamedTuple):
    """Milliseconds of Hutch, and of the other side; None if there is no other."""

    ours_ms: float
    other_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Things that a wait needs: the servers, the counts, and Spark if it `needs_spark`."""

    servers: Servers
    scale: "Scale"
    stage: "Stage | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One row of the table of waits.

    Attributes:
        name: On the command line.
        title: In the table.
        figure: Of either side.
        other: What the other side is; empty if there is none.
        bound: The most that Hutch's figure may be: times the other side's, or in milliseconds.
        meaning: In a few sentences.
        measure: Measures both sides once.
        needs_spark: Whether Spark takes part.
    """

    name: str
    title: str
    figure: str
    bound: float
    meaning: str
    measure: Callable[[Ground], Took]
    other: str = ""
    needs_spark: bool = False


@dataclass(frozen=True, slots=True)
class Waited:
    """Results of the rounds of a wait: medians.

    Attributes:
        took: Of both sides.
        is_disturbed: Whether others used a quarter of a core or more.
    """

    took: Took
    is_disturbed: bool

    @property
    def ratio(self) -> float | None:
        """Hutch's figure over the other side's; None without another side."""
        return None if self.took.other_ms is None else self.took.ours_ms / self.took.other_ms

    def is_reached(self, bound: float) -> bool:
        """Return whether the bound is kept."""
        return (self.took.ours_ms if self.ratio is None else self.ratio) <= bound


def measure_wait(wait: Wait, ground: Ground, rounds: int, say: Callable[[str], None]) -> Waited:
    """Measure the rounds of a wait."""
    rounds = min(rounds, ROUNDS_MAX)
    taken: list[Took] = []
    others: list[float] = []
    for number in range(rounds):
        os.sync()  # what was written before is not this round's
        began = time.perf_counter()
        with Meter(os.getpid(), ground.servers.hutch.pids) as meter:
            took = wait.measure(ground)
        seconds = time.perf_counter() - began
        used = meter.used
        # The servers are children of this process, and counted twice.
        of_others = max(0.0, used.machine - used.jvm - used.python)
        taken.append(took)
        others.append(of_others / seconds)
        say(
            f"  round {number + 1}  {_line_of(wait, took)}  {seconds:.1f} s  CPU s: server "
            f"{used.server:.2f}, all of the bench {used.jvm + used.python:.2f}, others "
            f"{of_others:.2f}; load {os.getloadavg()[0]:.1f}"
        )
    return Waited(median_of(taken), statistics.median(others) >= DISTURBED_SHARE)


def median_of(taken: Sequence[Took]) -> Took:
    """Return the medians of both sides."""
    other = [took.other_ms for took in taken if took.other_ms is not None]
    ours_ms = statistics.median(took.ours_ms for took in taken)
    return Took(ours_ms, statistics.median(other) if other else None)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of all does not exceed; there is at least one."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _line_of(wait: Wait, took: Took) -> str:
    line = f"Hutch {took.ours_ms:.2f} ms"
    return line if took.other_ms is None else f"{line}, {wait.other} {took.other_ms:.2f} ms"

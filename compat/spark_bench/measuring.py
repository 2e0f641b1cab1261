"""A work is run: each side warmed up, then all sides in turn, and the best of the rounds."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from compat.spark_bench.scale import Scale
from compat.spark_bench.usage import Meter, Usage
from compat.spark_bench.work import Side

DISTURBED_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one side."""

    seconds: float
    used: Usage

    @property
    def others_share(self) -> float:
        """Cores that the rest of the machine used."""
        return self.used.others / self.seconds


@dataclass(frozen=True, slots=True)
class Figures:
    """Results of the rounds of one side.

    Attributes:
        title: Of the side.
        rate: Rows a second, of the fastest round.
        cpu: CPU of the round that used the least, in seconds per million rows.
        is_disturbed: Whether others used a quarter of a core or more during the fastest round.
    """

    title: str
    rate: float
    cpu: Usage
    is_disturbed: bool


def measure(
    jvm: int, sides: Sequence[Side], rows: int, scale: Scale, say: Callable[[str], None]
) -> list[Figures]:
    """Run the sides in turn on the Spark with this Java process; return the figures of each."""
    for side in sides:
        for _ in range(scale.warm_ups):
            _run(jvm, side)
    samples: list[list[Sample]] = [[] for _ in sides]
    for number in range(scale.rounds):
        for side, taken in zip(sides, samples, strict=True):
            sample = _run(jvm, side)
            taken.append(sample)
            say(f"  round {number + 1}  {side.title:13} {_line_of(sample)}")
    return [figures_of(side.title, taken, rows) for side, taken in zip(sides, samples, strict=True)]


def figures_of(title: str, samples: Sequence[Sample], rows: int) -> Figures:
    """Return the best of several runs."""
    fastest = min(samples, key=lambda sample: sample.seconds)
    cheapest = min(samples, key=lambda sample: sample.used.job).used
    millions = rows / 1_000_000
    return Figures(
        title,
        rows / fastest.seconds,
        Usage(*(seconds / millions for seconds in cheapest)),
        fastest.others_share >= DISTURBED_SHARE,
    )


def _run(jvm: int, side: Side) -> Sample:
    pids = () if side.server is None else side.server.pids
    side.prepare()
    os.sync()  # what the run before has written is not this one's
    with Meter(jvm, pids) as meter:
        begun = time.perf_counter()
        side.run()
        seconds = time.perf_counter() - begun
    side.clean()
    return Sample(seconds, meter.used)


def _line_of(sample: Sample) -> str:
    used = sample.used
    return (
        f"{sample.seconds:7.2f} s  CPU s: JVM {used.jvm:.2f}, Python {used.python:.2f}, "
        f"server {used.server:.2f}, others {used.others:.2f}"
    )

"""`python -m compat.bench.against COMMIT`: the hot rows of this tree and of a commit, in turns.

The commit is built beside this tree, with the same Python and libraries, and kept. Each row is
measured on both, whose turn comes first alternately. A row that is worse than its bound is measured
once more; the exit status is 1 if it is worse again.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from compat.bench.campaign import STEPS, median_figures
from compat.bench.command_line import positive
from compat.bench.errors import BenchError
from compat.bench.hutch import Hutch
from compat.bench.jobs import Figures
from compat.bench.machine import REPOSITORY
from compat.bench.quiet import await_quiet
from compat.bench.row import CPU, P50, RATE, Metric
from compat.bench.scale import FULL, QUICK, Scale
from compat.bench.steps import Results, Step
from compat.broker.tree import cache_folder

ROWS: Final[dict[str, tuple[Metric, ...]]] = {
    "ingest_100x1": (CPU, RATE),
    "ingest_100x100": (CPU, RATE),
    "confirm_latency": (CPU, P50),
    "drain_large": (CPU, RATE),
    "fanout_10": (CPU, RATE),
    "streams_1000x20": (CPU, RATE),
}
ROUNDS: Final = 5
CPU_BOUND: Final = 0.03
"""By how much of itself the CPU of a message may grow."""
SPEED_BOUND: Final = 0.05
"""By how much of itself a rate may fall, or a latency grow."""
KEPT: Final = REPOSITORY / ".venv" / "against"

Medians = dict[str, tuple[Figures, Figures]]
"""By row, the median figures of this tree and of the commit."""


def main(arguments: Sequence[str]) -> int:
    """Measure and compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="compat.bench.against", description=__doc__)
    add = parser.add_argument
    add("commit", help="the commit to compare with")
    only = "only this row; may be repeated"
    add("--only", action="append", metavar="ROW", choices=tuple(ROWS), help=only)
    rounds = f"rounds of each row (default: {ROUNDS})"
    add("--rounds", type=positive, default=ROUNDS, metavar="N", help=rounds)
    add("--quick", action="store_true", help="small counts, one round: a smoke test, no figures")
    options = parser.parse_args(arguments)
    scale = QUICK if options.quick else replace(FULL, rounds=options.rounds)
    rows = options.only or tuple(ROWS)
    try:
        tree = built(options.commit)
        with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
            medians = measured(tree, Path(folder), scale, rows)
            again = [row for row, both in medians.items() if worse(row, *both)]
            if again and not options.quick:
                print(f"once more: {' '.join(again)}", flush=True)
                second = measured(tree, Path(folder), scale, again)
                again = [row for row, both in second.items() if worse(row, *both)]
                medians |= second
    except BenchError as error:
        print(f"bench: {error}", flush=True)
        return 1
    for line in lines_of(medians):
        print(line)
    return 1 if again and not options.quick else 0


def built(commit: str) -> Path:
    """Return the folder of a commit whose modules are compiled; build it at the first call.

    Raises:
        BenchError: There is no such commit, or it cannot be built.
    """
    try:
        revision = _said("git", "rev-parse", "--verify", f"{commit}^{{commit}}").strip()
        tree = KEPT / revision[:12]
        if not (tree / "built").exists():
            tree.mkdir(parents=True, exist_ok=True)
            print(f"building {revision[:12]}, which takes some minutes", flush=True)
            packed = tree / "tree.tar"
            _said("git", "archive", "--output", str(packed), revision)
            _said("tar", "xf", str(packed), "-C", str(tree))
            build = (sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "-j2")
            _said(*build, folder=tree)
            (tree / "built").touch()
    except subprocess.CalledProcessError as error:
        raise BenchError(f"cannot build {commit}: {error.stderr[-400:]}") from error
    return tree


def _said(*command: str, folder: Path = REPOSITORY) -> str:
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def measured(tree: Path, folder: Path, scale: Scale, rows: Collection[str]) -> Medians:
    """Measure rows on a server of this tree and one of another, in turns. Raises BenchError."""
    servers = {name: _server(name, place, folder) for name, place in _trees(tree)}
    samples: dict[str, dict[str, list[Figures]]] = {}
    try:
        for server in servers.values():
            server.start()
        for step, part in _parts(scale, rows):
            for number in range(scale.rounds):
                for name in sorted(servers, reverse=number % 2 == 0):
                    results = step.run(servers[name], scale, part)
                    for row, figures in results.items():
                        samples.setdefault(row, {}).setdefault(name, []).append(figures)
                    _say(f"round {number + 1}  {name}", results)
                if not scale.is_quick:
                    await_quiet(list(servers.values()))
    finally:
        for server in servers.values():
            server.stop()
    return {
        row: (median_figures(both["this"]), median_figures(both["that"]))
        for row, both in samples.items()
    }


def _trees(tree: Path) -> tuple[tuple[str, Path], ...]:
    return ("this", REPOSITORY), ("that", tree)


def _server(name: str, tree: Path, folder: Path) -> Hutch:
    own = Path(tempfile.mkdtemp(prefix=name, dir=folder))
    command = ("env", "-C", str(tree), sys.executable, "-m", "gateway", "serve")
    return Hutch(command, own, "os")


def _say(turn: str, results: Results) -> None:
    for row, figures in results.items():
        shown = " ".join(f"{key}={value:.6g}" for key, value in figures.items())
        print(f"{turn}  {row:16}  {shown}", flush=True)


def _parts(scale: Scale, rows: Collection[str]) -> Iterator[tuple[Step, set[str]]]:
    """Yield the steps of rows, each with those that are measured at once."""
    for step in STEPS:
        for part in step.parts(scale):
            if chosen := set(rows).intersection(part):
                yield step, chosen


def growth(metric: Metric, this: float, that: float) -> float:
    """Return by how much of that figure this one is worse; below 0 if it is better."""
    return this / that - 1 if metric.better == "lower" else 1 - this / that


def worse(row: str, this: Figures, that: Figures) -> bool:
    """Return whether a figure of a row is worse than its bound."""
    return any(
        growth(metric, this[metric.key], that[metric.key])
        > (CPU_BOUND if metric is CPU else SPEED_BOUND)
        for metric in ROWS[row]
    )


def lines_of(medians: Medians) -> list[str]:
    """Return the table."""
    lines = [f"{'row':16}  {'':26} {'this':>12} {'that':>12}  ratio"]
    for row, (this, that) in medians.items():
        for metric in ROWS[row]:
            values = this[metric.key], that[metric.key]
            ratio = f"{values[0] / values[1]:.3f}"
            lines.append(
                f"{row:16}  {metric.title:26} {values[0]:12.6g} {values[1]:12.6g}  {ratio}"
            )
    cpu = [this[CPU.key] / that[CPU.key] for this, that in medians.values()]
    lines.append(
        f"CPU of a message, geometric mean of the ratios: {statistics.geometric_mean(cpu):.3f}"
    )
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

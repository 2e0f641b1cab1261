"""`python -m compat.spark_bench`: measure, print the table, write the page.

The exit status tells whether everything could be measured, not whether the targets are reached:
figures differ between machines, and the table says it.
"""

import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException

from compat.bench.errors import BenchError
from compat.bench.hutch import Hutch
from compat.bench.machine import describe_machine, fsync_ms_of
from compat.bench.rabbitmq import Rabbitmq
from compat.broker.ways import REQUIRE_VARIABLE
from compat.spark_bench import report
from compat.spark_bench.errors import SparkBenchError
from compat.spark_bench.measuring import Figures, measure
from compat.spark_bench.settings import Settings, parse
from compat.spark_bench.stage import Stage
from compat.spark_bench.waits import Ground, Wait, Waited, measure_wait
from compat.spark_bench.work import Servers, Work
from hutch.client.errors import ClientError

FAULTS: Final = (BenchError, SparkBenchError, ClientError, PySparkException, OSError)


class Campaign:
    """One run: what it has measured, and what it could not."""

    def __init__(self, settings: Settings) -> None:
        self.figures: list[tuple[Work, list[Figures]]] = []
        self.waits: list[tuple[Wait, Waited]] = []
        self.failures: list[str] = []
        self.skipped: list[str] = []
        self._settings = settings

    def run(self, folder: Path) -> None:
        """Measure every work; one that fails is noted, the others go on.

        Raises:
            SparkBenchError: There is no Java.
            BenchError: Hutch does not start.
        """
        (folder / "hutch").mkdir()
        hutch = Hutch(self._settings.hutch_command, folder / "hutch", "os")
        stage = None
        settings, servers = self._settings, Servers(hutch, None)
        try:
            hutch.start()
            # First those that Spark's threads would disturb.
            self._measure_waits(Ground(servers=servers, scale=settings.scale))
            if not settings.works and not any(wait.needs_spark for wait in settings.waits):
                return
            stage = Stage(folder, settings.scale)
            self._measure_waits(Ground(servers=servers, scale=settings.scale, stage=stage))
            for work in settings.works:
                if work.needs_rabbitmq:
                    self._measure_beside_rabbitmq(stage, hutch, work)
                else:
                    self._measure(stage, servers, work)
        finally:
            if stage is not None:
                stage.stop()
            hutch.stop()

    def _measure_waits(self, ground: Ground) -> None:
        """Measure the waits that need Spark if there is one, else the others."""
        for wait in self._settings.waits:
            if wait.needs_spark == (ground.stage is None):
                continue
            say(wait.title)
            try:
                waited = measure_wait(wait, ground, ground.scale.rounds, say)
            except FAULTS as error:
                self._note_failure(wait.title, error)
            else:
                self.waits.append((wait, waited))

    def _note_failure(self, title: str, error: Exception) -> None:
        self.failures.append(f"{title}: {error}")
        say(f"FAILED {self.failures[-1]}")

    def _measure_beside_rabbitmq(self, stage: Stage, hutch: Hutch, work: Work) -> None:
        """Start a RabbitMQ for a work, or say why there is none."""
        rabbitmq = Rabbitmq(self._settings.rabbitmq)
        reason = "not asked for"
        try:
            if self._settings.with_rabbitmq:
                rabbitmq.start()
                reason = ""
        except BenchError as error:
            reason = str(error)
        if reason:
            is_needed = os.environ.get(REQUIRE_VARIABLE) == "1"
            (self.failures if is_needed else self.skipped).append(f"{work.title}: {reason}")
            say(f"{work.title}: skipped: {reason}")
            return
        try:
            self._measure(stage, Servers(hutch, rabbitmq), work)
            stage.forget(rabbitmq)
        finally:
            rabbitmq.stop()

    def _measure(self, stage: Stage, servers: Servers, work: Work) -> None:
        scale = self._settings.scale
        say(f"{work.title}, {scale.count(work.rows):,} rows")
        try:
            sides = work.sides(stage, servers)
            figures = measure(stage.jvm, sides, scale.count(work.rows), scale, say)
        except FAULTS as error:
            self._note_failure(work.title, error)
        else:
            self.figures.append((work, figures))


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    settings = parse(arguments)
    settings.data.mkdir(parents=True, exist_ok=True)
    machine = describe_machine(settings.data, fsync_ms_of(settings.data))
    folder = Path(tempfile.mkdtemp(prefix="bench-spark-", dir=settings.data)).resolve()
    campaign = Campaign(settings)
    before = Path.cwd()
    try:
        campaign.run(folder)
    except (BenchError, SparkBenchError) as error:
        say(f"bench-spark: {error}")
        return 1
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)
    run = report.Run(
        figures=campaign.figures,
        waits=campaign.waits,
        rounds=settings.scale.rounds,
        rows=settings.scale.rows,
        machine=machine | {"Spark": versions()},
        command=shlex.join(["python", "-m", "compat.spark_bench", *arguments]),
        date=datetime.now(UTC).date().isoformat(),
        failures=campaign.failures,
        skipped=campaign.skipped,
    )
    show(run)
    if settings.page is not None and not run.failures:
        settings.page.write_text(report.page_of(run))
        say(f"wrote {settings.page.name}")
    return 1 if run.failures else 0


def versions() -> str:
    """Return what is measured besides Hutch."""
    names = ("pyspark", "pyarrow", "numpy")
    return ", ".join(f"{name} {metadata.version(name)}" for name in names)


def show(run: report.Run) -> None:
    """Print the tables."""
    say("")
    tables = (report.table_of(run), [report.LEGEND], report.waits_of(run), report.verdicts_of(run))
    for line in "\n\n".join("\n".join(table) for table in tables).splitlines():
        say(line)
    for line in run.skipped:
        say(f"skipped: {line}")
    for line in run.failures:
        say(f"FAILED {line}")


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    # A polite end must stop Spark and the servers as well as an interrupt from the keyboard does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))

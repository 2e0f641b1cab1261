"""One case: a copy of a directory is damaged, opened, read, written, and opened again."""

from __future__ import annotations

import contextlib
import logging
import random
import resource
import shutil
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from unittest import mock

from gateway.log import log as log_module
from gateway.log.derived import filter_pages
from gateway.log.derived import index as index_module
from store.errors import StoreError
from store.local import damage
from tests.damage.faults import Fault, Target, make_faults
from tests.damage.history import VARIANTS, build
from tests.damage.judging import WRITTEN, Judge
from tests.damage.keeping import find_removed
from tests.damage.ledger import Built, Stream
from tests.damage.reading import Reading, read_all
from tests.damage.server import BEGIN_MS, Served, served
from tests.unit.gateway.log.log_rig import put

SECONDS_MAX: Final = 20.0
BYTES_MAX: Final = 1 << 30
_BEHIND_MS: Final = 10_000_000
_SHOWN_MAX: Final = 12


@dataclass
class Outcome:
    """What came of a case.

    Attributes:
        seed: It draws everything.
        variant: Which directory.
        faults: What was done to it.
        complaints: What is not as it must be.
        lines: What the log said, from warnings on.
        refused: Why the start was refused, if it was.
    """

    seed: int
    variant: str
    faults: list[Fault]
    complaints: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    refused: str = ""

    def __str__(self) -> str:
        """Give what there is to know, and how to see it again."""
        parts = [
            f"seed {self.seed}, directory {self.variant!r}:",
            *(f"  fault: {fault.what}" for fault in self.faults),
            *(f"  WRONG: {complaint}" for complaint in self.complaints[:_SHOWN_MAX]),
            *(f"  log: {line}" for line in self.lines[:_SHOWN_MAX]),
            *([f"  refused: {self.refused}"] if self.refused else []),
            f"  again: python -m tests.damage --seed {self.seed}",
        ]
        return "\n".join(parts)


class Lines(logging.Handler):
    """Collects the lines of the log, from warnings on, and tells damage and tracebacks."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self.damage: list[str] = []
        self.tracebacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        if record.name == damage.__name__ and record.levelno >= logging.ERROR:
            self.damage.append(record.getMessage())
        if record.exc_info and record.exc_info[1] is not None:
            self.tracebacks.append("".join(traceback.format_exception(record.exc_info[1])))


@contextlib.contextmanager
def small_parts() -> Iterator[None]:
    """Many spans, pages and snapshots without many bytes."""
    with (
        mock.patch.object(index_module, "SPAN_BYTES", 1_500),
        mock.patch.object(log_module, "SNAPSHOT_CHUNK_BYTES", log_module.SNAPSHOT_BYTES // 16),
        mock.patch.object(filter_pages, "PAGE_BYTES", 200),
    ):
        yield


@contextlib.contextmanager
def limited_memory() -> Iterator[None]:
    """Let this process have so much more memory, and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def listened() -> Iterator[Lines]:
    """Collect the log's lines."""
    lines, root = Lines(), logging.getLogger()
    root.addHandler(lines)
    try:
        yield lines
    finally:
        root.removeHandler(lines)


def build_all(folder: Path) -> list[Built]:
    """Make the directories that cases begin with."""
    with small_parts():
        return [build(variant, folder / variant.name) for variant in VARIANTS]


def run_case(built: Sequence[Built], seed: int, folder: Path) -> Outcome:
    """Run the case of a seed in an empty folder."""
    chance = random.Random(f"case {seed}")
    chosen = chance.choice(built)
    directory, damaged = folder / "data", folder / "damaged"
    shutil.copytree(chosen.directory, directory)
    faults = make_faults(seed, Target(directory, chosen.kinds, chosen.older))
    shutil.copytree(directory, damaged)
    outcome = Outcome(seed, chosen.name, faults)
    judge = Judge(chosen, faults, directory)
    began = time.monotonic()
    with small_parts(), listened() as log, limited_memory():
        try:
            _try(directory, judge, log, chance, outcome)
        except Exception as error:  # whatever it is, it should not be  # noqa: BLE001
            text = "".join(traceback.format_exception(error))
            outcome.complaints.append(f"ended with {error!r}\n{text}")
    outcome.lines = log.lines
    seconds = time.monotonic() - began
    if seconds > SECONDS_MAX:
        outcome.complaints.append(f"took {seconds:.1f} seconds")
    outcome.complaints += judge.complaints
    outcome.complaints += [f"a traceback in the log: {each}" for each in log.tracebacks]
    outcome.complaints += find_removed(
        chosen,
        damaged,
        directory,
        faults,
        log.lines,
        lost_from=None if log.damage else judge.silent_from,
        is_refused=bool(outcome.refused),
    )
    return outcome


def _try(
    directory: Path, judge: Judge, log: Lines, chance: random.Random, outcome: Outcome
) -> None:
    try:
        running = Served(directory)
    except StoreError as error:
        outcome.refused = str(error)
        judge.judge_refusal(error)
        return
    try:
        reading = read_all(running.broker, chance)
        judge.judge(reading, log.lines)
        if judge.complaints:
            return
        written = _write(running, judge, reading)
        running.stop()
    finally:
        running.release()
    with served(directory) as again:
        judge.judge_again(reading, read_all(again.broker, None), written)


def _write(running: Served, judge: Judge, reading: Reading) -> dict[Stream, int]:
    """Publish to sound streams; returns where the records are."""
    broker = running.broker
    broker.now_ms = BEGIN_MS + _BEHIND_MS
    written: dict[Stream, int] = {}
    for at in sorted(reading.records):
        if at in judge.lost_of or at in reading.refused:
            continue
        host = broker.virtual_hosts.find(at[0])
        assert host is not None
        stream = host.streams.find(at[1])
        log = broker.store_rig.run(host.streams.logs.of(stream))
        if log.read_only is not None:
            assert judge.is_exposed(judge.segments_of_stream(at)), (at, log.read_only)
            continue
        written[at] = log.committed_next_offset
        put(log, [WRITTEN])
        broker.loop.run_until(lambda: log.is_idle or log.failure is not None)  # noqa: B023
        assert log.failure is None, (at, log.failure)
    return written

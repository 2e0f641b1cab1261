"""A store on a recorded disk: runs a history, crashes it, opens what is left and looks."""

import contextlib
import logging
import math
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from store.api import Durability
from store.errors import DiskFull, StoreClosed
from store.local.recovery import holes
from store.local.state import table
from store.local.tables import compaction
from tests.conformance.harness import Loop, Rig
from tests.conformance.implementations import open_local
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Create, Disk, Failure, Image, Step
from tests.simulation.history import Expectation, SegmentState, observe
from tests.simulation.trace import ALL, ATTRIBUTES, NAMES, SAFE, Mix, Trace

SEED: Final = int(os.environ.get("HUTCH_TEST_SEED") or 1)
"""`make sim SEED=` replays another history."""

FACTOR: Final = float(os.environ.get("HUTCH_TEST_FACTOR") or 1)
"""How many times the usual number of crashes to try."""

STRIDE: Final = max(1, round(2 / FACTOR))
"""Distance of the steps of a record at which it is cut; 1 is each step."""

SIZES: Final = {
    "data_file_bytes": 2_048,
    "inline_bytes_max": 256,
    "journal_file_bytes": 8_192,
    "checkpoint_bytes": 12_000,
    "checkpoint_data_bytes": 30_000,
    "open_files_max": 5,
}
"""Small, so that a short history rolls files, wraps the ring of journals, and makes checkpoints."""

SECOND_CRASHES: Final = 0.25
"""Of so many crashes the opening after it is crashed as well."""

NEXT_LIVES: Final = 0.06
"""After so many the store is used again, and crashed again."""

NEXT_LIFE_COUNT: Final = 25

FULL_OPENINGS: Final = 0.25
"""Of so many openings the disk has no room for the checkpoint, at first or for good."""


@contextlib.contextmanager
def small_compactions() -> Iterator[None]:
    """Let tables be compacted after a few updates, in slices of a few entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "GARBAGE_BYTES_MIN", 500)
        patch.setattr(compaction, "GARBAGE_BYTES_MIN", 500)
        patch.setattr(compaction, "SLICE_BYTES", 200)
        yield


@contextlib.contextmanager
def small_holes() -> Iterator[None]:
    """Let space be given back in pieces smaller than a sector, soon after each truncation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holes, "UNIT_BYTES", 64)
        patch.setattr(holes, "SOON_BYTES", 200)
        patch.setattr(holes, "SOON_S", 0.0)
        patch.setattr(holes, "FULL_S", 0.001)
        patch.setattr(holes, "AGAIN_S", 0.01)
        yield


@dataclass(frozen=True)
class Life:
    """A store was opened on an image, and what it did and showed."""

    disk: Disk
    opened_at: int
    """The place in the record where the opening was done."""
    seen_at: int
    """The place where everything had been looked at."""
    seen: dict[str, SegmentState | None]


class Complaints(logging.Handler):
    """What the store logs as errors: a crash is none, there is nothing to do for a person."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []
        self.is_of_journal_only = False
        """On a disk whose syncs have failed segments may be damaged indeed."""

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if line.startswith(("disk is full, opened", "checkpoint failed,")):
            return
        if "journal" in line or not self.is_of_journal_only:
            self.lines.append(line)


def _makes_checkpoint(step: Step) -> bool:
    return isinstance(step, Create) and step.path == "checkpoint.new"


def _leave(_: Disk) -> None:
    """Leave the disk as it is."""


@dataclass
class World:
    """One history's crashes, in one durability, from one seed."""

    durability: Durability
    seed: int
    dump: Path
    """Where the disk is left that a store could not be opened from, or not rightly."""
    sizes: Mapping[str, int] = field(default_factory=lambda: SIZES)
    prepare: Callable[[Disk], object] = _leave
    """Is handed the disk of the history when the store is open on it."""
    states: int = 0
    by_kind: dict[Crash, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.durability.value} {self.seed}")
        self._loop = Loop()
        self._complaints = Complaints()
        # Of the history that is being crashed, and of the last store that was opened after.
        self._record: list[Step] = []
        self._next_record: list[Step] = []

    def open(self, disk: Disk) -> Rig:
        return Rig(lambda loop: open_local(disk, loop, self.durability, **self.sizes), self._loop)

    def _open_after(self, disk: Disk) -> Rig:
        """Open what a crash has left, now and then on a full disk."""
        if self.chance.random() < FULL_OPENINGS:
            times = self.chance.choice([1, 2, 10**9])
            disk.failures.append(Failure(_makes_checkpoint, times=times, is_full=True))
        try:
            return self.open(disk)
        except DiskFull:
            # After a power cut it may need the checkpoint; then there must be room for it.
            assert disk.failures
            disk.failures.clear()
            return self.open(disk)

    def run(self, count: int, mix: Mix = ALL) -> tuple[list[Step], Expectation]:
        """Run a history on an empty disk; gives its record and what it promises."""
        return self.run_parts([(count, mix)])

    def run_parts(
        self, parts: Iterable[tuple[int, Mix]], rest_s: float = 0
    ) -> tuple[list[Step], Expectation]:
        """Run a history of parts; after each the store has time for what it does by itself."""
        disk = Disk()
        rig = self.open(disk)
        self.prepare(disk)
        trace = Trace(rig, disk, self.durability, self.chance)
        for count, mix in parts:
            trace.run(len(trace.operations) + count, mix)
            rig.loop.run_for(rest_s)
        rig.close()
        assert not rig.violations, rig.violations[:5]
        # On a disk that does not fail nothing stops the store.
        stopped = [each for each in trace.operations if isinstance(each.result, StoreClosed)]
        assert not stopped, stopped[0]
        return disk.record, trace.expectation()

    def run_failing(self, count: int, failure: Failure) -> tuple[Disk, Expectation, int]:
        """Run a history on a disk that fails; gives also where in the record it began to."""
        disk = Disk()
        rig = self.open(disk)
        trace = Trace(rig, disk, self.durability, self.chance, mix=SAFE)
        trace.run(count // 3)
        began_at = len(disk.record)
        disk.failures.append(failure)
        self._complaints.is_of_journal_only = True
        trace.run(count)
        rig.close(may_fail=True)
        assert not rig.violations, rig.violations[:5]
        self._record = disk.record
        return disk, trace.expectation(is_strict=False), began_at

    def run_lacking(
        self, count: int, lacks: int, use: Callable[[Rig], object]
    ) -> tuple[Disk, Expectation, int]:
        """Run a history in which descriptors lack some times, then `use` the store.

        Gives also where in the record the history ends.
        """
        disk = Disk()
        rig = self.open(disk)
        trace = Trace(rig, disk, self.durability, self.chance, mix=SAFE)
        for lack in range(1, lacks + 1):
            trace.run(count * (2 * lack - 1) // (2 * lacks))
            disk.descriptors_max = disk.descriptors + self.chance.randint(-1, 2)
            trace.run(count * lack // lacks)
            disk.descriptors_max = math.inf
        ends_at = len(disk.record)
        use(rig)
        rig.close()
        assert not rig.violations, rig.violations[:5]
        self._record = disk.record
        return disk, trace.expectation(is_strict=False), ends_at

    def run_full(self, count: int) -> tuple[Disk, Expectation, int]:
        """Run a history on a disk that becomes full, then delete everything there."""
        disk = Disk()
        rig = self.open(disk)
        trace = Trace(rig, disk, self.durability, self.chance, mix=SAFE)
        trace.run(count // 3)
        began_at = len(disk.record)
        disk.capacity = disk.used() + self.chance.randint(0, 6_000)
        trace.run(count)
        issued = len(trace.operations)
        trace.delete_all()
        rig.close(may_fail=True)
        assert not rig.violations, rig.violations[:5]
        refused = [each for each in trace.operations if isinstance(each.result, DiskFull)]
        assert not [
            each for each in refused if each.method.startswith("delete") and each.index >= issued
        ]
        self._record = disk.record
        return disk, trace.expectation(is_strict=False), began_at

    def crash_at(self, record: list[Step], expectation: Expectation, cuts: Iterable[int]) -> None:
        """Crash at these steps only, in growing order."""
        aftermath = Aftermath()
        done = 0
        for cut in cuts:
            for step in record[done:cut]:
                aftermath.advance(step, self.chance)
            done = cut
            torn = record[cut] if cut < len(record) else None
            self.crash(aftermath, torn, expectation, cut, self.chance.choice([*Crash]))

    def crash_everywhere(self, record: list[Step], expectation: Expectation) -> None:
        """Cut the record at each step, or at one of `STRIDE`; each time try one kind of crash."""
        self._record = record
        aftermath = Aftermath()
        kinds = list(Crash)
        first = self.chance.randrange(STRIDE)
        for cut in range(len(record) + 1):
            torn = record[cut] if cut < len(record) else None
            if not self.chance.randrange(len(kinds)):
                self.chance.shuffle(kinds)
            if cut % STRIDE == first:
                kind = kinds[cut // STRIDE % len(kinds)]
                self.crash(aftermath, torn, expectation, cut, kind)
            if torn is not None:
                aftermath.advance(torn, self.chance)

    def crash(
        self,
        aftermath: Aftermath,
        torn: Step | None,
        expectation: Expectation,
        cut: int,
        crash: Crash,
    ) -> None:
        """Crash here, open, look, and perhaps crash again."""
        image, after = aftermath.after(crash, self.chance, torn)
        self._count(crash)
        try:
            life = self._live(image)
            expectation.check(life.seen, cut, crash, is_anything_lost=not self._is_lasting(crash))
        except Exception as error:
            raise AssertionError(self._story(image, [(cut, crash)])) from error
        if self.chance.random() < SECOND_CRASHES:
            self._crash_again(life, after.fork(), expectation, cut, crash)
        if self.chance.random() < NEXT_LIVES:
            self._live_on(image, after, cut, crash)

    def _live(self, image: Image) -> Life:
        disk = Disk(image, is_cold=self.chance.random() < 0.2)
        self._next_record = disk.record
        log = logging.getLogger("store")
        log.addHandler(self._complaints)
        try:
            rig = self._open_after(disk)
            opened_at = len(disk.record)
            seen = observe(rig, NAMES, ATTRIBUTES)
            seen_at = len(disk.record)
            rig.close(may_fail=bool(disk.failures))
        finally:
            log.removeHandler(self._complaints)
        assert not rig.violations, rig.violations[:5]
        assert not self._complaints.lines, self._complaints.lines
        return Life(disk, opened_at, seen_at, seen)

    def _crash_again(
        self, life: Life, after: Aftermath, expectation: Expectation, cut: int, crash: Crash
    ) -> None:
        """Crash in the middle of the opening, or right after it."""
        again_at = self.chance.choice([self.chance.randint(0, life.seen_at), life.seen_at])
        again = self.chance.choice([each for each in Crash if self._is_fair(each, after)])
        record = life.disk.record
        for step in record[:again_at]:
            after.advance(step, self.chance)
        torn = record[again_at] if again_at < len(record) else None
        image, _ = after.after(again, self.chance, torn)
        self._count(again)
        try:
            second = self._live(image)
            # What the first opening showed is there for good. Before it had shown anything, and
            # where nothing was promised of a power cut, what holds is what held at the first crash.
            if again_at >= life.opened_at and self._is_lasting(again):
                assert second.seen == life.seen
            else:
                worst = again if again.is_power_cut else crash
                is_anything_lost = not self._is_lasting(worst)
                expectation.check(second.seen, cut, worst, is_anything_lost=is_anything_lost)
        except Exception as error:
            raise AssertionError(self._story(image, [(cut, crash), (again_at, again)])) from error

    def _live_on(self, image: Image, after: Aftermath, cut: int, crash: Crash) -> None:
        """Use the store that was opened after a crash, and crash it anywhere."""
        disk = Disk(image)
        rig = self._open_after(disk)
        opened_at = len(disk.record)
        seen = observe(rig, NAMES, ATTRIBUTES)
        trace = Trace(rig, disk, self.durability, self.chance, states=seen)
        trace.run(NEXT_LIFE_COUNT)
        rig.close(may_fail=bool(disk.failures))
        assert not rig.violations, rig.violations[:5]
        again_at = self.chance.randint(opened_at, len(disk.record))
        kinds = [each for each in Crash if self._is_lasting(each) and self._is_fair(each, after)]
        again = self.chance.choice(kinds)
        for step in disk.record[:again_at]:
            after.advance(step, self.chance)
        torn = disk.record[again_at] if again_at < len(disk.record) else None
        image, _ = after.after(again, self.chance, torn)
        self._count(again)
        try:
            trace.expectation().check(self._live(image).seen, again_at, again)
        except Exception as error:
            raise AssertionError(self._story(image, [(cut, crash), (again_at, again)])) from error

    @staticmethod
    def _is_fair(crash: Crash, after: Aftermath) -> bool:
        return not (crash.is_power_cut and after.has_lost)

    def _is_lasting(self, crash: Crash) -> bool:
        """Whether nothing that was shown may be lost by such a crash."""
        return self.durability is Durability.DISK or not crash.is_power_cut

    def _count(self, crash: Crash) -> None:
        self.states += 1
        self.by_kind[crash] = self.by_kind.get(crash, 0) + 1

    def _story(self, image: Image, crashes: list[tuple[int, Crash]]) -> str:
        """Tell what was done, and leave the disk where it can be looked at."""
        for path, inode in image.names.items():
            place = self.dump / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(image.contents[inode])
        for name, record in (("steps", self._record), ("next steps", self._next_record)):
            lines = [f"{index} {step!r:.200}\n" for index, step in enumerate(record)]
            (self.dump / name).write_text("".join(lines))
        cuts = ", then ".join(f"{crash.value!r} at step {cut}" for cut, crash in crashes)
        return f"durability {self.durability.value}, seed {self.seed}: {cuts}; disk: {self.dump}"

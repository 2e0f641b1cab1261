"""Each batch is in its streams exactly once, whatever crash cuts its staging or its commit.

Each transaction is there once, if it was answered, or else once or not at all.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Image, Step
from tests.simulation.staged import Aftercare, History, Sender, run_history, small_stages
from tests.simulation.world import FACTOR, SEED

CRASHES: Final = int(120 * FACTOR)
"""Number of steps of the history that are cut; with HUTCH_TEST_FACTOR=1000 every step is."""
SECOND_CRASHES: Final = 0.3
"""Share of the crashes after which the recovery is cut as well."""


@pytest.fixture(autouse=True)
def _small_stages() -> Iterator[None]:
    with small_stages():
        yield


class Crasher:
    """Crashes a history at its steps, and looks at what the recovery shows.

    Attributes:
        torn: Number of crashes between two streams of one batch.
        resumed: Number of crashes after which open stages went on.
    """

    def __init__(self, history: History, directory: Path, chance: random.Random) -> None:
        self.history = history
        self._directory = directory
        self._chance = chance
        self._aftermath = Aftermath()
        self.torn = 0
        self.resumed = 0

    def crash_at(self, cuts: set[int]) -> None:
        record = self.history.disk.record
        kinds = list(Crash)
        for cut in range(len(record) + 1):
            torn = record[cut] if cut < len(record) else None
            if cut in cuts:
                crash = kinds[cut % len(kinds)]
                try:
                    self._crash(cut, crash, torn)
                except Exception as error:
                    raise AssertionError(f"seed {SEED}: {crash.value!r} at step {cut}") from error
            if torn is not None:
                self._aftermath.advance(torn, self._chance)

    def _crash(self, cut: int, crash: Crash, torn: Step | None) -> None:
        image, after = self._aftermath.after(crash, self._chance, torn)
        if self._chance.random() < SECOND_CRASHES:
            image = self._crash_again(image, after.fork())
        care = Aftercare(self.history, Disk(image), self._directory)
        self.torn += care.is_torn
        self.resumed += any(not stage.is_closed for stage in care.commits.stages)
        care.check(cut)
        care.finish_stages(cut)
        care.go_on()
        care.drop_stages()
        care.check(cut)
        care.broker.stop()

    def _crash_again(self, image: Image, after: Aftermath) -> Image:
        """Crash in the middle of the recovery, or when it is done."""
        disk = Disk(image)
        care = Aftercare(self.history, disk, self._directory)
        again_at = self._chance.randint(0, len(disk.record))
        care.broker.close()
        for step in disk.record[:again_at]:
            after.advance(step, self._chance)
        crash = self._chance.choice([*Crash])
        return after.after(crash, self._chance, disk.record[again_at] if disk.record else None)[0]


@pytest.mark.timeout(3_600)
def test_after_any_crash_each_batch_is_there_once_and_the_queries_go_on(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    history = run_history(tmp_path, chance)
    steps = range(history.begun_at, len(history.disk.record) + 1)

    cuts = set(chance.sample(steps, min(len(steps), CRASHES)))
    between = chance.sample(history.between, min(len(history.between), 5))
    crasher = Crasher(history, tmp_path, chance)

    crasher.crash_at(cuts.union(between))

    assert crasher.torn
    assert crasher.resumed


@pytest.mark.timeout(3_600)
def test_after_any_crash_each_transaction_is_there_once_or_not_at_all(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    history = run_history(tmp_path, chance, kinds=(Sender, Sender))
    crasher = Crasher(history, tmp_path, chance)

    crasher.crash_at(set(range(history.begun_at, len(history.disk.record) + 1)))

    assert crasher.torn

"""A disk that fails: what was acknowledged stays true, and everything gets an answer."""

import random
from pathlib import Path

import pytest

from store.api import Durability
from tests.simulation.disk import (
    Allocate,
    Create,
    Cut,
    Failure,
    Punch,
    Remove,
    Rename,
    Step,
    Sync,
    SyncDirectory,
    Write,
)
from tests.simulation.world import FACTOR, SEED, World

KINDS = (
    Write,
    Write,
    Write,
    Sync,
    Sync,
    Sync,
    SyncDirectory,
    Create,
    Rename,
    Remove,
    Allocate,
    Cut,
    Punch,
)
TRIALS = int(25 * FACTOR)
CUTS = 8


def _failure(chance: random.Random) -> Failure:
    """Let one kind of step fail: once, a few times, or for good."""
    kind = chance.choice(KINDS)

    def does_meet(step: Step) -> bool:
        return isinstance(step, kind)

    return Failure(
        does_meet,
        after=chance.randint(0, 40 if kind in {Write, Sync} else 5),
        times=chance.choice([1, 1, 1, 3, 10**9]),
        is_full=kind not in {Sync, SyncDirectory} and chance.random() < 0.5,
        keeps_bytes=chance.choice([0, 0, 7, 600, -3]),
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("durability", Durability)
def test_a_failing_disk_costs_nothing_that_was_acknowledged(
    tmp_path: Path, durability: Durability
) -> None:
    for trial in range(TRIALS):
        seed = SEED * 1_000 + trial
        world = World(durability, seed, tmp_path)
        failure = _failure(world.chance)
        disk, expectation, began_at = world.run_failing(90, failure)
        cuts = [world.chance.randint(began_at, len(disk.record)) for _ in range(CUTS)]
        world.crash_at(disk.record, expectation, [*sorted(cuts), len(disk.record)])

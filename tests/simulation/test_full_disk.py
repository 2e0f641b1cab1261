"""A full disk: whatever is on it can be deleted, and what was acknowledged stays true."""

from pathlib import Path

import pytest

from store.api import Durability
from tests.simulation.world import FACTOR, SEED, World

TRIALS = int(25 * FACTOR)
CUTS = 8


@pytest.mark.timeout(300)
@pytest.mark.parametrize("durability", Durability)
def test_on_a_full_disk_every_deletion_is_taken(tmp_path: Path, durability: Durability) -> None:
    for trial in range(TRIALS):
        world = World(durability, SEED * 1_000 + trial, tmp_path)
        disk, expectation, began_at = world.run_full(120)
        cuts = [world.chance.randint(began_at, len(disk.record)) for _ in range(CUTS)]
        world.crash_at(disk.record, expectation, [*sorted(cuts), len(disk.record)])

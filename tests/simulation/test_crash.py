"""After a crash at any step what was acknowledged is there, and nothing is half there."""

from pathlib import Path

import pytest

from store.api import Durability
from tests.simulation.crash import Crash
from tests.simulation.world import FACTOR, SEED, World


@pytest.mark.timeout(600)
def test_after_any_crash_the_disk_holds_what_was_acknowledged(tmp_path: Path) -> None:
    world = World(Durability.DISK, SEED, tmp_path)
    record, expectation = world.run(520)
    while world.states < 1_500 * FACTOR:
        world.crash_everywhere(record, expectation)
    assert all(world.by_kind[crash] > 50 for crash in Crash)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("durability", [Durability.INTERVAL, Durability.OS])
def test_what_the_system_was_handed_survives_the_process(
    tmp_path: Path, durability: Durability
) -> None:
    world = World(durability, SEED, tmp_path)
    record, expectation = world.run(260)
    while world.states < 400 * FACTOR:
        world.crash_everywhere(record, expectation)
    assert all(world.by_kind[crash] > 10 for crash in Crash)

"""Two members keep their word whatever goes wrong, and a seed that fails can be had again.

`HUTCH_TEST_CLUSTER_SEED=n` runs one seed, in each of the parts.
"""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.replica.cluster import Cluster, simulate
from tests.simulation.world import FACTOR, SEED, small_compactions, small_holes

ROOT: Final = Path(__file__).parents[3]
PARTS: Final = 5
SEEDS: Final = int(30 * FACTOR)
"""Of each part."""
ONE: Final = os.environ.get("HUTCH_TEST_CLUSTER_SEED")
HAPPENS: Final = (
    *("terms", "confirmed", "equal", "pauses", "starts", "followed from nothing"),
    *("steps with two that serve", "stops", "stopped in a call"),
    *("kills in a call", "kills in a pause", "kill of an active", "kill of a follower"),
    *("ends of an active", "ends of a follower", "away", "cut", "damage"),
    *("LogGap", "NeedsBase", "bases", "begun with a store"),
    *("nothing", "an old directory", "a copy of the other"),
)
"""All that has to happen in each part, for it to be worth something."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_what_a_member_said_holds_whatever_becomes_of_it(part: int) -> None:
    if ONE is not None:
        simulate(int(ONE))
        return
    first, counts = SEED * 1_000_000 + part * SEEDS, Counter[str]()
    for seed in range(first, first + SEEDS):
        counts += simulate(seed).counts
    assert not [each for each in HAPPENS if not counts[each]] or SEEDS < 30
    assert counts["confirmed"] > 50 * SEEDS
    assert counts["terms"] > 3 * SEEDS


def digest(cluster: Cluster) -> str:
    """Return a number of all that has happened, and of all bytes in the log."""
    said = "\n".join(cluster.story).encode()
    return hashlib.sha256(said + b"".join(cluster.log.record)).hexdigest()


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_is_the_same_each_time(seed: int) -> None:
    first, again = simulate(seed), simulate(seed)
    assert first.story == again.story
    assert first.log.record == again.log.record
    assert digest(simulate(seed + 1)) != digest(first)


def test_a_seed_is_the_same_in_another_process() -> None:
    command = [sys.executable, "-m", "tests.simulation.replica.test_members", "1", "2", "3"]
    told = {
        subprocess.check_output(command, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": number})
        for number in ("1", "2")
    }
    assert len(told) == 1
    assert len(told.pop().split()) == 3


if __name__ == "__main__":
    with small_compactions(), small_holes():
        for number in sys.argv[1:]:
            sys.stdout.write(digest(simulate(int(number))) + "\n")

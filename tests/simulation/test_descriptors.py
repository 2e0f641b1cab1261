"""A process that lacks descriptors now and then: that passes, and costs nothing acknowledged."""

from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from store.api import Durability, TableEntry
from store.errors import StoreError
from tests.conformance.harness import Rig
from tests.simulation.trace import PARTS, SEGMENTS, TABLES
from tests.simulation.world import FACTOR, SEED, World

TRIALS: Final = int(8 * FACTOR)
LACKS: Final = 12
CUTS: Final = 10
LAST: Final = UUID(int=0xC0)


def _use_everything(rig: Rig) -> None:
    """See that no segment and no table refuses what comes when the lack is over."""
    for name in (*SEGMENTS, *PARTS, *TABLES):
        info = rig.start(rig.store.info, name)
        rig.wait(info)
        if isinstance(info.result, StoreError):
            continue  # not there
        if name in TABLES:
            rig.do(rig.store.update_table, name, [TableEntry(b"k0", b"last")])
        else:
            rig.do(rig.writer(name, LAST).append, b"last", 1)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("durability", Durability)
def test_a_lack_of_descriptors_passes(tmp_path: Path, durability: Durability) -> None:
    for trial in range(TRIALS):
        world = World(durability, SEED * 1_000 + trial, tmp_path)
        disk, expectation, trace_end = world.run_lacking(300, LACKS, _use_everything)
        cuts = sorted(world.chance.randint(0, trace_end) for _ in range(CUTS))
        world.crash_at(disk.record, expectation, cuts)

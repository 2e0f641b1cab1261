"""A directory of format version 1 is taken over whole or not at all, whatever crash cuts it."""

import random
from pathlib import Path
from typing import Final

import pytest

from store.api import Durability
from store.errors import DiskFull
from store.local.checkpoint_file import MAGIC, MAGIC_1
from tests.golden.crashed import Crashed, crashed
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Image
from tests.simulation.history import observe
from tests.simulation.trace import ATTRIBUTES, NAMES, Trace
from tests.simulation.world import FACTOR, SEED, World

CRASHED: Final = crashed()
KINDS: Final = max(1, int(2 * FACTOR))
"""So many kinds of crash are tried at each step."""

each_crashed = pytest.mark.parametrize("found", CRASHED, ids=[each.name for each in CRASHED])


def _file(image: Image, path: str) -> bytes | None:
    inode = image.names.get(path)
    return None if inode is None else image.contents[inode]


def _version_of(image: Image) -> int:
    magic = (_file(image, "checkpoint") or b"")[:8]
    return {MAGIC_1: 1, MAGIC: 2}[magic]


def _must_be_untouched(before: Image, after: Image) -> None:
    """What version 1 reads is there: checkpoint and journal as they were, and every data file."""
    for path in before.names:
        old, new = _file(before, path), _file(after, path)
        if path == "checkpoint" or path.startswith("journal/"):
            assert new == old, path


@each_crashed
@pytest.mark.timeout(300)
def test_after_any_crash_of_the_take_over_all_is_there(tmp_path: Path, found: Crashed) -> None:
    world = World(Durability.DISK, SEED, tmp_path)
    disk = Disk(found.image)
    rig = world.open(disk)
    assert observe(rig, NAMES, ATTRIBUTES) == found.states
    opened_at = len(disk.record)
    trace = Trace(rig, disk, Durability.DISK, world.chance, states=found.states)
    trace.run(10)
    rig.close()
    assert _version_of(disk.image()) == 2
    expectation = trace.expectation()
    aftermath = Aftermath(found.image)
    for cut, torn in enumerate(disk.record[:opened_at]):
        for crash in world.chance.sample([*Crash], min(len(Crash), KINDS)):
            image, _ = aftermath.after(crash, random.Random(cut), torn)
            if _version_of(image) == 1:
                _must_be_untouched(found.image, image)
            world.crash(aftermath, torn, expectation, cut, crash)
        aftermath.advance(torn, world.chance)


@each_crashed
def test_without_room_nothing_is_changed(tmp_path: Path, found: Crashed) -> None:
    world = World(Durability.DISK, SEED, tmp_path)
    image = found.image
    for room in sorted(world.chance.randrange(0, 60_000) for _ in range(5)):
        disk = Disk(image)
        disk.capacity = disk.used() + room
        try:
            rig = world.open(disk)
        except DiskFull:
            image = disk.image()
            _must_be_untouched(found.image, image)
        else:
            break
    else:
        rig = world.open(Disk(image))
    assert observe(rig, NAMES, ATTRIBUTES) == found.states
    rig.close(may_fail=True)

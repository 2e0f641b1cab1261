"""After a crash at any step what was acknowledged is there, and nothing is half there."""

import bisect
import random
import time
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from store.api import Durability
from tests.conformance.harness import Loop, Rig
from tests.conformance.implementations import open_local
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Punch, Remove, Write
from tests.simulation.trace import ALL, TABLES_MOSTLY, Mix
from tests.simulation.world import FACTOR, SEED, SIZES, World


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("history", "mix"), [(0, ALL), (1, ALL), (2, TABLES_MOSTLY)])
def test_after_any_crash_the_disk_holds_what_was_acknowledged(
    tmp_path: Path, history: int, mix: Mix
) -> None:
    world = World(Durability.DISK, SEED + history, tmp_path)
    record, expectation = world.run(520, mix)
    while world.states < 350 * FACTOR:
        world.crash_everywhere(record, expectation)
    assert all(world.by_kind[crash] > 20 for crash in Crash)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("durability", [Durability.INTERVAL, Durability.OS])
def test_what_the_system_was_handed_survives_the_process(
    tmp_path: Path, durability: Durability
) -> None:
    world = World(durability, SEED, tmp_path)
    record, expectation = world.run(520)
    while world.states < 200 * FACTOR:
        world.crash_everywhere(record, expectation)
    assert all(world.by_kind[crash] > 10 for crash in Crash)


TRUNCATING: Final = Mix(ALL.weights | {"truncate": 40, "append_bulk": 30})
TRUNCATING_SIZES: Final = SIZES | {"data_file_bytes": 16_384}
"""Files stay for long, so that there are many holes in them."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("durability", Durability)
def test_no_byte_is_given_back_that_a_recovery_needs(
    tmp_path: Path, durability: Durability
) -> None:
    world = World(durability, SEED, tmp_path, TRUNCATING_SIZES)
    record, expectation = world.run(700, TRUNCATING)
    assert sum(isinstance(step, Punch) for step in record) > 2
    while world.states < 200 * FACTOR:
        world.crash_everywhere(record, expectation)


LATE_FILES: Final = 12
"""So many journal files there are before a late checkpoint is written."""
LATE_S: Final = 0.3
LATE_SIZES: Final = SIZES | {
    "journal_file_bytes": 512,
    "checkpoint_bytes": 512,
    "interval_ms": 3_000,
}
"""The ring keeps three files, and whatever syncs the journal comes seldom."""
GROWING: Final = Mix(
    {"append_small": 80, "append_bulk": 5, "open_session": 7, "create": 10}, own_durability=0
)
DELETING: Final = Mix({"append_small": 5, "delete": 10})
"""A deletion has the journal synced before files go."""


def _hold_checkpoints_up(disk: Disk) -> None:
    """Let each checkpoint wait until the journal has grown, but not for long."""

    def hold(step: Write) -> None:
        if disk.image().names.get("checkpoint.new") == step.inode:
            deadline = time.monotonic() + LATE_S
            while len(disk.names("journal")) < LATE_FILES and time.monotonic() < deadline:
                time.sleep(0.001)

    disk.before_write = hold


@pytest.mark.timeout(600)
@pytest.mark.parametrize("durability", Durability)
def test_late_checkpoints_let_files_go_that_nobody_has_synced(
    tmp_path: Path, durability: Durability
) -> None:
    world = World(durability, SEED, tmp_path, LATE_SIZES, _hold_checkpoints_up)
    record, expectation = world.run_parts([(220, GROWING), (30, DELETING)] * 3, 2 * LATE_S)
    removed = [
        step for step in record if isinstance(step, Remove) and step.path.startswith("journal/")
    ]
    assert len(removed) > LATE_FILES
    world.crash_at(record, expectation, range(0, len(record), 1 + len(record) // int(100 * FACTOR)))


def _open(disk: Disk) -> Rig:
    return Rig(lambda loop: open_local(disk, loop, Durability.DISK, **SIZES), Loop())


@pytest.mark.parametrize("first", Crash)
@pytest.mark.parametrize("second", [Crash.DROPPED, Crash.REORDERED, Crash.TORN])
def test_a_crash_in_the_first_opening_costs_nothing_later(first: Crash, second: Crash) -> None:
    disk = Disk()
    _open(disk).close()
    aftermath, chance = Aftermath(), random.Random(SEED)
    for torn in list(disk.record):
        image, after = aftermath.after(first, chance, torn)
        reopened = Disk(image)
        rig = _open(reopened)
        rig.create("a", b"acknowledged" * 30)
        acknowledged = list(reopened.record)
        rig.close()
        for step in acknowledged:
            after.advance(step, chance)
        rig = _open(Disk(after.after(second, chance, None)[0]))
        assert rig.content("a") == b"acknowledged" * 30
        rig.close()
        aftermath.advance(torn, chance)


@pytest.mark.parametrize("crash", [Crash.KILL, Crash.DROPPED, Crash.REORDERED])
def test_records_of_a_journals_former_life_are_not_taken_for_new_ones(crash: Crash) -> None:
    """Every append writes a record of one size, so old ones begin where the new ones end."""
    disk = Disk()
    rig = _open(disk)
    session = rig.writer(rig.create("a"), UUID(int=1))
    whole = b"".join(b"<%06d>" % number for number in range(500))
    acknowledged = [len(disk.record)]
    for number in range(500):
        rig.do(session.append, b"<%06d>" % number, number)
        acknowledged.append(len(disk.record))
    rig.close()
    aftermath, chance = Aftermath(), random.Random(SEED)
    for cut, step in enumerate(disk.record):
        if cut > acknowledged[0] and cut % 11 == 0:
            image, _ = aftermath.after(crash, chance, None)
            opened = _open(Disk(image))
            content = opened.content("a")
            opened.close()
            assert content == whole[: len(content)]
            assert len(content) // 8 >= bisect.bisect_right(acknowledged, cut) - 1
        aftermath.advance(step, chance)

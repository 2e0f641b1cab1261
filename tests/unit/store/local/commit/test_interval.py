import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import pytest

from store.api import Durability
from store.errors import SegmentFailed, StoreClosed
from store.local.commit.interval import IntervalSync
from tests.simulation.disk import Disk, Failure, Sync, SyncDirectory
from tests.unit.store.local.opened import KIB, WRITER, opened
from tests.waiting import HANG_S

BULK = bytes(5 * KIB)


def syncs(disk: Disk, begin: int) -> list[Sync]:
    return [step for step in disk.record[begin:] if isinstance(step, Sync)]


def test_nothing_is_synced_before_the_acknowledgement_and_the_journal_soon_after() -> None:
    disk = Disk()
    rig = opened(disk, Durability.INTERVAL, interval_ms=100)
    session = rig.session("a")
    rig.loop.run_for(0.2)
    begin = len(disk.record)
    began_at = time.monotonic()
    rig.do(session.append, b"small", 1)
    assert syncs(disk, begin) == []
    while not syncs(disk, begin):
        rig.loop.run_for(0.005)
    assert time.monotonic() - began_at < 20  # the machine may be busy
    rig.loop.run_for(0.1)
    # The journal holds the data: its file is left alone.
    assert disk.image().names["data/1"] not in {step.inode for step in syncs(disk, begin)}
    rig.close()


def test_bulk_data_and_its_name_are_synced_before_the_journal() -> None:
    disk = Disk()
    rig = opened(disk, Durability.INTERVAL, inline_bytes_max=KIB, interval_ms=20)
    session = rig.session("a")
    rig.loop.run_for(0.1)
    begin = len(disk.record)
    rig.do(session.append, BULK, 1)
    rig.loop.run_for(0.1)
    steps = [step for step in disk.record[begin:] if isinstance(step, Sync | SyncDirectory)]
    assert steps[:2] == [Sync(disk.image().names["data/1"]), SyncDirectory("data")]
    assert isinstance(steps[2], Sync)
    rig.close()


def test_many_rounds_share_one_sync_and_an_idle_store_does_none() -> None:
    disk = Disk()
    rig = opened(disk, Durability.INTERVAL, interval_ms=100)
    session = rig.session("a")
    rig.do(session.append, b"x", 0)
    rig.loop.run_for(0.2)
    begin = len(disk.record)
    for number in range(1, 50):
        rig.do(session.append, b"x", number)
    rig.loop.run_for(0.2)
    count = len(syncs(disk, begin))
    assert 1 <= count <= 5
    rig.loop.run_for(0.2)
    assert len(syncs(disk, begin)) == count
    rig.close()


def test_a_failed_sync_of_data_ends_the_segment() -> None:
    disk = Disk()
    rig = opened(disk, Durability.INTERVAL, inline_bytes_max=KIB, interval_ms=10)
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    rig.loop.run_for(0.05)
    inode = disk.image().names["data/1"]
    disk.failures = [Failure(lambda step: step == Sync(inode))]
    rig.do(session.append, BULK, 2)
    rig.loop.run_for(0.1)
    rig.refused(SegmentFailed, session.append, b"x", 3)
    rig.refused(SegmentFailed, rig.writer("a", WRITER).append, b"x", 3)
    rig.fill(rig.create("b"), b"others go on")
    rig.close(may_fail=True)


def test_a_failed_sync_of_the_journal_ends_the_store() -> None:
    disk = Disk()
    rig = opened(disk, Durability.INTERVAL, interval_ms=10)
    session = rig.session("a")
    disk.failures = [Failure(lambda step: isinstance(step, Sync), times=10**9)]
    with suppress(StoreClosed):  # where the append takes longer than the interval
        rig.do(session.append, b"x", 1)
    rig.loop.run_for(0.1)
    rig.refused(StoreClosed, session.append, b"y", 2)
    rig.close(may_fail=True)


def test_a_sync_whose_turn_comes_after_the_stop_is_not_begun() -> None:
    """The loop's turn may come when thread and files are closed: a sync then failed the journal."""
    synced: list[str] = []

    class SyncedJournal:
        def sync(self) -> None:
            synced.append("journal")

    journal: Any = SyncedJournal()
    turns: SimpleQueue[tuple[Callable[..., object], tuple[object, ...]]] = SimpleQueue()
    nothing: Any = None  # no file is noted
    sync = IntervalSync(
        nothing,
        journal,
        nothing,
        nothing,
        1,
        call_soon_threadsafe=lambda call, *arguments: turns.put((call, arguments)),
        failed=lambda reason: pytest.fail(str(reason)),
    )
    sync.note(())
    begin, arguments = turns.get(timeout=HANG_S)
    sync.stop()
    sync.stop_threads()
    begin(*arguments)
    sync.stop_threads()
    assert turns.empty()
    assert synced == []

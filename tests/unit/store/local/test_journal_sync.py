"""Rounds that wait for nothing but a sync of the journal: by a thread, or by the loop itself."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from store.api import Durability
from store.errors import SegmentFailed, StoreClosed, StoreError
from store.files import DirectoryFiles
from tests.conformance.harness import Loop
from tests.conformance.implementations import open_local
from tests.unit.store.local.opened import Opened

Done = Callable[[StoreError | None], object]


class Syncs:
    """Syncs that were asked for, each ended by the test."""

    def __init__(self, rig: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Done] = []
        self.rig = rig
        monkeypatch.setattr(rig.store._sync, "sync", self._sync)

    def are_quick(self, monkeypatch: pytest.MonkeyPatch, failure: StoreError | None) -> None:
        """From now on the disk is quick; what the loop itself syncs ends with `failure`."""
        monkeypatch.setattr(self.rig.store._sync, "is_quick", lambda: True)
        monkeypatch.setattr(self.rig.store._sync, "sync_now", lambda _: failure)

    def _sync(self, _fileno: int, done: Done) -> None:
        self.asked.append(done)

    def end(self, error: StoreError | None = None) -> None:
        """End the sync that was asked for last."""
        self.asked[-1](error)


@pytest.fixture
def rig(tmp_path: Path) -> Opened:
    def open_store(loop: Loop) -> object:
        return open_local(DirectoryFiles(tmp_path), loop, Durability.DISK, watch=loop.watch)

    return Opened(open_store, Loop())  # type: ignore[arg-type]  # the store is known to be local


def test_an_append_is_acknowledged_when_the_journal_is_synced_and_not_before(
    rig: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    syncs = Syncs(rig, monkeypatch)

    pending = rig.start(session.append, b"second", 2)
    rig.loop.run_until(lambda: bool(syncs.asked))
    rig.loop.run_for(0.02)
    assert not pending.is_done

    syncs.end()
    rig.wait(pending)
    assert pending.value.event_number == 2
    monkeypatch.undo()
    rig.close()


def test_while_callers_hear_of_a_round_the_next_one_is_being_synced(
    rig: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    syncs = Syncs(rig, monkeypatch)
    asked_when_heard: list[int] = []

    session.append(b"second", 2, done=lambda _: asked_when_heard.append(len(syncs.asked)))
    rig.loop.turn()
    later = rig.start(session.append, b"third", 3)
    rig.loop.turn()
    assert len(syncs.asked) == 1

    syncs.end()
    assert asked_when_heard == [2]

    syncs.end()
    rig.wait(later)
    monkeypatch.undo()
    rig.close()


def test_after_a_failed_sync_nothing_is_acknowledged_any_more(
    rig: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    syncs = Syncs(rig, monkeypatch)

    lost = rig.start(session.append, b"second", 2)
    rig.loop.turn()
    behind = rig.start(session.append, b"third", 3)
    rig.loop.turn()
    syncs.end(SegmentFailed("sync failed: Input/output error"))
    rig.wait(lost, behind)

    for each in (lost, behind):
        each.error(StoreClosed)
    rig.refused(StoreClosed, session.append, b"fourth", 4)
    monkeypatch.undo()
    rig.close()


def test_while_the_disk_is_quick_the_loop_syncs_an_append_that_comes_alone(
    rig: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    syncs = Syncs(rig, monkeypatch)
    syncs.are_quick(monkeypatch, None)

    pending = rig.start(session.append, b"second", 2)
    rig.loop.turn()

    assert pending.value.event_number == 2
    assert syncs.asked == []
    monkeypatch.undo()
    rig.close()


@pytest.mark.parametrize("sizes", [(1, 1), (5_000,)])
def test_a_thread_syncs_appends_that_come_together_and_large_ones(
    rig: Opened, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    sessions = [rig.session(f"{number}") for number in range(len(sizes))]
    for session in sessions:
        rig.do(session.append, b"first", 1)
    syncs = Syncs(rig, monkeypatch)
    syncs.are_quick(monkeypatch, None)

    pending = [
        rig.start(session.append, bytes(size), 2)
        for session, size in zip(sessions, sizes, strict=True)
    ]
    rig.loop.turn()

    assert len(syncs.asked) == 1
    assert not any(each.is_done for each in pending)
    syncs.end()
    rig.wait(*pending)
    monkeypatch.undo()
    rig.close()


def test_an_append_that_waited_for_another_is_not_acknowledged_before_it(
    rig: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    syncs = Syncs(rig, monkeypatch)
    heard: list[int] = []

    session.append(b"second", 2, done=lambda _: heard.append(2))
    rig.loop.turn()
    session.append(b"third", 3, done=lambda _: heard.append(3))
    rig.loop.turn()
    syncs.are_quick(monkeypatch, None)
    syncs.end()
    assert heard == [2]

    syncs.end()
    assert heard == [2, 3]
    monkeypatch.undo()
    rig.close()


def test_after_a_failed_sync_by_the_loop_nothing_is_acknowledged_any_more(
    rig: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    syncs = Syncs(rig, monkeypatch)
    syncs.are_quick(monkeypatch, SegmentFailed("sync failed: Input/output error"))

    rig.refused(StoreClosed, session.append, b"second", 2)
    rig.refused(StoreClosed, session.append, b"third", 3)
    monkeypatch.undo()
    rig.close()


def test_without_descriptors_for_its_thread_a_sync_takes_the_longer_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted() -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    def open_store(loop: Loop) -> object:
        return open_local(DirectoryFiles(tmp_path), loop, Durability.DISK, watch=loop.watch)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pipe", exhausted)
        rig = Opened(open_store, Loop())  # type: ignore[arg-type]  # it is known to be local
        session = rig.session("a")
        rig.do(session.append, b"first", 1)
    rig.do(session.append, b"second", 2)
    assert rig.content("a") == b"firstsecond"
    rig.close()

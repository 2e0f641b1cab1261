"""A lack of descriptors passes: it costs the operations that met it, and nothing for good."""

import math
import os
from pathlib import Path

import pytest

from store.api import Durability
from store.errors import SegmentFailed, StoreError
from store.files import DirectoryFiles, OutOfDescriptors
from store.local.state.data_file import DataFile
from tests.simulation.disk import Create, Disk, Failure, Sync
from tests.unit.store.local.opened import KIB, WRITER, Opened, opened

BULK = bytes(5 * KIB)


def leave(disk: Disk, count: int) -> None:
    """Leave so many descriptors to be used."""
    disk.descriptors_max = disk.descriptors + count


@pytest.mark.parametrize("left", [0, 1])
def test_a_new_data_file_needs_no_descriptor_but_its_own(left: int) -> None:
    disk = Disk()
    rig = opened(disk, inline_bytes_max=KIB)
    session = rig.session("a")
    leave(disk, left)
    pending = rig.start(session.append, BULK, 1)
    rig.wait(pending)
    if left:
        assert pending.value.event_number == 1
    else:
        pending.error(OutOfDescriptors)
    disk.descriptors_max = math.inf
    rig.do(rig.writer("a", WRITER).append, b"more", 2)
    assert rig.content("a") == BULK * left + b"more"
    rig.close()


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_journal_without_a_descriptor_for_its_next_file_goes_on_later(left: int) -> None:
    disk = Disk()
    rig = opened(disk)
    session = rig.session("a")
    rig.do(session.append, b"<0>", 0)
    leave(disk, left)
    expected = b"<0>"
    for number in range(1, 60):
        data = b"<%d>" % number * 1_000
        try:
            rig.do(session.append, data, number)
        except OutOfDescriptors:
            break
        expected += data
    else:
        raise AssertionError("the journal needed no file")
    disk.descriptors_max = math.inf
    rig.do(rig.writer("a", WRITER).append, b"more", 1_000)
    assert rig.content("a") == expected + b"more"
    rig.close()


def close_by_hand(rig: Opened, file: DataFile) -> None:
    """Close a data file that was not synced, as if that were under way on another thread."""
    handle, file.handle = file.handle, None
    assert handle is not None
    rig.store._open_files._open.discard(file)
    handle.close()


def test_an_interval_that_cannot_sync_for_now_tries_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    rig = opened(disk, Durability.INTERVAL, interval_ms=100, inline_bytes_max=KIB)
    session = rig.session("a")
    rig.do(session.append, BULK, 1)
    inode = disk.image().names["data/1"]
    (file,) = rig.store._interval._soon
    close_by_hand(rig, file)
    leave(disk, 0)
    rig.loop.run_for(0.3)
    assert Sync(inode) not in disk.record
    assert caplog.text.count("data is synced later than its interval") == 1
    disk.descriptors_max = math.inf
    rig.loop.run_until(lambda: Sync(inode) in disk.record)
    rig.do(session.append, b"more", 2)
    assert rig.content("a") == BULK + b"more"
    rig.close()


def test_a_checkpoint_that_cannot_open_a_file_costs_its_segment_nothing() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session = rig.session("a")
    rig.do(session.append, BULK, 1)
    (file,) = rig.store.catalogue.dirty
    close_by_hand(rig, file)
    leave(disk, 0)
    results: list[StoreError | None] = []
    rig.store._checkpointer.begin(results.append)
    rig.loop.run_until(lambda: bool(results))
    assert isinstance(results[0], OutOfDescriptors)
    disk.descriptors_max = math.inf
    rig.do(session.append, b"more", 2)
    rig.store._checkpointer.begin(results.append)
    rig.loop.run_until(lambda: len(results) > 1)
    assert results[1] is None
    assert Sync(disk.image().names["data/1"]) in disk.record
    assert rig.content("a") == BULK + b"more"
    rig.close()


def test_an_open_store_holds_three_directories_and_a_closed_one_nothing(tmp_path: Path) -> None:
    def held() -> list[str]:
        paths = []
        for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
            try:
                paths.append(str(Path("/proc/self/fd", number).readlink()))
            except FileNotFoundError:
                continue
        return sorted(path for path in paths if path.startswith(str(tmp_path)))

    rig = opened(DirectoryFiles(tmp_path))
    rig.create("a", BULK)
    directories = [path for path in held() if Path(path).is_dir()]
    assert directories == [str(tmp_path), str(tmp_path / "data"), str(tmp_path / "journal")]
    rig.reopen()
    assert len([path for path in held() if Path(path).is_dir()]) == 3
    rig.close()
    assert held() == []


def test_an_opening_that_fails_lets_its_directories_go() -> None:
    disk = Disk()
    disk.failures = [Failure(lambda step: isinstance(step, Create) and "journal" in step.path)]
    with pytest.raises(SegmentFailed):
        opened(disk)
    assert disk.descriptors == 0

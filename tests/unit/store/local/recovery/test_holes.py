"""Space before a segment's start goes back to the file system, and nothing else does."""

import os
import threading
from pathlib import Path

import pytest

from store.api import Durability
from store.errors import DiskFull
from store.files import DirectoryFiles
from store.local.recovery import holes
from tests.simulation.disk import Disk, Failure, MemoryFile, Punch, Rename, Step, Write
from tests.unit.store.local.opened import KIB, WRITER, Opened, opened
from tests.waiting import HANG_S

UNIT = 4 * KIB


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holes, "UNIT_BYTES", UNIT)
    monkeypatch.setattr(holes, "SOON_BYTES", UNIT)
    monkeypatch.setattr(holes, "SOON_S", 0.02)
    monkeypatch.setattr(holes, "FULL_S", 0.01)
    monkeypatch.setattr(holes, "AGAIN_S", 0.01)


def content(size: int) -> bytes:
    return b"".join(b"%08x" % number for number in range(size // 8))


def filled(rig: Opened, name: str = "a", size: int = 10 * UNIT) -> bytes:
    data = content(size)
    session = rig.session(name)
    for number, position in enumerate(range(0, size, KIB), start=1):
        rig.do(session.append, data[position : position + KIB], number)
    return data


def punched(disk: Disk) -> int:
    return max((s.position + s.size for s in disk.record if isinstance(s, Punch)), default=0)


def checkpoints(disk: Disk) -> int:
    return sum(isinstance(step, Rename) for step in disk.record)


def wait_for_hole(rig: Opened, disk: Disk, end: int) -> None:
    rig.loop.run_until(lambda: punched(disk) == end)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory on a file system that makes holes."""
    files = DirectoryFiles(tmp_path)
    probe = files.open("probe", create=True)
    probe.write_at(bytes(2 * UNIT), 0)
    can = probe.punch(0, UNIT)
    probe.close()
    files.remove("probe")
    if not can:
        pytest.skip("the file system of temporary files makes no holes")
    return tmp_path


def test_space_of_a_file_that_stays_is_free_soon_after_a_truncation(directory: Path) -> None:
    rig = opened(DirectoryFiles(directory))
    data = filled(rig)
    (file,) = (directory / "data").iterdir()
    before = file.stat().st_blocks * 512
    start = 7 * UNIT + 100
    rig.do(rig.store.truncate_segment, "a", start)
    rig.loop.run_until(lambda: file.stat().st_blocks * 512 <= before - 7 * UNIT)
    assert file.stat().st_size == len(data)
    assert rig.content("a") == data[start:]
    rig.close()
    rig = opened(DirectoryFiles(directory))
    assert rig.content("a") == data[start:]
    rig.close()


def test_nothing_is_given_back_before_a_checkpoint_holds_the_truncation() -> None:
    disk = Disk()
    rig = opened(disk)
    filled(rig)
    disk.failures = [Failure(lambda step: isinstance(step, Rename), times=3)]
    rig.do(rig.store.truncate_segment, "a", 5 * UNIT)
    wait_for_hole(rig, disk, 5 * UNIT)
    assert not disk.failures[0].times
    names = [type(step).__name__ for step in disk.record]
    assert names.index("Rename", names.index("Punch") - 10) < names.index("Punch")
    rig.close()


def test_a_region_keeps_its_bytes_and_the_space_goes_when_it_is_released(directory: Path) -> None:
    rig = opened(DirectoryFiles(directory))
    data = filled(rig)
    reader = rig.reader("a")
    low, high = reader.region(2 * UNIT + 10, UNIT), reader.region(6 * UNIT, UNIT)
    assert low is not None
    assert high is not None
    (file,) = (directory / "data").iterdir()
    before = file.stat().st_blocks * 512
    rig.do(rig.store.truncate_segment, "a", 6 * UNIT)
    rig.loop.run_until(lambda: file.stat().st_blocks * 512 <= before - 2 * UNIT)
    rig.loop.run_for(0.1)
    assert os.pread(low.fileno, UNIT, low.position) == data[2 * UNIT + 10 : 3 * UNIT + 10]
    low.release()
    # What reads behind the start is in nobody's way.
    rig.loop.run_until(lambda: file.stat().st_blocks * 512 <= before - 6 * UNIT)
    assert os.pread(high.fileno, UNIT, high.position) == data[6 * UNIT : 7 * UNIT]
    high.release()
    rig.close()


def test_a_read_that_is_under_way_sees_the_bytes_that_it_asked_for() -> None:
    disk = Disk()
    rig = opened(disk)
    data = filled(rig)
    may_read = threading.Event()
    disk.is_cold = True
    held, seen = rig.reader("a"), []

    def look(view: memoryview) -> bytes:
        assert may_read.wait(HANG_S)
        return bytes(view)

    slow = rig.start(held.check, 0, UNIT, lambda _: may_read.wait(HANG_S) and b"")
    other = rig.start(held.check, 0, UNIT, look)
    read = rig.start(held.check, UNIT, UNIT, bytes)
    rig.do(rig.store.truncate_segment, "a", 4 * UNIT)
    count = checkpoints(disk)
    rig.loop.run_until(lambda: checkpoints(disk) > count)
    rig.loop.run_for(0.1)
    assert punched(disk) == 0
    may_read.set()
    rig.wait(slow, other, read)
    seen.append(other.value)
    assert (seen, read.value) == ([data[:UNIT]], data[UNIT : 2 * UNIT])
    wait_for_hole(rig, disk, 4 * UNIT)
    rig.close()


def test_of_many_truncations_few_lead_to_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holes, "SOON_S", 0.3)
    disk = Disk()
    rig = opened(disk, checkpoint_bytes=64 * KIB * KIB)
    filled(rig)
    before = checkpoints(disk)
    for unit in range(1, 10):
        rig.do(rig.store.truncate_segment, "a", unit * UNIT)
    wait_for_hole(rig, disk, 9 * UNIT)
    assert checkpoints(disk) - before <= 3
    rig.close()


def test_little_is_given_back_with_the_next_checkpoint() -> None:
    disk = Disk()
    rig = opened(disk)
    filled(rig)
    rig.do(rig.store.truncate_segment, "a", UNIT - 1)
    rig.loop.run_for(0.1)
    before = checkpoints(disk)
    assert punched(disk) == 0
    rig.do(rig.store.truncate_segment, "a", UNIT - 1)
    rig.close()
    assert checkpoints(disk) == before + 1
    assert punched(disk) == 0


def test_on_a_full_disk_a_little_is_given_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holes, "SOON_BYTES", 1000 * UNIT)
    disk = Disk()
    rig = opened(disk)
    data = filled(rig)
    disk.capacity = disk.used()
    rig.refused(DiskFull, rig.session("b").append, bytes(UNIT), 1)
    rig.do(rig.store.truncate_segment, "a", 3 * UNIT)
    wait_for_hole(rig, disk, 3 * UNIT)
    rig.do(rig.writer("b", WRITER).append, bytes(UNIT), 2)
    assert rig.content("a") == data[3 * UNIT :]
    rig.close()


def test_room_that_was_lent_for_a_checkpoint_is_there_again() -> None:
    disk = Disk()
    rig = opened(disk)
    filled(rig)
    disk.capacity = disk.used()
    rig.do(rig.store.truncate_segment, "a", 3 * UNIT)
    wait_for_hole(rig, disk, 3 * UNIT)
    assert "reserve" in disk.names("")
    assert not rig.store._reserve.is_short
    rig.close()


def test_what_was_truncated_before_a_crash_is_given_back_by_the_opening() -> None:
    disk = Disk()
    rig = opened(disk)
    data = filled(rig)
    disk.failures = [Failure(lambda step: isinstance(step, Rename), times=10**9)]
    rig.do(rig.store.truncate_segment, "a", 8 * UNIT + 1)
    rig.crash()
    left = Disk(disk.image())
    rig = opened(left)
    assert punched(left) == 8 * UNIT
    assert rig.content("a") == data[8 * UNIT + 1 :]
    rig.close()


def test_a_file_system_without_holes_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def cannot(_: MemoryFile, position: int, size: int) -> bool:
        asked.append((position, size))
        return False

    monkeypatch.setattr(MemoryFile, "punch", cannot)
    disk = Disk()
    rig = opened(disk)
    filled(rig)
    rig.do(rig.store.truncate_segment, "a", UNIT)
    rig.loop.run_until(lambda: bool(asked))
    rig.loop.run_for(0.05)
    before = checkpoints(disk)
    rig.do(rig.store.truncate_segment, "a", 6 * UNIT)
    rig.loop.run_for(0.1)
    assert (len(asked), checkpoints(disk)) == (1, before)
    rig.close()


def test_a_hole_that_cannot_be_made_is_told_and_costs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    rig = opened(disk)
    data = filled(rig)
    disk.failures = [Failure(lambda step: isinstance(step, Punch), times=1)]
    rig.do(rig.store.truncate_segment, "a", UNIT)
    rig.loop.run_until(lambda: "space not given back file=1" in caplog.text)
    rig.do(rig.store.truncate_segment, "a", 3 * UNIT)
    wait_for_hole(rig, disk, 3 * UNIT)
    assert rig.content("a") == data[3 * UNIT :]
    rig.close()


@pytest.mark.parametrize("durability", Durability)
def test_a_segment_that_is_deleted_meanwhile_is_no_matter(
    durability: Durability, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk()
    rig = opened(disk, durability)
    filled(rig)
    began = threading.Event()

    def hold(step: Step) -> None:
        if isinstance(step, Write) and disk.image().names.get("checkpoint.new") == step.inode:
            began.wait(HANG_S)

    disk.before_write = hold
    rig.do(rig.store.truncate_segment, "a", 3 * UNIT)
    rig.do(rig.store.delete_segment, "a")
    began.set()
    rig.loop.run_for(0.1)
    rig.close()
    assert not [each for each in caplog.records if each.levelname in {"WARNING", "ERROR"}]

"""A reader where the disk gives errors: one that passes is not felt, one that stays ends it."""

import errno
import logging
import os
from pathlib import Path

import pytest

from gateway.log.derived import index as index_module
from gateway.log.reading import cursor as cursor_module
from store.api import Durability
from store.errors import SegmentFailed
from store.files import DirectoryFiles, PosixFile
from tests.conformance.harness import Loop
from tests.conformance.implementations import open_local
from tests.unit.gateway.log.log_rig import LogRig
from tests.unit.gateway.log.reading.test_cursor import commit_all, offsets_and_records

BODIES = [bytes([number]) * 3_000 for number in range(20)]
EVENT_BYTES = 56 + 4 + 3_000


class Disk:
    """Which bytes of files that hold BODIES cannot be read, and how often."""

    def __init__(self) -> None:
        self.bad = range(0)
        self.times = 0

    def look(self, size: int, position: int) -> None:
        if (
            self.times
            and self.bad
            and position < self.bad.stop
            and self.bad.start < position + size
        ):
            self.times -= 1
            raise SegmentFailed(f"cannot read: {os.strerror(errno.EIO)}")


class FailingFile(PosixFile):
    """A file of a disk with a bad place."""

    __slots__ = ("disk",)
    disk: Disk

    def read_at(self, size: int, position: int) -> bytes:
        self.disk.look(size, position)
        return super().read_at(size, position)

    def read_into(self, buffer: memoryview, position: int, *, waits: bool = True) -> int:
        self.disk.look(len(buffer), position)
        return super().read_into(buffer, position, waits=waits)

    def read_cached_at(self, size: int, position: int) -> bytes | None:
        self.disk.look(size, position)
        return super().read_cached_at(size, position)


class FailingFiles(DirectoryFiles):
    """A directory on a disk with a bad place; it is bad in data files only."""

    def __init__(self, root: Path, disk: Disk) -> None:
        super().__init__(root)
        self.disk = disk

    def open(self, path: str, *, create: bool = False) -> PosixFile:
        file = super().open(path, create=create)
        if not path.startswith("data/"):
            return file
        failing = FailingFile(file.fileno, path)
        failing.disk = self.disk
        return failing


@pytest.fixture
def disk() -> Disk:
    return Disk()


def rig_on(disk: Disk, directory: Path) -> LogRig:
    def open_store(loop: Loop, root: Path):  # type: ignore[no-untyped-def]  # noqa: ANN202
        return open_local(FailingFiles(root, disk), loop, Durability.OS)

    return LogRig(directory, open_store=open_store)


@pytest.fixture(params=["of this process", "of an earlier one"])
def written(request: pytest.FixtureRequest, disk: Disk, tmp_path: Path) -> LogRig:
    rig = rig_on(disk, tmp_path / "data")
    log = rig.create()
    commit_all(rig, log, *([body] for body in BODIES))
    if request.param == "of an earlier one":
        rig.save(log)
        rig.close()
        rig = rig_on(disk, tmp_path / "data")
    return rig


@pytest.fixture(autouse=True)
def several_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 10_000)
    monkeypatch.setattr(cursor_module, "_CHECK_BYTES", 15_000)


@pytest.mark.parametrize("number", [0, 7, 19])
def test_an_error_that_passes_is_not_felt(written: LogRig, disk: Disk, number: int) -> None:
    log = written.open()
    disk.bad = range(number * EVENT_BYTES + 900, number * EVENT_BYTES + 901)
    disk.times = 1

    delivered = offsets_and_records(written.cursor(log).all_now())

    assert delivered == [*enumerate(BODIES)]
    assert disk.times == 0
    assert log.failure is None


@pytest.mark.parametrize("number", [0, 7, 19])
def test_an_error_that_stays_ends_the_readers_that_come_to_it_and_no_others(
    written: LogRig, disk: Disk, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    log = written.open()
    disk.bad = range(number * EVENT_BYTES + 900, number * EVENT_BYTES + 901)
    disk.times = 1_000
    tap, behind = written.cursor(log), written.cursor(log, log.committed_length)
    delivered: list[int] = []

    with caplog.at_level(logging.INFO):
        while tap.cursor.failure is None:
            woken = tap.wake_count
            delivery = tap.next()
            if delivery is not None:
                delivered += range(delivery.chunk_id, delivery.next_offset)
            elif tap.cursor.failure is None:
                tap._await_wake(woken)

    assert delivered == [*range(number)]
    assert disk.times > 0, "it is not tried for ever"
    (line,) = [each for each in caplog.records if "cannot be read" in each.getMessage()]
    assert line.exc_info is None
    assert log.failure is None
    written.commit(log, b"new")
    assert offsets_and_records(behind.all_now()) == [(20, b"new")]


def test_the_whole_records_of_a_file_that_was_cut_are_delivered(
    written: LogRig, tmp_path: Path
) -> None:
    log = written.open()
    (path,) = [
        path for path in (tmp_path / "data" / "data").iterdir() if BODIES[0] in path.read_bytes()
    ]
    os.truncate(path, 12 * EVENT_BYTES + 500)
    tap = written.cursor(log)
    delivered: list[int] = []
    while tap.cursor.failure is None and tap.cursor.position < log.committed_length:
        woken = tap.wake_count
        delivery = tap.next()
        if delivery is not None:
            delivered += range(delivery.chunk_id, delivery.next_offset)
        elif tap.cursor.position < log.committed_length and not tap.cursor.failure:
            tap._await_wake(woken)

    assert delivered == [*range(12)]

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from store.api import Durability, ReadResult
from store.errors import (
    CorruptSegment,
    NoSuchSegment,
    PositionOutOfRange,
    SegmentSealed,
    SegmentTruncated,
    StoreClosed,
    StoreError,
)
from store.files import DirectoryFiles
from tests.simulation.disk import Disk, MemoryFile
from tests.unit.store.local.opened import KIB, WRITER, Opened, opened
from tests.waiting import HANG_S


@pytest.fixture
def files(tmp_path: Path) -> DirectoryFiles:
    return DirectoryFiles(tmp_path)


def test_a_region_is_the_place_in_the_file(files: DirectoryFiles) -> None:
    rig = opened(files, data_file_bytes=10)
    for part in (b"0123456789", b"abcdefghij"):
        rig.create("a", part) if not rig.store.catalogue.names else rig.fill("a", part)
    reader = rig.reader("a")
    region = reader.region(13, 100)
    assert region is not None
    assert (region.position, region.size) == (3, 7)
    assert os.pread(region.fileno, region.size, region.position) == b"defghij"
    region.release()
    assert reader.region(20, 1) is None
    assert reader.region(-1, 1) is None
    rig.close()


def test_a_region_outlives_truncation_deletion_and_many_other_files(
    files: DirectoryFiles, tmp_path: Path
) -> None:
    rig = opened(files, data_file_bytes=10, open_files_max=2)
    rig.create("a", b"0123456789")
    rig.fill("a", b"abcdefghij")
    region = rig.reader("a").region(0, 10)
    assert region is not None
    rig.do(rig.store.truncate_segment, "a", 15)
    rig.do(rig.store.delete_segment, "a")
    for number in range(8):
        rig.create(f"s{number}", b"x" * 10)
    rig.loop.run_until(lambda: not (tmp_path / "data/1").exists())
    assert os.pread(region.fileno, 10, 0) == b"0123456789"

    def is_let_go() -> bool:
        try:
            return os.pread(region.fileno, 10, 0) != b"0123456789"
        except OSError:
            return True

    region.release()
    rig.loop.run_until(is_let_go)
    rig.close()


def test_a_region_held_over_the_closing_keeps_its_file(files: DirectoryFiles) -> None:
    rig = opened(files)
    rig.create("a", b"0123456789")
    region = rig.reader("a").region(0, 10)
    assert region is not None
    rig.close()
    assert os.pread(region.fileno, 10, 0) == b"0123456789"
    region.release()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(region.fileno)


def test_reading_from_memory_stops_at_the_end_of_a_file() -> None:
    rig = opened(Disk(), data_file_bytes=10)
    rig.create("a", b"0123456789")
    rig.fill("a", b"abc")
    reader = rig.reader("a")
    assert reader.read_cached(8, 100) == b"89"
    assert reader.read_cached(10, 100) == b"abc"
    assert reader.read_cached(13, 100) == b""
    rig.do(rig.store.truncate_segment, "a", 2)
    assert reader.read_cached(1, 100) is None
    assert (reader.start, reader.length) == (2, 13)
    rig.close()


def test_what_is_not_in_memory_is_read_by_a_thread() -> None:
    disk = Disk()
    rig = opened(disk, data_file_bytes=10)
    rig.create("a", b"0123456789")
    rig.fill("a", b"abc")
    disk.is_cold = True
    reader = rig.reader("a")
    assert reader.read_cached(0, 5) is None
    assert not reader.is_cached(0, 5)
    assert rig.do(rig.store.read, "a", 3, 100).data == b"3456789"
    assert rig.do(reader.check, 8, 100, bytes) == b"89abc"
    rig.close()


def cold_readers(rig: Opened, disk: Disk, go_on: threading.Event) -> None:
    """Let more cold checks hang than there are threads for them."""
    disk.is_cold = True
    reader = rig.reader("a")
    started = threading.Semaphore(0)

    def hang(_: memoryview) -> None:
        started.release()
        go_on.wait(HANG_S)

    for _ in range(4):
        rig.start(reader.check, 0, 5, hang)
    assert all(started.acquire(timeout=HANG_S) for _ in range(2))
    disk.is_cold = False


def test_cold_readers_delay_neither_a_hot_one_nor_a_commit() -> None:
    disk = Disk()
    rig = opened(disk)
    session = rig.session("a")
    rig.do(session.append, b"0123456789", 1)
    go_on = threading.Event()
    cold_readers(rig, disk, go_on)
    assert rig.do(rig.reader("a").check, 0, 5, bytes) == b"01234"
    assert rig.do(rig.store.read, "a", 0, 5).data == b"01234"
    assert rig.do(session.append, b"more", 2).position == 10
    go_on.set()
    rig.close()


def test_what_look_raises_comes_up_on_the_loop() -> None:
    rig = opened(Disk())
    rig.create("a", b"0123456789")
    rig.start(rig.reader("a").check, 0, 5, lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        rig.loop.run_for(0.2)
    rig.close()


def test_a_file_that_ends_too_early_is_damage() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"0123456789")
    disk.open("data/1").cut(5)
    rig.refused(CorruptSegment, rig.reader("a").check, 0, 10, bytes)
    rig.close()


def test_one_append_wakes_everyone_who_waits_for_it_and_nobody_else() -> None:
    rig = opened(Disk(), Durability.OS)
    session = rig.session("a")
    near = [rig.start(rig.store.read, "a", 0, 10, wait=True) for _ in range(3)]
    far = rig.start(rig.store.read, "a", 5, 10, wait=True)
    rig.do(session.append, b"abc", 1)
    rig.wait(*near)
    assert {each.value for each in near} == {
        ReadResult(0, b"abc", end_of_segment=False, at_tail=True)
    }
    assert not far.is_done
    rig.do(session.append, b"defg", 2)
    rig.wait(far)
    assert far.value.data == b"fg"
    rig.close()


def test_a_read_that_was_given_up_is_forgotten() -> None:
    rig = opened(Disk())
    rig.create("a")
    waiting = rig.start(rig.store.read, "a", 0, 10, wait=True)
    rig.loop.run_for(0.01)
    waiting.returned()
    assert not rig.store.catalogue.names["a"].waiters
    rig.fill("a", b"x")
    assert not waiting.is_done
    rig.close()


def test_a_cold_read_can_be_given_up_on_its_way() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"abc")
    disk.is_cold = True
    pending = rig.start(rig.store.read, "a", 0, 10)
    rig.loop.turn()
    pending.returned()
    rig.loop.run_for(0.05)
    assert not pending.is_done
    rig.close()


def test_reading_holds_few_files_open() -> None:
    disk = Disk()
    rig = opened(disk, data_file_bytes=KIB, open_files_max=4)
    session = rig.session("a")
    for number in range(20):
        rig.do(session.append, bytes([number]) * KIB, number)
    reader = rig.reader("a")
    for number in range(20):
        assert rig.do(reader.check, number * KIB, 1, bytes) == bytes([number])
        assert len(rig.store._open_files._open) <= 5
    assert rig.writer("a", WRITER).event_number == 19
    rig.close()


def test_bytes_that_a_file_has_lost_are_an_error_or_zeros(
    files: DirectoryFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = opened(files)
    rig.create("a", b"0123456789")
    os.truncate(tmp_path / "data/1", 4)
    reader = rig.reader("a")
    rig.refused(CorruptSegment, reader.check, 0, 10, bytes)
    for _ in range(2):
        assert rig.do(reader.check, 0, 10, bytes, fills=True) == b"0123" + bytes(6)
        assert rig.do(reader.check, 6, 3, bytes, fills=True) == bytes(3)
    assert caplog.text.count("data file is too short file=1 position=0") == 1
    rig.close()


# What there is to read, and when


def test_a_read_gives_what_is_there_or_nothing_without_waiting() -> None:
    rig = opened(Disk())
    rig.create("a", b"0123456789")
    assert rig.do(rig.store.read, "a", 3, 4) == ReadResult(
        3, b"3456", end_of_segment=False, at_tail=False
    )
    assert rig.do(rig.store.read, "a", 10, 4) == ReadResult(
        10, b"", end_of_segment=False, at_tail=True
    )
    assert rig.do(rig.store.read, "a", 50, 4) == ReadResult(
        50, b"", end_of_segment=False, at_tail=True
    )
    rig.close()


def test_a_read_that_waits_gets_the_bytes_at_its_place_when_they_come() -> None:
    rig = opened(Disk())
    rig.create("a", b"01")
    near = rig.start(rig.store.read, "a", 2, 10, wait=True)
    far = rig.start(rig.store.read, "a", 4, 10, wait=True)
    rig.fill("a", b"23")
    assert near.value == ReadResult(2, b"23", end_of_segment=False, at_tail=True)
    assert not far.is_done
    rig.fill("a", b"45")
    assert far.value == ReadResult(4, b"45", end_of_segment=False, at_tail=True)
    rig.close()


def test_the_end_of_a_sealed_segment_is_told() -> None:
    rig = opened(Disk())
    rig.create("a", b"0123")
    rig.do(rig.store.seal_segment, "a")
    assert rig.do(rig.store.read, "a", 0, 3) == ReadResult(
        0, b"012", end_of_segment=False, at_tail=False
    )
    assert rig.do(rig.store.read, "a", 2, 9) == ReadResult(
        2, b"23", end_of_segment=True, at_tail=True
    )
    assert rig.do(rig.store.read, "a", 4, 9) == ReadResult(
        4, b"", end_of_segment=True, at_tail=True
    )
    for wait in (False, True):
        rig.refused(PositionOutOfRange, rig.store.read, "a", 5, 9, wait=wait)
    rig.close()


def test_a_reader_beyond_the_end_is_told_when_the_segment_is_sealed() -> None:
    rig = opened(Disk())
    rig.create("a", b"0123")
    at_end = rig.start(rig.store.read, "a", 4, 9, wait=True)
    beyond = rig.start(rig.store.read, "a", 5, 9, wait=True)
    rig.do(rig.store.seal_segment, "a")
    assert at_end.value == ReadResult(4, b"", end_of_segment=True, at_tail=True)
    beyond.error(SegmentSealed)
    rig.close()


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (lambda rig: rig.do(rig.store.delete_segment, "a"), NoSuchSegment),
        (lambda rig: rig.close(), StoreClosed),
    ],
)
def test_a_reader_that_waits_is_told_when_the_segment_or_the_store_is_gone(
    end: Callable[[Opened], None], kind: type[StoreError]
) -> None:
    rig = opened(Disk())
    rig.create("a", b"0123")
    waiting = rig.start(rig.store.read, "a", 4, 9, wait=True)
    end(rig)
    rig.wait(waiting)
    waiting.error(kind)
    rig.close()


@pytest.mark.parametrize("wait", [False, True])
def test_bytes_that_can_never_be_read_are_refused(*, wait: bool) -> None:
    rig = opened(Disk())
    rig.create("a", b"0123456789")
    rig.do(rig.store.truncate_segment, "a", 4)
    rig.refused(PositionOutOfRange, rig.store.read, "a", -1, 1, wait=wait)
    assert rig.refused(SegmentTruncated, rig.store.read, "a", 3, 1, wait=wait).start == 4
    assert rig.do(rig.store.read, "a", 4, 1, wait=wait).data == b"4"
    rig.close()


def test_a_reader_of_a_deleted_segment_has_nothing_in_memory() -> None:
    rig = opened(Disk())
    rig.create("a", b"0123456789")
    reader = rig.reader("a")
    assert reader.is_cached(0, 10)
    assert reader.read_cached(0, 10) == b"0123456789"
    rig.do(rig.store.delete_segment, "a")
    assert not reader.is_cached(0, 10)
    assert reader.region(0, 10) is None
    rig.refused(NoSuchSegment, reader.check, 0, 10, bytes)
    rig.close()


def test_what_lies_before_the_start_is_not_in_memory() -> None:
    rig = opened(Disk())
    rig.create("a", b"0123456789")
    reader = rig.reader("a")
    rig.do(rig.store.truncate_segment, "a", 4)
    assert not reader.is_cached(3, 1)
    assert reader.is_cached(4, 6)
    assert reader.region(3, 1) is None
    rig.refused(SegmentTruncated, reader.check, 3, 1, bytes)
    assert rig.do(reader.check, 4, 99, bytes) == b"456789"
    rig.close()


def test_a_reader_of_a_closed_store_is_refused() -> None:
    rig = opened(Disk())
    rig.create("a", b"0123456789")
    reader = rig.reader("a")
    rig.close()
    rig.refused(StoreClosed, reader.check, 0, 10, bytes)


@pytest.mark.parametrize("is_cold", [False, True])
def test_a_file_that_is_missing_is_told_by_whatever_reads_it(*, is_cold: bool) -> None:
    disk = Disk()
    rig = opened(disk, open_files_max=1)
    rig.create("a", b"0123456789" * KIB)
    rig.create("b", b"x" * 10 * KIB)
    rig.reopen()
    disk.is_cold = is_cold
    disk.remove("data/1")
    with_reader = rig.start(rig.store.open_reader, "a")
    rig.wait(with_reader)
    if isinstance(with_reader.result, StoreError):
        pytest.fail(repr(with_reader.result))
    missing = rig.start(rig.store.read, "a", 0, 10)
    looked = rig.start(with_reader.value.check, 0, 10, bytes)
    rig.wait(missing, looked)
    assert isinstance(missing.result, StoreError)
    assert isinstance(looked.result, StoreError)
    assert rig.content("b") == b"x" * 10 * KIB
    rig.close(may_fail=True)


# What is kept of what was checked


def test_what_was_in_memory_when_it_was_checked_is_left_to_the_system() -> None:
    disk = Disk()
    rig = opened(disk, data_file_bytes=10)
    rig.create("a", b"0123456789")
    rig.fill("a", b"abc")
    reader = rig.reader("a")
    assert rig.do(reader.check, 0, 13, bytes) == b"0123456789abc"
    disk.is_cold = True
    assert reader.read_cached(0, 13) is None

    assert rig.do(reader.check, 0, 13, bytes) == b"0123456789abc"
    assert reader.read_cached(0, 13) == b"0123456789"
    assert reader.read_cached(10, 3) == b"abc"
    rig.close()


def test_what_only_seemed_to_be_in_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"0123456789")
    reader = rig.reader("a")
    disk.is_cold = True
    with monkeypatch.context() as patch:
        patch.setattr(MemoryFile, "read_cached_at", lambda *_: b"x")
        pending = rig.start(reader.check, 2, 5, bytes)
    rig.wait(pending)

    assert pending.value == b"23456"
    assert reader.read_cached(2, 5) == b"23456"
    rig.close()


def test_a_large_cold_piece_is_asked_for_with_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", bytes(3 << 20))
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(
        MemoryFile, "will_read", lambda _, size, position: asked.append((size, position))
    )
    reader = rig.reader("a")
    assert rig.do(reader.check, 0, 1 << 20, len) == 1 << 20
    disk.is_cold = True
    assert rig.do(reader.check, 1 << 20, 1 << 20, len) == 1 << 20
    assert rig.do(reader.check, 0, 1_000, len) == 1_000
    assert asked == [(2 << 20, 1 << 20)]
    rig.close()

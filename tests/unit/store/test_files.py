import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from store.errors import DiskFull, SegmentFailed, StoreError, StoreLocked
from store.files import (
    PASSING,
    DirectoryFiles,
    JournalSync,
    OutOfDescriptors,
    PosixFile,
    descriptor_limit,
)


@pytest.fixture
def files(tmp_path: Path) -> DirectoryFiles:
    return DirectoryFiles(tmp_path)


def test_bytes_come_back_from_where_they_were_written(files: DirectoryFiles) -> None:
    file = files.open("a", create=True)
    file.write_at(b"hello", 10)
    file.write_at(memoryview(b"HE"), 10)
    assert file.read_at(100, 9) == b"\0HEllo"
    assert file.read_at(100, 15) == b""
    assert file.size() == 15
    file.sync()
    file.close()


def test_a_buffer_of_wide_items_is_written_whole(files: DirectoryFiles) -> None:
    file = files.open("a", create=True)
    file.write_at(memoryview(bytes(range(16))).cast("Q"), 0)
    assert file.read_at(100, 0) == bytes(range(16))
    file.close()


def test_a_read_that_falls_short_is_continued(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open("a", create=True)
    file.write_at(b"0123456789", 0)
    read = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read(fd, min(size, 3), at))
    assert file.read_at(8, 1) == b"12345678"
    assert file.read_at(8, 5) == b"56789"
    file.close()


def test_a_buffer_is_filled_up_to_the_end_of_the_file(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open("a", create=True)
    file.write_at(b"0123456789", 0)
    buffer = bytearray(8)
    for waits in (True, False):
        assert file.read_into(memoryview(buffer), 1, waits=waits) == 8
        assert buffer == b"12345678"
        assert file.read_into(memoryview(buffer), 7, waits=waits) == 3
        assert file.read_into(memoryview(buffer), 10, waits=waits) == 0
    read = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, parts, at, *_: read(fd, [parts[0][:3]], at))
    assert file.read_into(memoryview(buffer), 2) == 8
    assert buffer == b"23456789"
    file.will_read(100, 0)
    file.close()
    file.will_read(100, 0)


@pytest.mark.parametrize("number", [11, 95])
def test_only_what_is_in_memory_is_read_without_waiting(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    file = files.open("a", create=True)
    file.write_at(b"0123456789", 0)
    read = os.preadv

    def first_bytes(fd: int, parts: list[memoryview], at: int, flags: int = 0) -> int:
        if flags and at >= 4:
            raise OSError(number, os.strerror(number))
        return read(fd, [parts[0][: 4 - at]] if flags else parts, at)

    monkeypatch.setattr(os, "preadv", first_bytes)
    buffer = bytearray(10)
    assert file.read_into(memoryview(buffer), 0, waits=False) == 4
    assert file.read_into(memoryview(buffer), 0) == 10
    assert buffer == b"0123456789"
    file.close()


def test_what_was_just_written_is_in_memory(files: DirectoryFiles) -> None:
    file = files.open("a", create=True)
    file.write_at(b"x" * 10_000, 0)
    assert file.read_cached_at(20_000, 1) == b"x" * 9_999
    file.close()


def test_where_the_system_cannot_tell_what_is_in_memory_it_is_read(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open("a", create=True)

    def unsupported(*_: object) -> int:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "preadv", unsupported)
    file.write_at(b"x", 0)
    assert file.read_cached_at(5, 0) == b"x"
    file.close()


def test_allocated_space_reads_as_zeros_and_keeps_what_is_there(files: DirectoryFiles) -> None:
    file = files.open("a", create=True)
    file.write_at(b"x", 0)
    file.allocate(1, 8_191)
    assert file.size() in {1, 8_192}  # 1 where the file system cannot
    assert file.read_at(1, 0) == b"x"
    file.close()


def test_cutting_shortens_and_extends(files: DirectoryFiles) -> None:
    file = files.open("a", create=True)
    file.write_at(b"0123", 0)
    file.cut(2)
    file.cut(3)
    assert file.read_at(10, 0) == b"01\0"
    file.close()


def test_a_closed_file_touches_no_other_that_has_its_number(
    files: DirectoryFiles, tmp_path: Path
) -> None:
    closed = files.open("a", create=True)
    number = closed.fileno
    closed.close()
    other = files.open("b", create=True)
    assert other.fileno == number
    other.write_at(b"other", 0)
    calls: tuple[Callable[[], object], ...] = (
        lambda: closed.write_at(b"x", 0),
        lambda: closed.read_at(1, 0),
        lambda: closed.read_into(memoryview(bytearray(1)), 0),
        lambda: closed.read_cached_at(1, 0),
        lambda: closed.allocate(0, 8_192),
        closed.size,
        lambda: closed.cut(0),
        closed.sync,
    )
    for call in calls:
        with pytest.raises(SegmentFailed):
            call()
    closed.close()
    assert other.read_at(10, 0) == b"other"
    assert (tmp_path / "b").stat().st_size == 5
    other.close()


def test_a_full_disk_is_told_from_a_broken_one() -> None:
    full = PosixFile(os.open("/dev/full", os.O_RDWR), "full")
    with pytest.raises(DiskFull):
        full.write_at(b"x", 0)
    full.close()


def test_every_error_of_the_system_is_one_of_ours(files: DirectoryFiles, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    closed = PosixFile(10**6, "closed")
    for call in (
        lambda: files.open("none"),
        lambda: files.open("none/a", create=True),
        lambda: files.names("none"),
        lambda: files.rename("none", "other"),
        lambda: files.remove("file/x"),
        lambda: files.make_directory("file/x"),
        lambda: files.sync_directory("none"),
        lambda: closed.read_at(1, 0),
        lambda: closed.read_cached_at(1, 0),
        lambda: closed.write_at(b"x", 0),
        closed.size,
        lambda: closed.cut(0),
        closed.sync,
    ):
        with pytest.raises(StoreError):
            call()


def test_no_descriptor_left_is_told_apart(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", exhausted)
    with pytest.raises(OutOfDescriptors):
        files.open("a", create=True)


def test_a_directory_that_is_kept_open_is_synced_without_another_descriptor(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> int:
        raise OSError(24, "Too many open files")

    files.make_directory("kept")
    files.make_directory("other")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    files.keep_open("kept")
    files.keep_open("kept")
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", exhausted)
        files.sync_directory("kept")
        with pytest.raises(OutOfDescriptors):
            files.sync_directory("other")
        with pytest.raises(OutOfDescriptors):
            files.keep_open("other")
    files.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    files.sync_directory("kept")
    files.close()


def test_a_failed_sync_of_a_kept_directory_does_not_pass(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    files.keep_open("")
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(SegmentFailed) as caught:
        files.sync_directory("")
    assert not isinstance(caught.value, PASSING)
    files.close()


def test_names_are_made_renamed_and_removed(files: DirectoryFiles, tmp_path: Path) -> None:
    files.make_directory("deep/er")
    files.make_directory("deep/er")
    files.open("deep/er/a", create=True).close()
    files.open("deep/er/b", create=True).close()
    files.rename("deep/er/a", "deep/er/b")
    files.sync_directory("deep/er")
    assert files.names("deep/er") == ["b"]
    files.remove("deep/er/b")
    files.remove("deep/er/b")
    assert list((tmp_path / "deep/er").iterdir()) == []


def test_the_lock_names_its_holder_and_ends_with_it(files: DirectoryFiles, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, store.files as f\n"
        "lock = f.DirectoryFiles(pathlib.Path(sys.argv[1])).lock('lock')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreLocked, match=f"process {holder.pid}"):
            files.lock("lock")
        holder.kill()
    files.lock("lock").close()


def test_the_lock_holds_within_a_process_too(files: DirectoryFiles) -> None:
    lock = files.lock("lock")
    with pytest.raises(StoreLocked):
        files.lock("lock")
    lock.close()


def test_a_failed_sync_is_never_a_full_disk(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open("a", create=True)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(SegmentFailed):
        file.sync()
    file.close()


def test_the_limit_of_descriptors_is_a_number_to_work_with() -> None:
    assert descriptor_limit() > 8


@pytest.mark.parametrize("left", [0, 1])
def test_a_sync_in_the_background_that_cannot_start_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    watched: list[int] = []
    sync = JournalSync(lambda fileno, _: watched.append(fileno))
    pipe, pipes = os.pipe, iter(range(left))

    def scarce() -> tuple[int, int]:
        if next(pipes, None) is None:
            raise OSError(24, "Too many open files")
        return pipe()

    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    monkeypatch.setattr(os, "pipe", scarce)
    assert not sync.start()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    monkeypatch.undo()
    assert sync.start()
    assert sync.start()
    assert len(set(watched)) == 1
    sync.stop()


def test_a_disk_is_quick_after_many_quick_syncs_until_a_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns = 0
    takes_ns = 150_000

    def takes_its_time(_: int) -> None:
        nonlocal now_ns
        now_ns += takes_ns

    monkeypatch.setattr(os, "fdatasync", takes_its_time)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now_ns)
    sync = JournalSync(lambda *_: None)

    def syncs_until(*, is_quick: bool) -> int:
        count = 0
        while sync.is_quick() is not is_quick:
            assert sync.sync_now(1) is None
            count += 1
        return count

    assert syncs_until(is_quick=True) > 40
    takes_ns = 50_000_000
    assert syncs_until(is_quick=False) == 1
    takes_ns = 150_000
    assert syncs_until(is_quick=True) > 30


def test_a_sync_that_fails_at_once_tells_why(tmp_path: Path) -> None:
    closed = os.open(tmp_path / "file", os.O_CREAT)
    os.close(closed)

    failure = JournalSync(lambda *_: None).sync_now(closed)

    assert isinstance(failure, SegmentFailed)
    assert "Bad file descriptor" in str(failure)

"""ReplicatedFiles: a directory whose changes are seen at once, and made when the log has them."""

from pathlib import Path
from typing import Final

import pytest

from store.errors import DiskFull, SegmentFailed
from store.files import DirectoryFiles, File, OutOfDescriptors
from store.replica.files import ROOM_BYTES, ReplicatedFiles
from store.replica.operations import (
    Create,
    MakeDirectory,
    Remove,
    Rename,
    Write,
    Zero,
)
from store.replica.shipping import Fenced
from tests.simulation.disk import Disk
from tests.unit.store.replica.scripted import Opened, contents, operations_of, taken_over

DATA: Final = bytes(range(1, 101))


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def opened(disk: Disk) -> Opened:
    return Opened(disk)


@pytest.fixture
def files(opened: Opened) -> ReplicatedFiles:
    return opened.files


@pytest.fixture
def file(files: ReplicatedFiles) -> File:
    return files.open("a", create=True)


def whole(file: File) -> bytes:
    """Return what a file has, which each way of reading has to find."""
    size = file.size()
    found = file.read_at(size + 10, 0)
    assert len(found) == size
    assert file.read_cached_at(size + 10, 0) == found
    buffer = bytearray(b"\xee" * (size + 10))
    assert file.read_into(memoryview(buffer), 0) == size
    assert buffer == found + b"\xee" * 10
    for begin in range(0, size, 7):
        assert file.read_at(5, begin) == found[begin : begin + 5]
        assert file.read_cached_at(5, begin) == found[begin : begin + 5]
    return found


class TestReading:
    """A file is read as if what is on its way were done."""

    def test_writes_are_seen_before_the_log_has_them(self, file: File, disk: Disk) -> None:
        file.write_at(DATA, 5)
        file.write_at(b"over", 8)

        assert whole(file) == bytes(5) + DATA[:3] + b"over" + DATA[7:]
        assert contents(disk.image()) == {}

    def test_changes_lie_over_what_is_on_the_disk(self, opened: Opened, file: File) -> None:
        file.write_at(DATA, 0)
        opened.settle()
        file.write_at(b"over", 98)
        file.write_at(bytes(10), 20)
        file.punch(50, 10)

        expected = bytearray(DATA[:98] + b"over")
        expected[20:30] = expected[50:60] = bytes(10)
        assert whole(file) == expected
        opened.settle()
        assert whole(file) == expected

    @pytest.mark.parametrize("is_settled", [False, True])
    def test_a_cut_hides_what_was_behind_it_for_good(
        self, opened: Opened, file: File, *, is_settled: bool
    ) -> None:
        file.write_at(DATA, 0)
        if is_settled:
            opened.settle()
        file.cut(10)
        assert whole(file) == DATA[:10]
        file.cut(20)
        file.write_at(b"far", 30)

        assert whole(file) == DATA[:10] + bytes(20) + b"far"
        opened.settle()
        assert whole(file) == DATA[:10] + bytes(20) + b"far"

    def test_a_punch_behind_the_end_does_not_grow_the_file(
        self, opened: Opened, file: File
    ) -> None:
        file.write_at(DATA, 0)
        assert file.punch(90, 100)

        assert whole(file) == DATA[:90] + bytes(10)
        opened.settle()
        assert whole(file) == DATA[:90] + bytes(10)

    def test_zeros_are_one_small_operation(self, opened: Opened, file: File) -> None:
        file.write_at(bytes(3_000_000), 7)
        file.write_at(b"\0", 0)
        file.write_at(b"", 9)
        file.write_at(b"\0x\0", 1)

        assert opened.settle() == [
            Create("a"),
            Zero("a", 7, 3_000_000),
            Write("a", 0, b"\0"),
            Write("a", 1, b"\0x\0"),
        ]
        assert file.size() == 3_000_007

    def test_a_large_write_goes_in_pieces(self, opened: Opened, file: File) -> None:
        data = DATA * 15_000

        file.write_at(memoryview(data), 3)

        assert len(opened.settle()) > 2
        assert file.read_at(len(data) + 9, 0) == bytes(3) + data

    def test_all_handles_of_a_file_see_the_same(self, files: ReplicatedFiles, file: File) -> None:
        other = files.open("a")
        file.write_at(DATA, 0)
        file.close()

        assert whole(other) == DATA

    def test_what_is_not_in_memory_is_not_read_from_the_disk(self) -> None:
        cold = Opened(Disk(is_cold=True))
        file = cold.files.open("a", create=True)
        file.write_at(DATA, 0)
        cold.settle()
        assert file.read_cached_at(5, 0) is None
        file.write_at(b"x", 0)

        assert file.read_cached_at(5, 0) is None
        assert file.read_into(memoryview(bytearray(5)), 0, waits=False) == 0
        assert file.read_at(5, 0) == b"x" + DATA[1:5]

    def test_nothing_waits_is_read_by_the_disk(self, opened: Opened, file: File) -> None:
        file.write_at(DATA, 0)
        opened.settle()

        file.will_read(10, 0)
        buffer = bytearray(200)
        assert file.read_into(memoryview(buffer), 0, waits=False) == 100

    def test_whatever_is_asked_of_a_closed_file_fails(
        self, files: ReplicatedFiles, file: File
    ) -> None:
        other = files.open("a")
        file.close()
        file.close()

        for call in (
            lambda: file.write_at(b"x", 0),
            lambda: file.read_at(1, 0),
            lambda: file.read_cached_at(1, 0),
            lambda: file.read_into(memoryview(bytearray(1)), 0),
            lambda: file.punch(0, 1),
            lambda: file.allocate(0, 1),
            lambda: file.cut(0),
            file.size,
            file.sync,
            lambda: file.fileno,
        ):
            with pytest.raises(SegmentFailed, match=r"a: cannot .*: the file is closed"):
                call()
        assert other.size() == 0


class TestNames:
    """Names, before and after the log has their changes."""

    def test_each_change_of_a_name_is_seen_at_once(
        self, opened: Opened, files: ReplicatedFiles, disk: Disk
    ) -> None:
        files.open("a", create=True)
        files.open("b", create=True)
        files.rename("a", "c")
        files.remove("b")
        files.remove("never was")

        assert set(files.names("")) == {"c", "lock", "member"}
        assert contents(disk.image()) == {}
        assert opened.settle() == [Create("a"), Create("b"), Rename("a", "c"), Remove("b")]
        assert set(files.names("")) == {"c", "lock", "member"} == set(disk.names(""))

    def test_directories_are_made_with_those_above(
        self, opened: Opened, files: ReplicatedFiles, disk: Disk
    ) -> None:
        files.make_directory("")
        files.make_directory("x/y/z")
        files.make_directory("x/y/z")
        files.make_directory("x/w")

        assert opened.settle() == [MakeDirectory("x/y/z"), MakeDirectory("x/w")]
        assert {"x", "x/y", "x/y/z", "x/w"} <= disk.image().directories
        assert set(files.names("x")) == {"y", "w"}
        files.open("x/y/z/file", create=True)
        assert files.names("x/y/z") == ["file"]

    def test_a_file_that_is_missing_is_not_opened(self, files: ReplicatedFiles) -> None:
        with pytest.raises(SegmentFailed, match="a: cannot open: it is not there"):
            files.open("a")
        with pytest.raises(SegmentFailed, match="b: cannot rename to: a is not there"):
            files.rename("a", "b")
        with pytest.raises(SegmentFailed):
            files.names("nowhere")
        with pytest.raises(SegmentFailed):
            files.open("nowhere/a", create=True)

    def test_a_file_is_renamed_before_it_is_on_the_disk(
        self, opened: Opened, files: ReplicatedFiles, file: File
    ) -> None:
        file.write_at(DATA, 0)
        files.rename("a", "b")
        file.write_at(b"x", 0)
        again = files.open("a", create=True)
        again.write_at(b"another", 0)

        assert whole(files.open("b")) == b"x" + DATA[1:]
        assert whole(again) == b"another"
        opened.settle()
        assert whole(files.open("b")) == b"x" + DATA[1:]
        assert whole(file) == b"x" + DATA[1:]
        assert whole(again) == b"another"

    def test_a_file_that_is_closed_is_found_under_its_new_name_at_once(
        self, opened: Opened, files: ReplicatedFiles, disk: Disk
    ) -> None:
        for name in ("new", "old"):
            made = files.open(name, create=True)
            made.write_at(name.encode(), 0)
            made.close()
        opened.settle()

        files.rename("new", "old")

        assert whole(files.open("old")) == b"new"
        opened.settle()
        assert whole(files.open("old")) == b"new"
        assert contents(disk.image()) == {"old": b"new"}

    def test_a_file_that_was_made_and_closed_is_opened_again_at_once(
        self, files: ReplicatedFiles
    ) -> None:
        files.open("a", create=True).close()

        assert whole(files.open("a")) == b""

    def test_a_file_is_replaced_while_it_is_open(
        self, opened: Opened, files: ReplicatedFiles, file: File
    ) -> None:
        file.write_at(DATA, 0)
        other = files.open("b", create=True)
        other.write_at(b"other", 0)
        files.rename("b", "a")

        for _ in range(2):
            assert whole(file) == DATA
            assert whole(files.open("a")) == b"other"
            opened.settle()

    @pytest.mark.parametrize("is_settled", [False, True])
    def test_a_file_is_read_after_its_removal(
        self, opened: Opened, files: ReplicatedFiles, file: File, *, is_settled: bool
    ) -> None:
        file.write_at(DATA, 0)
        if is_settled:
            opened.settle()
        files.remove("a")
        again = files.open("a", create=True)
        again.write_at(b"again", 0)

        for _ in range(2):
            assert whole(file) == DATA
            assert whole(again) == b"again"
            opened.settle()
        file.write_at(b"lost", 0)
        assert opened.settle()[-1] == Write("a", 0, b"again")

    def test_a_member_keeps_own_files(
        self, opened: Opened, files: ReplicatedFiles, disk: Disk
    ) -> None:
        reserve = files.open("reserve", create=True)
        reserve.write_at(DATA, 0)
        files.rename("reserve", "token.key")
        files.open("token.new", create=True).close()
        files.remove("token.new")
        files.make_directory("set-aside/1")
        files.open("set-aside/1/x", create=True).close()
        files.sync_directory("set-aside/1")

        assert opened.settle() == []
        assert files.names("set-aside/1") == ["x"]
        assert {"token.key", "set-aside"} <= set(files.names(""))
        assert disk.open("token.key").read_at(100, 0) == DATA

    def test_a_file_that_is_set_aside_goes_from_the_others(
        self, opened: Opened, files: ReplicatedFiles, file: File, disk: Disk
    ) -> None:
        file.write_at(DATA, 0)
        files.make_directory("set-aside")

        files.rename("a", "set-aside/a")

        assert files.names("set-aside") == ["a"]
        assert "a" not in files.names("")
        assert disk.open("set-aside/a").read_at(100, 0) == DATA
        assert opened.settle()[-1] == Remove("a")
        assert whole(file) == DATA


class TestSyncs:
    """Syncs that wait for the log, and those that do not."""

    def test_a_sync_has_all_in_the_log_and_the_files(
        self, opened: Opened, files: ReplicatedFiles, file: File, disk: Disk
    ) -> None:
        file.write_at(DATA, 0)
        file.sync()
        assert operations_of(opened.log) == [Create("a"), Write("a", 0, DATA)]
        assert contents(disk.image()) == {"a": DATA}
        files.rename("a", "b")
        files.sync_directory("")

        assert operations_of(opened.log)[2:] == [Rename("a", "b")]
        assert contents(disk.image()) == {"b": DATA}

    def test_a_sync_that_another_follows_waits_for_nothing(self, disk: Disk) -> None:
        opened = Opened(disk, ordered=("data",))
        opened.files.make_directory("data")
        file = opened.files.open("data/1", create=True)
        file.write_at(DATA, 0)

        file.sync()
        opened.files.sync_directory("data")

        assert operations_of(opened.log) == [MakeDirectory("data")]
        opened.files.sync_directory("")
        assert operations_of(opened.log)[1:] == [Create("data/1"), Write("data/1", 0, DATA)]

    def test_a_sync_fails_when_another_member_has_taken_over(
        self, opened: Opened, disk: Disk
    ) -> None:
        file = opened.files.open("a", create=True)
        taken_over(opened.log)

        for _ in range(2):
            with pytest.raises(Fenced):
                file.sync()
        with pytest.raises(Fenced):
            opened.files.sync_directory("")
        assert contents(disk.image()) == {}


class TestRoom:
    """A disk that is full is found before anything is sent."""

    def test_a_file_is_not_made_without_room(self, opened: Opened, files: ReplicatedFiles) -> None:
        opened.room = ROOM_BYTES - 1
        with pytest.raises(DiskFull, match="a: no space left"):
            files.open("a", create=True)

        assert "a" not in files.names("")
        opened.room = ROOM_BYTES
        files.open("a", create=True)
        assert opened.settle() == [Create("a")]

    @pytest.mark.parametrize(("size", "is_full"), [(999, False), (1000, False), (1001, True)])
    def test_a_file_is_allocated_where_there_is_room(
        self, opened: Opened, file: File, size: int, *, is_full: bool
    ) -> None:
        opened.room = ROOM_BYTES + 1000
        if is_full:
            with pytest.raises(DiskFull, match="a: no space left for 1001 bytes"):
                file.allocate(0, size)
        else:
            file.allocate(0, size)

        assert opened.settle() == [Create("a")]


class TestDescriptors:
    """Descriptors are given back."""

    def test_a_file_that_is_closed_keeps_none(
        self, opened: Opened, files: ReplicatedFiles, disk: Disk
    ) -> None:
        before = disk.descriptors
        for count in range(200):
            made = files.open(f"f{count}", create=True)
            made.write_at(DATA, 0)
            if count % 3 == 0:
                made.close()
            if count % 5 == 0:
                files.rename(f"f{count}", f"g{count}")
            if count % 7 == 0:
                files.remove(f"f{count}")
            if count % 11 == 0:
                opened.settle()
            made.close()
        opened.settle()
        opened.copy.close()

        assert disk.descriptors == before

    def test_a_renaming_of_a_closed_file_gives_its_descriptor_back(
        self, opened: Opened, files: ReplicatedFiles, disk: Disk
    ) -> None:
        files.open("a", create=True).close()
        opened.settle()
        opened.copy.close()
        before = disk.descriptors

        files.rename("a", "b")
        opened.settle()
        opened.copy.close()

        assert disk.descriptors == before

    def test_a_file_that_finds_no_descriptor_is_opened_later(
        self, opened: Opened, files: ReplicatedFiles, file: File, disk: Disk
    ) -> None:
        other = files.open("b", create=True)
        file.write_at(DATA, 0)
        other.write_at(b"other", 0)
        disk.descriptors_max = disk.descriptors + 1
        failed: list[int] = []

        def wait() -> None:
            failed.append(1)
            if len(failed) > 3:
                disk.descriptors_max = 1000

        opened.files.shipping._pause = wait
        opened.settle()

        assert failed
        assert (whole(file), whole(other)) == (DATA, b"other")

    def test_an_open_that_finds_no_descriptor_changes_nothing(
        self, opened: Opened, files: ReplicatedFiles, disk: Disk
    ) -> None:
        files.open("a", create=True).close()
        opened.settle()
        disk.descriptors_max = disk.descriptors
        for call in (lambda: files.open("a"), lambda: files.rename("a", "b")):
            with pytest.raises(OutOfDescriptors):
                call()
        disk.descriptors_max = 1000

        assert "a" in files.names("")
        assert whole(files.open("a")) == b""
        assert opened.settle() == [Create("a")]


def test_a_file_on_the_disk_has_a_descriptor(tmp_path: Path) -> None:
    opened = Opened(DirectoryFiles(tmp_path))
    file = opened.files.open("a", create=True)
    with pytest.raises(SegmentFailed, match="a: it is not on the disk yet"):
        assert file.fileno
    file.write_at(DATA, 0)
    opened.settle()

    assert file.fileno > 2


def test_the_lock_is_the_one_that_is_held(files: ReplicatedFiles) -> None:
    lock = files.lock("lock")

    assert lock is files.lock("lock")
    files.keep_open("")
    files.close()
    lock.close()

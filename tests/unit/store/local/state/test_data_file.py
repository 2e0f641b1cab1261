import pytest

from store.errors import SegmentFailed
from store.files import File
from store.local.state.data_file import DataFile, OpenFiles
from tests.simulation.disk import Disk, Failure, Sync


class Retired:
    """Notes whose handles were closed."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def __call__(self, file: DataFile, handle: File) -> None:
        self.numbers.append(file.number)
        handle.close()


@pytest.fixture
def disk() -> Disk:
    disk = Disk()
    disk.make_directory("data")
    return disk


def made(open_files: OpenFiles, count: int) -> list[DataFile]:
    files = [DataFile(number, 1) for number in range(1, count + 1)]
    for file in files:
        open_files.open(file, create=True)
        open_files.touch(file)
    return files


def test_a_file_is_opened_once(disk: Disk) -> None:
    open_files = OpenFiles(disk, 8, Retired())
    file = DataFile(1, 1)
    handle = open_files.open(file, create=True)
    assert file.made
    assert open_files.open(file) is handle
    assert disk.names("data") == ["1"]


def test_a_file_that_is_missing_is_not_made_by_the_way(disk: Disk) -> None:
    file = DataFile(1, 1)
    with pytest.raises(SegmentFailed):
        OpenFiles(disk, 8, Retired()).open(file)
    assert not file.made


def test_what_was_not_used_for_longest_is_closed(disk: Disk) -> None:
    retired = Retired()
    open_files = OpenFiles(disk, 8, retired)
    files = made(open_files, 9)
    open_files.touch(files[0])
    open_files.trim()
    assert sorted(retired.numbers) == [2, 3, 4]
    assert files[1].handle is None
    assert files[0].handle is not None


def test_a_pinned_file_stays_open_until_its_last_pin(disk: Disk) -> None:
    retired = Retired()
    open_files = OpenFiles(disk, 8, retired)
    files = made(open_files, 9)
    for file in files[:8]:
        file.pins += 2
    open_files.trim()
    assert retired.numbers == [9]
    files[0].dead = True
    open_files.close_dead(files[:1])
    open_files.unpin(files[0])
    assert retired.numbers == [9]
    open_files.unpin(files[0])
    assert retired.numbers == [9, 1]


def test_few_open_files_are_left_alone(disk: Disk) -> None:
    retired = Retired()
    open_files = OpenFiles(disk, 8, retired)
    made(open_files, 8)
    open_files.trim()
    assert retired.numbers == []


def test_a_closed_file_is_opened_again(disk: Disk) -> None:
    open_files = OpenFiles(disk, 0, Retired())
    (file,) = made(open_files, 1)
    open_files.trim()
    assert file.handle is None
    open_files.open(file).write_at(b"x", 0)


def test_a_failed_sync_fails_for_good(disk: Disk) -> None:
    open_files = OpenFiles(disk, 8, Retired())
    (file,) = made(open_files, 1)
    disk.failures = [Failure(lambda step: isinstance(step, Sync))]
    with pytest.raises(SegmentFailed):
        open_files.sync(file)
    with pytest.raises(SegmentFailed):
        open_files.sync(file)


def test_a_deleted_file_needs_no_sync(disk: Disk) -> None:
    open_files = OpenFiles(disk, 8, Retired())
    file = DataFile(1, 1)
    file.dead = True
    open_files.sync(file)


def test_everything_can_be_closed_but_what_somebody_holds(disk: Disk) -> None:
    retired = Retired()
    open_files = OpenFiles(disk, 8, retired)
    held, free = made(open_files, 2)
    held.pins += 1
    open_files.close_all()
    assert free.handle is None
    assert held.handle is not None
    open_files.unpin(held)
    assert held.handle is None

"""The files that a journal goes on in: made ahead, taken over, or small ones on a full disk."""

import pytest

from store.errors import DiskFull, SegmentFailed
from store.local.commit import journal_files
from store.local.commit.journal_files import (
    JOURNAL_DIRECTORY,
    OWN_BYTES,
    SMALL_PART,
    SpareFiles,
    is_in_use,
    numbers_in,
    path_of,
)
from store.local.commit.records import FILE_HEAD_BYTES, FRAME_HEAD_BYTES, file_head
from store.local.reserve import Reserve
from tests.simulation.disk import Create, Disk, Failure, Step, Sync, Write
from tests.unit.store.local.journals import STORE, spares_on

SIZE = 64 * 1024


@pytest.fixture
def disk() -> Disk:
    disk = Disk()
    disk.make_directory(JOURNAL_DIRECTORY)
    return disk


def spares(disk: Disk, reserve: Reserve | None = None) -> SpareFiles:
    return SpareFiles(disk, reserve, store_id=STORE, file_bytes=SIZE, count_max=1)


def write(disk: Disk, path: str, data: bytes) -> None:
    file = disk.open(path, create=True)
    file.write_at(data, 0)
    file.close()


def whole_file(number: int, size: int = SIZE, store: int = STORE) -> bytes:
    return file_head(number, size, store).ljust(size, b"\0")


def test_only_plain_numbers_are_journal_files(disk: Disk) -> None:
    for name in ("10", "9", "09", "x", "1x", "-1"):
        write(disk, f"{JOURNAL_DIRECTORY}/{name}", b"")

    assert numbers_in(disk) == [9, 10]


def test_a_new_file_has_a_number_of_its_own_a_head_and_zeros_and_is_on_the_disk(
    disk: Disk,
) -> None:
    write(disk, path_of(4), b"")
    made = spares(disk).take(100, may_be_small=False)

    assert (made.number, made.size) == (5, SIZE)
    assert made.file.read_at(SIZE, 0) == whole_file(5)
    steps = [type(step).__name__ for step in disk.record]
    assert steps[-2:] == ["Sync", "SyncDirectory"]


def test_a_frame_that_is_larger_than_a_file_gets_a_larger_file(disk: Disk) -> None:
    made = spares(disk).take(SIZE, may_be_small=False)

    assert made.size == SIZE + OWN_BYTES


def test_of_the_files_that_are_ready_one_is_taken_that_the_frame_fits_into(disk: Disk) -> None:
    for number, size in ((1, SIZE), (2, 2 * SIZE)):
        write(disk, path_of(number), whole_file(number, size))
    found = spares(disk)
    found.take_over([1, 2])
    largest = SIZE - OWN_BYTES

    assert found.has_room_for(largest + SIZE)
    assert found.take(largest + 1, may_be_small=False).number == 2
    assert not found.has_room_for(largest + 1)
    assert found.has_room_for(largest)
    assert found.take(largest, may_be_small=False).number == 1
    assert not found.has_room_for(1)


@pytest.mark.parametrize(
    ("data", "is_taken"),
    [
        (whole_file(1), True),
        (whole_file(1, 2 * SIZE), True),
        (whole_file(1)[:-1], False),
        (whole_file(1, SIZE - 1), False),
        (whole_file(2), False),
        (whole_file(1, store=STORE + 1), False),
        (bytes(SIZE), False),
        (b"", False),
    ],
)
def test_what_is_no_spare_file_of_this_store_is_removed(
    disk: Disk, data: bytes, *, is_taken: bool
) -> None:
    write(disk, path_of(1), data)
    found = spares(disk)

    found.take_over([1])

    assert [spare.number for spare in found.ready] == [1] * is_taken
    assert numbers_in(disk) == [1] * is_taken


def test_a_file_that_is_taken_over_is_synced_first(disk: Disk) -> None:
    write(disk, path_of(1), whole_file(1))
    begin = len(disk.record)
    spares(disk).take_over([1])

    assert [type(step) for step in disk.record[begin:]] == [Sync]


def test_a_spare_file_is_made_when_none_is_ready_and_by_one_caller_only(disk: Disk) -> None:
    found = spares(disk)

    assert found.claim()
    assert not found.claim(), "it is being made"
    found.prepare()
    assert [spare.size for spare in found.ready] == [SIZE]
    assert not found.claim()
    assert found.surplus() is None

    found.take(1, may_be_small=False)
    assert found.claim()


def test_more_than_are_wanted_are_surplus(disk: Disk) -> None:
    for number in (1, 2, 3):
        write(disk, path_of(number), whole_file(number))
    found = spares(disk)
    found.take_over([1, 2, 3])

    surplus = [found.surplus() for _ in range(3)]

    assert [each and each.number for each in surplus] == [3, 2, None]


def test_a_spare_file_that_cannot_be_made_is_tried_again_later_and_said_once(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    monkeypatch.setattr("store.local.commit.journal_files.time.monotonic", lambda: now[0])
    disk.failures = [Failure(lambda step: isinstance(step, Create), times=3, is_full=True)]
    found = spares(disk)

    for _ in range(3):
        assert found.claim()
        found.prepare()
        assert not found.claim(), "not at once again"
        now[0] += journal_files.SPARE_AGAIN_S
    assert [record.getMessage()[:28] for record in caplog.records] == [
        "no spare journal file tries="
    ]

    assert found.claim()
    found.prepare()
    assert len(found.ready) == 1


@pytest.mark.parametrize("failing", [Write, Sync])
def test_a_file_that_is_not_finished_is_removed(disk: Disk, failing: type[Step]) -> None:
    disk.failures = [Failure(lambda step: isinstance(step, failing))]

    with pytest.raises(SegmentFailed):
        spares(disk).take(1, may_be_small=True)

    assert numbers_in(disk) == []
    assert disk.descriptors == 0


def test_on_a_full_disk_what_deletes_gets_a_small_file_in_place_of_the_reserve(disk: Disk) -> None:
    reserve = Reserve(disk, SIZE // SMALL_PART + 8 * 1024)
    reserve.take()
    assert not reserve.is_short
    disk.capacity = disk.used()

    with pytest.raises(DiskFull):
        spares(disk, reserve).take(1, may_be_small=False)
    assert not reserve.is_short

    made = spares(disk, reserve).take(1, may_be_small=True)
    assert made.size == SIZE // SMALL_PART
    assert reserve.is_short


def test_without_a_reserve_a_full_disk_has_no_room(disk: Disk) -> None:
    disk.capacity = disk.used()

    with pytest.raises(DiskFull):
        spares_on(disk).take(1, may_be_small=True)


@pytest.mark.parametrize(("place", "is_used"), [(-1, False), (0, True), (500, True)])
def test_a_journal_is_in_use_once_something_follows_the_first_frame_of_a_file(
    disk: Disk, place: int, *, is_used: bool
) -> None:
    assert not is_in_use(disk)
    data = bytearray(SIZE)
    data[FILE_HEAD_BYTES + FRAME_HEAD_BYTES + place] = 1
    write(disk, path_of(1), whole_file(1))
    write(disk, path_of(2), bytes(data))

    assert is_in_use(disk) == is_used
    assert disk.descriptors == 0

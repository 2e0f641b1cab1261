import threading
import time

import pytest

from store.errors import DiskFull, StoreClosed
from store.local import records
from store.local.journal import (
    JOURNAL_DIRECTORY,
    RESERVE_PART,
    SPARE_AGAIN_S,
    Journal,
    JournalFile,
    JournalPlace,
    path_of,
)
from store.local.journal_reader import JournalReader
from store.local.records import FRAME_HEAD_BYTES, create_record, truncate_record
from store.local.reserve import Reserve
from tests.simulation.disk import Create, Disk, Failure, Sync, SyncDirectory, Write

SALT, SIZE = 5, 1_024
RECORD = create_record(1, "r" * 300, None, durable=True)


def journal_on(disk: Disk, sequence: int = 100, spare_count_max: int = 3) -> Journal:
    disk.make_directory(JOURNAL_DIRECTORY)
    return Journal(
        disk, sequence=sequence, salt=SALT, file_bytes=SIZE, spare_count_max=spare_count_max
    )


def sequences(disk: Disk, place: JournalPlace, salt: int = SALT) -> list[int]:
    return [frame.sequence for frame in JournalReader(disk, salt, place).frames()]


def test_frames_are_found_in_the_order_of_writing_across_files() -> None:
    disk = Disk()
    journal = journal_on(disk)
    begin = journal.place()
    for _ in range(10):
        journal.append([RECORD], 1)
    assert len(disk.names(JOURNAL_DIRECTORY)) > 3
    assert sequences(disk, begin) == list(range(100, 110))
    assert sequences(disk, JournalPlace(100, 0, 0)) == list(range(100, 110))


def test_frames_are_found_from_the_middle() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for _ in range(4):
        journal.append([RECORD], 1)
    middle = journal.place()
    for _ in range(4):
        journal.append([RECORD], 1)
    assert sequences(disk, middle) == list(range(104, 108))


def test_frames_of_a_former_life_are_not_taken_for_the_next() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for _ in range(9):
        journal.append([RECORD], 1)
        journal.release_before(journal.place())
    place = journal.place()
    journal.close()
    reopened = journal_on(disk, 5_000)
    reopened.append([RECORD], 1)
    assert sequences(disk, JournalPlace(5_000, 0, 0)) == [5_000]
    assert sequences(disk, place) == []


def test_there_is_no_frame_behind_the_last() -> None:
    disk = Disk()
    journal = journal_on(disk)
    journal.append([RECORD], 1)
    assert sequences(disk, journal.place()) == []
    assert sequences(disk, JournalPlace(100, 1, 0)) == [100]
    assert sequences(disk, JournalPlace(100, 1, 0), SALT + 1) == []


def test_files_are_zeroed_and_durable_before_they_are_used() -> None:
    disk = Disk()
    journal = journal_on(disk)
    kinds = [type(step) for step in disk.record]
    assert kinds[kinds.index(Create) :] == [Create, Write, Sync, SyncDirectory]
    journal.append([RECORD], 1)
    assert disk.record[-1] == Write(1, 0, disk.image().contents[1][: len(RECORD) + 32])


def test_names_left_by_a_process_that_died_are_made_durable() -> None:
    disk = Disk()
    journal_on(disk).close()
    begin = len(disk.record)
    journal_on(disk, 2_000)
    assert [type(step) for step in disk.record[begin:]] == [SyncDirectory]


def test_a_file_that_was_not_finished_is_made_anew() -> None:
    disk = Disk()
    disk.make_directory(JOURNAL_DIRECTORY)
    disk.open("journal/1", create=True).write_at(b"short", 0)
    journal_on(disk)
    assert disk.names(JOURNAL_DIRECTORY) == ["2"]


def test_files_before_a_checkpoint_are_used_again() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for _ in range(40):
        journal.append([RECORD], 1)
        journal.release_before(journal.place())
    assert len(disk.names(JOURNAL_DIRECTORY)) <= 3


def test_surplus_files_are_removed() -> None:
    disk = Disk()
    journal = journal_on(disk, spare_count_max=1)
    for _ in range(20):
        journal.append([RECORD], 1)
    journal.release_before(journal.place())
    journal.trim()
    assert len(disk.names(JOURNAL_DIRECTORY)) == 2


def test_a_frame_larger_than_a_file_gets_a_file_of_its_own() -> None:
    disk = Disk()
    journal = journal_on(disk)
    name = "n" * 5 * SIZE
    journal.append([create_record(1, name, None, durable=True)], 1)
    (frame,) = JournalReader(disk, SALT, JournalPlace(100, 0, 0)).frames()
    (record,) = frame.records
    assert isinstance(record, records.Create)
    assert record.name == name


def test_it_tells_what_fits_without_making_a_file() -> None:
    disk = Disk()
    journal = journal_on(disk)
    assert journal.fits(100)
    assert not journal.fits(SIZE)
    journal.append([bytes(SIZE // 2)], 1)
    assert not journal.fits(SIZE // 2)
    assert journal.claim_spare()
    assert not journal.claim_spare()
    journal.prepare_spare()
    assert journal.fits(SIZE // 2)
    assert not journal.claim_spare()


def test_a_spare_that_cannot_be_made_is_asked_for_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = Disk()
    journal = journal_on(disk)
    journal.append([bytes(SIZE // 2)], 1)
    disk.failures = [Failure(lambda step: isinstance(step, Create), is_full=True)]
    assert journal.claim_spare()
    journal.prepare_spare()
    assert not journal.claim_spare()
    later = time.monotonic() + SPARE_AGAIN_S
    monkeypatch.setattr("store.local.journal.time.monotonic", lambda: later)
    assert journal.claim_spare()


def test_a_full_disk_is_not_told_of_with_every_try(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk()
    journal = journal_on(disk)
    journal.append([bytes(SIZE // 2)], 1)
    disk.failures = [Failure(lambda step: isinstance(step, Create), times=99, is_full=True)]
    clock = iter(range(0, 10_000, 6))
    monkeypatch.setattr("store.local.journal.time.monotonic", lambda: next(clock))
    for _ in range(20):
        if journal.claim_spare():
            journal.prepare_spare()
    assert 1 < caplog.text.count("no spare journal file") < 6


def test_a_full_disk_passes_and_leaves_no_half_made_file() -> None:
    disk = Disk()
    journal = journal_on(disk)
    journal.append([RECORD] * 2, 1)
    disk.failures = [Failure(lambda step: isinstance(step, Write), is_full=True)]
    with pytest.raises(DiskFull):
        journal.append([RECORD] * 2, 1)
    assert disk.names(JOURNAL_DIRECTORY) == ["1"]
    journal.append([RECORD] * 2, 1)
    assert journal.place().sequence == 102


def test_on_a_full_disk_there_is_room_to_say_what_is_deleted() -> None:
    disk = Disk()
    journal = journal_on(disk)
    journal.append([bytes(SIZE - SIZE // RESERVE_PART - FRAME_HEAD_BYTES)], 1)
    disk.failures = [Failure(lambda step: isinstance(step, Create), times=9, is_full=True)]
    with pytest.raises(DiskFull):
        journal.append([b"create"], 1)
    journal.append([b"delete"], 1, gives_space=True)
    assert journal.place().sequence == 102


ENDS_IN_ZEROS = truncate_record(1, 5, durable=True)


@pytest.mark.parametrize("keeps_bytes", [0, 5, FRAME_HEAD_BYTES, 50, -7])
@pytest.mark.parametrize("record", [RECORD, ENDS_IN_ZEROS])
def test_where_a_write_finds_no_space_the_next_frame_has_its_place(
    record: bytes, keeps_bytes: int
) -> None:
    disk = Disk()
    journal = journal_on(disk)
    place = journal.place()
    disk.failures = [no_space_to_write(keeps_bytes)]
    with pytest.raises(DiskFull):
        journal.append([record], 1)
    assert sequences(disk, place) == []
    assert journal.place() == place

    journal.append([ENDS_IN_ZEROS], 2)
    journal.append([RECORD], 3)
    journal.sync()

    frames = list(JournalReader(disk, SALT, place).frames())
    assert [(frame.sequence, frame.at_ms) for frame in frames] == [(100, 2), (101, 3)]


def no_space_to_write(keeps_bytes: int = 0, times: int = 1) -> Failure:
    return Failure(
        lambda step: isinstance(step, Write), is_full=True, times=times, keeps_bytes=keeps_bytes
    )


def test_where_nothing_can_be_written_at_all_it_goes_on_when_there_is_space() -> None:
    disk = Disk()
    journal = journal_on(disk)
    place = journal.place()
    disk.failures = [no_space_to_write(times=10)]
    for _ in range(10):
        with pytest.raises(DiskFull):
            journal.append([RECORD], 1)
    journal.append([RECORD], 1)
    assert sequences(disk, place) == [100]


def test_a_whole_frame_that_was_refused_and_cannot_be_taken_back_ends_it() -> None:
    disk = Disk()
    journal = journal_on(disk)
    disk.failures = [no_space_to_write(keeps_bytes=-5), no_space_to_write()]
    with pytest.raises(StoreClosed):
        journal.append([ENDS_IN_ZEROS], 1)


def test_what_gives_space_is_written_with_the_room_that_is_kept() -> None:
    disk = Disk()
    disk.make_directory(JOURNAL_DIRECTORY)
    reserve = Reserve(disk, SIZE)
    reserve.take()
    journal = Journal(
        disk, sequence=100, salt=SALT, file_bytes=SIZE, spare_count_max=3, reserve=reserve
    )
    place = journal.place()
    disk.failures = [no_space_to_write(keeps_bytes=40)]
    journal.append([RECORD], 1, gives_space=True)
    assert reserve.is_short
    assert sequences(disk, place) == [100]


def test_a_failed_write_ends_it() -> None:
    disk = Disk()
    journal = journal_on(disk)
    disk.failures = [Failure(lambda step: isinstance(step, Write))]
    with pytest.raises(StoreClosed):
        journal.append([RECORD], 1)
    with pytest.raises(StoreClosed):
        journal.append([RECORD], 1)
    with pytest.raises(StoreClosed):
        journal.sync()


def test_a_failed_sync_ends_it_and_is_not_tried_again() -> None:
    disk = Disk()
    journal = journal_on(disk)
    journal.append([RECORD], 1)
    disk.failures = [Failure(lambda step: isinstance(step, Sync))]
    with pytest.raises(StoreClosed):
        journal.sync()
    count = len(disk.record)
    with pytest.raises(StoreClosed):
        journal.sync()
    with pytest.raises(StoreClosed):
        journal.append([RECORD], 1)
    assert len(disk.record) == count


def test_a_sync_covers_every_file_written_since_the_last() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for _ in range(5):
        journal.append([RECORD], 1)
    begin = len(disk.record)
    journal.sync()
    assert len(disk.record) - begin == 3
    journal.sync()
    assert len(disk.record) - begin == 3


def inode_of(disk: Disk, journal_file: JournalFile) -> int:
    return disk.image().names[path_of(journal_file.number)]


def test_what_a_checkpoint_contains_needs_no_sync() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for _ in range(5):
        journal.append([RECORD], 1)
    journal.release_before(journal.place())
    begin = len(disk.record)
    journal.sync()
    assert disk.record[begin:] == [Sync(inode_of(disk, journal._current))]


def test_a_file_that_was_removed_before_its_sync_is_not_in_the_way_of_the_next_one() -> None:
    disk = Disk()
    journal = journal_on(disk, spare_count_max=1)
    for _ in range(20):
        journal.append([RECORD], 1)
    journal.release_before(journal.place())
    journal.trim()
    journal.append([RECORD], 1)
    journal.sync()
    assert journal.failure is None


def test_a_frame_in_a_file_that_is_used_again_is_synced() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for _ in range(5):
        journal.append([RECORD], 1)
    journal.release_before(journal.place())
    spares = {inode_of(disk, spare) for spare in journal._spares}
    for _ in range(3):
        journal.append([RECORD], 1)
    begin = len(disk.record)
    journal.sync()
    synced = {step.inode for step in disk.record[begin:] if isinstance(step, Sync)}
    assert inode_of(disk, journal._current) in synced & spares


def test_no_file_is_closed_that_a_sync_may_come_to() -> None:
    disk = Disk()
    journal = journal_on(disk, spare_count_max=0)
    for _ in range(9):
        journal.append([RECORD], 1)
    trimming = threading.Thread(target=journal.trim)

    def while_syncing(_: Sync) -> None:
        if not trimming.ident:
            journal.release_before(journal.place())
            trimming.start()
            trimming.join(0.1)

    disk.before_sync = while_syncing
    journal.sync()
    trimming.join()
    assert journal.failure is None
    assert len(disk.names(JOURNAL_DIRECTORY)) == 1

import random
import threading
import time
from pathlib import Path

import pytest

from store.errors import DiskFull, SegmentFailed, StoreClosed
from store.files import DirectoryFiles
from store.local.commit import records
from store.local.commit.journal import RESERVE_PART, Journal, JournalPlace
from store.local.commit.journal_files import (
    JOURNAL_DIRECTORY,
    OWN_BYTES,
    SPARE_AGAIN_S,
    JournalFile,
    SpareFiles,
    path_of,
)
from store.local.commit.journal_reader import JournalReader
from store.local.commit.records import (
    FILE_HEAD_BYTES,
    FRAME_HEAD_BYTES,
    Link,
    create_record,
    file_head,
    truncate_record,
)
from store.local.reserve import Reserve
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Create, Disk, Failure, Sync, SyncDirectory, Write
from tests.unit.store.local.journals import (
    RECORD,
    SALT,
    SIZE,
    STORE,
    found,
    journal_on,
    reader_on,
    sequences,
    spares_on,
    times,
)


def test_files_are_zeroed_and_durable_before_they_are_used() -> None:
    disk = Disk()
    journal = journal_on(disk)
    kinds = [type(step) for step in disk.record]
    assert kinds[kinds.index(Create) :] == [Create, Write, Write, Sync, SyncDirectory]
    whole = disk.image().contents[1]
    assert whole == file_head(1, SIZE, STORE) + bytes(SIZE - FILE_HEAD_BYTES)
    journal.append([RECORD], 1)
    end = FILE_HEAD_BYTES + FRAME_HEAD_BYTES + len(RECORD)
    assert disk.record[-1] == Write(
        1, FILE_HEAD_BYTES, disk.image().contents[1][FILE_HEAD_BYTES:end]
    )


def test_files_left_by_a_process_that_died_are_made_durable() -> None:
    disk = Disk()
    journal_on(disk).close()
    begin = len(disk.record)
    journal_on(disk, 2_000)
    assert [type(step) for step in disk.record[begin:]] == [Sync, SyncDirectory]


def test_a_file_that_was_not_finished_is_made_anew() -> None:
    disk = Disk()
    disk.make_directory(JOURNAL_DIRECTORY)
    disk.open("journal/1", create=True).write_at(b"short", 0)
    disk.open("journal/2", create=True).write_at(file_head(2, SIZE, STORE), 0)
    disk.open("journal/3", create=True).write_at(bytes(SIZE), 0)
    disk.open("journal/4", create=True).write_at(file_head(4, SIZE, STORE + 1) + bytes(SIZE), 0)
    journal_on(disk)
    assert disk.names(JOURNAL_DIRECTORY) == ["5"]


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
    link, frame = reader_on(disk, JournalPlace(100, 1, FILE_HEAD_BYTES)).frames()
    (record,) = link.records
    assert isinstance(record, Link)
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
    monkeypatch.setattr("store.local.commit.journal_files.time.monotonic", lambda: later)
    assert journal.claim_spare()


def test_a_full_disk_is_not_told_of_with_every_try(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk()
    journal = journal_on(disk)
    journal.append([bytes(SIZE // 2)], 1)
    disk.failures = [Failure(lambda step: isinstance(step, Create), times=99, is_full=True)]
    clock = iter(range(0, 10_000, 6))
    monkeypatch.setattr("store.local.commit.journal_files.time.monotonic", lambda: next(clock))
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
    assert journal.place().sequence == 103


def test_on_a_full_disk_there_is_room_to_say_what_is_deleted() -> None:
    disk = Disk()
    journal = journal_on(disk)
    journal.append([bytes(SIZE - OWN_BYTES - SIZE // RESERVE_PART - FRAME_HEAD_BYTES)], 1)
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

    frames = found(disk, place)
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


@pytest.mark.parametrize("keeps_bytes", [0, 5, FRAME_HEAD_BYTES])
def test_a_whole_frame_is_taken_back_durably_before_it_is_refused(keeps_bytes: int) -> None:
    disk = Disk()
    journal = journal_on(disk)
    place = journal.place()
    whole = no_space_to_write(keeps_bytes=FRAME_HEAD_BYTES + len(RECORD))
    disk.failures = [whole, no_space_to_write(keeps_bytes)] if keeps_bytes else [whole]
    with pytest.raises(DiskFull):
        journal.append([RECORD], 1)
    aftermath, chance = Aftermath(), random.Random(1)
    for step in disk.record:
        aftermath.advance(step, chance)
    for crash in [*Crash] * 20:
        image, _ = aftermath.after(crash, chance, None)
        assert sequences(Disk(image), place) == []


def test_what_gives_space_is_written_with_the_room_that_is_kept() -> None:
    disk = Disk()
    disk.make_directory(JOURNAL_DIRECTORY)
    reserve = Reserve(disk, SIZE)
    reserve.take()
    journal = Journal(disk, spares_on(disk, reserve), sequence=100, salt=SALT)
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
    spares = {inode_of(disk, spare) for spare in journal._spares.ready}
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


def synced_of(disk: Disk, place: JournalPlace) -> list[int]:
    """Give for each frame how many of the frames before it were not said to be durable."""
    return [frame.sequence - frame.synced for frame in found(disk, place)]


def test_a_frame_says_which_ones_were_durable_before_it() -> None:
    disk = Disk()
    journal = journal_on(disk)
    begin = journal.place()
    small = truncate_record(1, 0, durable=True)
    journal.append([small], 1)
    journal.append([small], 1)
    journal.sync()
    journal.append([small], 1)
    # It is written while the sync is under way, which says nothing of it.
    disk.before_sync = lambda _: journal.append([small], 1)
    journal.sync()
    disk.before_sync = lambda _: None
    journal.append([small], 1)
    assert synced_of(disk, begin) == [0, 1, 0, 1, 1]


def test_a_sync_that_somebody_else_does_counts_when_it_has_ended_well(tmp_path: Path) -> None:
    files = DirectoryFiles(tmp_path)
    files.make_directory(JOURNAL_DIRECTORY)
    spares = SpareFiles(files, None, store_id=STORE, file_bytes=SIZE, count_max=3)
    journal = Journal(files, spares, sequence=100, salt=SALT)
    begin = journal.place()
    small = truncate_record(1, 0, durable=True)
    journal.append([small], 1)
    assert journal.begin_sync() is not None
    journal.append([small], 1)
    journal.end_sync(None)
    journal.append([small], 1)
    assert journal.begin_sync() is not None
    with pytest.raises(StoreClosed):
        journal.end_sync(SegmentFailed("sync failed"))
    frames = JournalReader(files, SALT, begin, store_id=STORE, size=SIZE).frames()
    assert [frame.sequence - frame.synced for frame in frames] == [0, 1, 1]
    assert journal._synced == 101
    journal.close()


def test_a_link_always_has_room() -> None:
    for size in range(SIZE - OWN_BYTES - 2 * FRAME_HEAD_BYTES - 3, SIZE - OWN_BYTES):
        disk = Disk()
        journal = journal_on(disk)
        begin = journal.place()
        journal.prepare_spare()
        records = [create_record(1, "r" * length, None, durable=True) for length in (size, 9, 9)]
        for number, record in enumerate(records):
            journal.append([record], number)
        assert times(disk, begin) == [0, 1, 2]
        assert all(len(each) >= SIZE for each in disk.image().contents.values())


def test_where_a_link_finds_no_space_the_next_frame_has_its_place() -> None:
    disk = Disk()
    journal = journal_on(disk)
    begin = journal.place()
    journal.append([RECORD] * 2, 1)
    journal.prepare_spare()
    disk.failures = [no_space_to_write(keeps_bytes=30)]
    with pytest.raises(DiskFull):
        journal.append([RECORD] * 2, 2)
    journal.append([truncate_record(1, 0, durable=True)], 3)
    journal.append([RECORD] * 2, 4)
    assert times(disk, begin) == [1, 3, 4]
    assert len(disk.names(JOURNAL_DIRECTORY)) == 2


def test_files_that_are_kept_are_not_touched_before_they_are_released() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for _ in range(5):
        journal.append([RECORD], 1)
    journal.close()
    before = disk.image()
    reopened = Journal(disk, spares_on(disk), sequence=5_000, salt=SALT, kept=[1, 3, 77])
    reopened.append([], 0)
    assert disk.image().contents[1] == before.contents[1]
    assert disk.image().contents[3] == before.contents[3]
    assert [spare.number for spare in reopened._spares.ready] == []
    reopened.release_kept()
    assert [spare.number for spare in reopened._spares.ready] == [1, 3]

import contextlib
from collections.abc import Callable

import pytest

from store.errors import DiskFull
from store.local.commit.journal import JournalPlace
from store.local.commit.journal_files import JOURNAL_DIRECTORY, path_of
from store.local.commit.records import FILE_HEAD_BYTES
from store.local.damage import Damage
from tests.simulation.disk import Disk, Failure, Write
from tests.unit.store.local.journals import (
    RECORD,
    SALT,
    SIZE,
    is_link,
    journal_on,
    reader_on,
    sequences,
    times,
)


def test_frames_are_found_in_the_order_of_writing_across_files() -> None:
    disk = Disk()
    journal = journal_on(disk)
    begin = journal.place()
    for number in range(10):
        journal.append([RECORD], number)
    assert len(disk.names(JOURNAL_DIRECTORY)) > 3
    assert times(disk, begin) == list(range(10))
    sequences = [frame.sequence for frame in reader_on(disk, begin).frames()]
    assert sequences == list(range(100, journal.sequence))


def test_frames_are_found_from_the_middle() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for number in range(4):
        journal.append([RECORD], number)
    middle = journal.place()
    for number in range(4, 8):
        journal.append([RECORD], number)
    assert times(disk, middle) == [4, 5, 6, 7]


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
    begin = JournalPlace(5_000, reopened.place().file, FILE_HEAD_BYTES)
    assert sequences(disk, begin) == [5_000]
    assert sequences(disk, place) == []


def test_there_is_no_frame_behind_the_last() -> None:
    disk = Disk()
    journal = journal_on(disk)
    journal.append([RECORD], 1)
    assert sequences(disk, journal.place()) == []
    assert sequences(disk, JournalPlace(100, 1, FILE_HEAD_BYTES)) == [100]
    assert sequences(disk, JournalPlace(100, 1, FILE_HEAD_BYTES), SALT + 1) == []


def test_a_file_is_found_though_the_link_to_it_was_lost() -> None:
    disk = Disk()
    journal = journal_on(disk)
    begin = journal.place()
    for number in range(6):
        journal.append([RECORD], number)
    links = [frame for frame in reader_on(disk, begin).frames() if is_link(frame)]
    data = disk.image().contents[1]
    at = data.rindex(links[0].sequence.to_bytes(8, "little"))
    disk.open(path_of(1)).write_at(bytes(SIZE - at), at)
    assert times(disk, begin) == list(range(6))


def test_the_file_of_the_checkpoints_place_is_kept_though_no_frame_follows_in_it() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for number in range(2):
        journal.append([RECORD], number)
    place = journal.place()
    journal.append([RECORD], 2)
    disk.open(path_of(1)).write_at(bytes(SIZE - place.position), place.position)
    reader = reader_on(disk, place)
    assert [frame.at_ms for frame in reader.frames()] == [2]
    assert reader.needed() == {1, 2}
    assert reader.tail().files == (1, 2)


def test_a_place_at_the_beginning_of_a_file_that_is_used_again_is_no_damage() -> None:
    disk = Disk()
    journal = journal_on(disk)
    for _ in range(4):
        journal.append([RECORD], 1)
        journal.release_before(journal.place())
    disk.failures = [
        Failure(lambda step: isinstance(step, Write) and len(step.data) > 300, is_full=True)
    ]
    while journal.place().position > FILE_HEAD_BYTES:
        with contextlib.suppress(DiskFull):
            journal.append([RECORD], 2)
    place = journal.place()
    file = disk.open(path_of(place.file))
    assert any(file.read_at(8, FILE_HEAD_BYTES))
    assert not damage_of(disk, place)
    journal.append([RECORD], 3)
    assert times(disk, place) == [3]


def removed(disk: Disk, path: str) -> None:
    disk.remove(path)


def cut(disk: Disk, path: str) -> None:
    disk.open(path).cut(700)


def harmed(disk: Disk, path: str) -> None:
    disk.open(path).write_at(b"?", 9)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (removed, "journal file is missing"),
        (cut, "journal file has 700 bytes and not 1024"),
        (harmed, "journal file does not begin with its head"),
    ],
)
@pytest.mark.parametrize("path", ["journal/1", "journal/2"])
def test_files_that_a_checkpoint_or_a_link_names_are_checked(
    harm: Callable[[Disk, str], object], words: str, path: str
) -> None:
    disk = Disk()
    journal = journal_on(disk)
    begin = journal.place()
    for _ in range(5):
        journal.append([RECORD], 1)
    assert not damage_of(disk, begin)

    harm(disk, path)

    (damage,) = damage_of(disk, begin)
    assert damage.what.startswith(words)
    assert damage.file == path


def damage_of(disk: Disk, begin: JournalPlace) -> list[Damage]:
    reader = reader_on(disk, begin)
    list(reader.frames())
    return reader.damage

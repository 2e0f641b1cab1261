"""Journals of small files on a disk in memory, and what is found in them."""

from store.local.commit.journal import Journal, JournalPlace
from store.local.commit.journal_files import JOURNAL_DIRECTORY, SpareFiles
from store.local.commit.journal_reader import JournalReader
from store.local.commit.records import Frame, Link, create_record
from store.local.reserve import Reserve
from tests.simulation.disk import Disk

SALT, STORE, SIZE = 5, 6, 1_024
RECORD = create_record(1, "r" * 300, None, durable=True)


def journal_on(disk: Disk, sequence: int = 100, spare_count_max: int = 3) -> Journal:
    disk.make_directory(JOURNAL_DIRECTORY)
    spares = spares_on(disk, spare_count_max=spare_count_max)
    return Journal(disk, spares, sequence=sequence, salt=SALT)


def spares_on(disk: Disk, reserve: Reserve | None = None, spare_count_max: int = 3) -> SpareFiles:
    return SpareFiles(disk, reserve, store_id=STORE, file_bytes=SIZE, count_max=spare_count_max)


def reader_on(disk: Disk, place: JournalPlace, salt: int = SALT) -> JournalReader:
    return JournalReader(disk, salt, place, store_id=STORE, size=SIZE)


def found(disk: Disk, place: JournalPlace, salt: int = SALT) -> list[Frame]:
    """Give the frames that are found from a place on, without the links from file to file."""
    return [frame for frame in reader_on(disk, place, salt).frames() if not is_link(frame)]


def is_link(frame: Frame) -> bool:
    return any(isinstance(record, Link) for record in frame.records)


def sequences(disk: Disk, place: JournalPlace, salt: int = SALT) -> list[int]:
    return [frame.sequence for frame in found(disk, place, salt)]


def times(disk: Disk, place: JournalPlace) -> list[int]:
    return [frame.at_ms for frame in found(disk, place)]

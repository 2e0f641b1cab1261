"""A reader goes on behind data files that were cut, damaged, removed or swapped, in order."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.log.derived import index as index_module
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.log import StreamLog
from gateway.log.reading.locations import StartKind, locate
from store.api import Durability
from store.errors import StoreError
from store.files import DirectoryFiles
from tests.conformance.harness import Loop
from tests.conformance.implementations import open_local
from tests.unit.gateway.log.log_rig import LogRig, file_with
from tests.unit.gateway.log.reading.test_cursor import offsets_and_records

OF_A_FILE = 15
FILES = 5
COUNT = OF_A_FILE * FILES
FILE_BYTES = 8 * 1024
BODIES = [b"%3d" % number * 150 for number in range(COUNT)]
RECORDS = [*enumerate(BODIES)]
WANTED = SubscriptionFilter([b"even"], unfiltered=False)

Records = list[tuple[int, bytes]]


@pytest.fixture(autouse=True)
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 1_200)


def rig_in(directory: Path) -> LogRig:
    def open_store(loop: Loop, root: Path):  # type: ignore[no-untyped-def]  # noqa: ANN202
        sizes = {"data_file_bytes": FILE_BYTES, "inline_bytes_max": 256}
        return open_local(DirectoryFiles(root), loop, Durability.OS, **sizes)

    return LogRig(directory, open_store=open_store)


def write(directory: Path, *, is_saved: bool = True) -> list[Path]:
    """Write a stream of several data files and stop in good order; gives the files."""
    rig = rig_in(directory)
    log = rig.create()
    for number, body in enumerate(BODIES):
        rig.commit(log, body, values=[b"odd" if number % 2 else b"even"])
    if is_saved:
        rig.save(log)
    rig.close()
    files = sorted((directory / "data").iterdir(), key=lambda path: int(path.name))[:FILES]
    for number, path in enumerate(files):
        assert all(body in path.read_bytes() for _, body in held_by(number))
    return files


def read(
    rig: LogRig, log: StreamLog, position: int = 0, wanted: SubscriptionFilter | None = None
) -> tuple[Records, bool]:
    """Read to the end; gives the records, and whether the reader was ended by a failure."""
    tap = rig.cursor(log, position, wanted=wanted)
    found = offsets_and_records(tap.all_now())
    return found, tap.cursor.failure is not None


def held_by(number: int) -> Records:
    """Give the records that a data file holds."""
    return RECORDS[number * OF_A_FILE : (number + 1) * OF_A_FILE]


def even(records: Records) -> Records:
    return [each for each in records if not each[0] % 2]


def from_offset(records: Records, offset: int) -> Records:
    return [each for each in records if each[0] >= offset]


def swap(one: Path, other: Path) -> None:
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


# Swapped files


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 3), (1, 2), (1, 3), (2, 4), (0, 4)])
def test_where_files_have_changed_places_order_is_kept_and_the_others_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, one: int, other: int
) -> None:
    files = write(tmp_path)
    swap(files[one], files[other])
    rig = rig_in(tmp_path)
    log = rig.open()

    found, is_ended = read(rig, log)

    assert not is_ended
    assert found == sorted(found)
    assert set(found) <= set(RECORDS)
    if other < FILES - 1:  # where the last chunk is another one, the index is not believed
        for number in {*range(FILES)} - {one, other}:
            assert set(held_by(number)) <= set(found)
    assert "damaged chunk is not delivered stream=orders" in caplog.text
    for offset in range(0, COUNT, 7):
        start = rig.run(locate(log, StartKind.OFFSET, offset))
        behind, _ = read(rig, log, start.position)
        assert from_offset(behind, offset) == from_offset(found, offset), offset
    filtered, _ = read(rig, log, wanted=WANTED)
    assert filtered == sorted(filtered)
    assert even(filtered) == even(found)
    rig.close()


@pytest.mark.parametrize("is_saved", [True, False], ids=["index", "index lost"])
def test_a_reader_gets_no_offset_at_or_below_one_that_it_got(
    tmp_path: Path, *, is_saved: bool
) -> None:
    files = write(tmp_path, is_saved=is_saved)
    for one, other in ((0, 3), (1, 2), (2, 4)):
        swap(files[one], files[other])
    rig = rig_in(tmp_path)
    log = rig.open()

    for wanted in (None, WANTED):
        found, _ = read(rig, log, wanted=wanted)
        assert found == sorted(set(found))
        assert set(found) <= set(RECORDS)
    rig.close()


@pytest.mark.parametrize("size", [300, 70_000])
def test_chunks_that_went_unnoticed_into_a_wrong_place_are_refused_by_the_reader(
    rig: LogRig, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    log = rig.create()
    for number in range(6):
        rig.commit(log, b"%d" % number * size)
    content = rig.content()
    of_one = len(content) // 6
    swapped = content[3 * of_one :] + content[: 3 * of_one]
    # What this process wrote is not checked again.
    path = file_with(rig, content)
    path.write_bytes(path.read_bytes().replace(content, swapped))

    found = offsets_and_records(rig.cursor(log, takes_regions=True).all_now())

    assert found == [(n, b"%d" % n * size) for n in (3, 4, 5)]
    assert "damaged chunk is not delivered stream=orders" in caplog.text


# Filters


def cut(path: Path) -> None:
    os.truncate(path, 3_900)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def zero(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:2_000] + bytes(2_000) + content[4_000:])


def flip_each_size(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in range(4, len(content), len(content) // OF_A_FILE):
        content[place] ^= 0x40
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, empty, zero, flip_each_size])
@pytest.mark.parametrize("number", [0, 2, 4])
def test_a_reader_with_a_filter_gets_what_matches_of_all_that_one_without_gets(
    tmp_path: Path, damage: Callable[[Path], None], number: int
) -> None:
    files = write(tmp_path)
    damage(files[number])
    rig = rig_in(tmp_path)
    log = rig.open()

    for offset in (0, number * OF_A_FILE, number * OF_A_FILE + 8, (number + 1) * OF_A_FILE):
        start = rig.run(locate(log, StartKind.OFFSET, offset)).position
        plain, is_plain_ended = read(rig, log, start)
        filtered, is_filtered_ended = read(rig, log, start, WANTED)
        assert even(filtered) == even(plain), offset
        assert filtered == sorted(set(filtered))
        assert not is_plain_ended
        assert not is_filtered_ended
        sound = [each for n in range(FILES) if n != number for each in held_by(n)]
        assert set(from_offset(sound, offset)) <= set(plain)
    rig.close()


@pytest.mark.parametrize("number", [0, 2])
def test_a_missing_file_ends_readers_with_a_filter_and_without_at_the_same_place(
    tmp_path: Path, number: int
) -> None:
    files = write(tmp_path)
    files[number].unlink()
    rig = rig_in(tmp_path)
    log = rig.open()

    for offset in (0, number * OF_A_FILE + 8, (number + 1) * OF_A_FILE):
        start = log.index.position_before_offset(offset)
        assert start is not None
        plain, is_plain_ended = read(rig, log, start)
        filtered, is_filtered_ended = read(rig, log, start, WANTED)
        assert even(filtered) == even(plain)
        assert is_plain_ended == is_filtered_ended == (offset < (number + 1) * OF_A_FILE)
    rig.close()


# Missing files


def test_a_reader_does_not_wait_for_ever_where_the_first_file_is_missing(tmp_path: Path) -> None:
    files = write(tmp_path)
    files[0].unlink()
    rig = rig_in(tmp_path)
    tap = rig.cursor(rig.open())

    for _ in range(20):
        woken = tap.wake_count
        assert tap.next() is None
        if tap.cursor.failure is not None:
            break
        rig.loop.run_until(lambda: tap.wake_count > woken, 5)  # noqa: B023  # used at once

    assert isinstance(tap.cursor.failure, StoreError)
    rig.close()

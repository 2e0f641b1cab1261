"""Damage of the journal is told and nothing of it is thrown away; a torn end is no damage."""

import logging
from collections.abc import Callable

import pytest

from store.api import Durability
from store.errors import DiskFull
from store.local.commit.records import FILE_HEAD_BYTES, truncate_record
from store.local.recovery.checkpoint_file import head_of_checkpoint
from tests.simulation.disk import Create, Disk, Failure, Image
from tests.unit.store.local.opened import KIB, Opened, opened


def crashed(
    rig: Opened, disk: Disk, change: Callable[[bytearray], object], path: str = "journal/1"
) -> Disk:
    """Give the disk as the dead process left it, with a file changed."""
    rig.crash()
    image = disk.image()
    inode = image.names[path]
    content = bytearray(image.contents[inode])
    change(content)
    contents = image.contents | {inode: bytes(content)}
    return Disk(Image(image.directories, image.names, contents))


def without(disk: Disk, *paths: str) -> Disk:
    image = disk.image()
    names = {path: inode for path, inode in image.names.items() if path not in paths}
    return Disk(Image(image.directories, names, image.contents))


def flip(position: int) -> Callable[[bytearray], object]:
    def change(content: bytearray) -> None:
        content[position] ^= 1

    return change


def filled(
    durability: Durability = Durability.DISK, **sizes: int
) -> tuple[Opened, Disk, list[int]]:
    """Commit twelve appends, each at a time of its own; give the places of their frames."""
    disk = Disk()
    rig = opened(disk, durability, **sizes)
    rig.create("a")
    places = []
    for number in range(12):
        places.append(rig.store._journal.place().position)
        rig.fill("a", b"<%02d>" % number)
        rig.loop.run_for(0.002)
    return rig, disk, places


def set_aside(disk: Disk) -> list[str]:
    (directory,) = disk.names("set-aside")
    return sorted(disk.names(f"set-aside/{directory}"))


@pytest.mark.parametrize("offset", [0, 8, 12, 24, 40, 90])
def test_a_damaged_frame_before_synced_ones_is_told(
    caplog: pytest.LogCaptureFixture, offset: int
) -> None:
    rig, disk, places = filled()
    left = crashed(rig, disk, flip(places[5] + offset))
    rig = opened(left)
    assert rig.content("a") == b"".join(b"<%02d>" % number for number in range(5))
    assert "journal is damaged, 6 frames of " in caplog.text
    assert f"file=journal/1 position={places[5]}\n" in caplog.text
    rig.close()


def test_what_a_damaged_journal_was_about_is_kept() -> None:
    rig, disk, places = filled()
    rig.create("late", b"given up")
    left = crashed(rig, disk, flip(places[5] + 40))
    damaged = left.image().contents[left.image().names["journal/1"]]
    rig = opened(left)
    assert set_aside(left) == ["checkpoint", "data-2", "journal-1"]
    (directory,) = left.names("set-aside")
    assert left.open(f"set-aside/{directory}/journal-1").read_at(len(damaged), 0) == damaged
    assert left.open(f"set-aside/{directory}/data-2").read_at(99, 0) == b"given up"
    rig.fill("a", b"goes on")
    # What was given up lies behind the old end, and is not written over.
    whole = b"".join(b"<%02d>" % number for number in range(12))
    assert left.open("data/1").read_at(len(whole), 0) == whole
    rig.reopen()
    assert rig.content("a") == whole[:20] + b"goes on"
    rig.close()


def test_an_opening_that_died_while_it_kept_something_is_done_again() -> None:
    rig, disk, places = filled()
    rig.create("late", b"given up")
    left = crashed(rig, disk, flip(places[5] + 40))
    left.failures = [
        Failure(
            lambda step: isinstance(step, Create) and step.path == "checkpoint.new",
            times=2,
            is_full=True,
        )
    ]
    with pytest.raises(DiskFull):
        opened(left)
    rig = opened(left)
    assert {"checkpoint", "data-2", "journal-1"} <= set(set_aside(left))
    assert rig.content("a") == b"".join(b"<%02d>" % number for number in range(5))
    rig.close()


@pytest.mark.parametrize("begin", [0, 100, 300])
def test_a_gap_of_several_frames_and_over_files_is_seen(
    caplog: pytest.LogCaptureFixture, begin: int
) -> None:
    rig, disk, _ = filled(journal_file_bytes=KIB // 2)
    assert len(disk.names("journal")) > 2

    def blank(content: bytearray) -> None:
        content[begin:] = bytes(len(content) - begin)

    rig = opened(crashed(rig, disk, blank), journal_file_bytes=KIB // 2)
    assert "journal is damaged" in caplog.text
    rig.close()


def test_frames_are_found_where_a_file_before_them_is_lost_and_theirs_was_cut_short(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    rig = opened(disk, journal_file_bytes=4 * KIB)
    rig.create("a")
    while rig.store._journal.place().file == 1:
        rig.fill("a", b"in the first")
    second = [rig.store._journal.place().position]
    for _ in range(3):
        rig.fill("a", b"in the second")
        second.append(rig.store._journal.place().position)
    disk.open("journal/2").cut(second[-1])

    def lose(content: bytearray) -> None:
        begin = FILE_HEAD_BYTES + len(content) // 4
        content[begin:] = bytes(len(content) - begin)

    damaged = crashed(rig, disk, lose)
    place = FILE_HEAD_BYTES + 20
    file = damaged.open("journal/2")
    file.write_at(bytes([file.read_at(1, place)[0] ^ 1]), place)

    opened(damaged).close()

    assert "journal is damaged" in caplog.text


def test_a_damaged_first_frame_is_seen_where_none_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    rig = opened(disk)

    def blank(content: bytearray) -> None:
        content[FILE_HEAD_BYTES:] = bytes(len(content) - FILE_HEAD_BYTES)

    rig = opened(crashed(rig, disk, blank))
    assert "the journal is damaged before the checkpoint's place" in caplog.text
    rig.close()


def test_an_older_checkpoint_is_told_and_nothing_is_unlinked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"before")
    rig.close()
    file = disk.open("checkpoint")
    older = file.read_at(file.size(), 0)
    # It takes another opening until its journal file is used again.
    for number in range(3):
        rig = opened(disk)
        rig.create(f"b{number}", b"since then")
        rig.close()
    disk.remove("checkpoint")
    disk.open("checkpoint", create=True).write_at(older, 0)
    rig = opened(disk)
    assert "the journal is damaged before the checkpoint's place" in caplog.text
    assert rig.content("a") == b"before"
    assert {"data-2", "data-3", "data-4"} <= set(set_aside(disk))
    rig.close()


def test_a_torn_last_frame_is_no_damage(caplog: pytest.LogCaptureFixture) -> None:
    rig, disk, places = filled()
    left = crashed(rig, disk, flip(places[11] + 40))
    with caplog.at_level(logging.WARNING):
        rig = opened(left)
    assert not caplog.records
    assert left.names("data") == ["1"]
    assert "set-aside" not in left.names("")
    rig.close()


def test_where_nothing_was_synced_a_gap_is_normal(caplog: pytest.LogCaptureFixture) -> None:
    rig, disk, places = filled(Durability.OS)
    left = crashed(rig, disk, flip(places[5] + 40))
    with caplog.at_level(logging.WARNING):
        rig = opened(left, Durability.OS)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "journal ends before frames that were not synced" in caplog.text
    assert "set-aside" not in left.names("")
    rig.close()


def test_a_gap_before_what_is_synced_within_an_interval_is_damage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig, disk, places = filled(Durability.INTERVAL)
    rig.loop.run_until(lambda: rig.store._journal._synced == rig.store._journal.sequence)
    rig.fill("a", b"after the sync")
    rig = opened(crashed(rig, disk, flip(places[5] + 40)), Durability.INTERVAL)
    assert "journal is damaged, 7 frames" in caplog.text
    rig.close()


def test_a_gap_within_one_round_is_no_damage(caplog: pytest.LogCaptureFixture) -> None:
    """What one round writes is synced together: all of it has one time."""
    disk = Disk()
    rig = opened(disk)
    rig.create("a")
    journal = rig.store._journal
    record = truncate_record(1, 0, durable=True)
    places = []
    for _ in range(4):
        places.append(journal.place().position)
        journal.append([record], 77)
    rig = opened(crashed(rig, disk, flip(places[1] + 40)))
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]
    rig.close()


def test_a_missing_journal_is_told_and_the_data_kept(caplog: pytest.LogCaptureFixture) -> None:
    rig, disk, _ = filled()
    rig.crash()
    left = without(disk, "journal/1")
    rig = opened(left)
    assert "journal file is missing, what was in it is lost" in caplog.text
    assert set_aside(left) == ["checkpoint", "data-1"]
    rig.close()


def test_a_missing_journal_file_that_a_checkpoint_names_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    rig = opened(disk, checkpoint_bytes=KIB, journal_file_bytes=KIB)
    rig.create("a")
    for _ in range(40):
        rig.fill("a", b"x" * 100)
    rig.loop.run_for(0.05)
    file = disk.open("checkpoint")
    number = head_of_checkpoint(file.read_at(file.size(), 0)).place.file
    assert number
    rig.crash()
    rig = opened(without(disk, f"journal/{number}"))
    assert f"file=journal/{number}" in caplog.text
    rig.close()


def test_after_a_good_stop_a_missing_journal_costs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig, disk, _ = filled()
    rig.close()
    rig = opened(without(disk, "journal/1"))
    assert "journal file is missing" in caplog.text
    assert len(rig.content("a")) == 48
    rig.close()

"""Opening on a full disk: without a checkpoint, upon the journal as it is."""

import logging

import pytest

from store.api import Durability
from store.errors import DiskFull
from tests.simulation.disk import Create, Disk, Failure, Image, Step
from tests.unit.store.local.opened import KIB, WRITER, Opened, opened


def no_room_for_a_checkpoint(step: Step) -> bool:
    return isinstance(step, Create) and step.path == "checkpoint.new"


def no_room(step: Step) -> bool:
    return isinstance(step, Create)


def filled(disk: Disk, times: int = 10**9) -> Disk:
    disk.failures = [Failure(no_room_for_a_checkpoint, times=times, is_full=True)]
    return disk


def crashed(rig: Opened, disk: Disk) -> Disk:
    rig.crash()
    return Disk(disk.image())


def test_on_a_full_disk_a_store_opens_and_tells_of_it(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"acknowledged")
    rig.create("b", b"deleted")
    disk = crashed(rig, disk)
    disk.failures = [Failure(no_room, times=10**9, is_full=True)]
    with caplog.at_level(logging.ERROR):
        rig = opened(disk)
    assert "disk is full, opened without a checkpoint: free some space" in caplog.text
    assert rig.content("a") == b"acknowledged"
    rig.do(rig.store.truncate_segment, "a", 4)
    rig.do(rig.store.delete_segment, "b")
    disk.failures.clear()
    rig = opened(crashed(rig, disk))
    assert rig.content("a") == b"owledged"
    assert sorted(rig.store.catalogue.names) == ["a"]
    rig.close()


def test_what_is_written_after_it_is_found_behind_what_was_there() -> None:
    disk = Disk()
    rig = opened(disk)
    session = rig.session("a")
    rig.do(session.append, b"before ", 1)
    for lap in range(3):
        disk = filled(crashed(rig, disk))
        rig = opened(disk)
        rig.do(rig.writer("a", WRITER).append, b"lap %d " % lap, lap + 2)
    rig = opened(crashed(rig, disk))
    assert rig.content("a") == b"before lap 0 lap 1 lap 2 "
    rig.close()


def test_after_a_good_stop_it_goes_on_behind_the_checkpoints_place() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"before ")
    rig.close()
    rig = opened(filled(disk))
    rig.fill("a", b"after")
    rig = opened(crashed(rig, disk))
    assert rig.content("a") == b"before after"
    rig.close()


def test_several_journal_files_are_kept_until_there_is_a_checkpoint() -> None:
    disk = Disk()
    rig = opened(disk, journal_file_bytes=KIB)
    rig.create("a")
    content = b""
    for number in range(20):
        rig.fill("a", b"<%d>" % number * 40)
        content += b"<%d>" % number * 40
    disk = filled(crashed(rig, disk))
    rig = opened(disk, journal_file_bytes=KIB)
    count = len(disk.names("journal"))
    assert count > 5
    rig.fill("a", b"more")
    disk = filled(crashed(rig, disk))
    rig = opened(disk, journal_file_bytes=KIB)
    assert rig.content("a") == content + b"more"
    rig.close(may_fail=True)


def test_the_first_commit_after_space_was_freed_brings_the_checkpoint() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"acknowledged")
    disk = filled(crashed(rig, disk), times=1)
    rig = opened(disk)
    old = disk.image().names["checkpoint"]
    rig.fill("a", b" more")
    rig.loop.run_for(0.05)
    assert disk.image().names["checkpoint"] != old
    rig = opened(crashed(rig, disk))
    assert rig.content("a") == b"acknowledged more"
    rig.close()


def test_frames_behind_a_lost_one_never_join_those_that_are_written_now() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    rig.create("a")
    places = []
    for number in range(4):
        places.append(rig.store._journal.place().position)
        rig.fill("a", b"%d" % number)
    rig.crash()
    image = disk.image()
    inode = image.names["journal/1"]
    journal = bytearray(image.contents[inode])
    journal[places[1]] ^= 1
    left = Disk(Image(image.directories, image.names, image.contents | {inode: bytes(journal)}))
    rig = opened(filled(left), Durability.OS)
    assert rig.content("a") == b"0"
    rig.fill("a", b"x")
    rig = opened(crashed(rig, left), Durability.OS)
    assert rig.content("a") == b"0x"
    rig.close()


def test_where_the_journal_cannot_be_gone_on_with_a_full_disk_is_refused() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    rig.create("a", b"0123456789")
    rig.crash()
    image = disk.image()
    left = Disk(
        Image(image.directories, image.names, image.contents | {image.names["data/1"]: b""})
    )
    with pytest.raises(DiskFull):
        opened(filled(left), Durability.OS)
    left.failures.clear()
    rig = opened(left, Durability.OS)
    assert rig.content("a") == b""
    rig.close()


def test_a_new_store_needs_room() -> None:
    with pytest.raises(DiskFull):
        opened(filled(Disk()))

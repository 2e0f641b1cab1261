import pytest

from store.api import Durability
from store.local.commit.journal import JournalPlace
from store.local.commit.journal_files import path_of
from store.local.commit.records import FILE_HEAD_BYTES
from store.local.recovery.checkpoint import CHECKPOINT, CheckpointWriter
from store.local.recovery.checkpoint_file import (
    CheckpointHead,
    SegmentImage,
    head_of_checkpoint,
    segments_of_checkpoint,
)
from tests.simulation.disk import Disk, Failure, Rename, Sync, Write
from tests.unit.store.local.opened import KIB, Opened, opened

SIZES = {"journal_file_bytes": 8 * KIB, "checkpoint_bytes": 16 * KIB}


def image(number: int, name: str) -> SegmentImage:
    return SegmentImage(number, name, None, sealed=False, corrupt=False, start=0, length=0,
                        modified_at_ms=0, attributes={}, writers={}, extents=[])  # fmt: skip


def head(sequence: int) -> CheckpointHead:
    return CheckpointHead(
        place=JournalPlace(sequence, 1, 0),
        salt=5,
        next_segment=9,
        next_file=9,
        closed=False,
        store_id=6,
        journal_size=7,
    )


def content(disk: Disk) -> bytes:
    file = disk.open(CHECKPOINT)
    return file.read_at(file.size(), 0)


def test_what_did_not_change_is_written_again_as_it_was() -> None:
    disk = Disk()
    writer = CheckpointWriter(disk)
    writer.note([image(1, "a"), image(2, "b")], (), 0)
    writer.write(head(1))
    writer.note([image(2, "c"), image(3, "d")], [1], 0.0001)
    writer.write(head(2))
    assert head_of_checkpoint(content(disk)).place.sequence == 2
    assert [each.name for each in segments_of_checkpoint(content(disk))] == ["c", "d"]
    assert disk.names("") == [CHECKPOINT]


def test_the_old_checkpoint_stays_until_the_new_one_is_durable() -> None:
    disk = Disk()
    writer = CheckpointWriter(disk)
    writer.write(head(1))
    begin = len(disk.record)
    writer.write(head(2))
    kinds = [type(step) for step in disk.record[begin:]]
    assert kinds.index(Write) < kinds.index(Sync) < kinds.index(Rename)


def append_much(rig: Opened, count: int = 400) -> None:
    session = rig.session("a")
    for number in range(count):
        rig.do(session.append, bytes(200), number)
        # However slow the thread is: the journal does not go on while a checkpoint is made.
        rig.loop.run_until(lambda: not rig.store._checkpointer.running)


@pytest.mark.parametrize("durability", Durability)
def test_checkpoints_keep_the_journal_small(durability: Durability) -> None:
    disk = Disk()
    rig = opened(disk, durability, **SIZES)
    append_much(rig)
    assert len(disk.names("journal")) <= 8
    assert sum(isinstance(step, Rename) for step in disk.record) >= 2
    rig.close()


def test_much_data_leads_to_a_checkpoint_too() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS, checkpoint_data_bytes=50 * KIB)
    begin = sum(isinstance(step, Rename) for step in disk.record)
    append_much(rig, 300)
    rig.loop.run_for(0.05)
    assert sum(isinstance(step, Rename) for step in disk.record) > begin
    rig.close()


def test_a_checkpoint_syncs_the_data_that_no_sync_covers() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    rig.create("a", b"data")
    inode = disk.image().names["data/1"]
    assert Sync(inode) not in disk.record
    rig.close()
    assert disk.record.index(Sync(inode)) < max(
        index for index, step in enumerate(disk.record) if isinstance(step, Rename)
    )


def test_after_a_failed_checkpoint_the_journal_is_kept_and_another_one_follows() -> None:
    disk = Disk()
    rig = opened(disk, Durability.DISK, **SIZES)
    disk.failures = [Failure(lambda step: isinstance(step, Rename), times=1)]
    append_much(rig)
    rig.crash()
    rig = opened(Disk(disk.image()), Durability.DISK, **SIZES)
    assert rig.content("a") == bytes(400 * 200)
    rig.close()


def test_commits_go_on_while_a_checkpoint_is_made() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS, **SIZES)
    session = rig.session("a")
    rig.do(session.append, b"first", 0)
    number = 0
    while not rig.store._checkpointer.running:
        number += 1
        rig.start(session.append, bytes(200), number)
        rig.loop.turn()
    during = rig.start(session.append, b"during", number + 1)
    rig.wait(during)
    rig.crash()
    rig = opened(Disk(disk.image()), Durability.OS, **SIZES)
    assert rig.content("a").endswith(b"during")
    rig.close()


def test_the_journal_is_synced_before_a_checkpoint_names_a_place_in_it() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS, **SIZES)
    append_much(rig)
    renamed = max(n for n, step in enumerate(disk.record) if isinstance(step, Rename))
    place = head_of_checkpoint(content(disk)).place
    rig.crash()
    inode = disk.image().names[path_of(place.file)]
    of_file = [
        type(step)
        for step in disk.record[:renamed]
        if (isinstance(step, Write) and step.inode == inode and step.position < place.position)
        or (isinstance(step, Sync) and step.inode == inode)
    ]
    assert place.position > FILE_HEAD_BYTES
    assert of_file[-1] is Sync

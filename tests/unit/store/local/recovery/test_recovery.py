import logging
from itertools import pairwise

import pytest

from store.api import ABSENT, AttributeUpdate, Durability, TableEntry
from store.errors import CorruptSegment, StoreError
from store.local.recovery.recovery import SEQUENCE_JUMP_BITS
from tests.conformance.harness import FILLER
from tests.simulation.disk import Disk, Image
from tests.unit.store.local.opened import KIB, WRITER, Opened, opened

BULK = b"<bulk>" * 1_000


def crashed(rig: Opened, disk: Disk, **contents: bytes) -> Disk:
    """Give the disk as the dead process left it, with other contents of some data files."""
    rig.crash()
    image = disk.image()
    changed = {image.names[path.replace("_", "/")]: data for path, data in contents.items()}
    return Disk(Image(image.directories, image.names, image.contents | changed))


def without(disk: Disk, *paths: str) -> Disk:
    image = disk.image()
    names = {path: inode for path, inode in image.names.items() if path not in paths}
    return Disk(Image(image.directories, names, image.contents))


def test_an_empty_directory_is_a_new_store_that_was_closed_well() -> None:
    rig = opened(Disk())
    assert rig.store.opened_clean
    rig.close()


def test_whether_it_was_closed_well_is_known() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a")
    rig.close()
    rig = opened(disk)
    assert rig.store.opened_clean
    rig.create("b")
    left = crashed(rig, disk)
    rig = opened(left)
    assert not rig.store.opened_clean
    rig.close()


def test_every_kind_of_change_is_replayed() -> None:
    disk = Disk()
    rig = opened(disk, inline_bytes_max=KIB)
    session = rig.session("a")
    rig.do(session.append, b"small", 1)
    rig.do(session.append, BULK, 2)
    rig.do(session.append, b"", 3)
    rig.create("merged", b"merged")
    rig.do(rig.store.merge_segments, "a", "merged", attributes=[AttributeUpdate(FILLER, 7)])
    rig.do(rig.store.truncate_segment, "a", 2)
    rig.create("gone", b"gone")
    rig.do(rig.store.delete_segment, "gone")
    rig.do(rig.store.seal_segment, "a")
    before = rig.do(rig.store.info, "a")
    rig = opened(crashed(rig, disk))
    assert rig.do(rig.store.info, "a") == before
    assert rig.content("a") == b"all" + BULK + b"merged"
    assert rig.do(rig.store.get_attribute, "a", WRITER) == 3
    assert rig.do(rig.store.get_attribute, "a", FILLER) == 7
    assert sorted(rig.store.catalogue.names) == ["a"]
    rig.close()


def test_data_that_the_journal_holds_is_written_again() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"acknowledged")
    left = crashed(rig, disk, data_1=b"\0\0\0")
    rig = opened(left)
    assert rig.content("a") == b"acknowledged"
    rig.close()


def test_a_file_whose_data_the_journal_holds_is_made_again() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"acknowledged")
    rig = opened(without(crashed(rig, disk), "data/1"))
    assert rig.content("a") == b"acknowledged"
    rig.close()


def test_durable_data_that_does_not_check_out_is_damage(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk()
    rig = opened(disk, inline_bytes_max=KIB)
    rig.create("a", BULK)
    rig.create("b", BULK)
    left = crashed(rig, disk, data_1=BULK[:-1] + b"X")
    rig = opened(left)
    assert "segment is damaged and can only be read segment=a" in caplog.text
    rig.refused(CorruptSegment, rig.writer("a", WRITER).append, b"x", 9)
    rig.refused(CorruptSegment, rig.store.seal_segment, "a")
    assert rig.content("a") == BULK[:-1] + b"X"
    rig.fill("b", b"goes on")
    rig.reopen()
    rig.refused(CorruptSegment, rig.writer("a", WRITER).append, b"x", 9)
    rig.do(rig.store.delete_segment, "a")
    rig.close()


def test_a_missing_file_of_durable_data_is_damage(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk()
    rig = opened(disk, inline_bytes_max=KIB)
    rig.create("a", BULK)
    rig.close()
    rig = opened(without(disk, "data/1"))
    assert "data file is missing segment=a file=data/1" in caplog.text
    rig.refused(CorruptSegment, rig.writer("a", WRITER).append, b"x", 9)
    rig.close()


def test_weak_data_that_does_not_check_out_ends_the_segment(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session = rig.session("a")
    for number in range(1, 4):
        rig.do(session.append, b"0123456789", number)
    rig.create("b", b"kept")
    left = crashed(rig, disk, data_1=b"0123456789" * 2 + b"012345678X")
    with caplog.at_level(logging.WARNING):
        rig = opened(left, Durability.OS)
    assert "segment was cut segment=a position=20 file=data/" in caplog.text
    assert rig.content("a") == b"0123456789" * 2
    assert rig.do(rig.store.get_attribute, "a", WRITER) == 2
    assert rig.content("b") == b"kept"
    assert rig.do(rig.writer("a", WRITER).append, b"more", 3).position == 20
    rig.close()


def test_what_was_built_upon_lost_data_goes_with_it() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session = rig.session("a")
    rig.do(session.append, b"lost", 1)
    rig.do(session.append, b"upon it", 2)
    rig.do(rig.store.update_attributes, "a", [AttributeUpdate(FILLER, 7)])
    rig.create("source", b"source")
    rig.do(rig.store.merge_segments, "a", "source")
    rig.do(rig.store.seal_segment, "a")
    rig = opened(crashed(rig, disk, data_1=b"LOSTupon it"), Durability.OS)
    info = rig.do(rig.store.info, "a")
    assert (info.length, info.sealed) == (0, False)
    assert rig.do(rig.store.get_attribute, "a", FILLER) == ABSENT
    assert rig.content("source") == b"source"
    rig.close()


def test_a_truncation_behind_lost_data_stands() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS, data_file_bytes=10)
    session = rig.session("a")
    for number in range(1, 5):
        rig.do(session.append, b"0123456789", number)
    rig.do(rig.store.truncate_segment, "a", 25)
    rig.loop.run_for(0.05)
    assert sorted(disk.names("data")) == ["3", "4"]
    rig = opened(crashed(rig, disk, data_3=b"0123X"), Durability.OS, data_file_bytes=10)
    info = rig.do(rig.store.info, "a")
    assert (info.start, info.length) == (20, 20)
    assert rig.do(rig.writer("a", WRITER).append, b"more", 9).position == 20
    assert rig.content("a") == b"more"
    rig.close()


def test_lost_data_of_what_was_deleted_or_truncated_does_not_matter() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    rig.create("deleted", b"deleted")
    rig.create("a", b"truncated")
    rig.fill("a", b"kept")
    rig.do(rig.store.truncate_segment, "a", 9)
    rig.do(rig.store.delete_segment, "deleted")
    rig.loop.run_for(0.05)
    rig = opened(crashed(rig, disk, data_2=b"TRUNCATEDkept"), Durability.OS)
    assert rig.content("a") == b"kept"
    rig.close()


def test_weak_data_before_durable_data_that_does_not_check_out_is_damage() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session = rig.session("a")
    rig.do(session.append, b"weak", 1)
    rig.do(session.append, b"durable", 2, durability=Durability.DISK)
    rig = opened(crashed(rig, disk, data_1=b"WEAKdurable"), Durability.OS)
    rig.refused(CorruptSegment, rig.writer("a", WRITER).append, b"x", 9)
    rig.close()


def test_files_that_belong_to_nobody_are_removed() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"kept")
    left = crashed(rig, disk)
    left.open("data/77", create=True).write_at(b"never acknowledged", 0)
    rig = opened(left)
    assert left.names("data") == ["1"]
    rig.close()


def test_sequences_jump_at_every_opening() -> None:
    disk = Disk()
    seen = []
    for _ in range(3):
        rig = opened(disk)
        seen.append(rig.store._journal.sequence)
        rig.create(f"a{len(seen)}")
        rig.close()
    assert all(after - before > 2**SEQUENCE_JUMP_BITS for before, after in pairwise(seen))


def test_data_without_a_checkpoint_is_refused() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"precious")
    left = without(crashed(rig, disk), "checkpoint")
    with pytest.raises(StoreError, match="no checkpoint"):
        opened(left)
    assert left.names("data") == ["1"]


def test_a_damaged_checkpoint_is_refused_and_the_lock_given_back() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"precious")
    rig.close()
    file = disk.open("checkpoint")
    file.write_at(b"X", 30)
    for _ in range(2):
        with pytest.raises(StoreError, match="damaged"):
            opened(disk)


def test_tables_are_rebuilt_across_files() -> None:
    disk = Disk()
    rig = opened(disk, data_file_bytes=KIB)
    rig.do(rig.store.create_table, "t")
    for number in range(30):
        entries = [TableEntry(b"k%d" % (number % 7), b"v%d" % number * 20)]
        rig.do(rig.store.update_table, "t", entries)
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"k3", b"")])
    keys = [b"k%d" % number for number in range(7)]
    before = rig.do(rig.store.read_table, "t", keys)
    rig = opened(crashed(rig, disk), data_file_bytes=KIB)
    assert rig.do(rig.store.read_table, "t", keys) == before
    assert rig.do(rig.store.table_info, "t")[1] == 6
    rig.close()


def test_a_lost_merge_does_not_bring_back_what_was_given_up_since() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS, data_file_bytes=10, inline_bytes_max=1)
    source = rig.session("source")
    rig.do(source.append, b"0123456789", 1, durability=Durability.DISK)
    rig.do(source.append, b"abcdefghij", 2)
    rig.create("target", b"target")
    rig.do(rig.store.merge_segments, "target", "source")
    rig.do(rig.store.truncate_segment, "target", 16)
    rig.loop.run_for(0.05)
    assert disk.names("data") == ["2"]
    left = crashed(rig, disk, data_2=b"abcdefghiX")
    rig = opened(left, Durability.OS, data_file_bytes=10)
    # The merge is lost with the source's last append, and its first one is gone for good.
    assert sorted(rig.store.catalogue.names) == ["target"]
    info = rig.do(rig.store.info, "target")
    assert (info.start, info.length) == (6, 6)
    rig.fill("target", b"goes on")
    rig.close()

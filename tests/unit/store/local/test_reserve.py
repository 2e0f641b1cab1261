"""Room that is kept for deletions on a full disk."""

import pytest

from store.api import TableEntry
from store.errors import DiskFull
from store.local import reserve
from store.local.recovery.store_opening import RESERVE_PART
from tests.simulation.disk import Create, Disk, Failure
from tests.unit.store.local.opened import KIB, WRITER, Opened, opened

SIZE = 64 * KIB // RESERVE_PART


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve, "AGAIN_S", 0.01)


def full(disk: Disk) -> Disk:
    disk.capacity = disk.used()
    return disk


def sizes(disk: Disk) -> dict[str, int]:
    image = disk.image()
    return {path: len(image.contents[inode]) for path, inode in image.names.items()}


def fill_table(rig: Opened, count: int = 40) -> None:
    """Grow until growth is refused."""
    for number in range(count):
        pending = rig.start(rig.store.update_table, "t", [TableEntry(b"%d" % number, bytes(KIB))])
        rig.wait(pending)
        if isinstance(pending.result, DiskFull):
            return
    raise AssertionError("the disk has not become full")


def test_a_store_has_room_for_deletions_and_finds_it_again() -> None:
    disk = Disk()
    opened(disk).close()
    assert sizes(disk)["reserve"] == SIZE
    begin = len(disk.record)
    opened(full(disk)).close(may_fail=True)
    assert sizes(disk)["reserve"] == SIZE
    assert not [s for s in disk.record[begin:] if isinstance(s, Create) and s.path == "reserve"]


def test_on_a_full_disk_what_gives_space_is_taken_and_growth_refused_until_there_is_room() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.do(rig.store.create_table, "t")
    session = rig.session("a")
    rig.do(session.append, bytes(3 * SIZE), 1)
    rig.session("b")
    full(disk)
    fill_table(rig)
    assert "reserve" in sizes(disk)
    mark = [TableEntry(b"mark", bytes(KIB))]
    rig.do(rig.store.for_removal.update_table, "t", mark)
    assert "reserve" not in sizes(disk)
    for name in ("a", "b"):
        rig.refused(DiskFull, rig.writer(name, WRITER).append, b"x", 9)
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"mark", b"")])
    rig.do(rig.store.delete_segment, "a")
    rig.loop.run_until(lambda: sizes(disk).get("reserve") == SIZE)
    rig.do(rig.writer("b", WRITER).append, b"x", 9)
    rig.close()


def test_growth_goes_on_when_somebody_else_has_made_room() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.do(rig.store.create_table, "t")
    full(disk)
    fill_table(rig)
    rig.do(rig.store.for_removal.update_table, "t", [TableEntry(b"m", bytes(KIB))])
    disk.capacity = None
    rig.start(rig.store.update_table, "t", [TableEntry(b"x", b"")])
    rig.loop.run_until(lambda: not rig.store._reserve.is_short)
    rig.do(rig.store.update_table, "t", [TableEntry(b"x", b"")])
    rig.close()


def test_a_start_on_a_full_disk_without_that_room_still_deletes() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.do(rig.store.create_table, "t")
    rig.do(rig.session("a").append, bytes(3 * SIZE), 1)
    full(disk)
    fill_table(rig)
    rig.crash()
    left = Disk(disk.image())
    left.remove("reserve")
    rig = opened(full(left))
    rig.refused(DiskFull, rig.store.update_table, "t", [TableEntry(b"x", bytes(KIB))])
    rig.do(rig.store.delete_segment, "a")
    rig.do(rig.store.for_removal.update_table, "t", [TableEntry(b"x", bytes(KIB))])
    rig.close(may_fail=True)


def test_a_growth_in_the_same_round_does_not_take_a_deletion_with_it() -> None:
    disk = Disk()
    rig = opened(disk, journal_file_bytes=4 * KIB)
    for name in ("a", "b", "c"):
        rig.create(name)
    disk.failures = [Failure(lambda s: isinstance(s, Create), times=10**9, is_full=True)]
    for number in range(99):
        pending = rig.start(rig.store.create_segment, f"{number}" * 20)
        rig.wait(pending)
        if isinstance(pending.result, DiskFull):
            break
    growing = rig.start(rig.store.create_segment, "x" * 300)
    deleting = rig.start(rig.store.delete_segment, "a")
    rig.wait(growing, deleting)
    growing.error(DiskFull)
    assert deleting.value is None
    rig.close(may_fail=True)


def test_where_a_journal_file_was_not_finished_a_full_disk_goes_on_in_another() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", b"kept")
    rig.close()
    disk.open("journal/9", create=True).write_at(bytes(KIB), 0)
    rig = opened(full(disk))
    rig.do(rig.store.truncate_segment, "a", 2)
    rig.crash()
    assert max(size for path, size in sizes(disk).items() if "journal/" in path) == 64 * KIB
    rig = opened(full(Disk(disk.image())))
    assert rig.content("a") == b"pt"
    rig.close(may_fail=True)


def test_an_opening_that_finds_no_journal_and_no_space_has_a_small_one() -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("a", bytes(10 * KIB))
    rig.close()
    for name in disk.names("journal"):
        disk.remove(f"journal/{name}")
    rig = opened(full(disk))
    rig.do(rig.store.delete_segment, "a")
    rig.do(rig.store.create_segment, "b")
    rig.close()

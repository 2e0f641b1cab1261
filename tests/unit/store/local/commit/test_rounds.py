import threading
from collections import Counter
from uuid import UUID

import pytest

from store.api import Appended, Durability
from store.errors import DiskFull, SegmentFailed, StoreClosed
from store.local.commit.round import Round
from store.local.writes import LOOP_WRITE_BYTES_MAX
from tests.conformance.harness import Loop, Pending, Rig
from tests.conformance.implementations import open_local
from tests.simulation.disk import Create, Disk, Failure, Inode, Step, Sync, Write
from tests.unit.store.local.opened import KIB, WRITER, Opened, opened
from tests.waiting import HANG_S

BULK = bytes(5 * KIB)


def journal_inodes(disk: Disk) -> set[Inode]:
    names = disk.image().names
    return {inode for path, inode in names.items() if path.startswith("journal/")}


def inode_of(disk: Disk, path: str) -> Inode:
    return disk.image().names[path]


def warm(rig: Opened, count: int) -> list[Pending]:
    """Begin one small append to each of many segments whose files are there."""
    sessions = [rig.session(f"s/{number}") for number in range(count)]
    rig.wait(*(rig.start(session.append, b"warm", 1) for session in sessions))
    return [rig.start(session.append, b"small", 2) for session in sessions]


def test_small_appends_to_1000_segments_cost_one_sync() -> None:
    disk = Disk()
    rig = opened(disk, journal_file_bytes=1_024 * KIB, open_files_max=2_000)
    pending = warm(rig, 1_000)
    begin = len(disk.record)
    rig.wait(*pending)
    assert [type(step) for step in disk.record[begin:]] == [Write, Sync]
    rig.close()


def test_a_bulk_append_syncs_its_file_before_the_journal_is_written() -> None:
    disk = Disk()
    rig = opened(disk, inline_bytes_max=KIB)
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    begin = len(disk.record)
    rig.do(session.append, BULK, 2)
    data, journal = inode_of(disk, "data/1"), journal_inodes(disk)
    steps = [
        (type(step), step.inode) for step in disk.record[begin:] if isinstance(step, Write | Sync)
    ]
    assert steps[:2] == [(Write, data), (Sync, data)]
    assert [kind for kind, inode in steps[2:]] == [Write, Sync]
    assert {inode for _, inode in steps[2:]} <= journal
    rig.close()


def test_many_small_appends_of_one_round_to_a_segment_are_bulk() -> None:
    disk = Disk()
    rig = opened(disk, inline_bytes_max=KIB)
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    begin = len(disk.record)
    rig.wait(*(rig.start(session.append, bytes(400), number) for number in range(2, 6)))
    synced = [step.inode for step in disk.record[begin:] if isinstance(step, Sync)]
    assert inode_of(disk, "data/1") in synced
    rig.close()


@pytest.mark.parametrize("durability", [Durability.DISK, Durability.OS])
def test_a_segment_keeps_nothing_of_what_its_last_round_wrote(durability: Durability) -> None:
    rig = opened(Disk(), durability)
    session = rig.session("a")
    rig.do(session.append, bytes(LOOP_WRITE_BYTES_MAX + 1), 1)
    last = rig.store.catalogue.names["a"].round
    assert isinstance(last, Round)
    assert (last.finished, last.changes, last.after) == (True, [], None)
    rig.close()


def test_in_os_durability_the_loop_does_it_and_nothing_is_synced() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session = rig.session("a")
    rig.do(session.append, b"first", 1)  # makes the file, on the thread
    begin = len(disk.record)
    rig.start(session.append, BULK, 2)
    pending = rig.start(session.append, b"small", 3)
    rig.loop.turn()
    assert pending.value == Appended(5 + len(BULK), 5, 3)
    assert [type(step) for step in disk.record[begin:]] == [Write, Write, Write]
    rig.close()


def test_while_a_round_is_on_its_way_the_next_one_gathers_and_waits() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session, other = rig.session("a"), rig.session("b")
    rig.wait(*(rig.start(each.append, b"first", 1) for each in (session, other)))
    slow, go_on = threading.Event(), threading.Event()

    def wait(_: Write) -> None:
        if threading.current_thread().name.startswith("store-journal"):
            slow.set()
            go_on.wait(HANG_S)

    disk.before_write = wait
    durable = rig.start(session.append, b"durable", 2, durability=Durability.DISK)
    rig.loop.turn()
    assert slow.wait(HANG_S)
    rest = [rig.start(other.append, b"quick", number) for number in (2, 3)]
    for _ in range(3):
        rig.loop.turn()
    assert not any(each.is_done for each in (durable, *rest))
    disk.before_write = lambda _: None
    begin = len(disk.record)
    go_on.set()
    rig.wait(durable, *rest)
    assert durable.value.event_number == 2
    # The durable round, and then both others in one.
    assert Counter(map(type, disk.record[begin:])) == {Write: 2, Sync: 1}
    rig.close()


def test_a_failed_sync_fails_its_segment_and_no_other() -> None:
    disk = Disk()
    rig = opened(disk, inline_bytes_max=KIB)
    sick, well = rig.session("sick"), rig.session("well")
    rig.wait(*(rig.start(each.append, b"first", 1) for each in (sick, well)))
    inode = disk.image().names["data/1"]
    disk.failures = [Failure(lambda step: step == Sync(inode))]
    lost = [rig.start(sick.append, BULK, 2), rig.start(sick.append, b"on top", 3)]
    kept = [rig.start(well.append, BULK, 2), rig.start(well.append, b"on top", 3)]
    rig.wait(*lost, *kept)
    assert [each.value.event_number for each in kept] == [2, 3]
    for each in lost:
        each.error(SegmentFailed)
    rig.refused(SegmentFailed, rig.writer("sick", WRITER).append, b"again", 9)
    assert rig.content("sick") == b"first"
    rig.do(rig.store.delete_segment, "sick")
    rig.close()


def test_what_was_issued_upon_a_lost_append_is_taken_back_with_it() -> None:
    disk = Disk()
    rig = opened(disk, inline_bytes_max=KIB)
    source = rig.session("source")
    rig.do(source.append, b"first", 1)
    rig.create("target", b"kept")
    inode = disk.image().names["data/1"]
    disk.failures = [Failure(lambda step: step == Sync(inode))]
    lost = rig.start(source.append, BULK, 2)
    merged = rig.start(rig.store.merge_segments, "target", "source")
    created = rig.start(rig.store.create_segment, "source")
    rig.wait(lost, merged, created)
    for each in (lost, merged, created):
        each.error(SegmentFailed)
    assert (rig.content("target"), rig.content("source")) == (b"kept", b"first")
    rig.fill("target", b" and more")
    rig.close(may_fail=True)


def test_a_deletion_stands_whatever_was_lost_before_it() -> None:
    disk = Disk()
    rig = opened(disk, inline_bytes_max=KIB)
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    inode = disk.image().names["data/1"]
    disk.failures = [Failure(lambda step: step == Sync(inode))]
    lost = rig.start(session.append, BULK, 2)
    deleted = rig.start(rig.store.delete_segment, "a")
    created = rig.start(rig.store.create_segment, "a")
    rig.wait(lost, deleted, created)
    lost.error(SegmentFailed)
    assert (deleted.value, created.value) == (None, None)
    rig.close()


def test_a_file_that_cannot_be_made_for_want_of_space_is_a_passing_failure() -> None:
    disk = Disk()
    rig = opened(disk)
    session = rig.session("a")
    disk.failures = [
        Failure(lambda step: isinstance(step, Create) and step.path == "data/1", is_full=True)
    ]
    lost = [rig.start(session.append, b"x", 1), rig.start(session.append, b"y", 2)]
    rig.wait(*lost)
    for each in lost:
        each.error(DiskFull)
    rig.refused(DiskFull, session.append, b"z", 3)
    assert rig.do(rig.writer("a", WRITER).append, b"x", 1).position == 0
    assert rig.content("a") == b"x"
    rig.close()


@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("keeps_bytes", [0, 40, -1, -6])
def test_where_the_journal_finds_no_space_the_store_stays_up(
    durability: Durability, keeps_bytes: int
) -> None:
    disk = Disk()
    rig = opened(disk, durability)
    session = rig.session("a")
    rig.create("b", BULK)
    rig.do(session.append, b"kept", 1)
    failure = _is_journal_write(disk)
    failure.is_full, failure.keeps_bytes = True, keeps_bytes
    disk.failures = [failure]
    rig.refused(DiskFull, session.append, bytes(500), 2)
    rig.crash()
    left = opened(Disk(disk.image()), durability)
    assert left.content("a") == b"kept"
    left.close()


@pytest.mark.parametrize("durability", Durability)
def test_what_was_refused_for_want_of_space_in_the_journal_can_be_tried_again(
    durability: Durability,
) -> None:
    disk = Disk()
    rig = opened(disk, durability)
    session = rig.session("a")
    for number in range(1, 5):
        failure = _is_journal_write(disk)
        failure.is_full, failure.keeps_bytes = True, -number
        disk.failures = [failure]
        rig.refused(DiskFull, session.append, bytes(100 * number), 2 * number)
        session = rig.writer("a", WRITER)
        rig.do(session.append, b"%d" % number, 2 * number)
    # What gives space is written in the room that is kept.
    failure = _is_journal_write(disk)
    failure.is_full, failure.keeps_bytes = True, 30
    disk.failures = [failure]
    rig.do(rig.store.truncate_segment, "a", 1)
    rig.crash()
    left = opened(Disk(disk.image()), durability)
    assert left.content("a") == b"234"
    left.close()


def _is_journal_write(disk: Disk) -> Failure:
    inodes = journal_inodes(disk)

    def does_meet(step: Step) -> bool:
        return isinstance(step, Write) and step.inode in inodes

    return Failure(does_meet)


@pytest.mark.parametrize("durability", Durability)
def test_a_failed_journal_ends_the_store_and_everything_gets_an_answer(
    durability: Durability,
) -> None:
    disk = Disk()
    rig = opened(disk, durability)
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    disk.failures = [_is_journal_write(disk)]
    pending = [
        rig.start(session.append, b"x", 2),
        rig.start(rig.store.info, "a"),
        rig.start(rig.store.create_segment, "b"),
    ]
    rig.wait(*pending)
    for each in pending:
        assert "journal failed" in str(each.error(StoreClosed))
    rig.refused(StoreClosed, session.append, b"y", 3)
    rig.refused(StoreClosed, rig.store.info, "a")
    rig.close()
    reopened = opened(Disk(disk.image()), durability)
    assert reopened.content("a") == b"first"
    reopened.close()


def test_the_bug_of_a_caller_does_not_keep_the_results_of_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = opened(Disk())

    def fail(_: Pending) -> None:
        raise ZeroDivisionError

    session = rig.session("a")
    rig.start(session.append, b"x", 1, then=fail)
    assert rig.do(session.append, b"y", 2).position == 1
    assert "a callback of the store's user failed" in caplog.text
    rig.close()


def test_results_of_a_whole_round_come_in_the_order_of_the_calls() -> None:
    rig = opened(Disk())
    seen: list[str] = []

    def note(pending: Pending) -> None:
        seen.append(pending.label.partition("(")[0])

    session = rig.session("a")
    last = [
        rig.start(session.append, b"x", 1, then=note),
        rig.start(rig.store.info, "a", then=note),
        rig.start(session.append, b"x", 1, then=note),
        rig.start(session.append, b"x", 0, then=note),
        rig.start(rig.store.get_attribute, "a", UUID(int=9), then=note),
        rig.start(rig.store.truncate_segment, "a", 1, then=note),
    ]
    rig.wait(*last)
    assert seen == [
        "append", "info", "append", "append", "get_attribute", "truncate_segment",
    ]  # fmt: skip
    rig.close()


@pytest.mark.parametrize("durability", [Durability.OS, Durability.DISK])
def test_a_bug_in_a_commit_stops_the_store_and_tells_of_it(durability: Durability) -> None:
    told: list[StoreClosed] = []
    loop = Loop()
    disk = Disk()
    rig = Rig(lambda loop: open_local(disk, loop, durability, failed=told.append), loop)
    session = rig.writer(rig.create("a"), WRITER)

    journal = inode_of(disk, "journal/1")

    def broken(step: Write) -> None:
        if step.inode == journal:
            raise RuntimeError("for the test")

    disk.before_write = broken
    rig.refused(StoreClosed, session.append, b"x", 1)
    assert len(told) == 1
    rig.refused(StoreClosed, rig.store.create_segment, "b")
    rig.close(may_fail=True)


def test_a_clock_before_1970_breaks_nothing() -> None:
    disk = Disk()
    loop = Loop()
    rig = Rig(lambda loop: open_local(disk, loop, Durability.DISK, now_ms=lambda: -5_000), loop)
    rig.create("a", b"content")
    assert rig.do(rig.store.info, "a").modified_at_ms == 0
    rig.close()


def test_a_checkpoint_that_ends_before_a_late_write_does_not_cover_it() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    data = inode_of(disk, "data/1")
    checkpoint_is_done = threading.Event()

    def hold(step: Write) -> None:
        if step.inode == data:
            assert checkpoint_is_done.wait(HANG_S)

    disk.before_write = hold
    big = bytes(LOOP_WRITE_BYTES_MAX + 1)
    pending = rig.start(session.append, big, 2)
    rig.store._checkpointer.begin(lambda _: checkpoint_is_done.set())
    rig.wait(pending)
    begin = len(disk.record)
    rig.do(session.append, b"durable", 3, durability=Durability.DISK)
    assert Sync(data) in disk.record[begin:]
    rig.close()

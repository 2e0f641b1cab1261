"""What the seam promises when the disk fails, on an implementation whose disk can be told to."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from store.api import Durability
from store.errors import DiskFull, SegmentFailed, StoreClosed, StoreError
from tests.conformance.harness import Rig
from tests.conformance.implementations import open_local
from tests.conformance.promise import promise
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Failure, Step, Sync, Write

WRITER, OTHER = UUID(int=1), UUID(int=2)
BULK = b"<bulk>" * 500
SIZES = {"data_file_bytes": 16_384, "inline_bytes_max": 1_024}


@dataclass
class Failing:
    """A rig, and its disk."""

    rig: Rig
    disk: Disk
    durability: Durability

    def fail(self, failure: Failure) -> None:
        self.disk.failures = [failure]

    def mend(self) -> None:
        self.disk.failures = []

    def after_power_cut(self) -> Rig:
        """Open what is left if the power fails now and nothing else has reached the disk."""
        aftermath, chance = Aftermath(), random.Random(1)
        for step in list(self.disk.record):
            aftermath.advance(step, chance)
        image, _ = aftermath.after(Crash.DROPPED, chance, None)
        return Rig(lambda loop: open_local(Disk(image), loop, self.durability, **SIZES))


@pytest.fixture(params=Durability, ids=lambda each: f"local-{each.value}")
def failing(request: pytest.FixtureRequest) -> Iterator[Failing]:
    disk = Disk()
    durability: Durability = request.param
    rig = Rig(lambda loop: open_local(disk, loop, durability, **SIZES))
    yield Failing(rig, disk, durability)
    disk.failures = []
    rig.close(may_fail=True)
    assert rig.violations == []


def _holds(piece: bytes) -> Failure:
    """Make the write fail that has these bytes."""
    return Failure(lambda step: isinstance(step, Write) and piece in step.data, times=10**9)


def _is_sync_of(disk: Disk, piece: bytes) -> Failure:
    """Make the sync fail of a file into which these bytes were written."""

    def does_meet(step: Step) -> bool:
        return isinstance(step, Sync) and any(
            isinstance(each, Write) and each.inode == step.inode and piece in each.data
            for each in disk.record
        )

    return Failure(does_meet, times=10**9)


@promise("Writer.append", DiskFull)
@pytest.mark.parametrize("size", [1, 3, 600])
def test_after_a_full_disk_the_pipeline_fails_and_a_new_session_goes_on(
    failing: Failing, size: int
) -> None:
    rig = failing.rig
    session, reader = rig.writer(rig.create("a"), WRITER), rig.reader("a")
    rig.create("b", b"other")
    failure = _holds(b"<full>")
    failure.is_full, failure.keeps_bytes = True, 4
    failing.fail(failure)
    rig.do(session.append, b"1", 1)
    full = rig.start(session.append, b"<full>" * size, 2)
    later = [rig.start(session.append, b"x", number) for number in (3, 4, 2)]
    rig.wait(full, *later)
    full.error(DiskFull)
    assert all(isinstance(each.result, StoreError) for each in later)
    # Reading goes on, and so do other segments.
    assert rig.content("a") == b"1"
    assert reader.length == 1
    rig.fill("b", b"more")
    # So does this one, by a new session, while the disk is full for others.
    session = rig.writer("a", WRITER)
    assert session.event_number == 1
    assert rig.do(session.append, b"2", 2).position == 1
    failing.mend()
    assert rig.do(session.append, b"<full>", 3).position == 2
    assert rig.content("a") == b"12<full>"
    rig.reopen()
    assert (rig.content("a"), rig.content("b")) == (b"12<full>", b"othermore")


@promise("Writer.append", SegmentFailed)
def test_a_segment_whose_file_cannot_be_written_takes_no_more_appends(failing: Failing) -> None:
    rig = failing.rig
    session, others = rig.writer(rig.create("a", b"0"), WRITER), rig.writer("a", OTHER)
    rig.create("b", b"other")
    failing.fail(_holds(b"<bad>"))
    rig.do(session.append, b"1", 1)
    bad = rig.start(session.append, b"<bad>", 2)
    later = [rig.start(session.append, b"x", number) for number in (3, 4)]
    rig.wait(bad, *later)
    bad.error(SegmentFailed)
    for each in later:
        each.error(SegmentFailed)
    failing.mend()
    rig.refused(SegmentFailed, others.append, b"x", 1)
    rig.refused(SegmentFailed, rig.writer("a", WRITER).append, b"x", 5)
    assert rig.content("a") == b"01"
    rig.fill("b", b"more")
    rig.reopen()
    assert (rig.content("a"), rig.content("b")) == (b"01", b"othermore")
    rig.fill("a", b"2")
    assert rig.content("a") == b"012"


@promise("Writer.append", SegmentFailed)
def test_after_a_failed_sync_nothing_of_that_file_is_acknowledged(failing: Failing) -> None:
    rig = failing.rig
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(session.append, b"first", 1, durability=Durability.DISK)
    other = rig.writer(rig.create("b"), WRITER)
    rig.do(other.append, BULK, 1, durability=Durability.DISK)
    failing.fail(_is_sync_of(failing.disk, b"<lost>" * 400))
    rig.refused(SegmentFailed, session.append, b"<lost>" * 400, 2, durability=Durability.DISK)
    failing.mend()  # a later sync would succeed: it must not be believed
    for late in (session, rig.writer("a", WRITER), rig.writer("a", OTHER)):
        rig.refused(SegmentFailed, late.append, b"x", 3, durability=Durability.DISK)
        rig.refused(SegmentFailed, late.append, BULK, 4, durability=Durability.DISK)
    rig.do(other.append, BULK, 2, durability=Durability.DISK)
    left = failing.after_power_cut()
    assert left.content("a") == b"first"
    assert left.content("b") == BULK * 2
    left.do(left.writer("a", WRITER).append, b" again", 5)
    assert left.content("a") == b"first again"
    left.close()


@promise("SegmentStore.close", StoreClosed)
def test_when_the_journal_fails_nothing_more_is_acknowledged(failing: Failing) -> None:
    rig = failing.rig
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(session.append, b"good", 1, durability=Durability.DISK)
    failing.fail(Failure(lambda step: isinstance(step, Sync), times=1))
    lost = rig.start(session.append, b"lost", 2, durability=Durability.DISK)
    behind = rig.start(session.append, b"x", 3, durability=Durability.DISK)
    rig.wait(lost, behind)
    lost.error(StoreClosed)
    behind.error(StoreClosed)
    failing.mend()
    rig.refused(StoreClosed, session.append, b"x", 4)
    rig.refused(StoreClosed, rig.store.create_segment, "b")
    rig.refused(StoreClosed, rig.store.info, "a")
    left = failing.after_power_cut()
    assert left.content("a") in {b"good", b"goodlost", b"goodlostx"}
    left.close()


@promise("Writer.append", DiskFull)
def test_what_shares_the_fate_of_a_failed_append_is_not_acknowledged(failing: Failing) -> None:
    rig = failing.rig
    sessions = [rig.writer(rig.create("a"), WRITER), rig.writer("a", OTHER)]
    failure = _holds(b"<full>")
    failure.is_full = True
    failing.fail(failure)
    pieces = [b"1", b"2", b"<full>", b"3", b"4"]
    pending = [rig.start(sessions[n % 2].append, piece, n) for n, piece in enumerate(pieces)]
    rig.wait(*pending)
    pending[2].error(DiskFull)
    pending[4].error(DiskFull)
    acknowledged = [
        (each.value.position, piece)
        for each, piece in zip(pending, pieces, strict=True)
        if not isinstance(each.result, StoreError)
    ]
    content = b"".join(piece for _, piece in acknowledged)
    assert [content[position:][: len(piece)] for position, piece in acknowledged] == [
        piece for _, piece in acknowledged
    ]
    assert rig.content("a") == content
    rig.reopen()
    assert rig.content("a") == content


def test_a_waiting_read_hears_that_the_journal_failed(failing: Failing) -> None:
    rig = failing.rig
    session = rig.writer(rig.create("a"), WRITER)
    waiting = rig.start(rig.store.read, "a", 0, 10, wait=True)
    failing.fail(Failure(lambda step: isinstance(step, Sync), times=1))
    rig.refused(StoreClosed, session.append, b"lost", 2, durability=Durability.DISK)
    rig.wait(waiting)
    waiting.error(StoreClosed)

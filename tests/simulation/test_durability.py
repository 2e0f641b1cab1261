"""What an acknowledgement means to the one operation that asked for it."""

import random
import time
from collections.abc import Iterator
from uuid import UUID

import pytest

from store.api import AttributeUpdate, Durability
from store.errors import NoSuchSegment, StoreClosed
from tests.conformance.harness import Loop, Pending, Rig
from tests.conformance.implementations import open_local
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Failure, Sync, Write
from tests.simulation.world import SIZES
from tests.waiting import HANG_S

WRITER = UUID(int=1)
ATTRIBUTE = UUID(int=2)
SMALL, BULK = b"small", b"<bulk>" * 100
WEAK = (Durability.OS, Durability.INTERVAL)


def _open(disk: Disk, durability: Durability) -> Rig:
    return Rig(lambda loop: open_local(disk, loop, durability, **SIZES), Loop())


@pytest.fixture(params=Durability)
def rig_and_disk(request: pytest.FixtureRequest) -> Iterator[tuple[Rig, Disk]]:
    disk = Disk()
    rig = _open(disk, request.param)
    yield rig, disk
    rig.close()


def _after_power_cut(disk: Disk, crash: Crash) -> Rig:
    """Open what a power cut leaves of a disk as it is now."""
    aftermath, chance = Aftermath(), random.Random(1)
    for step in list(disk.record):
        aftermath.advance(step, chance)
    image, _ = aftermath.after(crash, chance, None)
    return _open(Disk(image), Durability.DISK)


def _content(disk: Disk, crash: Crash) -> tuple[bytes, int, int]:
    rig = _after_power_cut(disk, crash)
    content = rig.content("a")
    number = rig.do(rig.store.get_attribute, "a", WRITER)
    attribute = rig.do(rig.store.get_attribute, "a", ATTRIBUTE)
    rig.close()
    return content, number, attribute


@pytest.mark.parametrize("crash", [Crash.DROPPED, Crash.ZEROED])
@pytest.mark.parametrize("is_waited_for", [True, False])
@pytest.mark.parametrize("weak", WEAK)
@pytest.mark.parametrize("first", [SMALL, BULK])
@pytest.mark.parametrize("second", [SMALL, BULK, b""])
def test_an_append_to_the_disk_takes_along_what_was_written_before(
    rig_and_disk: tuple[Rig, Disk],
    first: bytes,
    second: bytes,
    weak: Durability,
    crash: Crash,
    *,
    is_waited_for: bool,
) -> None:
    rig, disk = rig_and_disk
    rig.do(rig.store.create_segment, "a", durability=weak)
    session = rig.writer("a", WRITER)
    pending = rig.start(session.append, first, 1, durability=weak)
    if is_waited_for:
        rig.wait(pending)
    rig.do(session.append, second, 2, durability=Durability.DISK)
    assert _content(disk, crash)[:2] == (first + second, 2)


@pytest.mark.parametrize("crash", [Crash.DROPPED, Crash.ZEROED])
@pytest.mark.parametrize("is_waited_for", [True, False])
@pytest.mark.parametrize("first", [SMALL, BULK])
def test_in_disk_mode_an_attribute_takes_along_what_was_written_before(
    first: bytes, crash: Crash, *, is_waited_for: bool
) -> None:
    disk = Disk()
    rig = _open(disk, Durability.DISK)
    session = rig.writer(rig.create("a"), WRITER)
    pending = rig.start(session.append, first, 1, durability=Durability.OS)
    if is_waited_for:
        rig.wait(pending)
    rig.do(rig.store.update_attributes, "a", [AttributeUpdate(ATTRIBUTE, 5)])
    assert _content(disk, crash) == (first, 1, 5)
    rig.close()


@pytest.mark.parametrize("first", [SMALL, BULK])
@pytest.mark.parametrize("is_waited_for", [True, False])
def test_a_resend_that_asks_for_the_disk_is_acknowledged_when_it_is_there(
    rig_and_disk: tuple[Rig, Disk], first: bytes, *, is_waited_for: bool
) -> None:
    rig, disk = rig_and_disk
    rig.do(rig.store.create_segment, "a", durability=Durability.DISK)
    session = rig.writer("a", WRITER)
    pending = rig.start(session.append, first, 1, durability=Durability.OS)
    if is_waited_for:
        rig.wait(pending)
    rig.do(session.append, first, 1, durability=Durability.DISK)
    assert _content(disk, Crash.DROPPED)[:2] == (first, 1)


@pytest.mark.parametrize("crash", [Crash.DROPPED, Crash.ZEROED])
@pytest.mark.parametrize("data", [SMALL, BULK])
@pytest.mark.parametrize("is_appended", [True, False])
def test_when_the_journal_fails_what_was_acknowledged_is_synced_before_the_end(
    data: bytes, crash: Crash, *, is_appended: bool
) -> None:
    disk = Disk()
    sizes = SIZES | {"interval_ms": 600_000}
    rig = Rig(lambda loop: open_local(disk, loop, Durability.INTERVAL, **sizes), Loop())
    session = rig.writer(rig.create("a"), WRITER)
    rig.create("deleted", BULK)
    for number in range(1, 30):
        rig.do(session.append, data, number)
    rig.do(rig.store.delete_segment, "deleted")
    journals = {inode for path, inode in disk.image().names.items() if path.startswith("journal/")}
    disk.failures = [
        Failure(lambda step: isinstance(step, Write) and step.inode in journals, keeps_bytes=40)
    ]
    if is_appended:
        rig.refused(StoreClosed, session.append, data, 30)
    else:
        rig.refused(StoreClosed, rig.store.create_segment, "b")
    rig.close(may_fail=True)
    opened = _after_power_cut(disk, crash)
    assert opened.content("a") == data * 29
    opened.refused(NoSuchSegment, opened.store.info, "deleted")
    opened.close()


def test_in_interval_mode_everything_is_on_the_disk_soon() -> None:
    disk = Disk()
    rig = _open(disk, Durability.INTERVAL)  # of 5 ms
    sessions = [rig.writer(rig.create(name), WRITER) for name in ("a", "b")]
    pending: list[Pending] = []
    for number in range(20):
        pending += [
            rig.start(each.append, BULK if number % 3 else SMALL, number) for each in sessions
        ]
        rig.loop.run_for(0.001)
    rig.wait(*pending)
    deadline = time.monotonic() + HANG_S
    expected = rig.content("a")
    while True:
        rig.loop.run_for(0.02)
        opened = _after_power_cut(disk, Crash.DROPPED)
        seen = opened.content("a"), opened.content("b")
        opened.close()
        if seen == (expected, expected):
            break
        assert time.monotonic() < deadline, "the interval has passed a thousand times"
    rig.close()


@pytest.mark.parametrize("crash", [Crash.DROPPED, Crash.ZEROED, Crash.KEPT])
@pytest.mark.parametrize("is_waited_for", [True, False])
@pytest.mark.parametrize("data", [SMALL, BULK])
def test_a_segment_truncated_to_its_end_takes_appends_after_a_power_cut(
    data: bytes, crash: Crash, *, is_waited_for: bool
) -> None:
    disk = Disk()
    rig = _open(disk, Durability.DISK)
    session = rig.writer(rig.create("a"), WRITER)
    pending = rig.start(session.append, data, 1)
    if is_waited_for:
        rig.wait(pending)
    rig.do(rig.store.truncate_segment, "a", len(data))
    opened = _after_power_cut(disk, crash)
    assert opened.writer("a", WRITER).event_number == 1
    opened.do(opened.writer("a", WRITER).append, b"more", 2)
    assert opened.content("a") == b"more"
    opened.close()
    rig.close()


def test_a_truncation_behind_lost_bytes_still_counts() -> None:
    """In a mode that may lose bytes: what was given up does not come back as something else."""
    disk = Disk()
    rig = _open(disk, Durability.OS)
    rig.do(rig.store.create_segment, "a", durability=Durability.DISK)
    rig.do(rig.store.create_segment, "other", durability=Durability.DISK)
    session, other = rig.writer("a", WRITER), rig.writer("other", WRITER)
    rig.do(session.append, BULK, 1, durability=Durability.DISK)
    for number in range(2, 6):  # a file is rolled on the way, and none of this is synced
        rig.do(session.append, BULK, number)
    rig.do(rig.store.truncate_segment, "a", 5 * len(BULK) - 10)
    # The journal is synced, and with it the truncation: the files before it may go.
    for number in range(1, 20):
        rig.do(other.append, SMALL, number, durability=Durability.DISK)
    opened = _after_power_cut(disk, Crash.ZEROED)
    info = opened.do(opened.store.info, "a")
    assert opened.content("a") == (BULK * 5)[info.start : info.length]
    opened.close()
    rig.close()


def test_a_sync_that_began_before_a_late_write_does_not_cover_it() -> None:
    disk = Disk()
    sizes = SIZES | {"checkpoint_bytes": 1, "interval_ms": 30}
    rig = Rig(lambda loop: open_local(disk, loop, Durability.INTERVAL, **sizes), Loop())
    session = rig.writer(rig.create("a"), WRITER)
    rig.do(session.append, BULK, 1)
    (inode,) = {step.inode for step in disk.record if isinstance(step, Write) and step.data == BULK}
    # Many other files are used, so that this one is closed: its next write is not the loop's.
    for number in range(8):
        rig.fill(rig.create(f"other {number}"), BULK)
    rig.loop.run_for(0.1)

    def wait_for_sync(step: Write) -> None:
        deadline, syncs = time.monotonic() + 1, disk.record.count(Sync(inode))
        while step.inode == inode and disk.record.count(Sync(inode)) == syncs:
            if time.monotonic() > deadline:
                return  # nobody syncs a file that is about to be written: right too
            time.sleep(0.001)

    begin = len(disk.record)
    rig.do(session.append, BULK, 2)  # soon to be synced
    disk.before_write = wait_for_sync
    for number in range(8):
        rig.fill(f"other {number}", BULK)
    rig.do(session.append, BULK, 3)
    rig.loop.run_for(0.1)
    rig.close()
    aftermath, chance = Aftermath(), random.Random(1)
    for cut, step in enumerate(disk.record):
        if cut > begin:
            image, _ = aftermath.after(Crash.DROPPED, chance, None)
            opened = _open(Disk(image), Durability.INTERVAL)
            assert (BULK * 3).startswith(opened.content("a"))
            opened.close()
        aftermath.advance(step, chance)

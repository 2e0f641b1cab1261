import os
from contextlib import suppress
from pathlib import Path

import pytest

from store.api import ABSENT, RESEND_WINDOW, Appended, Durability
from store.errors import DiskFull, EventNumberTooLow, InvalidArgument, SegmentFailed
from store.files import DirectoryFiles
from store.local.state.data_file import ALLOCATE_FROM
from store.local.writes import LOOP_WRITE_BYTES_MAX, LocalWriter, Stored
from tests.simulation.disk import Allocate, Disk, Failure, Write
from tests.unit.store.local.opened import KIB, WRITER, opened


def test_a_session_remembers_its_last_appends_and_no_more() -> None:
    stored = Stored()
    for number in range(5 * RESEND_WINDOW):
        stored.add(3 * number, 10 * number, number)
        oldest = max(0, number - RESEND_WINDOW + 1)
        assert stored.find(3 * oldest) == Appended(10 * oldest, oldest, 3 * oldest)
        if oldest:
            assert stored.find(3 * oldest - 3) is None
        assert stored.find(3 * number + 1) is None
        assert stored.room <= 2 * RESEND_WINDOW


def test_a_resend_is_answered_from_the_window_and_refused_behind_it() -> None:
    rig = opened(Disk(), Durability.OS)
    session = rig.session("a")
    rig.wait(*(rig.start(session.append, b"x", n) for n in range(RESEND_WINDOW + 1)))
    assert rig.do(session.append, b"x", 1) == Appended(1, 1, 1)
    rig.refused(EventNumberTooLow, session.append, b"x", 0)
    assert rig.content("a") == b"x" * (RESEND_WINDOW + 1)
    rig.close()


def test_files_roll_and_no_append_lies_in_two() -> None:
    disk = Disk()
    rig = opened(disk, data_file_bytes=KIB)
    session = rig.session("a")
    parts = [os.urandom(size) for size in (600, 424, 1, 1_023, 5_000, 10, 1_024)]
    for number, part in enumerate(parts):
        rig.do(session.append, part, number)
    assert rig.content("a") == b"".join(parts)
    image = disk.image()
    files = [image.contents[image.names[f"data/{number}"]] for number in range(1, 6)]
    assert files == [
        parts[0] + parts[1],
        parts[2] + parts[3],
        parts[4],
        parts[5],
        parts[6],
    ]
    rig.close()


def test_the_files_of_a_segment_that_is_truncated_again_and_again_go_soon(tmp_path: Path) -> None:
    mib = 1024 * KIB
    rig = opened(DirectoryFiles(tmp_path), Durability.OS, data_file_bytes=64 * mib)
    session = rig.session("a")
    part = bytes(mib // 4)
    for number in range(1, 161):  # 40 MiB through a segment of 6 MiB
        length = rig.do(session.append, part, number).position + len(part)
        rig.do(rig.store.truncate_segment, "a", max(0, length - 6 * mib))

    def taken() -> int:
        sizes = [0]
        for path in (tmp_path / "data").iterdir():
            with suppress(FileNotFoundError):  # it goes just now
                sizes.append(path.stat().st_size)
        return sum(sizes)

    rig.loop.run_until(lambda: taken() <= (6 + 3) * mib)
    assert len(rig.content("a")) == 6 * mib
    assert len(rig.store.catalogue.names["a"].pending.extents) < 10
    rig.close()


def test_a_file_can_be_filled_to_its_last_byte() -> None:
    rig = opened(Disk(), Durability.OS, data_file_bytes=2 * ALLOCATE_FROM)
    session = rig.session("a")
    for number in range(1, 6):
        rig.do(session.append, bytes(ALLOCATE_FROM), number)
    assert len(rig.content("a")) == 5 * ALLOCATE_FROM
    assert len(rig.store.catalogue.names["a"].committed.extents) == 3
    rig.close()


def test_the_buffer_is_the_callers_again_whoever_writes_it() -> None:
    rig = opened(Disk())
    session = rig.session("a")
    for number, size in enumerate((5, 5, LOOP_WRITE_BYTES_MAX + 1)):
        data = bytearray(b"x" * size)
        pending = rig.start(session.append, data, number)
        data[:] = b"y" * size
        rig.wait(pending)
    assert set(rig.content("a")) == set(b"x")
    rig.close()


def test_the_loop_does_not_write_large_appends_itself() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session = rig.session("a")
    rig.do(session.append, b"x", 1)

    def written() -> int:
        return sum(len(step.data) for step in disk.record if isinstance(step, Write))

    before = written()
    rig.start(session.append, bytes(LOOP_WRITE_BYTES_MAX), 2)
    assert written() == before + LOOP_WRITE_BYTES_MAX
    large = rig.start(session.append, bytes(LOOP_WRITE_BYTES_MAX + 1), 3)
    assert written() == before + LOOP_WRITE_BYTES_MAX
    rig.wait(large)
    assert written() > before + 2 * LOOP_WRITE_BYTES_MAX
    rig.close()


def test_space_is_reserved_ahead_for_files_that_grow_and_not_for_small_ones() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session, small = rig.session("a"), rig.session("small")
    rig.do(small.append, bytes(ALLOCATE_FROM), 0)
    for number in range(40):
        rig.do(session.append, bytes(128 * KIB), number)
        rig.loop.run_for(0.002)
    ends = [step.end for step in disk.record if isinstance(step, Allocate)]
    assert len(ends) >= 2
    assert ends == sorted(ends)
    # Steps grow, and each begins before the last one is used up.
    assert ends[0] >= ALLOCATE_FROM + 1_024 * KIB
    rig.close()


def test_no_space_to_reserve_is_no_failure() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session = rig.session("a")
    disk.failures = [Failure(lambda step: isinstance(step, Allocate), times=9, is_full=True)]
    for number in range(20):
        rig.do(session.append, bytes(128 * KIB), number)
    rig.close()


@pytest.mark.parametrize("is_full", [True, False])
def test_a_write_that_fails_on_the_loop_ends_the_session(*, is_full: bool) -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    session = rig.session("a")
    rig.do(session.append, b"first", 1)
    disk.failures = [Failure(lambda step: isinstance(step, Write), is_full=is_full)]
    kind = DiskFull if is_full else SegmentFailed
    rig.refused(kind, session.append, b"x", 2)
    rig.refused(kind, session.append, b"x", 3)
    again = rig.writer("a", WRITER)
    if is_full:
        assert rig.do(again.append, b"x", 2).position == 5
        rig.close()
    else:
        rig.refused(SegmentFailed, again.append, b"x", 2)
        rig.close(may_fail=True)


def test_a_session_knows_what_was_issued() -> None:
    rig = opened(Disk())
    session = rig.session("a")
    assert isinstance(session, LocalWriter)
    assert (session.event_number, session.length) == (ABSENT, 0)
    rig.start(session.append, b"abc", 5)
    assert (session.event_number, session.length) == (5, 3)
    rig.close()


@pytest.mark.parametrize("number", [-1, -(2**63), 2**63])
def test_an_event_number_that_cannot_be_is_refused_and_the_session_lives(number: int) -> None:
    rig = opened(Disk())
    session = rig.session("a")
    rig.refused(InvalidArgument, session.append, b"x", number)
    rig.do(session.append, b"x", 2**63 - 1)
    rig.close()

"""Stored chunks are verified ahead of a reader, and it waits for no more than it needs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.log.derived import index as index_module
from gateway.log.derived.index import NO_END
from gateway.log.log import StreamLog
from gateway.log.reading.lookahead import PIECES_AHEAD, Lookahead
from store.errors import StoreError
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import LogRig
from tests.unit.gateway.log.reading.test_cursor import commit_all
from tests.unit.gateway.log.reading.test_cursor_damage import EVENT_BYTES, FIVE, damaged_rig
from tests.unit.gateway.log.test_unreadable import BODIES, Disk, rig_on

BODY_EVENT_BYTES = 60 + 4 + len(BODIES[0])


class Reader:
    """A reader that only asks, and what it was told."""

    def __init__(self, log: StreamLog, position: int = 0, ahead_bytes: int = 0) -> None:
        self.wake_count = 0
        self.failures: list[bool] = []
        """True for each failure at a place that had failed before."""
        self.ahead = Lookahead(log, position, ahead_bytes, self._woken, self._failed)

    def _woken(self) -> None:
        self.wake_count += 1

    def _failed(self, error: StoreError, is_again: bool) -> None:  # noqa: FBT001 - a callback
        assert isinstance(error, StoreError)
        self.failures.append(is_again)


def settle(rig: LogRig, reader: Reader) -> None:
    """Turn until no check is under way."""
    rig.loop.run_until(lambda: not reader.ahead._is_checking)


@pytest.fixture
def rig(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> LogRig:
    """Five chunks of an earlier process, each in a span of its own."""
    monkeypatch.setattr(index_module, "SPAN_BYTES", 1)
    return damaged_rig(make_rig, saves_snapshot=True)


def test_what_this_process_wrote_needs_no_check(rig: LogRig) -> None:
    log = rig.open()
    rig.commit(log, b"new")

    reader = Reader(log, log.index.trusted_position)

    assert reader.ahead.verified_to == NO_END
    assert reader.ahead.is_verified(log.index.trusted_position)
    assert not reader.ahead._is_checking


def test_a_reader_that_waits_is_woken_once_when_its_chunk_was_verified(rig: LogRig) -> None:
    reader = Reader(rig.open())

    assert not reader.ahead.is_verified(0)
    assert not reader.ahead.is_verified(0)
    assert reader.wake_count == 0
    settle(rig, reader)

    assert reader.wake_count == 1
    assert reader.ahead.is_verified(0)
    assert reader.ahead.verified_to == EVENT_BYTES


def test_a_reader_that_does_not_wait_is_not_woken(rig: LogRig) -> None:
    reader = Reader(rig.open(), ahead_bytes=EVENT_BYTES)

    reader.ahead.go_on(0)
    settle(rig, reader)

    assert (reader.wake_count, reader.ahead.verified_to) == (0, PIECES_AHEAD * EVENT_BYTES)


def test_pieces_are_verified_one_after_another_up_to_a_bound_ahead_of_the_reader(
    rig: LogRig,
) -> None:
    reader = Reader(rig.open(), ahead_bytes=EVENT_BYTES)
    reader.ahead.go_on(0)
    settle(rig, reader)

    reader.ahead.go_on(EVENT_BYTES - 1)
    assert not reader.ahead._is_checking
    reader.ahead.go_on(EVENT_BYTES)
    settle(rig, reader)

    assert reader.ahead.verified_to == (PIECES_AHEAD + 1) * EVENT_BYTES


def test_what_was_verified_for_one_reader_is_so_for_others(rig: LogRig) -> None:
    log = rig.open()
    first = Reader(log, ahead_bytes=EVENT_BYTES)
    first.ahead.go_on(0)
    settle(rig, first)

    second = Reader(log)

    assert second.ahead.is_verified((PIECES_AHEAD - 1) * EVENT_BYTES)
    assert not second.ahead.is_verified(PIECES_AHEAD * EVENT_BYTES)


def test_the_end_of_what_an_earlier_process_wrote_is_the_end_of_all_checks(rig: LogRig) -> None:
    log = rig.open()
    rig.commit(log, b"new")
    reader = Reader(log, ahead_bytes=1 << 20)
    reader.ahead.go_on(0)
    settle(rig, reader)

    reader.ahead.go_on(0)

    assert not reader.ahead._is_checking
    assert reader.ahead.verified_to == log.index.trusted_position == 5 * EVENT_BYTES
    assert reader.ahead.is_verified(log.index.trusted_position)
    assert reader.ahead.verified_to == NO_END


def damaged_reader(make_rig: MakeRig, *numbers: int) -> tuple[LogRig, Reader]:
    """A reader at the first of five chunks, and all of them were looked at."""
    damage = [(number * EVENT_BYTES + 56 + 4 + 99, 0x55) for number in numbers]
    rig = damaged_rig(make_rig, *damage, saves_snapshot=True)
    reader = Reader(rig.open(), ahead_bytes=1 << 20)
    look_at_all(rig, reader)
    return rig, reader


def look_at_all(rig: LogRig, reader: Reader) -> None:
    while reader.ahead.verified_to < len(FIVE) * EVENT_BYTES:
        reader.ahead.go_on(0)
        settle(rig, reader)


def test_a_reader_goes_past_damage_when_it_comes_to_it(make_rig: MakeRig) -> None:
    _, reader = damaged_reader(make_rig, 1, 2, 4)

    positions = [reader.ahead.past_damage(number * EVENT_BYTES) for number in (0, 1, 3, 4)]

    assert positions == [number * EVENT_BYTES for number in (0, 3, 3, 5)]
    assert not reader.ahead.damaged


def test_damage_that_is_found_before_what_is_known_is_gone_past_first(make_rig: MakeRig) -> None:
    rig, reader = damaged_reader(make_rig, 1, 3)

    assert reader.ahead.skip(0, 0, EVENT_BYTES) == EVENT_BYTES
    look_at_all(rig, reader)

    positions = [reader.ahead.past_damage(number * EVENT_BYTES) for number in (1, 2, 3)]
    assert positions == [number * EVENT_BYTES for number in (2, 2, 4)]


@pytest.fixture
def unreadable(tmp_path: Path) -> tuple[LogRig, Disk]:
    """Chunks of an earlier process, of which the fourth cannot be read."""
    disk = Disk()
    rig = rig_on(disk, tmp_path / "data")
    commit_all(rig, rig.create(), *([body] for body in BODIES))
    rig.close()
    return rig_on(disk, tmp_path / "data"), disk


def break_chunk(disk: Disk, number: int) -> None:
    disk.bad = range(number * BODY_EVENT_BYTES + 900, number * BODY_EVENT_BYTES + 901)
    disk.times = 1_000


def test_what_cannot_be_read_ahead_is_tried_again_when_the_reader_has_come_to_it(
    unreadable: tuple[LogRig, Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 1)
    rig, disk = unreadable
    log = rig.open()
    break_chunk(disk, 3)
    reader = Reader(log, ahead_bytes=1 << 20)

    def ask(action: Callable[[], object]) -> list[bool]:
        action()
        settle(rig, reader)
        return reader.failures

    assert ask(lambda: reader.ahead.go_on(0)) == [False]
    assert ask(lambda: reader.ahead.go_on(0)) == [False], "no reader waits for it"
    assert not reader.ahead.is_verified(0)
    settle(rig, reader)
    assert (reader.failures, reader.wake_count) == ([False], 1), "one chunk can be read"
    assert ask(lambda: reader.ahead.is_verified(3 * BODY_EVENT_BYTES)) == [False, False]
    assert ask(lambda: reader.ahead.is_verified(3 * BODY_EVENT_BYTES)) == [False, False, True]
    disk.times = 0
    assert len(ask(lambda: reader.ahead.is_verified(3 * BODY_EVENT_BYTES))) == 3
    assert reader.ahead.is_verified(3 * BODY_EVENT_BYTES)

"""Large sub-batches of a log are opened on a thread, while their readers wait."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.log.reading.retention import Cut, remove_before
from gateway.log.records.decompressing import LARGE_BYTES
from gateway.log.records.openings import Opener, OpeningRoom
from gateway.log.records.reading import Record, UnreadableSubBatch
from gateway.pending import Pending
from tests.chunks import GZIP, LZ4, SNAPPY, ZSTD, SubBatch
from tests.unit.gateway.log.log_rig import NAMES, LogRig
from tests.unit.gateway.log.records.test_reading import Reading, commit, numbered


class Thread:
    """A thread that is the test's own: jobs wait until it lets one run."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Pending[Any]]] = []
        self.room = OpeningRoom(4 * LARGE_BYTES, self.run, self.wait)
        self.waits: list[Pending[None]] = []

    def run(self, function: Callable[[], Any]) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        self.jobs.append((function, pending))
        return pending

    def wait(self, _delay_ms: int) -> Pending[None]:
        self.waits.append(Pending())
        return self.waits[-1]

    def pass_a_second(self) -> None:
        """Let those make way that have a sub-batch open, if others wait."""
        waits, self.waits = self.waits, []
        for each in waits:
            each.settle(None)

    def go_on(self) -> None:
        function, pending = self.jobs.pop(0)
        pending.settle(function())

    @property
    def is_empty(self) -> bool:
        """Whether all memory is given back, after what is to be done for that."""
        while self.jobs:
            self.go_on()
        return self.room._left == 4 * LARGE_BYTES

    @property
    def opener(self) -> Opener:
        return Opener(self.room)


LARGE_RECORDS = [bytes([number]) * 50_000 for number in range(40)]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_large_sub_batch_is_opened_on_a_thread_while_its_reader_waits(
    rig: LogRig, codec: int
) -> None:
    log, thread = rig.create(), Thread()
    commit(rig, log, 10, b"a", SubBatch.of(LARGE_RECORDS, codec), b"z")
    reading = Reading(rig, log, opener=thread.opener)
    reader = reading.reader

    assert reader.next() == numbered(0, 10, [b"a"])
    assert reader.next() is None
    assert reader.next_offset == 1
    assert reading.wake_count == len(thread.jobs) - 1 == 0
    thread.go_on()
    assert reading.wake_count == 1
    found: list[Record] = []
    while len(found) < 40:
        assert reader.holds_memory
        some = reader.next()
        assert isinstance(some, list)
        assert len(some) == 2, "a run of 64 KiB and more, not all at once"
        found += some
        assert reader.next_offset == 1 + len(found)
    assert found == numbered(1, 10, LARGE_RECORDS)
    assert reader.next() == numbered(41, 10, [b"z"])
    assert not reader.holds_memory
    assert thread.is_empty


def test_one_of_the_largest_size_in_place_is_opened_at_once(rig: LogRig) -> None:
    log, thread = rig.create(), Thread()
    commit(rig, log, 10, SubBatch.of([bytes(LARGE_BYTES - 4)], ZSTD))
    commit(rig, log, 10, SubBatch.of([bytes(LARGE_BYTES - 3)], ZSTD))
    reader = Reading(rig, log, opener=thread.opener).reader

    assert reader.next() == numbered(0, 10, [bytes(LARGE_BYTES - 4)])
    assert reader.next() is None
    thread.go_on()
    assert reader.next() == numbered(1, 10, [bytes(LARGE_BYTES - 3)])


@pytest.mark.parametrize("offset", [1, 2, 20, 40])
def test_a_large_sub_batch_is_read_from_the_offset_that_was_asked_for(
    rig: LogRig, offset: int
) -> None:
    log, thread = rig.create(), Thread()
    commit(rig, log, 10, b"a", SubBatch.of(LARGE_RECORDS, ZSTD))
    reader = Reading(rig, log, offset, opener=thread.opener).reader

    assert reader.next() is None
    thread.go_on()
    found: list[Record] = []
    while isinstance(some := reader.next(), list):
        found += some
    assert found == numbered(1, 10, LARGE_RECORDS)[offset - 1 :]


def test_a_large_sub_batch_that_cannot_be_opened_is_told(rig: LogRig) -> None:
    log, thread = rig.create(), Thread()
    bad = SubBatch.of(LARGE_RECORDS, ZSTD)
    commit(rig, log, 10, SubBatch(ZSTD, 41, bad.raw_size, bad.body), b"z")
    reader = Reading(rig, log, opener=thread.opener).reader

    assert reader.next() is None
    thread.go_on()
    told = reader.next()
    assert isinstance(told, UnreadableSubBatch)
    assert (told.offset, told.next_offset, told.timestamp_ms, told.body) == (0, 41, 10, bad.body)
    assert told.reason.endswith(f"does not hold 41 records in {bad.raw_size} bytes")
    assert reader.next() == numbered(41, 10, [b"z"])
    assert thread.is_empty


def test_a_large_sub_batch_that_there_is_no_memory_for_is_a_failure(rig: LogRig) -> None:
    log, thread = rig.create(), Thread()
    commit(rig, log, 10, SubBatch.of(LARGE_RECORDS, ZSTD))
    reader = Reading(rig, log, opener=thread.opener).reader

    assert reader.next() is None
    _, pending = thread.jobs.pop()
    pending.settle((MemoryError("no room"),))
    assert reader.next() is None
    assert "no room" in str(reader.failure)
    assert thread.is_empty


@pytest.mark.parametrize("is_open", [False, True])
def test_a_closed_reader_gives_the_memory_back(rig: LogRig, *, is_open: bool) -> None:
    log, thread = rig.create(), Thread()
    commit(rig, log, 10, SubBatch.of(LARGE_RECORDS, ZSTD))
    reading = Reading(rig, log, opener=thread.opener)

    assert reading.reader.next() is None
    if is_open:
        thread.go_on()
        assert reading.reader.next()
    reading.reader.close()
    if not is_open:
        thread.go_on()
    assert reading.reader.next() is None
    assert reading.wake_count == is_open
    assert thread.is_empty


def test_one_that_waits_for_its_turn_holds_no_memory_and_reads_again(rig: LogRig) -> None:
    log, thread = rig.create(), Thread()
    opener = thread.opener
    large = SubBatch.of(LARGE_RECORDS, ZSTD)
    commit(rig, log, 10, b"a", SubBatch.of([b"b"]), large, b"z")
    first, second = (Reading(rig, log, 1, opener=opener) for _ in range(2))

    for reading in (first, second):
        assert reading.reader.next() == numbered(1, 10, [b"b"])
        assert reading.reader.next() is None
    assert second.reader._chunk == second.reader._chunks._window == b""
    thread.go_on()
    assert len(first.records()) == 41
    thread.go_on()
    assert second.wake_count == 1, "it has its turn"
    assert second.reader.next() is None
    thread.go_on()
    assert second.records() == [*numbered(2, 10, LARGE_RECORDS), (42, 10, b"z")]
    assert thread.is_empty


@pytest.mark.parametrize("taken", [0, 2, 38])
def test_one_that_makes_way_for_another_goes_on_at_its_place(rig: LogRig, taken: int) -> None:
    log, thread = rig.create(), Thread()
    opener = thread.opener
    commit(rig, log, 10, b"a", SubBatch.of(LARGE_RECORDS, ZSTD), b"z")
    slow, other = (Reading(rig, log, 1, opener=opener) for _ in range(2))

    assert slow.reader.next() is None
    thread.go_on()
    found: list[Record] = []
    while len(found) < taken:
        some = slow.reader.next()
        assert isinstance(some, list)
        found += some
    assert other.reader.next() is None
    thread.pass_a_second()
    assert not slow.reader.holds_memory
    thread.go_on()
    assert other.reader.next() is None, "it has its turn"
    thread.go_on()
    everything = [*numbered(1, 10, LARGE_RECORDS), (41, 10, b"z")]
    assert other.records() == everything
    assert slow.reader.next() is None
    thread.go_on()
    assert slow.reader.next() is None, "it has its turn again"
    thread.go_on()
    assert found + slow.records() == everything
    assert thread.is_empty


def test_a_reader_that_is_slow_when_it_gets_its_turn_makes_way(rig: LogRig) -> None:
    log, thread = rig.create(), Thread()
    opener = thread.opener
    commit(rig, log, 10, SubBatch.of(LARGE_RECORDS, ZSTD))
    holder, slow, other = (Reading(rig, log, opener=opener) for _ in range(3))
    for each in (holder, slow, other):
        assert each.reader.next() is None
    holder.reader.close()
    assert not thread.is_empty
    assert slow.wake_count == 1, "it has its turn"
    thread.pass_a_second()
    assert not slow.reader.holds_memory
    assert other.wake_count == 1
    assert other.reader.next() is None
    assert slow.reader.next() is None
    thread.go_on()
    assert other.records() == numbered(0, 10, LARGE_RECORDS)
    thread.go_on()
    assert slow.reader.next() is None
    thread.go_on()
    assert slow.records() == numbered(0, 10, LARGE_RECORDS)
    assert thread.is_empty


def test_an_open_one_is_its_reader_s_own_until_another_waits(rig: LogRig) -> None:
    log, thread = rig.create(), Thread()
    commit(rig, log, 10, SubBatch.of(LARGE_RECORDS, ZSTD), b"z")
    opener = thread.opener
    first, second = (Reading(rig, log, opener=opener).reader for _ in range(2))
    seen = []

    for act in (first.next, thread.go_on, second.next, second.close, first.close):
        act()
        seen.append(first.has_sub_batch_to_itself)

    assert seen == [False, True, False, True, False]
    assert thread.is_empty


def test_a_chunk_that_is_removed_while_a_reader_waits_is_passed_over(rig: LogRig) -> None:
    rig.span_bytes = 100
    log, thread = rig.create(), Thread()
    opener = thread.opener
    commit(rig, log, 10, SubBatch.of(LARGE_RECORDS, LZ4))
    commit(rig, log, 20, b"z")
    holder, reading = (Reading(rig, log, opener=opener) for _ in range(2))
    assert holder.reader.next() is reading.reader.next() is None
    position = log.index.positions[log.index.offsets.index(40)]
    rig.run(remove_before(rig.store, NAMES.data_segment, log, Cut(position, 40)))
    holder.reader.close()
    assert not thread.is_empty, "the reader has its turn"

    assert reading.records() == numbered(40, 20, [b"z"])
    assert thread.is_empty


def test_one_that_stays_at_a_large_sub_batch_keeps_no_memory_for_it(rig: LogRig) -> None:
    log, thread = rig.create(), Thread()
    good = SubBatch.of(LARGE_RECORDS, ZSTD)
    commit(rig, log, 10, SubBatch(ZSTD, 41, good.raw_size, good.body), b"z")
    reader = Reading(rig, log, stays_at_bad=True, opener=thread.opener).reader

    assert reader.next() is None
    thread.go_on()
    bad = reader.next()
    assert isinstance(bad, UnreadableSubBatch)
    assert reader.next() == bad
    assert reader.next_offset == 0
    assert thread.is_empty
    reader.close()
    assert reader.next() is None

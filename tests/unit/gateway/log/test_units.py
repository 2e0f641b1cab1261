"""Units in a log over a real store: they are there at once, whole, and between live chunks."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.names import writer_of
from gateway.pending import Pending
from store.api import Durability
from store.errors import (
    CorruptSegment,
    DiskFull,
    NoSuchSegment,
    SegmentFailed,
    SegmentSealed,
    StoreError,
)
from tests.chunks import SubBatch
from tests.conformance.implementations import open_local
from tests.simulation.disk import Disk
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import (
    FORGETFUL,
    NAMES,
    LogRig,
    OpenStore,
    Sink,
    put,
    snapshot_after_chunks,
)
from tests.unit.gateway.log.unit_rig import ASIDE, append, begin, blank, records_of, reopened

pytestmark = pytest.mark.usefixtures("kind")


# Storing


def test_a_unit_lies_between_the_live_chunks_around_it(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"before")

    place = append(rig, log, [blank(b"a", SubBatch.of([b"b", b"c"])), blank(b"d")], 1)
    rig.commit(log, b"behind")

    assert place == (1, 5)
    assert records_of(rig) == [b"before", b"a", b"b", b"c", b"d", b"behind"]
    assert log.mark == 1
    reopened(rig, log)


def test_a_unit_lies_behind_all_that_was_put_before(rig: LogRig) -> None:
    log = rig.create()
    put(log, [b"under way"])
    log.flush()
    put(log, [b"in the open chunk"])

    append(rig, log, [blank(b"unit")], 1)
    rig.settle(log)

    assert records_of(rig) == [b"under way", b"in the open chunk", b"unit"]


def test_the_first_chunk_of_a_stream_may_be_of_a_unit(rig: LogRig) -> None:
    log = rig.create()

    assert append(rig, log, [blank(b"a")], 5) == (0, 1)

    assert (log.first_chunk_id, log.last_chunk_id, log.last_chunk_position) == (0, 0, 0)
    assert log.first_offset == 0
    rig.commit(log, b"b")
    assert records_of(rig) == [b"a", b"b"]
    assert reopened(rig, log).mark == 5


def test_chunks_of_a_unit_have_the_epoch_and_a_time_that_never_goes_back(rig: LogRig) -> None:
    rig.do(rig.store.create_segment, NAMES.data_segment)
    log = rig.open(epoch=7)
    rig.now_ms = 2_000
    rig.commit(log, b"a")
    rig.now_ms = 1_000
    append(rig, log, [blank(b"b"), blank(b"c")], 1)
    rig.commit(log, b"d")

    assert {chunk.epoch for chunk, _ in rig.chunks()} == {7}
    assert {chunk.timestamp_ms for chunk, _ in rig.chunks()} == {2_000}


def test_a_log_that_has_stored_nothing_under_its_epoch_takes_a_unit(rig: LogRig) -> None:
    rig.commit(rig.create(), b"a")
    log = rig.open(epoch=3)

    append(rig, log, [blank(b"b")], 1)
    rig.commit(log, b"c")

    assert [chunk.epoch for chunk, _ in rig.chunks()] == [1, 3, 3]
    reopened(rig, log)


def test_readers_see_a_unit_whole_and_are_woken_once(rig: LogRig) -> None:
    log = rig.create()
    seen: list[tuple[int, int]] = []
    log.readers.when_more(lambda: seen.append((log.committed_next_offset, log.mark)))

    append(rig, log, [blank(b"%d" % number) for number in range(9)], 4)

    assert seen == [(9, 4)]
    chunks = rig.cursor(log).all_now()
    assert [record for chunk in chunks for record in chunk.records()] == [
        b"%d" % number for number in range(9)
    ]


def test_pieces_of_a_unit_have_any_size(rig: LogRig) -> None:
    log = rig.create()
    bodies = [letter * size for letter, size in ((b"a", 9), (b"b", 900), (b"c", 1), (b"d", 90))]

    append(rig, log, [blank(body) for body in bodies], 1, at_once=1)

    assert records_of(rig) == bodies
    reopened(rig, log)


def test_a_unit_needs_no_second_look_at_its_bytes(rig: LogRig) -> None:
    log = rig.create()
    begun = log.index.trusted_position

    append(rig, log, [blank(b"a")], 1)

    assert log.index.trusted_position == begun == 0


def test_units_and_live_publishing_mix(rig: LogRig) -> None:
    log = rig.create()
    sink = Sink()
    for number in range(6):
        put(log, [b"live %d" % number], sink=sink, first_id=number, reference=b"p")
        pending = begin(rig, log, [blank(b"unit %d" % number), blank(b"and")], number + 1)
        put(log, [b"too"], sink=sink, first_id=100 + number)
        rig.loop.run_until(lambda: pending.is_settled)  # noqa: B023  # it is awaited here
        assert pending.result().next_offset - pending.result().first_offset == 2
    rig.settle(log)

    assert sorted(sink.confirmed) == [*range(6), *range(100, 106)]
    assert sorted(records_of(rig)) == sorted(
        itertools.chain(*([b"live %d" % n, b"unit %d" % n, b"and", b"too"] for n in range(6)))
    )
    assert log.sequences.last(b"p") == 5
    assert log.in_flight_bytes == 0
    reopened(rig, log)


def test_duplicates_that_come_behind_a_unit_are_confirmed_with_it(rig: LogRig, kind: str) -> None:
    log = rig.create()
    sink = Sink()
    confirmed_at: list[int] = []
    log.readers.when_more(lambda: confirmed_at.extend(sink.confirmed))

    def resend(_: int) -> None:
        log.confirm_when_committed(sink, (3).to_bytes(8))

    append(rig, log, [blank(b"a")], 1, before_read=resend if kind == "large" else lambda _: None)

    assert sink.confirmed == confirmed_at == ([3] if kind == "large" else [])


def test_the_index_has_chunks_of_a_unit_as_it_has_others(rig: LogRig) -> None:
    rig.span_bytes = 1_000
    log = rig.create()
    grown: list[int] = []
    log._ports.grown = lambda log: grown.append(log.committed_next_offset)

    append(rig, log, [blank(bytes(400)) for _ in range(20)], 1)

    assert len(log.index) == 7
    assert grown == [20]
    reopened(rig, log)


def test_filter_values_of_a_unit_let_readers_skip(rig: LogRig) -> None:
    log = rig.create()
    blanks = [blank(b"%d" % n, values=[b"even" if n % 2 == 0 else b"odd"]) for n in range(8)]
    append(rig, log, [*blanks, blank(bytes(9_000), values=[b"large"])], 1)
    rig.save(log)

    for again in (log, rig.open()):
        wanted = SubscriptionFilter([b"odd"], unfiltered=False)
        chunks = rig.cursor(again, wanted=wanted).all_now()
        assert [record for chunk in chunks for record in chunk.records()] == [
            b"1",
            b"3",
            b"5",
            b"7",
        ]
    assert log.saved.filter_pages is not None
    assert log.saved.filter_pages.find(0) is not None


def test_a_snapshot_that_is_due_comes_behind_a_unit(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_after_chunks(monkeypatch, 4)
    log = rig.create()

    append(rig, log, [blank(b"a") for _ in range(3)], 1)
    assert rig.saved == []
    append(rig, log, [blank(b"a") for _ in range(9)], 2)

    (snapshot,) = rig.saved
    assert (snapshot.position, snapshot.next_offset) == (log.committed_length, 12)
    reopened(rig, log)


def test_a_unit_of_many_bytes_is_read_in_pieces(rig: LogRig) -> None:
    log = rig.create()
    reads: list[int] = []
    blanks = [blank(bytes(100_000)) for _ in range(30)]

    append(rig, log, blanks, 1, at_once=4, before_read=reads.append)

    assert len(reads) == 8
    assert log.committed_next_offset == 30
    reopened(rig, log)


# Failing


def test_a_damaged_unit_is_refused_and_nothing_is_written(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"a")
    damaged = bytearray(blank(b"b"))
    damaged[-6] ^= 1

    with pytest.raises(CorruptSegment, match="unit 9 for stream 'orders' is damaged at byte"):
        append(rig, log, [blank(b"x"), bytes(damaged), blank(b"y")], 9, at_once=1)

    assert (log.failure, log.mark) == (None, 0)
    append(rig, log, [blank(b"c")], 9)
    rig.commit(log, b"d")
    assert records_of(rig) == [b"a", b"c", b"d"]
    reopened(rig, log)


def test_live_chunks_go_on_when_a_unit_cannot_be_read(rig: LogRig) -> None:
    log = rig.create()
    sink = Sink()

    def publish(position: int) -> None:
        put(log, [b"live"], sink=sink, first_id=position)
        if position:
            log.begin_another(10)
            log.confirm_when_committed(sink, (77).to_bytes(8))
            raise NoSuchSegment("the stage is gone")

    with pytest.raises(NoSuchSegment):
        append(rig, log, [blank(b"a"), blank(b"b")], 1, at_once=1, before_read=publish)
    rig.settle(log)

    assert 0 in sink.confirmed
    assert 77 in sink.confirmed
    assert sink.lost_count == 0
    assert records_of(rig) == [b"live", b"live"]
    assert log.in_flight_bytes == 0
    reopened(rig, log)


def test_a_unit_for_a_segment_that_takes_nothing_fails_the_log(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"a")
    rig.do(rig.store.seal_segment, NAMES.data_segment)

    with pytest.raises(SegmentSealed):
        append(rig, log, [blank(b"b")], 1)

    assert isinstance(log.failure, SegmentSealed)
    assert len(rig.failures) == 1
    with pytest.raises(SegmentSealed):
        append(rig, log, [blank(b"b")], 1)
    again = rig.open()
    assert again.mark == 0
    with pytest.raises(SegmentSealed):
        append(rig, again, [blank(b"b")], 1)


def test_when_the_log_fails_meanwhile_the_unit_and_what_waits_is_lost(rig: LogRig) -> None:
    log = rig.create()
    sink = Sink()

    def fail(position: int) -> None:
        put(log, [b"live"], sink=sink)
        if position:
            log.begin_another(10)
            log.fail(SegmentFailed("for the test"))

    with pytest.raises(SegmentFailed):
        append(rig, log, [blank(b"a"), blank(b"b")], 1, at_once=1, before_read=fail)

    rig.loop.run_until(lambda: log.is_idle)
    assert sink.confirmed == []
    assert sink.lost_count == 1
    assert log.in_flight_bytes == 0
    assert (log.mark, rig.open().mark) == (0, 0)


def test_a_unit_that_would_use_up_the_offsets_is_refused(rig: LogRig) -> None:
    rig.initial_offset = 2**47 - 3
    log = rig.create()

    with pytest.raises(StoreError, match="no offsets left"):
        append(rig, log, [blank(b"a", b"b"), blank(b"c", b"d")], 1)

    assert rig.content() == b""


# Full disks


def rig_on(disk: Disk) -> LogRig:
    sizes = {"data_file_bytes": 16_384, "journal_file_bytes": 65_536}
    return LogRig(Path(), open_store=lambda loop, _: open_local(disk, loop, Durability.OS, **sizes))


def test_on_a_full_disk_a_unit_is_not_written_and_goes_when_there_is_room(kind: str) -> None:
    disk = Disk()
    rig = rig_on(disk)
    log = rig.create()
    sink = Sink()
    rig.commit(log, b"a", sink=sink)
    blanks = [blank(bytes(9_000)) for _ in range(8)]
    disk.capacity = disk.used() + 20_000

    with pytest.raises(DiskFull):
        append(rig, log, blanks, 1)

    if kind == "large":  # a small one is an append like others, and fails the log like others
        assert log.failure is None
        assert ASIDE not in rig.store.catalogue.names  # type: ignore[attr-defined]
        rig.commit(log, b"b", sink=sink)
        assert sink.confirmed == [1, 1]
    disk.capacity = None
    if log.failure is not None:
        log = rig.open(epoch=2)
    assert log.mark == 0
    append(rig, log, blanks, 1)
    rig.commit(log, b"c")
    assert [len(record) for record in records_of(rig) if len(record) > 1] == [9_000] * 8
    assert (log.mark, rig.open().mark) == (1, 1)
    rig.close()


# Large units


def test_a_leftover_of_the_segment_aside_is_deleted_first(rig: LogRig) -> None:
    log = rig.create()
    rig.do(rig.store.create_segment, ASIDE)
    writer = rig.do(rig.store.open_writer, ASIDE, writer_of(ASIDE))
    rig.do(writer.append, b"half of a unit", 5)

    append(rig, log, [blank(b"a")], 1)

    assert records_of(rig) == [b"a"]


def test_no_segment_aside_is_left(rig: LogRig) -> None:
    log = rig.create()
    append(rig, log, [blank(b"a")], 1)
    damaged = blank(b"b")[:-1] + b"\x00"
    with pytest.raises(CorruptSegment):
        append(rig, log, [blank(b"b"), damaged], 2)

    pending: Pending[object] = Pending()
    rig.store.info(ASIDE, done=pending.settle)
    rig.loop.run_until(lambda: pending.is_settled)
    with pytest.raises(NoSuchSegment):
        pending.result()


@pytest.mark.parametrize("kind", ["large"], indirect=True)
def test_full_chunks_wait_while_a_large_unit_is_written(rig: LogRig) -> None:
    log = rig.create()
    sink = Sink()
    waiting: list[int] = []
    woken: list[int] = []

    def publish(position: int) -> None:
        put(log, [bytes(1_000)], sink=sink, first_id=position, reference=b"p")
        log.begin_another(10)
        waiting.append(log.in_flight_bytes)
        assert log.last_publishing_id(b"p") == position
        assert not log.is_idle
        log.when_drained(lambda: woken.append(position))

    place = append(
        rig, log, [blank(b"%d" % n) for n in range(4)], 1, at_once=1, before_read=publish
    )
    rig.settle(log)

    assert place == (0, 4)
    assert len(waiting) == 4
    assert [size // 1_000 for size in waiting] == [1, 2, 3, 4]
    assert sink.confirmed == sorted(sink.confirmed)
    assert len(sink.confirmed) == len(woken) == 4
    assert log.in_flight_bytes == 0
    reopened(rig, log)


@pytest.mark.parametrize("open_store", FORGETFUL)
def test_any_store_takes_units(make_rig: MakeRig, open_store: Callable[[], OpenStore]) -> None:
    rig = make_rig(open_store=open_store())
    log = rig.create()
    rig.commit(log, b"a")

    append(rig, log, [blank(b"b"), blank(b"c")], 1)
    rig.commit(log, b"d")

    assert records_of(rig) == [b"a", b"b", b"c", b"d"]
    reopened(rig, log)

"""Units in a log over a real store: they are there at once, whole, and between live chunks."""

import itertools

import pytest

from gateway.log import units
from gateway.log.filters import SubscriptionFilter
from gateway.log.log import StreamLog
from store.errors import CorruptSegment, NoSuchSegment, SegmentFailed, SegmentSealed, StoreError
from tests.chunks import SubBatch
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import NAMES, LogRig, Sink, put, snapshot_after_chunks, state_of
from tests.unit.gateway.log.unit_rig import append, begin, blank


@pytest.fixture(params=["small", "large"], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The way of the test's units into the log."""
    if request.param == "large":
        monkeypatch.setattr(units, "ONE_APPEND_BYTES_MAX", 0)
    return str(request.param)


def records_of(rig: LogRig) -> list[bytes]:
    """All stored records, whose offsets are dense."""
    found: list[bytes] = []
    for chunk, _ in rig.chunks():
        assert chunk.chunk_id == len(found)
        found += chunk.records()
    return found


def reopened(rig: LogRig, log: StreamLog) -> StreamLog:
    """The log, opened anew; it has the state that the old one had."""
    rig.settle(log)
    again = rig.open()
    assert state_of(again) == state_of(log)
    assert (again.mark, again.is_mark_known) == (log.mark, log.is_mark_known)
    return again


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


def test_a_unit_needs_no_second_look_at_its_bytes(rig: LogRig) -> None:
    log = rig.create()
    begun = log.trusted_position

    append(rig, log, [blank(b"a")], 1)

    assert log.trusted_position == begun == 0


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


# Marks


def test_the_mark_is_that_of_the_last_unit(rig: LogRig) -> None:
    log = rig.create()
    assert (log.mark, log.is_mark_known) == (0, True)
    append(rig, log, [blank(b"a")], 3)
    append(rig, log, [blank(b"b")], 17)

    assert log.mark == 17
    with pytest.raises(AssertionError):
        append(rig, log, [blank(b"c")], 17)
    assert reopened(rig, log).mark == 17


def test_a_mark_is_no_publishers_id(rig: LogRig) -> None:
    log = rig.create()

    append(rig, log, [blank(b"a")], 3)

    for each in (log, rig.open()):
        assert each.last_publishing_id(b"") is None
        assert each.sequences.last(b"") is None
        assert each.sequences.all() == {}
        assert len(each.sequences) == 0


def test_a_mark_is_not_forgotten_with_references(make_rig: MakeRig) -> None:
    rig = make_rig(references_max=2)
    log = rig.create()
    append(rig, log, [blank(b"a")], 3)
    for number in range(5):
        put(log, [b"x"], reference=b"p%d" % number)
    rig.settle(log)
    rig.save(log)

    assert rig.open().mark == 3
    assert rig.open().sequences.all() == {b"p3": 1, b"p4": 1}


def test_a_mark_outlives_its_chunk(rig: LogRig) -> None:
    log = rig.create()
    append(rig, log, [blank(b"a")], 3)
    rig.save(log)
    rig.do(rig.store.truncate_segment, NAMES.data_segment, log.committed_length)
    log.truncated(log.committed_length, log.committed_next_offset)

    again = rig.open()

    assert (again.mark, again.is_mark_known, again.is_empty) == (3, True, True)
    assert append(rig, again, [blank(b"b")], 4) == (1, 2)


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

"""The life of entries in a log over a real store: open chunk, in flight, committed, confirmed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.log import log as log_module
from gateway.log.derived.sequences import PublisherSequences
from gateway.log.derived.snapshot import Snapshot
from gateway.log.log import DRAINED_BYTES, StreamLog
from gateway.log.ports import when_all_committed
from store.errors import NoSuchSegment
from tests.chunks import SubBatch
from tests.rings import no_rings
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import (
    NAMES,
    LogRig,
    Sink,
    chunks_in,
    passing_rig,
    put,
    snapshot_after_chunks,
)


def bodies_of(rig: LogRig) -> list[list[bytes]]:
    return [chunk.records() for chunk, _ in rig.chunks()]


# Committing


def test_what_is_put_in_one_turn_becomes_one_chunk(rig: LogRig) -> None:
    log = rig.create()

    put(log, [b"a"])
    put(log, [b"b", b"c"])
    rig.settle(log)

    assert bodies_of(rig) == [[b"a", b"b", b"c"]]


def test_while_a_chunk_is_in_flight_the_next_one_fills_and_goes_as_one(rig: LogRig) -> None:
    log = rig.create()
    put(log, [b"a"])
    rig.turn_until_appended(log)

    for body in (b"b", b"c", b"d"):
        put(log, [body])
        log.flush()
    assert bodies_of(rig) in ([], [[b"a"]])
    rig.settle(log)

    assert bodies_of(rig) == [[b"a"], [b"b", b"c", b"d"]]


def test_a_confirm_comes_after_the_commit_only_and_in_order(rig: LogRig) -> None:
    log = rig.create()
    sink = Sink()

    put(log, [b"a", b"b"], sink=sink, first_id=7)
    rig.turn_until_appended(log)
    assert (sink.confirmed, log.committed_next_offset, log.committed_length) == ([], 0, 0)
    put(log, [b"c"], sink=sink, first_id=3)
    rig.settle(log)

    assert sink.confirmed == [7, 8, 3]
    assert log.committed_next_offset == 3
    assert log.committed_length == len(rig.content())


def test_every_sink_is_confirmed_once_a_chunk(rig: LogRig) -> None:
    log = rig.create()
    calls: list[tuple[str, bytes]] = []

    class Caller:
        def __init__(self, name: str) -> None:
            self.name = name

        def confirm(self, publishing_ids: bytes) -> None:
            calls.append((self.name, publishing_ids))

        def lost(self) -> None:
            raise AssertionError

    chunk = log.open_chunk(10)
    put(log, [b"x"])
    one, other = Caller("one"), Caller("other")
    for sink, ids in ((one, b"1" * 8), (other, b"2" * 16), (one, b"3" * 8)):
        chunk.add_confirm(sink, ids)
    rig.settle(log)

    assert calls == [("one", b"1" * 8 + b"3" * 8), ("other", b"2" * 16)]


def test_offsets_are_dense_and_a_sub_batch_uses_one_for_each_record(rig: LogRig) -> None:
    log = rig.create()

    rig.commit(log, b"a")
    rig.commit(log, SubBatch.of([b"b", b"c", b"d"]), b"e")
    rig.commit(log, b"f")

    assert [chunk.chunk_id for chunk, _ in rig.chunks()] == [0, 1, 5]
    assert log.committed_next_offset == 6
    assert (log.first_chunk_id, log.last_chunk_id) == (0, 5)
    assert log.last_chunk_position == len(rig.content()) - (60 + 5)


def test_a_timestamp_never_goes_back(rig: LogRig) -> None:
    log = rig.create()
    for now_ms in (1_000, 500, 1_001):
        rig.now_ms = now_ms
        rig.commit(log, b"x")

    assert [chunk.timestamp_ms for chunk, _ in rig.chunks()] == [1_000, 1_000, 1_001]


def test_every_chunk_has_the_epoch_of_the_leader(rig: LogRig) -> None:
    rig.do(rig.store.create_segment, NAMES.data_segment)
    log = rig.open(epoch=7)
    rig.commit(log, b"x")

    assert rig.chunks()[0][0].epoch == 7


def test_an_idle_log_has_nothing_on_its_way(rig: LogRig) -> None:
    log = rig.create()
    assert (log.is_idle, log.is_empty) == (True, True)

    put(log, [b"x"])
    assert not log.is_idle
    rig.turn_until_appended(log)
    assert not log.is_idle
    rig.settle(log)

    assert (log.is_idle, log.is_empty) == (True, False)
    assert log.in_flight_bytes == 0


def test_an_open_chunk_that_got_nothing_is_not_stored(rig: LogRig) -> None:
    log = rig.create()

    log.open_chunk(100)
    log.flush()

    assert log.is_idle
    assert rig.content() == b""
    rig.commit(log, b"x")
    assert bodies_of(rig) == [[b"x"]]


# Bounds


@given(
    turns=st.lists(
        st.lists(st.sampled_from([0, 1, 100, 900, 3_900, 3_970, 4_000, 4_060]), max_size=8),
        max_size=5,
    )
)
@settings(max_examples=25)
def test_a_chunk_fits_a_deliver_of_the_largest_frame_unless_it_is_one_large_entry(
    turns: list[list[int]],
) -> None:
    with passing_rig(frame_bytes_max=4096) as rig:
        log = rig.create()
        for sizes in turns:
            put(log, [bytes(size) for size in sizes])
            rig.loop.turn()
        rig.settle(log)

        chunks = [chunk for chunk, _ in rig.chunks()]
    stored = [len(body) for chunk in chunks for body in chunk.records()]
    assert stored == [size for sizes in turns for size in sizes]
    for chunk in chunks:
        assert 48 + len(chunk.data) <= 4096 - 13 or chunk.entry_count == 1


def test_a_full_chunk_goes_although_another_is_in_flight(make_rig: MakeRig) -> None:
    rig = make_rig(frame_bytes_max=4096)
    log = rig.create()
    put(log, [b"first"])
    rig.turn_until_appended(log)
    before = log.in_flight_bytes

    put(log, [bytes(1_000)] * 9)

    assert log.in_flight_bytes > before + 2 * 3_000
    rig.settle(log)


def test_a_chunk_whose_trailer_is_large_goes_although_another_is_in_flight(rig: LogRig) -> None:
    log = rig.create()
    put(log, [b"first"])
    rig.turn_until_appended(log)
    before = log.in_flight_bytes

    for number in range(600):
        put(log, [b"x"], reference=b"%0255d" % number)

    assert log.in_flight_bytes > before
    rig.settle(log)
    trailers = [chunk.trailer_size for chunk, _ in rig.chunks()]
    assert sum(trailers) == 600 * 265
    assert max(trailers) < 64 * 1024 + 265


# Named publishers


def test_the_last_id_counts_what_is_open_and_what_is_in_flight(rig: LogRig) -> None:
    log = rig.create()
    assert log.last_publishing_id(b"p") is None

    put(log, [b"x"], reference=b"p", first_id=5)
    assert log.last_publishing_id(b"p") == 5
    rig.turn_until_appended(log)
    assert log.last_publishing_id(b"p") == 5
    put(log, [b"y"], reference=b"p", first_id=6)
    assert log.last_publishing_id(b"p") == 6
    rig.settle(log)

    assert log.last_publishing_id(b"p") == 6
    assert [rest for _, rest in rig.chunks()] == [
        b"\0\1p" + (5).to_bytes(8),
        b"\0\1p" + (6).to_bytes(8),
    ]


def test_a_duplicate_is_confirmed_at_once_when_everything_is_committed(rig: LogRig) -> None:
    log = rig.create()
    sink = Sink()
    rig.commit(log, b"x")

    log.confirm_when_committed(sink, (5).to_bytes(8))

    assert sink.confirmed == [5]


@pytest.mark.parametrize("is_in_flight", [False, True], ids=["open", "in flight"])
def test_a_duplicate_is_confirmed_after_its_original_is_committed(
    rig: LogRig,
    is_in_flight: bool,  # noqa: FBT001 - a case of the test
) -> None:
    log = rig.create()
    original, copy = Sink(), Sink()
    put(log, [b"x"], sink=original, first_id=5)
    if is_in_flight:
        rig.turn_until_appended(log)

    log.confirm_when_committed(copy, (5).to_bytes(8))

    assert copy.confirmed == []
    rig.loop.run_until(lambda: bool(copy.confirmed))
    assert original.confirmed == [5]
    assert copy.confirmed == [5]


def test_waiting_for_all_that_was_taken_ends_with_its_commit(rig: LogRig) -> None:
    log = rig.create()
    assert when_all_committed(log).is_settled

    put(log, [b"x"])
    first = when_all_committed(log)
    rig.turn_until_appended(log)
    put(log, [b"y"])
    second = when_all_committed(log)
    assert not first.is_settled

    rig.loop.run_until(lambda: first.is_settled)
    assert (log.committed_next_offset, second.is_settled) == (1, False)
    rig.loop.run_until(lambda: second.is_settled)
    assert log.committed_next_offset == 2


# Waiting


def test_who_waits_for_the_way_to_be_clear_is_told_when_little_is_on_it(rig: LogRig) -> None:
    log = rig.create()
    put(log, [bytes(1_000_000)] * 12)
    rig.turn_until_appended(log)
    assert log.in_flight_bytes > DRAINED_BYTES
    told: list[int] = []

    log.when_drained(lambda: told.append(log.in_flight_bytes))
    rig.settle(log)

    (bytes_left,) = told
    assert DRAINED_BYTES - 1_100_000 < bytes_left <= DRAINED_BYTES


# Failing


def failed_log(rig: LogRig) -> tuple[StreamLog, list[Sink], list[str]]:
    """A log whose segment was taken away while two chunks were in flight and one was open."""
    log = rig.create()
    sinks = [Sink(), Sink(), Sink()]
    told: list[str] = []
    rig.do(rig.store.delete_segment, NAMES.data_segment)
    put(log, [bytes(1_000_000)], sink=sinks[0])
    put(log, [bytes(1_000_000)], sink=sinks[1])
    log.flush()
    put(log, [b"open"], sink=sinks[2])
    log.when_drained(lambda: told.append("drained"))
    log.readers.when_more(lambda: told.append("more"))
    rig.loop.run_until(lambda: log.failure is not None and log.in_flight_bytes == 0)
    return log, sinks, told


def test_when_an_append_fails_nothing_later_is_confirmed(rig: LogRig) -> None:
    log, sinks, told = failed_log(rig)

    assert [sink.confirmed for sink in sinks] == [[], [], []]
    assert [sink.lost_count > 0 for sink in sinks] == [True, True, True]
    assert isinstance(log.failure, NoSuchSegment)
    assert len(rig.failures) == 1
    assert told == ["drained"]
    assert log.committed_next_offset == 0


def test_a_failed_log_takes_nothing_more_but_lets_nobody_wait(rig: LogRig) -> None:
    log, _, _ = failed_log(rig)

    with pytest.raises(NoSuchSegment):
        log.open_chunk(10)
    log.flush()
    assert log.final_snapshot() is None
    assert when_all_committed(log).is_settled


def test_who_waits_for_a_commit_that_fails_is_let_go(rig: LogRig) -> None:
    log = rig.create()
    rig.do(rig.store.delete_segment, NAMES.data_segment)
    put(log, [b"x"])
    waiting = when_all_committed(log)
    rig.loop.run_until(lambda: log.failure is not None)

    assert waiting.is_settled


# Snapshots


def sequences_in(snapshot: Snapshot) -> dict[bytes, int]:
    sequences = PublisherSequences("", 1_000)
    sequences.restore(snapshot.parts)
    return dict(sequences._last)


def test_a_snapshot_is_taken_after_so_many_chunks(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_after_chunks(monkeypatch, 3)
    log = rig.create()

    for _ in range(7):
        rig.commit(log, b"x")

    assert [each.next_offset for each in rig.saved] == [3, 6]


def test_a_snapshot_is_taken_after_so_many_bytes(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "SNAPSHOT_BYTES", 1_000)
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNK_BYTES", 0)
    log = rig.create()

    for _ in range(7):
        rig.commit(log, bytes(300))

    assert [each.next_offset for each in rig.saved] == [3, 6]


def test_a_snapshot_describes_committed_chunks_only(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_after_chunks(monkeypatch, 1)
    saves: list[tuple[Snapshot, int, bool]] = []
    log = rig.create()

    def save(log: StreamLog, snapshot: Snapshot) -> None:
        saves.append((snapshot, log.committed_length, log.in_flight_bytes > 0))

    monkeypatch.setattr(log._ports, "save", save)
    for number in range(1, 13):
        rig.now_ms += 7
        put(log, [bytes(700_000)], reference=b"pqr"[number % 3 :][:1], first_id=number)
    rig.settle(log)

    assert len(saves) == 12
    assert any(is_in_flight for _, _, is_in_flight in saves)
    content = rig.content()
    for snapshot, committed_length, _ in saves:
        chunks = chunks_in(content[: snapshot.position])
        last = chunks[-1][0]
        assert snapshot.position == committed_length
        assert snapshot.next_offset == last.chunk_id + last.record_count
        assert (snapshot.last_chunk_id, snapshot.timestamp_ms) == (last.chunk_id, last.timestamp_ms)
        assert content[snapshot.last_chunk_position :][32:40] == last.chunk_id.to_bytes(8)
        stored = {rest[2:3]: int.from_bytes(rest[3:]) for _, rest in chunks}
        assert sequences_in(snapshot) == stored


def test_the_final_snapshot_is_that_of_all_that_is_committed(rig: LogRig) -> None:
    log = rig.create()
    assert log.final_snapshot() is None
    put(log, [b"x"], reference=b"p", first_id=9)
    assert log.final_snapshot() is None, "something is on its way"
    rig.settle(log)

    snapshot = log.final_snapshot()

    assert snapshot is not None
    assert (snapshot.position, snapshot.next_offset) == (log.committed_length, 1)
    assert (snapshot.last_chunk_id, snapshot.last_chunk_position) == (0, 0)
    assert sequences_in(snapshot) == {b"p": 9}
    assert log.final_snapshot() is None, "nothing is new"


def test_there_is_no_final_snapshot_while_something_is_on_its_way(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"x")

    put(log, [b"open"])
    assert log.final_snapshot() is None
    rig.turn_until_appended(log)
    assert log.final_snapshot() is None
    rig.settle(log)

    assert log.final_snapshot() is not None


def test_a_log_that_failed_has_no_final_snapshot(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"x")
    rig.do(rig.store.delete_segment, NAMES.data_segment)
    put(log, [b"y"])
    rig.loop.run_until(lambda: log.failure is not None and log.is_idle)

    assert log.final_snapshot() is None


def test_a_log_that_has_failed_goes_without_the_collector(rig: LogRig) -> None:
    with no_rings():
        log = rig.create()
        rig.commit(log, b"a")
        log.fail(NoSuchSegment("deleted"))
        del log

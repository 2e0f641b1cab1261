"""What a log is after it was opened again: after a clean end, after a crash, after worse."""

from pathlib import Path
from typing import Any

import pytest

from gateway.broker.streams.openings import Openings
from gateway.log.derived import index as index_module
from gateway.log.names import writer_of
from gateway.log.recovery import chunk_walk as walking
from hutch.formats.chunk import next_offset_and_epoch
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import (
    NAMES,
    LogRig,
    Sink,
    put,
    snapshot_after_chunks,
    state_of,
    write_history,
)


@pytest.fixture(autouse=True)
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many index entries and several scans without many bytes."""
    monkeypatch.setattr(index_module, "SPAN_BYTES", 200)
    monkeypatch.setattr(walking, "SLICE_BYTES", 300)


def test_a_new_stream_is_empty_and_begins_at_offset_0(rig: LogRig) -> None:
    log = rig.create()

    assert log.is_empty
    assert (log.committed_next_offset, log.start, log.committed_length) == (0, 0, 0)


def test_a_stream_that_was_never_written_is_opened_again_as_new(make_rig: MakeRig) -> None:
    rig = make_rig()
    state = state_of(rig.create())
    rig.close()

    assert state_of(make_rig(rig.directory).open()) == state


@pytest.mark.parametrize("snapshot_chunks", [1, 5, 12, 1_000])
def test_a_clean_opening_finds_everything_with_or_without_a_snapshot(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, snapshot_chunks: int
) -> None:
    snapshot_after_chunks(monkeypatch, snapshot_chunks)
    rig = make_rig()
    log = rig.create()
    write_history(rig, log)
    state = state_of(log)
    rig.close()

    again = make_rig(rig.directory)

    assert state_of(again.open()) == state


def test_a_snapshot_spares_the_scan_of_what_it_covers(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_after_chunks(monkeypatch, 5)
    rig = make_rig()
    write_history(rig, rig.create())
    snapshot = rig.saved[-1]
    rig.close()
    walked: list[int] = []
    walk = walking._look

    def watch(view: memoryview, **options: Any) -> Any:  # noqa: ANN401 - as `_look`
        walked.append(len(view))
        return walk(view, **options)

    monkeypatch.setattr(walking, "_look", watch)
    again = make_rig(rig.directory)
    log = again.open()

    assert snapshot.next_offset < log.committed_next_offset
    assert sum(walked) < 2 * (log.committed_length - snapshot.position)
    assert sum(walked) < log.committed_length // 2


def test_writing_goes_on_where_it_ended(make_rig: MakeRig) -> None:
    rig = make_rig()
    log = rig.create()
    rig.now_ms = 5_000
    rig.commit(log, b"a", b"b")
    rig.close()

    again = make_rig(rig.directory)
    again.now_ms = 4_000
    log = again.open()
    again.commit(log, b"c")

    chunks = [chunk for chunk, _ in again.chunks()]
    assert [(each.chunk_id, each.records()) for each in chunks] == [(0, [b"a", b"b"]), (2, [b"c"])]
    assert chunks[1].timestamp_ms == 5_000


def test_references_beyond_the_limit_are_dropped_in_the_same_order_after_an_opening(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(references_max=3)
    log = rig.create()
    for number, reference in enumerate([b"a", b"b", b"c", b"a", b"d"]):
        put(log, [b"x"], reference=reference, first_id=number)
        rig.settle(log)
    rig.close()

    again = make_rig(rig.directory, references_max=3).open()

    assert dict(again.sequences._last) == {b"c": 2, b"a": 3, b"d": 4}


# After a crash


def test_after_a_crash_everything_confirmed_is_there(make_rig: MakeRig, tmp_path: Path) -> None:
    rig = make_rig()
    log = rig.create()
    sink = Sink()
    copies: list[tuple[Path, int]] = []
    for number in range(8):
        put(log, [b"%d" % number] * 3, sink=sink, first_id=3 * number, reference=b"p")
        rig.turn_until_appended(log)
        put(log, [b"-"], sink=sink, first_id=1_000)
        copies.append((rig.crash_copy(tmp_path / f"flight-{number}"), len(sink.confirmed)))
        rig.settle(log)
        copies.append((rig.crash_copy(tmp_path / f"commit-{number}"), len(sink.confirmed)))

    for directory, confirmed in copies:
        again = make_rig(directory)
        log = again.open(epoch=2)
        chunks = [chunk for chunk, _ in again.chunks()]
        records = [record for chunk in chunks for record in chunk.records()]
        assert len(records) >= confirmed
        assert log.committed_next_offset == len(records)
        named = [int(body) for body in records if body != b"-"]
        assert log.last_publishing_id(b"p") == (3 * named[-1] + 2 if named else None)
        again.commit(log, b"after")
        assert again.chunks()[-1][0].chunk_id == len(records)


def test_a_log_after_a_crash_is_the_log_that_was_committed(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    snapshot_after_chunks(monkeypatch, 5)
    rig = make_rig()
    log = rig.create()
    write_history(rig, log, 13)
    copy = rig.crash_copy(tmp_path / "copy")

    assert state_of(make_rig(copy).open()) == state_of(log)


# Epochs


def last_number(rig: LogRig) -> tuple[int, int]:
    writer = rig.do(rig.store.open_writer, NAMES.data_segment, writer_of(NAMES.data_segment))
    return next_offset_and_epoch(writer.event_number)


def test_a_new_epoch_is_written_down_before_the_first_record(rig: LogRig) -> None:
    rig.commit(rig.create(), b"a")

    log = rig.open(epoch=4)

    assert (log.epoch, last_number(rig)) == (4, (1, 4))
    rig.commit(log, b"b")
    assert [chunk.epoch for chunk, _ in rig.chunks()] == [1, 4]


def test_an_epoch_never_goes_back(rig: LogRig) -> None:
    rig.commit(rig.create(), b"a")
    rig.open(epoch=4)

    log = rig.open(epoch=2)

    assert log.epoch == 4
    rig.commit(log, b"b")
    assert rig.chunks()[1][0].epoch == 4


def test_a_second_leader_fences_the_first(rig: LogRig) -> None:
    first = rig.create()
    sink = Sink()
    rig.commit(first, b"a")

    second = rig.open(epoch=2)
    put(first, [b"stale"], sink=sink)
    rig.settle(first)
    rig.commit(second, b"b")

    assert first.failure is not None
    assert sink.confirmed == []
    assert [chunk.records() for chunk, _ in rig.chunks()] == [[b"a"], [b"b"]]


def test_the_epoch_rises_with_an_unclean_end_only(make_rig: MakeRig, tmp_path: Path) -> None:
    rig = make_rig()

    def epoch_after(rig: LogRig) -> int:
        openings = Openings(rig.store)
        rig.run(openings.begin())
        return openings.epoch_of(0)

    def end(rig: LogRig, *, clean: bool) -> Path:
        if clean:
            openings = Openings(rig.store)
            openings.unclean_count = counts[-1] - 1
            rig.run(openings.end())
        copy = rig.crash_copy(tmp_path / f"{len(counts)}")
        rig.close()
        return copy

    counts = [epoch_after(rig)]
    for clean in (True, True, False, False, True, False):
        rig = make_rig(end(rig, clean=clean))
        counts.append(epoch_after(rig))

    assert counts == [1, 1, 1, 2, 3, 3, 4]


def test_a_chunk_larger_than_a_scan_is_found(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, bytes(900_000))
    rig.commit(log, b"x")
    state = state_of(log)

    assert state_of(rig.open()) == state


# After the oldest chunks were given up


@pytest.mark.parametrize("snapshot_chunks", [5, 1_000])
def test_a_truncated_stream_begins_at_its_oldest_chunk(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch, snapshot_chunks: int
) -> None:
    snapshot_after_chunks(monkeypatch, snapshot_chunks)
    log = rig.create()
    write_history(rig, log)
    oldest = rig.chunks()[4][0]
    position = rig.content().index(oldest.data) - 56
    rig.do(rig.store.truncate_segment, NAMES.data_segment, position)

    again = rig.open()

    assert (again.start, again.first_chunk_id) == (position, oldest.chunk_id)
    assert again.committed_next_offset == log.committed_next_offset
    assert again.last_chunk_id == log.last_chunk_id


def test_a_stream_whose_chunks_were_all_given_up_goes_on_with_its_offsets(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"a", b"b")
    rig.do(rig.store.truncate_segment, NAMES.data_segment, log.committed_length)

    again = rig.open()

    assert (again.is_empty, again.committed_next_offset) == (True, 2)
    rig.commit(again, b"c")
    assert rig.chunks()[0][0].chunk_id == 2

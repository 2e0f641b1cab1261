"""What a log is after it was opened again: after a clean end, after a crash, after worse."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.broker.openings import Openings
from gateway.log import index as index_module
from gateway.log import log as log_module
from gateway.log import opening as opening_module
from gateway.log.errors import CorruptChunk
from gateway.log.log import StreamLog
from gateway.log.names import event_number, next_offset_and_epoch, writer_of
from store.errors import CorruptSegment, NoSuchSegment
from tests.chunks import SubBatch
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import NAMES, LogRig, Sink, event_of, put


def state_of(log: StreamLog) -> dict[str, Any]:
    """Everything that an opening must find again."""
    return {
        "next": log.committed_next_offset,
        "length": log.committed_length,
        "first": log.first_chunk_id,
        "last": (log.last_chunk_id, log.last_chunk_position),
        "sequences": dict(log.sequences._last),
        "index": (list(log.index.offsets), list(log.index.positions)),
        "timestamps": list(log.index.timestamps_ms),
        "timestamp": log._timestamp_ms,
        "epoch": log.epoch,
    }


@pytest.fixture(autouse=True)
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many index entries and several scans without many bytes."""
    monkeypatch.setattr(index_module, "SPAN_BYTES", 200)
    monkeypatch.setattr(opening_module, "_SCAN_BYTES", 300)


def write_history(rig: LogRig, log: StreamLog, count: int = 12) -> None:
    """Chunks of several publishers, times and sizes."""
    for number in range(count):
        rig.now_ms += 10
        put(log, [b"%d" % number] * (number % 3 + 1), first_id=number * 10)
        reference = b"p%d" % (number % 4)
        put(log, [SubBatch.of([b"a", bytes(number)])], reference=reference, first_id=number)
        rig.settle(log)


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
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", snapshot_chunks)
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
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", 5)
    rig = make_rig()
    write_history(rig, rig.create())
    snapshot = rig.saved[-1]
    rig.close()
    walked: list[int] = []
    walk = opening_module._walk

    def watch(view: memoryview) -> Any:  # noqa: ANN401 - as `_walk`
        walked.append(len(view))
        return walk(view)

    monkeypatch.setattr(opening_module, "_walk", watch)
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
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", 5)
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


# What does not fit together


def test_a_snapshot_from_beyond_the_segment_is_not_used(rig: LogRig) -> None:
    log = rig.create()
    write_history(rig, log)
    state = state_of(log)
    snapshot = log.final_snapshot()
    assert snapshot is not None

    beyond = replace(snapshot, position=snapshot.position + 1, next_offset=999, timestamp_ms=7)

    assert state_of(rig.open(snapshot=beyond)) == state


@pytest.mark.parametrize(
    "changed",
    [
        {"last_chunk_id": 1},
        {"last_chunk_position": 1},
        {"last_chunk_position": 0},
        {"next_offset": 7},
        {"timestamp_ms": 7},
        {"position": 1},
    ],
    ids=str,
)
def test_a_snapshot_whose_last_chunk_is_not_there_is_not_used(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch, changed: dict[str, int]
) -> None:
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", 5)
    log = rig.create()
    write_history(rig, log)
    state = state_of(log)
    stale = replace(rig.saved[-1], parts=[b"\1p" + (10**6).to_bytes(8)], **changed)

    assert state_of(rig.open(snapshot=stale)) == state


def test_what_a_shortened_segment_left_behind_never_fits_again(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", 5)
    write_history(rig, rig.create())
    segment = NAMES.data_segment
    rig.do(rig.store.delete_segment, segment)
    rig.do(rig.store.create_segment, segment)

    rig.saves_snapshots = False
    log = rig.open()
    assert rig.run(rig.tracking.load_snapshot(1)) is None
    for number in range(41):
        put(log, [b"new"], reference=b"q", first_id=number)
        rig.settle(log)
    rig.saves_snapshots = True
    rig.save(log)

    assert state_of(rig.open()) == state_of(log)
    assert rig.run(rig.tracking.load_snapshot(1)) == rig.saved[-1]
    assert log.sequences.last(b"p1") is None, "the resend of a lost id is no duplicate"


def test_index_entries_that_no_snapshot_followed_are_not_stored_again(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", 5)
    log = rig.create()
    write_history(rig, log)
    rig.save(log)
    stored = rig.do(rig.store.read, NAMES.index_segment, 0, 1_000_000).data

    again = rig.open(snapshot=rig.saved[0])
    rig.save(again)

    assert rig.saved[0].position < log.index.positions[-1]
    assert rig.do(rig.store.read, NAMES.index_segment, 0, 1_000_000).data == stored


def test_index_entries_of_other_chunks_are_dropped_with_the_snapshot(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", 5)
    log = rig.create()
    write_history(rig, log)
    writer = rig.do(rig.store.open_writer, NAMES.index_segment, writer_of(NAMES.index_segment))
    beyond = (10**6).to_bytes(8) + (10**6).to_bytes(8) + (log.committed_length + 9).to_bytes(8)
    rig.do(writer.append, beyond, writer.event_number + 1)

    again = rig.open()

    assert state_of(again) == state_of(log)
    assert rig.run(rig.tracking.load_snapshot(1)) is None
    rig.commit(again, b"x")
    rig.save(again)
    assert state_of(rig.open()) == state_of(again)


def test_an_index_that_makes_no_sense_is_built_anew(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", 5)
    log = rig.create()
    write_history(rig, log)
    state = state_of(log)
    writer = rig.do(rig.store.open_writer, NAMES.index_segment, writer_of(NAMES.index_segment))
    backwards = bytes(8) + bytes(8) + (600).to_bytes(8)
    rig.do(writer.append, backwards, writer.event_number + 1)

    assert state_of(rig.open()) == state


def test_a_snapshot_without_its_index_is_no_reason_to_fail(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", 5)
    log = rig.create()
    write_history(rig, log)
    next_offset = log.committed_next_offset
    rig.do(rig.store.delete_segment, NAMES.index_segment)

    again = rig.open()

    assert again.committed_next_offset == next_offset
    rig.commit(again, b"x")
    assert rig.chunks()[-1][0].chunk_id == next_offset


def append_raw(rig: LogRig, data: bytes, next_offset: int) -> None:
    """Append as the stream's leader would, whatever the bytes are."""
    segment = NAMES.data_segment
    writer = rig.do(rig.store.open_writer, segment, writer_of(segment))
    rig.do(writer.append, data, event_number(next_offset, 1))


@pytest.mark.parametrize(
    "tail",
    [
        b"\0\0\0\1" + bytes(100),
        event_of([b"y"], chunk_id=1)[:-1],
        event_of([b"y"], chunk_id=1)[:20],
    ],
    ids=["no event", "cut short", "cut in its header"],
)
@pytest.mark.parametrize("saves_snapshots", [True, False])
def test_what_is_good_before_a_damage_can_still_be_read(
    rig: LogRig, caplog: pytest.LogCaptureFixture, tail: bytes, *, saves_snapshots: bool
) -> None:
    log = rig.create()
    rig.commit(log, b"w")
    rig.commit(log, b"x")
    if saves_snapshots:
        rig.save(log)
    position = len(rig.content())
    append_raw(rig, tail, 10)

    again = rig.open()

    assert isinstance(again.read_only, CorruptSegment)
    assert (again.committed_length, again.committed_next_offset) == (position, 2)
    assert [chunk.records() for chunk in rig.cursor(again).all_now()] == [[b"w", b"x"]]
    assert (
        f"stream can only be read stream=orders error=corrupt chunk in stream 'orders' at \
position {position}"
        in caplog.text
    )


def test_a_segment_that_begins_with_no_chunk_is_corrupt(rig: LogRig) -> None:
    rig.create()
    append_raw(rig, bytes(100), 2)

    with pytest.raises(CorruptChunk) as caught:
        rig.open()

    assert (caught.value.stream, caught.value.position) == ("orders", 0)


def test_chunks_that_disagree_with_the_writer_about_the_next_offset_are_corrupt(
    rig: LogRig,
) -> None:
    rig.commit(rig.create(), b"x")
    append_raw(rig, event_of([b"y"], chunk_id=1), 7)

    with pytest.raises(CorruptChunk, match="next offset is 7 by the writer, 2 by the chunks"):
        rig.open()


def test_a_chunk_larger_than_a_scan_is_found(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, bytes(900_000))
    rig.commit(log, b"x")
    state = state_of(log)

    assert state_of(rig.open()) == state


def test_a_stream_without_its_segment_is_an_error_of_the_store(rig: LogRig) -> None:
    with pytest.raises(NoSuchSegment):
        rig.open()


# After the oldest chunks were given up


@pytest.mark.parametrize("snapshot_chunks", [5, 1_000])
def test_a_truncated_stream_begins_at_its_oldest_chunk(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch, snapshot_chunks: int
) -> None:
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", snapshot_chunks)
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

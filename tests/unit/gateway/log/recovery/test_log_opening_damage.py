"""Opening a log where snapshot, index and chunks do not fit together, or chunks are damaged."""

import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.log.damage.errors import CorruptChunk
from gateway.log.derived import index as index_module
from gateway.log.names import writer_of
from gateway.log.recovery import chunk_walk as walking
from hutch.formats.chunk import event_number
from store.errors import CorruptSegment, NoSuchSegment, StoreError
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import (
    NAMES,
    LogRig,
    change_on_disk,
    event_of,
    file_with,
    put,
    snapshot_after_chunks,
    state_of,
    write_history,
)

FIVE = [b"%d" % number * 100 for number in range(5)]


@pytest.fixture(autouse=True)
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many index entries and several scans without many bytes."""
    monkeypatch.setattr(index_module, "SPAN_BYTES", 200)
    monkeypatch.setattr(walking, "SLICE_BYTES", 300)


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
    snapshot_after_chunks(monkeypatch, 5)
    log = rig.create()
    write_history(rig, log)
    state = state_of(log)
    stale = replace(rig.saved[-1], parts=[b"\1p" + (10**6).to_bytes(8)], **changed)  # type: ignore[arg-type]  # numbers only

    assert state_of(rig.open(snapshot=stale)) == state


def test_what_a_shortened_segment_left_behind_never_fits_again(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_after_chunks(monkeypatch, 5)
    write_history(rig, rig.create())
    segment = NAMES.data_segment
    rig.do(rig.store.delete_segment, segment)
    rig.do(rig.store.create_segment, segment)

    rig.saves_snapshots = False
    log = rig.open()
    assert rig.run(rig.tracking.snapshots.load(1)) is None
    for number in range(41):
        put(log, [b"new"], reference=b"q", first_id=number)
        rig.settle(log)
    rig.saves_snapshots = True
    rig.save(log)

    assert state_of(rig.open()) == state_of(log)
    assert rig.run(rig.tracking.snapshots.load(1)) == rig.saved[-1]
    assert log.sequences.last(b"p1") is None, "the resend of a lost id is no duplicate"


def test_index_entries_that_no_snapshot_followed_are_not_stored_again(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_after_chunks(monkeypatch, 5)
    log = rig.create()
    write_history(rig, log)
    rig.save(log)
    stored = rig.do(rig.store.read, NAMES.index_segment, 0, 1_000_000).data

    again = rig.open(snapshot=rig.saved[0])
    rig.save(again)

    assert rig.saved[0].position < log.index.positions[-1]
    assert rig.do(rig.store.read, NAMES.index_segment, 0, 1_000_000).data == stored


def test_index_entries_of_other_chunks_are_dropped_and_a_snapshot_that_fits_stays(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_after_chunks(monkeypatch, 5)
    log = rig.create()
    write_history(rig, log)
    writer = rig.do(rig.store.open_writer, NAMES.index_segment, writer_of(NAMES.index_segment))
    beyond = index_entry(10**6, 10**6, log.committed_length + 9)
    rig.do(writer.append, beyond, writer.event_number + 1)

    again = rig.open()

    assert state_of(again) == state_of(log)
    with pytest.raises(NoSuchSegment):
        rig.do(rig.store.info, NAMES.index_segment)
    assert rig.run(rig.tracking.snapshots.load(1)) == rig.saved[-1]
    rig.commit(again, b"x")
    rig.save(again)
    assert state_of(rig.open()) == state_of(again)


def test_an_index_that_makes_no_sense_is_built_anew(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_after_chunks(monkeypatch, 5)
    log = rig.create()
    write_history(rig, log)
    state = state_of(log)
    writer = rig.do(rig.store.open_writer, NAMES.index_segment, writer_of(NAMES.index_segment))
    backwards = index_entry(0, 0, 600)
    rig.do(writer.append, backwards, writer.event_number + 1)

    assert state_of(rig.open()) == state


def test_a_snapshot_without_its_index_is_no_reason_to_fail(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_after_chunks(monkeypatch, 5)
    log = rig.create()
    write_history(rig, log)
    next_offset = log.committed_next_offset
    rig.do(rig.store.delete_segment, NAMES.index_segment)

    again = rig.open()

    assert again.committed_next_offset == next_offset
    rig.commit(again, b"x")
    assert rig.chunks()[-1][0].chunk_id == next_offset


def test_an_index_that_cannot_be_read_is_no_reason_to_fail(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = rig.create()
    write_history(rig, log)
    rig.save(log)

    def fail(*_arguments: object, done: Callable[[StoreError], None], **_options: object) -> None:
        done(CorruptSegment("for the test"))

    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "read", fail)
        again = rig.open()

    assert state_of(again) == state_of(log)
    rig.commit(again, b"x")


def index_entry(
    offset: int, timestamp_ms: int, position: int, segment: str = NAMES.index_segment
) -> bytes:
    """A stored entry of the index, written apart from the server's own code."""
    entry = struct.pack(">QqQ", offset, timestamp_ms, position)
    return entry + zlib.crc32(segment.encode() + entry).to_bytes(4)


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


@pytest.mark.parametrize("place", [0, 4, 8])
@pytest.mark.parametrize("number", [0, 1, 4])
def test_what_is_whole_behind_a_damage_can_be_read(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture, place: int, number: int
) -> None:
    rig = make_rig()
    log = rig.create()
    for body in FIVE:
        rig.commit(log, body)
    content = rig.content()
    rig.close()
    change_on_disk(rig, content, (number * (64 + len(FIVE[0])) + place, 0x77))
    rig = make_rig(rig.directory)

    again = rig.open()

    assert isinstance(again.read_only, CorruptSegment)
    assert "stream can only be read stream=orders" in caplog.text
    whole = [body for n, body in enumerate(FIVE) if n != number]
    assert [r for chunk in rig.cursor(again).all_now() for r in chunk.records()] == whole


def test_publishers_in_what_is_no_chunk_any_more_stay_unknown(make_rig: MakeRig) -> None:
    rig = make_rig()
    log = rig.create()
    for number, body in enumerate(FIVE):
        put(log, [body], reference=b"p", first_id=number)
        rig.settle(log)
    content = rig.content()
    rig.close()
    last = content.index(FIVE[4]) - 56
    change_on_disk(rig, content, (last, 0x77))
    for _ in range(2):
        rig = make_rig(rig.directory)
        again = rig.open()
        assert again.sequences.damaged
        rig.save(again)
        rig.close()


@pytest.mark.parametrize("saves_snapshot", [True, False])
def test_of_a_file_that_is_too_short_the_whole_chunks_can_be_read(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture, *, saves_snapshot: bool
) -> None:
    rig = make_rig()
    log = rig.create()
    for body in FIVE:
        rig.commit(log, body)
    if saves_snapshot:
        rig.save(log)
    content = rig.content()
    rig.close()
    path = file_with(rig, content)
    os.truncate(path, len(content) // 2)
    rig = make_rig(rig.directory)

    again = rig.open()

    assert isinstance(again.read_only, CorruptSegment)
    assert "stream can only be read stream=orders" in caplog.text
    assert [r for chunk in rig.cursor(again).all_now() for r in chunk.records()] == FIVE[:2]


def test_chunks_that_disagree_with_the_writer_about_the_next_offset_can_only_be_read(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.commit(rig.create(), b"x")
    append_raw(rig, event_of([b"y"], chunk_id=1), 7)

    log = rig.open()

    assert isinstance(log.read_only, CorruptSegment)
    assert "next offset is 7 by the writer, 2 by the chunks" in caplog.text
    assert [r for chunk in rig.cursor(log).all_now() for r in chunk.records()] == [b"x", b"y"]


def test_a_stream_without_its_segment_is_an_error_of_the_store(rig: LogRig) -> None:
    with pytest.raises(NoSuchSegment):
        rig.open()

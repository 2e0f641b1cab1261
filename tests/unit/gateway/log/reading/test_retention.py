"""What of a log goes for its size or age, and what is left of it then."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.log.clock import Clock
from gateway.log.damage.errors import CorruptChunk
from gateway.log.log import StreamLog
from gateway.log.reading.locations import Start, StartKind, locate
from gateway.log.reading.retention import (
    SPAN_BYTES_MIN,
    Cut,
    RetentionLimits,
    cut_within,
    find_cut,
    remove_before,
    span_for,
)
from store.errors import SegmentTruncated, StoreError
from tests.unit.gateway.log.log_rig import NAMES, LogRig, put, state_of

UNIT = 3_000
CHUNK = 1_064
"""56 bytes of heads, 4 of the entry's size, the entry, and 4 of its seal."""


def filled(rig: LogRig, count: int, *, every_ms: int = 10, span: int = UNIT) -> StreamLog:
    """A stream of chunks with one record each, every third of which begins a unit."""
    rig.span_bytes = span
    log = rig.create()
    write(rig, log, count, every_ms=every_ms)
    return log


def write(rig: LogRig, log: StreamLog, count: int, *, every_ms: int = 10) -> None:
    for _ in range(count):
        rig.now_ms += every_ms
        rig.commit(log, bytes(1_000))


def found(rig: LogRig, log: StreamLog, *, size: int | None = None, age: int | None = None) -> Any:  # noqa: ANN401 - an offset or None
    cut = rig.run(find_cut(log, RetentionLimits(size, age, UNIT), rig.now_ms))
    return None if cut is None else cut.offset


def remove(rig: LogRig, log: StreamLog, cut: Cut) -> None:
    rig.run(remove_before(rig.store, NAMES.data_segment, log, cut))


def cut_at(log: StreamLog, chunk: int) -> Cut:
    return Cut(log.index.positions[log.index.offsets.index(chunk)], chunk)


# What goes


@pytest.mark.parametrize(
    ("size", "first"),
    [
        (100 * CHUNK, None),
        (10 * CHUNK, None),
        (10 * CHUNK - 1, 3),
        (7 * CHUNK, 3),
        (7 * CHUNK - 1, 6),
        (4 * CHUNK - 1, 9),
        (0, 9),
        (-5, 9),
    ],
)
def test_the_oldest_units_go_until_the_rest_fits_and_the_newest_stays(
    rig: LogRig, size: int, first: int | None
) -> None:
    log = filled(rig, 10)

    assert found(rig, log, size=size) == first


@pytest.mark.parametrize(
    ("age", "first"), [(10_000, None), (71, None), (70, None), (69, 3), (40, 3), (39, 6), (0, 9)]
)
def test_units_go_whose_last_chunk_is_too_old(rig: LogRig, age: int, first: int | None) -> None:
    # Ages of the chunks: 90, 80, 70 | 60, 50, 40 | 30, 20, 10 | 0.
    log = filled(rig, 10)

    assert found(rig, log, age=age) == first


def test_a_long_silence_after_a_unit_does_not_keep_it(rig: LogRig) -> None:
    log = filled(rig, 3)
    rig.now_ms += 1_000
    write(rig, log, 1)

    assert found(rig, log, age=1_000) == 3
    assert found(rig, log, age=1_010) is None


def test_size_is_looked_at_first_and_age_at_the_rest(rig: LogRig) -> None:
    log = filled(rig, 10)

    assert found(rig, log, size=7 * CHUNK, age=39) == 6
    assert found(rig, log, size=4 * CHUNK - 1, age=69) == 9


@pytest.mark.parametrize("count", [0, 1, 3])
def test_one_unit_is_kept_however_old_and_large(rig: LogRig, count: int) -> None:
    log = filled(rig, count)
    rig.now_ms += 10**9

    assert found(rig, log, size=0, age=1) is None


def test_chunks_that_are_larger_than_a_unit_are_units(rig: LogRig) -> None:
    rig.span_bytes = UNIT
    log = rig.create()
    for _ in range(4):
        rig.commit(log, bytes(2 * UNIT))

    assert found(rig, log, size=2 * (2 * UNIT + 64)) == 2


def test_a_unit_can_be_of_many_spans(rig: LogRig) -> None:
    log = filled(rig, 12, span=CHUNK)

    assert found(rig, log, size=7 * CHUNK) == 6
    assert found(rig, log, age=39) == 6  # ages 110 … 60 | 50, 40, 30 …


def test_the_index_is_as_fine_as_the_units_within_reason() -> None:
    assert span_for(9) == SPAN_BYTES_MIN
    assert span_for(5_000) == 5_000


@pytest.mark.parametrize("seed", range(3))
def test_a_clock_that_jumps_by_days_wipes_nothing_that_is_young(rig: LogRig, seed: int) -> None:
    chance = random.Random(seed)
    minute, hour, day = 60_000, 3_600_000, 24 * 3_600_000
    wall, steady = 100 * day, 0
    clock = Clock(lambda: wall, lambda: steady)
    limits = RetentionLimits(None, hour, UNIT)
    written: list[int] = []
    log = filled(rig, 0)

    def write_and_look() -> None:
        rig.now_ms = clock()
        rig.commit(log, bytes(1_000))
        written.append(steady)
        cut = rig.run(find_cut(log, limits, clock.for_age(hour)))
        if cut is not None:
            assert all(steady - at >= hour for at in written[: cut.offset])
            remove(rig, log, cut)

    for _ in range(100):
        wall += chance.choice((-day, day))
        for _ in range(chance.randrange(4)):
            passed = chance.randrange(20 * minute)
            wall, steady = wall + passed, steady + passed
            write_and_look()
    times = [chunk.timestamp_ms for chunk, _ in rig.chunks()]
    assert times == sorted(times)
    assert rig.now_ms - day <= times[-1]

    # It acts again when the time has come that the chunks name.
    passed = 200 * day
    wall, steady = wall + passed, steady + passed
    for _ in range(4):
        write_and_look()
    assert len(log.index) <= 2


# Removing


def test_what_is_removed_is_gone_from_segment_index_and_first_offset(rig: LogRig) -> None:
    log = filled(rig, 10)

    remove(rig, log, cut_at(log, 6))

    assert log.start == 6 * CHUNK
    assert (log.first_chunk_id, log.first_offset, log.last_chunk_id) == (6, 6, 9)
    assert list(log.index.offsets) == [6, 9]
    assert [chunk.chunk_id for chunk, _ in rig.chunks()] == [6, 7, 8, 9]


def test_everything_can_be_removed_and_the_next_record_has_the_next_offset(rig: LogRig) -> None:
    log = filled(rig, 4)

    remove(rig, log, Cut(log.committed_length, log.committed_next_offset))

    assert log.is_empty
    assert (log.first_offset, log.committed_next_offset) == (4, 4)
    rig.commit(log, b"next")
    assert (log.is_empty, log.first_chunk_id, log.last_chunk_id) == (False, 4, 4)


def test_where_no_such_chunk_begins_nothing_is_removed(rig: LogRig) -> None:
    log = filled(rig, 10)

    for cut in (Cut(6 * CHUNK + 1, 6), Cut(6 * CHUNK, 7), Cut(10 * CHUNK - 10, 10)):
        with pytest.raises(CorruptChunk):
            remove(rig, log, cut)
    assert log.start == 0


def test_a_cut_is_taken_back_to_what_a_snapshot_covers(rig: LogRig) -> None:
    log = filled(rig, 10)

    assert cut_within(log, cut_at(log, 6), 6 * CHUNK) == cut_at(log, 6)
    assert cut_within(log, cut_at(log, 9), 8 * CHUNK) == cut_at(log, 6)
    assert cut_within(log, cut_at(log, 9), CHUNK) is None


# Opening after it


@pytest.mark.parametrize("snapshots", ["none", "before the start", "behind the start"])
def test_a_truncated_log_is_opened_as_it_was(
    rig: LogRig, make_rig: Callable[..., LogRig], tmp_path: Path, snapshots: str
) -> None:
    rig.span_bytes = UNIT
    log = rig.create()
    put(log, [bytes(1_000)], reference=b"gone", first_id=77)
    rig.settle(log)
    write(rig, log, 3)
    if snapshots != "none":
        rig.save(log)
    write(rig, log, 6)
    if snapshots == "behind the start":
        rig.save(log)
        write(rig, log, 2)
    remove(rig, log, cut_at(log, 6))

    again_rig = make_rig(rig.crash_copy(tmp_path / "copy"))
    again_rig.span_bytes = UNIT
    again = again_rig.open()

    expected = state_of(log)
    if snapshots == "none":  # nobody else knew of the publisher
        expected["sequences"] = {}
    assert state_of(again) == expected
    assert bool(again.sequences.damaged) == (snapshots != "behind the start")
    again_rig.commit(again, b"next")
    assert again.last_chunk_id == log.last_chunk_id + 1
    assert again_rig.cursor(again).all_now()[0].chunk_id == 6


@pytest.mark.parametrize("saves", [0, 1])
def test_a_log_that_was_emptied_goes_on_with_its_offsets(
    rig: LogRig, make_rig: Callable[..., LogRig], tmp_path: Path, saves: int
) -> None:
    log = filled(rig, 4)
    if saves:
        rig.save(log)
    remove(rig, log, Cut(log.committed_length, 4))
    assert (log.final_snapshot() is None) == bool(saves)

    again_rig = make_rig(rig.crash_copy(tmp_path / "copy"))
    again = again_rig.open()

    assert (again.is_empty, again.first_offset, again.committed_next_offset) == (True, 4, 4)
    again_rig.commit(again, b"next")
    assert again.first_chunk_id == 4


# Readers


def test_a_reader_whose_chunks_went_goes_on_with_the_oldest(rig: LogRig) -> None:
    log = filled(rig, 10)
    tap = rig.cursor(log)

    remove(rig, log, cut_at(log, 6))

    assert tap.all_now()[0].chunk_id == 6


@pytest.mark.parametrize(
    ("kind", "value", "offset"),
    [
        (StartKind.FIRST, 0, 6),
        (StartKind.OFFSET, 0, 6),
        (StartKind.OFFSET, 5, 6),
        (StartKind.OFFSET, 7, 7),
        (StartKind.OFFSET, 10, 10),
        (StartKind.TIMESTAMP, 0, 6),
        (StartKind.TIMESTAMP, 1_080, 7),
        (StartKind.TIMESTAMP, 9_999, 10),
        (StartKind.LAST, 0, 9),
        (StartKind.NEXT, 0, 10),
    ],
)
def test_offset_specifications_are_clamped_to_what_is_left(
    rig: LogRig, kind: StartKind, value: int, offset: int
) -> None:
    log = filled(rig, 10)

    remove(rig, log, cut_at(log, 6))

    assert rig.run(locate(log, kind, value)) == Start(offset, offset * CHUNK)


def test_a_place_that_is_removed_while_it_is_sought_becomes_the_oldest_chunk(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(rig, 10)
    reader = log.reader

    class Late:
        """A reader that answers when what is asked for is gone."""

        start = 0

        def check(self, *_: object, done: Callable[[StoreError], None], **_options: object) -> None:
            log.reader = reader
            remove(rig, log, cut_at(log, 6))
            rig.loop.call_soon(lambda: done(SegmentTruncated("for the test", 0)))

    monkeypatch.setattr(log, "reader", Late())

    assert rig.run(locate(log, StartKind.OFFSET, 2)) == Start(6, 6 * CHUNK)


def test_a_reader_that_was_too_late_is_in_the_log_once(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    log = filled(rig, 10)
    tap = rig.cursor(log)

    remove(rig, log, cut_at(log, 3))
    tap.await_next()
    tap.cursor.position = tap.cursor.next_offset = 0
    tap.await_next()

    words = "reader goes on with the oldest chunk stream=orders first_offset=3 bytes_missed=3192"
    assert [each.getMessage() for each in caplog.records] == [words]


@pytest.mark.parametrize(
    ("timestamp_ms", "is_said"),
    [
        (1_700_000_000, True),
        (1_700_000_000_000, False),
        (1_700_000_000_000_000, True),
        (2**63 - 1, True),
        (0, False),
        (-(2**63), False),
    ],
)
def test_a_time_in_the_wrong_unit_is_in_the_log_once(
    rig: LogRig, caplog: pytest.LogCaptureFixture, timestamp_ms: int, *, is_said: bool
) -> None:
    log = filled(rig, 2)
    rig.now_ms = 1_700_000_000_000

    for _ in range(2):
        rig.run(locate(log, StartKind.TIMESTAMP, timestamp_ms))

    said = [text for text in caplog.messages if "milliseconds" in text]
    assert len(said) == is_said

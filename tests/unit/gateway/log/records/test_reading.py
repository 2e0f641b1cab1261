"""Records read from a log: each with its offset and time, from an exact offset on, to the tail."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.log.derived import index as index_module
from gateway.log.log import StreamLog
from gateway.log.reading.retention import Cut, remove_before
from gateway.log.records.reading import Record, RecordReader, UnreadableSubBatch, reader_from
from hutch.formats.entries import RECORD_HEAD
from store.errors import NoSuchSegment
from tests.chunks import GZIP, LZ4, NONE, SNAPPY, ZSTD, Entry, SubBatch
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import NAMES, LogRig

CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]


class Reading:
    """A reader, and how often it was woken."""

    def __init__(self, rig: LogRig, log: StreamLog, offset: int = 0, **options: Any) -> None:  # noqa: ANN401
        self.rig = rig
        self.wake_count = 0
        self.reader: RecordReader = rig.run(reader_from(log, offset, self._woken, **options))

    def _woken(self) -> None:
        self.wake_count += 1

    def now(self) -> list[list[Record] | UnreadableSubBatch]:
        """All that is there now, as it is given."""
        found: list[list[Record] | UnreadableSubBatch] = []
        log = self.reader._chunks.log
        while self.reader.failure is None:
            woken = self.wake_count
            given = self.reader.next()
            if given is not None:
                found.append(given)
            elif self.reader._chunks.position >= log.committed_length:
                break
            elif self.reader.failure is None:
                self.rig.loop.run_until(lambda: self.wake_count > woken)  # noqa: B023 - before the next
        return found

    def records(self) -> list[Record]:
        """All records that are there now; there is nothing that cannot be read."""
        found: list[Record] = []
        for given in self.now():
            assert isinstance(given, list), given
            found += given
        return found


def commit(rig: LogRig, log: StreamLog, now_ms: int, *entries: Entry) -> None:
    rig.now_ms = now_ms
    rig.commit(log, *entries)


def numbered(first: int, now_ms: int, bodies: Sequence[bytes]) -> list[Record]:
    return [(offset, now_ms, body) for offset, body in enumerate(bodies, first)]


# What is given


def test_every_record_has_its_offset_and_the_time_of_its_own_chunk(rig: LogRig) -> None:
    log = rig.create()
    commit(rig, log, 10, b"a", b"")
    commit(rig, log, 20, b"c")
    commit(rig, log, 20, bytes(100_000), b"e")

    assert Reading(rig, log).now() == [
        [(0, 10, b"a"), (1, 10, b"")],
        [(2, 20, b"c")],
        [(3, 20, bytes(100_000))],  # a run that is long enough
        [(4, 20, b"e")],
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_a_sub_batch_is_opened_between_records(rig: LogRig, codec: int) -> None:
    log = rig.create()
    commit(rig, log, 10, b"a", b"b", SubBatch.of([b"c", b"", b"e"], codec), b"f")
    commit(rig, log, 20, SubBatch.of([b"g"], codec), SubBatch.of([b"h"] * 3, codec))

    assert Reading(rig, log).now() == [
        numbered(0, 10, [b"a", b"b"]),
        numbered(2, 10, [b"c", b"", b"e"]),
        numbered(5, 10, [b"f"]),
        numbered(6, 20, [b"g"]),
        numbered(7, 20, [b"h"] * 3),
    ]


@pytest.mark.parametrize("is_reopened", [False, True])
@pytest.mark.parametrize("offset", range(13))
def test_the_first_record_has_exactly_the_offset_that_was_asked_for(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, offset: int, *, is_reopened: bool
) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 100)
    rig = make_rig()
    log = rig.create()
    commit(rig, log, 10, b"0", b"1", SubBatch.of([b"2", b"3", b"4"], GZIP), b"5")
    commit(rig, log, 20, b"6", bytes(70_000))
    commit(rig, log, 30, SubBatch.of([b"8", b"9"]), b"10", b"11")
    if is_reopened:
        rig.close()
        rig = make_rig(rig.directory)
        log = rig.open()

    found = Reading(rig, log, offset).records()

    assert [each[0] for each in found] == [*range(offset, 12)]
    bodies = [b"%d" % number for number in range(12)]
    bodies[7] = bytes(70_000)
    assert [each[2] for each in found] == bodies[offset:]


def test_records_before_an_offset_behind_the_tail_are_not_given_later(rig: LogRig) -> None:
    log = rig.create()
    commit(rig, log, 10, b"0")
    reading = Reading(rig, log, 3)
    assert reading.now() == []
    commit(rig, log, 20, b"1", b"2")
    assert reading.now() == []
    commit(rig, log, 30, SubBatch.of([b"3", b"4"]))

    assert reading.records() == numbered(3, 30, [b"3", b"4"])
    assert reading.reader.next_offset == 5


def test_an_offset_within_a_chunk_behind_the_tail_is_met_exactly(rig: LogRig) -> None:
    log = rig.create()
    reading = Reading(rig, log, 3)
    commit(rig, log, 20, b"0", b"1", b"2", b"3", b"4")

    assert reading.records() == numbered(3, 20, [b"3", b"4"])


def test_a_sub_batch_before_the_wanted_offset_is_not_opened(rig: LogRig) -> None:
    log = rig.create()
    commit(rig, log, 10, SubBatch(ZSTD, 2, 100, b"garbage"), b"2")

    assert Reading(rig, log, 2).records() == numbered(2, 10, [b"2"])


# The tail


def test_one_that_reads_at_the_tail_is_woken_for_more(rig: LogRig) -> None:
    log = rig.create()
    reading = Reading(rig, log)
    assert reading.reader.next() is None
    assert reading.wake_count == 0
    commit(rig, log, 10, b"a")
    assert reading.wake_count == 1
    assert reading.reader.next() == numbered(0, 10, [b"a"])
    assert reading.reader.next() is None
    commit(rig, log, 20, b"b")

    assert reading.wake_count == 2
    assert reading.reader.next() == numbered(1, 20, [b"b"])


def test_several_at_the_tail_get_the_same(rig: LogRig) -> None:
    log = rig.create()
    readings = [Reading(rig, log) for _ in range(3)]
    tap = rig.cursor(log)
    for reading in readings:
        assert reading.reader.next() is None
    assert tap.next() is None
    for now_ms in (10, 20):
        commit(rig, log, now_ms, b"x")

    assert [len(chunk.records()) for chunk in tap.all_now()] == [2], "a client gets them joined"
    for reading in readings:
        assert reading.now() == [numbered(0, 10, [b"x"]), numbered(1, 20, [b"x"])]


def test_one_that_waits_at_the_tail_holds_no_chunk(rig: LogRig) -> None:
    log = rig.create()
    commit(rig, log, 10, bytes(200_000))
    reading = Reading(rig, log)
    reading.records()

    assert reading.reader._chunk == reading.reader._chunks._window == b""


def test_a_closed_reader_is_not_woken_and_gives_nothing(rig: LogRig) -> None:
    log = rig.create()
    commit(rig, log, 10, b"a", SubBatch.of([b"b"]), b"c")
    reading, waiting = Reading(rig, log), Reading(rig, log, 3)
    assert reading.reader.next() == numbered(0, 10, [b"a"])
    assert waiting.reader.next() is None
    reading.reader.close()
    waiting.reader.close()
    commit(rig, log, 20, b"d")

    assert reading.reader.next() is waiting.reader.next() is None
    assert waiting.wake_count == 0


def test_a_log_that_fails_ends_its_readers(rig: LogRig) -> None:
    log = rig.create()
    commit(rig, log, 10, b"a")
    reading = Reading(rig, log)
    assert reading.reader.failure is None
    rig.do(rig.store.delete_segment, NAMES.data_segment)
    log.fail(NoSuchSegment("gone"))

    assert reading.reader.next() is None
    assert isinstance(reading.reader.failure, NoSuchSegment)


# What is removed


def test_a_reader_that_is_behind_what_was_removed_goes_on_with_the_oldest(
    rig: LogRig,
) -> None:
    rig.span_bytes = 100
    log = rig.create()
    for number in range(6):
        commit(rig, log, number, bytes([number]) * 500, SubBatch.of([b"s"]))
    reading = Reading(rig, log, 1)
    assert reading.reader.next() == numbered(1, 0, [b"s"])
    position = log.index.positions[log.index.offsets.index(8)]
    rig.run(remove_before(rig.store, NAMES.data_segment, log, Cut(position, 8)))

    assert [each[0] for each in reading.records()] == [8, 9, 10, 11]
    assert [each[0] for each in Reading(rig, log, 2).records()] == [8, 9, 10, 11]


# What cannot be opened

GOOD = SubBatch.of([b"s", b"t"], LZ4)
BOMB = SubBatch.of([bytes(1 << 20)] * 8, GZIP)
BAD: dict[str, tuple[SubBatch, str]] = {
    "an unknown codec": (SubBatch(5, 2, 10, b"x"), "is compressed by an unknown codec, 5"),
    "garbage": (SubBatch(ZSTD, 2, 10, b"x"), "is not 10 bytes compressed by zstd"),
    "more than it says": (SubBatch(GZIP, 8, 1_000, BOMB.body), "is not 1000 bytes"),
    "more than is opened": (
        SubBatch(SNAPPY, 8, (1 << 20) + 1, GOOD.body),
        "says that it has 1048577 bytes, more than 1048576",
    ),
    "more records than it says": (
        SubBatch(LZ4, 1, GOOD.raw_size, GOOD.body),
        "does not hold 1 records",
    ),
    "fewer records": (SubBatch(LZ4, 3, GOOD.raw_size, GOOD.body), "does not hold 3 records"),
    "a record that is cut off": (
        SubBatch(NONE, 1, 0, RECORD_HEAD.pack(3) + b"ab"),
        "does not hold 1 records",
    ),
    "a head that is cut off": (SubBatch(NONE, 2, 0, bytes(7)), "does not hold 2 records"),
    "a sub-batch in it": (SubBatch(NONE, 1, 0, GOOD.encoded()), "does not hold 1 records"),
}


@pytest.mark.parametrize(("bad", "reason"), BAD.values(), ids=BAD)
def test_a_sub_batch_that_cannot_be_opened_is_told_and_what_follows_is_given(
    rig: LogRig, bad: SubBatch, reason: str
) -> None:
    log = rig.create()
    commit(rig, log, 10, b"a", bad, b"z")
    commit(rig, log, 20, GOOD)
    end = 1 + bad.record_count

    given = Reading(rig, log, sub_batch_bytes_max=1 << 20).now()

    assert given[0] == numbered(0, 10, [b"a"])
    unreadable = given[1]
    assert isinstance(unreadable, UnreadableSubBatch)
    assert (unreadable.offset, unreadable.next_offset) == (1, end)
    assert unreadable.timestamp_ms == 10
    sent = f"a publisher sent a sub-batch of {bad.record_count} records that {reason}"
    assert unreadable.reason.startswith(sent)
    assert unreadable.body == bad.body
    assert given[2:] == [numbered(end, 10, [b"z"]), numbered(end + 1, 20, [b"s", b"t"])]


def test_what_cannot_be_opened_begins_with_the_offset_that_was_asked_for(rig: LogRig) -> None:
    log = rig.create()
    commit(rig, log, 10, SubBatch(7, 100, 0, b""), b"z")

    unreadable, after = Reading(rig, log, 40).now()

    assert isinstance(unreadable, UnreadableSubBatch)
    assert (unreadable.offset, unreadable.next_offset) == (40, 100)
    assert unreadable.body is None, "a reader that begins before it has it"
    assert after == numbered(100, 10, [b"z"])


def test_a_reader_that_stays_at_what_cannot_be_opened_gives_it_again(rig: LogRig) -> None:
    log = rig.create()
    commit(rig, log, 10, b"a", SubBatch(7, 4, 0, b"x"), b"z")
    reader = Reading(rig, log, stays_at_bad=True).reader

    assert reader.next() == numbered(0, 10, [b"a"])
    for _ in range(3):
        unreadable = reader.next()
        assert isinstance(unreadable, UnreadableSubBatch)
        assert (unreadable.offset, unreadable.next_offset, unreadable.body) == (1, 5, b"x")
        assert reader.next_offset == 1


def test_a_sub_batch_without_records_is_passed_over(rig: LogRig) -> None:
    log = rig.create()
    commit(rig, log, 10, b"a", SubBatch(7, 0, 0, b""), b"b")

    assert Reading(rig, log).records() == numbered(0, 10, [b"a", b"b"])

"""Records put into a log: what is stored, what the sink is told, and how much may be under way."""

from collections.abc import Sequence

import pytest

from gateway.log.derived.filters import FILTER_BYTES_MAX
from gateway.log.log import StreamLog
from gateway.log.records.writing import (
    RECORD_BYTES_MAX,
    NoRoom,
    RecordTooLarge,
    RecordWriter,
)
from hutch.formats.chunk import OFFSETS_END
from store.errors import NoSuchSegment, SegmentFailed
from tests.rings import no_rings
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import NAMES, LogRig, Sink, put


class Told:
    """A sink that remembers what it was told, in order."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int]] = []

    def committed(self, count: int) -> None:
        self.said.append(("committed", count))

    def lost(self, count: int) -> None:
        self.said.append(("lost", count))

    def count_of(self, what: str) -> int:
        return sum(count for word, count in self.said if word == what)


def stored(rig: LogRig) -> list[list[bytes]]:
    return [chunk.records() for chunk, _ in rig.chunks()]


def put_all(writer: RecordWriter, records: Sequence[bytes]) -> None:
    for record in records:
        writer.put(record)


# What is stored


def test_records_put_in_one_turn_are_one_chunk_in_their_order(rig: LogRig) -> None:
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told)
    put_all(writer, [b"a", b"", b"ccc"])
    assert told.said == []
    rig.settle(log)

    assert stored(rig) == [[b"a", b"", b"ccc"]]
    assert told.said == [("committed", 3)]


def test_records_share_a_chunk_with_those_of_other_writers_and_publishers(rig: LogRig) -> None:
    log = rig.create()
    sinks = [Told(), Told()]
    writers = [RecordWriter(log, sink) for sink in sinks]
    published = Sink()
    for number in range(3):
        for writer in writers:
            writer.put(b"%d" % number)
        put(log, [b"p"], sink=published, first_id=number)
    rig.settle(log)

    assert stored(rig) == [[b"0", b"0", b"p", b"1", b"1", b"p", b"2", b"2", b"p"]]
    assert [sink.said for sink in sinks] == [[("committed", 3)], [("committed", 3)]]
    assert published.confirmed == [0, 1, 2]


def test_a_record_is_put_while_an_append_is_under_way(rig: LogRig) -> None:
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told)
    writer.put(b"first")
    rig.turn_until_appended(log)
    put_all(writer, [b"second", b"third"])
    assert told.said == []
    rig.settle(log)

    assert stored(rig) == [[b"first"], [b"second", b"third"]]
    assert told.said == [("committed", 1), ("committed", 2)]


def test_what_fits_into_no_chunk_goes_into_several(make_rig: MakeRig) -> None:
    rig = make_rig(frame_bytes_max=4096)
    log, told = rig.create(), Told()
    records = [bytes([number]) * 500 for number in range(40)]
    put_all(RecordWriter(log, told), records)
    rig.settle(log)

    chunks = stored(rig)
    assert [record for chunk in chunks for record in chunk] == records
    assert max(map(len, chunks)) == 4096 // 512
    assert told.count_of("committed") == 40


def test_one_turn_makes_chunks_of_as_many_entries_as_publishing_does(rig: LogRig) -> None:
    log = rig.create()
    put_all(RecordWriter(log, Told()), [b"x"] * 1_000)
    rig.settle(log)

    assert [len(records) for records in stored(rig)] == [256, 512, 232]


@pytest.mark.parametrize("size", [RECORD_BYTES_MAX - 1, RECORD_BYTES_MAX])
def test_a_record_may_have_the_largest_size(rig: LogRig, size: int) -> None:
    log, told = rig.create(), Told()
    RecordWriter(log, told).put(bytes(size))
    rig.settle(log)

    assert [[len(record) for record in records] for records in stored(rig)] == [[size]]
    assert told.said == [("committed", 1)]


def test_a_larger_record_is_refused_and_nothing_is_put(rig: LogRig) -> None:
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told)
    with pytest.raises(RecordTooLarge, match=f"{RECORD_BYTES_MAX} bytes"):
        writer.put(bytes(RECORD_BYTES_MAX + 1))
    assert (writer.waiting_count, writer.waiting_bytes) == (0, 0)
    writer.put(b"next")
    rig.settle(log)

    assert stored(rig) == [[b"next"]]


def test_a_record_that_fits_into_no_chunk_of_this_server_is_refused(make_rig: MakeRig) -> None:
    rig = make_rig(frame_bytes_max=64 * 1024)
    log = rig.create()
    with pytest.raises(RecordTooLarge, match="no chunk"):
        RecordWriter(log, Told()).put(bytes(70 * 1024 * 2))


@pytest.mark.parametrize(
    ("given", "noted"),
    [
        ([None, None], None),
        ([b"red", b"blue", b"red"], {b"red", b"blue"}),
        ([None, b"red"], {b"", b"red"}),
        ([b"red", None], {b"", b"red"}),
        ([b""], {b""}),
    ],
)
def test_filter_values_of_a_chunk_are_those_of_its_records(
    rig: LogRig, given: list[bytes | None], noted: set[bytes] | None
) -> None:
    log = rig.create()
    writer = RecordWriter(log, Told())
    for value in given:
        writer.put(b"x", value)

    assert log.open_chunk(1).filters == noted


def test_filter_values_of_a_chunk_are_bounded(rig: LogRig) -> None:
    log = rig.create()
    writer = RecordWriter(log, Told())
    for number in range(2_000):
        writer.put(b"", b"%0200d" % number)
        chunk = log._open
        if chunk is not None and chunk.filters is not None:
            assert sum(map(len, chunk.filters)) <= 2 * FILTER_BYTES_MAX


def test_a_filter_value_may_be_larger_than_its_record_and_than_its_size_field(
    rig: LogRig,
) -> None:
    log, told = rig.create(), Told()
    RecordWriter(log, told).put(b"small", bytes(70_000))
    rig.settle(log)

    assert told.said == [("committed", 1)]


# How much may be under way


@pytest.mark.parametrize("bound", [{"records_max": 4}, {"bytes_max": 4 * 104}])
def test_what_is_under_way_is_bounded(rig: LogRig, bound: dict[str, int]) -> None:
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told, **bound)
    put_all(writer, [bytes(100)] * 4)
    with pytest.raises(NoRoom):
        writer.put(bytes(100))
    assert (writer.waiting_count, writer.waiting_bytes) == (4, 4 * 104)
    rig.settle(log)

    assert (writer.waiting_count, writer.waiting_bytes) == (0, 0)
    assert told.said == [("committed", 4)]
    writer.put(bytes(100))


def test_a_record_larger_than_the_bound_may_be_under_way_alone(rig: LogRig) -> None:
    log = rig.create()
    writer = RecordWriter(log, Told(), bytes_max=50)
    writer.put(bytes(100))
    with pytest.raises(NoRoom):
        writer.put(b"")


def test_it_is_said_once_when_there_is_room_for_half_of_it(rig: LogRig) -> None:
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told, records_max=4)
    rooms: list[int] = []
    put_all(writer, [b"1", b"2"])
    writer.when_room(lambda: rooms.append(0))
    assert rooms == [0]

    rig.turn_until_appended(log)
    put_all(writer, [b"3", b"4"])
    writer.when_room(lambda: rooms.append(writer.waiting_count))
    assert rooms == [0]
    rig.settle(log)

    assert rooms == [0, 2]


def test_room_is_half_of_the_bytes_as_well(rig: LogRig) -> None:
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told, bytes_max=4 * 104)
    rooms: list[int] = []
    put_all(writer, [bytes(100)] * 3)
    writer.when_room(lambda: rooms.append(writer.waiting_bytes))
    assert rooms == []
    rig.settle(log)

    assert rooms == [0]


def test_it_may_be_put_again_from_within_the_call_that_says_so(rig: LogRig) -> None:
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told, records_max=2)
    left = [b"%d" % number for number in range(9)]

    def go_on() -> None:
        while left:
            try:
                writer.put(left[0])
            except NoRoom:
                writer.when_room(go_on)
                return
            del left[0]

    go_on()
    rig.loop.run_until(lambda: not left)
    rig.settle(log)

    records = [record for chunk in stored(rig) for record in chunk]
    assert records == [b"%d" % number for number in range(9)]
    assert told.count_of("committed") == 9


class Broken(Told):
    """A sink that fails."""

    def committed(self, count: int) -> None:
        super().committed(count)
        raise ValueError("broken")


def test_a_sink_that_fails_holds_up_neither_room_nor_others(rig: LogRig) -> None:
    log = rig.create()
    broken, told = Broken(), Told()
    writer = RecordWriter(log, broken, records_max=1)
    rooms: list[int] = []
    writer.put(b"1")
    writer.when_room(lambda: rooms.append(1))
    RecordWriter(log, told).put(b"2")
    rig.settle(log)

    assert rooms == [1]
    assert told.said == [("committed", 1)]


# What is lost


def failing(rig: LogRig) -> tuple[StreamLog, RecordWriter, Told]:
    """A writer with two chunks on their way and one that fills, in a segment that is gone."""
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told)
    rig.do(rig.store.delete_segment, NAMES.data_segment)
    for count in (1, 2):
        put_all(writer, [bytes(1_000)] * count)
        assert log._open is not None
        log._append(log._open)
    put_all(writer, [b"open"] * 4)
    return log, writer, told


def test_what_a_failed_log_had_under_way_is_lost_in_the_order_of_putting(rig: LogRig) -> None:
    log, writer, told = failing(rig)
    rooms: list[int] = []
    writer.when_room(lambda: rooms.append(1))
    rig.loop.run_until(lambda: log.failure is not None and log.in_flight_bytes == 0)

    assert told.said == [("lost", 1), ("lost", 2), ("lost", 4)]
    assert (writer.waiting_count, writer.waiting_bytes) == (0, 0)
    assert rooms == [1]
    with pytest.raises(NoSuchSegment):
        writer.put(b"more")


def test_room_that_a_failed_log_gives_back_is_told(rig: LogRig) -> None:
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told, records_max=2)
    rig.do(rig.store.delete_segment, NAMES.data_segment)
    put_all(writer, [b"1", b"2"])
    rooms: list[int] = []
    writer.when_room(lambda: rooms.append(writer.waiting_count))
    assert rooms == []
    rig.loop.run_until(lambda: log.failure is not None)

    assert rooms == [0]


def test_a_stream_without_offsets_left_stores_what_came_before_and_loses_the_rest(
    make_rig: MakeRig,
) -> None:
    rig = make_rig()
    rig.initial_offset = OFFSETS_END - 1
    log, told = rig.create(), Told()
    writer = RecordWriter(log, told)
    writer.put(b"last")
    rig.turn_until_appended(log)
    put_all(writer, [b"none"] * 3)
    rig.loop.run_until(lambda: log.failure is not None and log.in_flight_bytes == 0)

    assert told.said == [("committed", 1), ("lost", 3)]
    assert stored(rig) == [[b"last"]]


def test_a_log_that_can_only_be_read_takes_nothing(rig: LogRig) -> None:
    log = rig.create()
    log.read_only = SegmentFailed("its chunks are in doubt")
    writer = RecordWriter(log, Told())

    with pytest.raises(SegmentFailed, match="in doubt"):
        writer.put(b"x")
    assert writer.waiting_count == 0


def test_what_is_stored_goes_without_the_collector(rig: LogRig) -> None:
    log = rig.create()
    with no_rings():
        put_all(RecordWriter(log, Told()), [b"a", b"b"])
        rig.settle(log)

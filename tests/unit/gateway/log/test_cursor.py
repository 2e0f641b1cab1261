"""What a reader of a stream is given: joined, alone, checked, from memory or from a file."""

import logging
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.log import cursor as cursor_module
from gateway.log import index as index_module
from gateway.log.cursor import verify
from gateway.log.log import StreamLog
from store.errors import NoSuchSegment
from tests.chunks import Chunk, Entry, SubBatch, chunk_of
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import NAMES, LogRig, bytes_of, change_on_disk, event_of, put

BATCH = SubBatch.of([b"a", b"b"])


def offsets_and_records(chunks: list[Chunk]) -> list[tuple[int, bytes]]:
    return [pair for chunk in chunks for pair in enumerate(chunk.records(), chunk.chunk_id)]


def commit_all(rig: LogRig, log: StreamLog, *chunks: Sequence[Entry]) -> None:
    for entries in chunks:
        rig.commit(log, *entries)


def reopened(rig: LogRig) -> StreamLog:
    """The log as after a restart: nothing in it was written by this process."""
    return rig.open()


# Joining


def test_small_chunks_in_a_row_are_given_as_one(rig: LogRig) -> None:
    log = rig.create()
    commit_all(rig, log, [b"a"], [b"b", b"c"], [b"d"])

    (chunk,) = rig.cursor(log).all_now()

    assert chunk.records() == [b"a", b"b", b"c", b"d"]
    assert (chunk.chunk_id, chunk.epoch, chunk.timestamp_ms) == (0, 1, 1_000)
    assert (chunk.entry_count, chunk.record_count, chunk.trailer_size) == (4, 4, 0)


def test_a_joined_chunk_says_when_its_first_part_was_written(rig: LogRig) -> None:
    log = rig.create()
    for now_ms in (10, 20, 30):
        rig.now_ms = now_ms
        rig.commit(log, b"x")

    (chunk,) = rig.cursor(log).all_now()

    assert chunk.timestamp_ms == 10


def test_a_lone_small_chunk_is_given_as_it_is_stored(rig: LogRig) -> None:
    log = rig.create()
    put(log, [b"x"], reference=b"p")
    rig.settle(log)

    (chunk,) = rig.cursor(log).all_now()

    assert (chunk.records(), chunk.trailer_size) == ([b"x"], 11)


def test_a_chunk_with_a_sub_batch_goes_alone(rig: LogRig) -> None:
    log = rig.create()
    commit_all(rig, log, [b"1"], [b"2"], [BATCH, b"3"], [b"4"], [b"5"], [BATCH])

    chunks = rig.cursor(log).all_now()

    assert [chunk.chunk_id for chunk in chunks] == [0, 2, 5, 7]
    assert [chunk.record_count for chunk in chunks] == [2, 3, 2, 2]


def test_chunks_of_different_epochs_are_not_joined(rig: LogRig) -> None:
    log = rig.create()
    commit_all(rig, log, [b"a"], [b"b"])
    log = rig.open(epoch=2)
    commit_all(rig, log, [b"c"], [b"d"])

    chunks = rig.cursor(log).all_now()

    assert [(chunk.epoch, chunk.records()) for chunk in chunks] == [
        (1, [b"a", b"b"]),
        (2, [b"c", b"d"]),
    ]


@pytest.mark.parametrize(("gap_ms", "count"), [(1_000, 1), (1_001, 2)])
def test_chunks_more_than_a_second_apart_are_not_joined(
    rig: LogRig, gap_ms: int, count: int
) -> None:
    log = rig.create()
    rig.commit(log, b"a")
    rig.now_ms += gap_ms
    rig.commit(log, b"b")

    assert len(rig.cursor(log).all_now()) == count


def test_a_delivery_is_joined_up_to_the_largest_frame(make_rig: MakeRig) -> None:
    rig = make_rig(frame_bytes_max=4096)
    log = rig.create()
    for number in range(60):
        rig.commit(log, bytes([number]) * 200)

    chunks = rig.cursor(log).all_now()

    assert offsets_and_records(chunks) == [(n, bytes([n]) * 200) for n in range(60)]
    sizes = [13 + 48 + len(chunk.data) for chunk in chunks]
    assert max(sizes) <= 4096
    assert min(sizes[:-1]) > 4096 // 2


@pytest.mark.parametrize("size", [10, 1_000, 3_000, 10_000, 60_000])
def test_a_long_run_of_small_chunks_of_any_size_takes_few_deliveries(
    rig: LogRig, size: int
) -> None:
    log = rig.create()
    for number in range(60):
        rig.commit(log, bytes([number]) * size)

    chunks = rig.cursor(log).all_now()

    assert offsets_and_records(chunks) == [(n, bytes([n]) * size) for n in range(60)]
    assert len(chunks) <= 12


def test_an_entry_above_the_largest_frame_is_given_alone(make_rig: MakeRig) -> None:
    rig = make_rig(frame_bytes_max=4096)
    log = rig.create()
    commit_all(rig, log, [b"a"], [bytes(4096 - 17)], [b"b"])

    chunks = rig.cursor(log).all_now()

    assert [chunk.record_count for chunk in chunks] == [1, 1, 1]
    assert len(chunks[1].records()[0]) == 4096 - 17


entries = st.one_of(
    st.integers(0, 60).map(bytes),
    st.sampled_from([0, 1, 1_500, 3_900, 70_000]).map(bytes),
    st.integers(1, 3).map(lambda count: SubBatch.of([bytes(count)] * count)),
)


@given(
    history=st.lists(
        st.tuples(
            st.lists(entries, min_size=1, max_size=4),
            st.sampled_from([0, 0, 1, 600, 1_001]),
            st.sampled_from([False] * 6 + [True]),
        ),
        max_size=12,
    ),
    frame_bytes_max=st.sampled_from([4096, 1 << 20]),
    takes_regions=st.booleans(),
    is_reopened=st.booleans(),
)
@settings(max_examples=30)
def test_what_is_delivered_is_what_was_stored_record_by_record(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    history: list[tuple[list[Entry], int, bool]],
    frame_bytes_max: int,
    takes_regions: bool,
    is_reopened: bool,
) -> None:
    rig = LogRig(tmp_path_factory.mktemp("log"), frame_bytes_max=frame_bytes_max)
    try:
        log = rig.create()
        epoch = 1
        for chunk_entries, passed_ms, begins_epoch in history:
            rig.now_ms += passed_ms
            if begins_epoch:
                epoch += 1
                log = rig.open(epoch=epoch)
            rig.commit(log, *chunk_entries)
        if is_reopened:
            log = reopened(rig)
        stored = [chunk for chunk, _ in rig.chunks()]
        delivered = rig.cursor(log, takes_regions=takes_regions).all_now()
    finally:
        rig.close()

    assert offsets_and_records(delivered) == offsets_and_records(stored)
    by_id = {chunk.chunk_id: chunk for chunk in stored}
    for chunk in delivered:
        first = by_id[chunk.chunk_id]
        assert (chunk.epoch, chunk.timestamp_ms) == (first.epoch, first.timestamp_ms)
        parts = [
            each
            for each in stored
            if chunk.chunk_id <= each.chunk_id < chunk.chunk_id + chunk.record_count
        ]
        assert {each.epoch for each in parts} == {chunk.epoch}
        assert parts[-1].timestamp_ms - chunk.timestamp_ms <= 1_000
        if len(parts) > 1:
            assert chunk.record_count == chunk.entry_count
            assert 13 + 48 + len(chunk.data) <= frame_bytes_max
    for one, other in pairwise(delivered):
        assert one.chunk_id + one.record_count == other.chunk_id


# Waiting


def test_at_the_tail_there_is_nothing_until_a_commit_wakes_the_reader(rig: LogRig) -> None:
    log = rig.create()
    tap = rig.cursor(log)
    assert tap.next() is None
    assert tap.next() is None

    put(log, [b"x"])
    rig.turn_until_appended(log)
    assert tap.next() is None, "not committed"
    rig.settle(log)

    assert tap.wake_count == 1
    delivery = tap.next()
    assert delivery is not None
    assert (delivery.chunk_id, delivery.next_offset) == (0, 1)
    assert tap.next() is None


def test_a_closed_cursor_gives_nothing_and_wakes_nobody(rig: LogRig) -> None:
    log = rig.create()
    tap = rig.cursor(log)
    assert tap.next() is None
    tap.cursor.close()

    rig.commit(log, b"x")

    assert tap.wake_count == 0
    assert tap.next() is None


def test_a_cursor_closed_while_a_thread_reads_for_it_is_not_woken(rig: LogRig) -> None:
    rig.commit(rig.create(), b"x")
    tap = rig.cursor(reopened(rig))
    assert tap.next() is None
    tap.cursor.close()

    rig.loop.run_for(0.1)

    assert tap.wake_count == 0


def test_two_cursors_read_on_their_own(rig: LogRig) -> None:
    log = rig.create()
    commit_all(rig, log, [b"a"], [BATCH])

    one, other = rig.cursor(log), rig.cursor(log, len(rig.content()) - (56 + 21))

    assert [chunk.chunk_id for chunk in other.all_now()] == [1]
    assert [chunk.chunk_id for chunk in one.all_now()] == [0, 1]


def test_a_cursor_whose_chunks_were_given_up_goes_on_at_the_oldest(rig: LogRig) -> None:
    log = rig.create()
    commit_all(rig, log, *([[b"x"]] * 4))
    tap = rig.cursor(log)
    rig.do(rig.store.truncate_segment, NAMES.data_segment, 2 * 61)

    assert offsets_and_records(tap.all_now()) == [(2, b"x"), (3, b"x")]


@pytest.mark.parametrize("is_reopened", [False, True])
def test_a_reader_of_a_deleted_stream_gets_nothing_more(
    rig: LogRig,
    is_reopened: bool,  # noqa: FBT001 - a case of the test
) -> None:
    log = rig.create()
    rig.commit(log, b"x")
    if is_reopened:
        log = reopened(rig)
    tap = rig.cursor(log)
    rig.do(rig.store.delete_segment, NAMES.data_segment)

    assert tap.next() is None
    rig.loop.run_for(0.05)

    assert tap.next() is None
    assert isinstance(log.failure, NoSuchSegment)


# Regions of files


def test_a_large_chunk_is_given_as_a_region_of_its_file(rig: LogRig) -> None:
    log = rig.create()
    body = bytes(range(256)) * 400
    rig.commit(log, body)

    delivery = rig.cursor(log, takes_regions=True).await_next()

    assert delivery.region is not None
    assert delivery.region.size == delivery.size == 48 + 4 + len(body)
    assert delivery.head == b""
    assert chunk_of(bytes_of(delivery)).records() == [body]


def test_a_connection_that_takes_no_regions_gets_bytes(rig: LogRig) -> None:
    log = rig.create()
    body = bytes(range(256)) * 400
    rig.commit(log, body)

    delivery = rig.cursor(log, takes_regions=False).await_next()

    assert delivery.region is None
    assert chunk_of(delivery.head).records() == [body]


def test_bytes_of_a_chunk_above_the_largest_read_are_put_together(make_rig: MakeRig) -> None:
    rig = make_rig(frame_bytes_max=5 << 20)
    log = rig.create()
    body = bytes(range(256)) * (4 << 12)
    rig.commit(log, body)

    delivery = rig.cursor(log, takes_regions=False).await_next()

    assert chunk_of(delivery.head).records() == [body]


@pytest.mark.parametrize("takes_regions", [False, True])
def test_after_a_restart_everything_is_given_again(
    make_rig: MakeRig,
    monkeypatch: pytest.MonkeyPatch,
    takes_regions: bool,  # noqa: FBT001 - a case of the test
) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 10_000)
    monkeypatch.setattr(cursor_module, "_CHECK_BYTES", 30_000)
    rig = make_rig()
    log = rig.create()
    for number in range(40):
        rig.now_ms += 400
        rig.commit(log, bytes([number]) * (80_000 if number % 7 == 0 else 900), b"x")
    stored = offsets_and_records([chunk for chunk, _ in rig.chunks()])
    rig.close()

    rig = make_rig(rig.directory)
    log = rig.open()
    rig.commit(log, b"new")
    chunks = rig.cursor(log, takes_regions=takes_regions).all_now()

    assert offsets_and_records(chunks) == [*stored, (80, b"new")]


# Damage


FIVE = [bytes([number]) * 300 for number in range(5)]
LARGE = [bytes([number]) * 70_000 for number in range(5)]
EVENT_BYTES = 56 + 4 + 300


def damaged_rig(
    make_rig: MakeRig,
    *damage: tuple[int, int],
    bodies: Sequence[bytes] = FIVE,
    saves_snapshot: bool = False,
) -> LogRig:
    """A stream of five chunks, of which some bytes (place, value) were changed on the disk."""
    rig = make_rig()
    log = rig.create()
    commit_all(rig, log, *([body] for body in bodies))
    if saves_snapshot:
        rig.save(log)
    content = rig.content()
    # Closing makes a checkpoint, so the journal is not asked about these bytes again.
    rig.close()
    change_on_disk(rig, content, *damage)
    return make_rig(rig.directory)


@pytest.mark.parametrize("number", range(5))
def test_a_chunk_whose_data_was_damaged_is_not_delivered_and_the_others_are(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    rig = damaged_rig(make_rig, (number * EVENT_BYTES + 56 + 4 + 99, 0x55))
    with caplog.at_level(logging.ERROR):
        delivered = rig.cursor(rig.open()).all_now()

    expected = [(n, body) for n, body in enumerate(FIVE) if n != number]
    assert offsets_and_records(delivered) == expected
    (record,) = caplog.records
    message = record.getMessage()
    assert "damaged chunk is not delivered stream=orders" in message
    assert f"position={number * EVENT_BYTES} bytes={EVENT_BYTES}" in message


@pytest.mark.parametrize("number", [0, 2, 4])
@pytest.mark.parametrize(
    ("place", "value"), [(4, 0xFF), (4, 0x01), (6, 0x00), (8, 0), (44, 0x7F), (46, 0x02)]
)
def test_a_chunk_whose_sizes_were_damaged_holds_up_nobody(
    make_rig: MakeRig,
    caplog: pytest.LogCaptureFixture,
    number: int,
    place: int,
    value: int,
) -> None:
    # With a snapshot the opening looks at no chunk, so that the reader is the first to see it.
    rig = damaged_rig(make_rig, (number * EVENT_BYTES + place, value), saves_snapshot=True)
    log = rig.open()

    with caplog.at_level(logging.ERROR):
        tap = rig.cursor(log)
        rig.commit(log, b"new")
        delivered = offsets_and_records(tap.all_now())

    assert delivered[-1] == (5, b"new")
    assert set(delivered) <= {*enumerate(FIVE), (5, b"new")}
    assert "damaged chunk is not delivered" in caplog.text


@pytest.mark.parametrize("bad", [{1, 2}, {0, 1, 2}, {3, 4}, {0, 4}, {0, 1, 2, 3, 4}])
@pytest.mark.parametrize("bodies", [FIVE, LARGE], ids=["small", "large"])
def test_damaged_chunks_in_a_row_are_all_left_out_for_every_reader(
    make_rig: MakeRig, bodies: list[bytes], bad: set[int]
) -> None:
    event_bytes = 56 + 4 + len(bodies[0])
    damage = [(number * event_bytes + 56 + 99, 0x55) for number in bad]
    rig = damaged_rig(make_rig, *damage, bodies=bodies)
    log = rig.open()
    rig.commit(log, b"new")

    good = [(n, body) for n, body in enumerate(bodies) if n not in bad]
    for _ in range(3):
        delivered = rig.cursor(log, takes_regions=True).all_now()
        assert offsets_and_records(delivered) == [*good, (5, b"new")]


def test_damaged_chunks_that_were_found_ahead_of_a_slow_reader_are_left_out(
    make_rig: MakeRig,
) -> None:
    event_bytes = 56 + 4 + len(LARGE[0])
    damage = [(number * event_bytes + 56 + 99, 0x55) for number in (2, 3)]
    rig = damaged_rig(make_rig, *damage, bodies=LARGE)
    tap = rig.cursor(rig.open(), takes_regions=True)

    delivered: list[int] = []
    while len(delivered) < 3:
        delivery = tap.await_next()
        delivered.append(delivery.chunk_id)
        assert delivery.region is not None
        delivery.region.release()
        for _ in range(5):
            rig.loop.run_for(0.01)
            tap.cursor._check_ahead()

    assert delivered == [0, 1, 4]


@pytest.mark.parametrize(("place", "value"), [(4, 0xFF), (6, 0x00), (8, 0), (44, 0x7F), (70, 9)])
def test_damage_to_what_this_process_wrote_is_found_where_chunks_are_joined(
    rig: LogRig, caplog: pytest.LogCaptureFixture, place: int, value: int
) -> None:
    log = rig.create()
    commit_all(rig, log, *([body] for body in FIVE))
    change_on_disk(rig, rig.content(), (2 * EVENT_BYTES + place, value))

    tap = rig.cursor(log)
    with caplog.at_level(logging.ERROR):
        delivered = offsets_and_records(tap.all_now())
    rig.commit(log, b"new")

    assert delivered[:2] == [*enumerate(FIVE)][:2]
    assert set(delivered) <= {*enumerate(FIVE)} - {(2, FIVE[2])}
    assert "damaged chunk is not delivered" in caplog.text
    assert offsets_and_records(tap.all_now())[-1:] == [(5, b"new")]


def test_an_index_that_points_into_a_chunk_hides_nothing(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor_module, "_CHECK_BYTES", 1)
    rig = make_rig()
    commit_all(rig, rig.create(), *([body] for body in FIVE))
    log = rig.open()
    for place in (100, EVENT_BYTES + 7, 2 * EVENT_BYTES, 3 * EVENT_BYTES - 1):
        log.index.offsets.append(place)
        log.index.timestamps_ms.append(place)
        log.index.positions.append(place)
        log.index._verified.append(0)

    assert offsets_and_records(rig.cursor(log).all_now()) == [*enumerate(FIVE)]


# Checking


@pytest.mark.parametrize("size", [0, 5_000])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_verifying_finds_the_first_bad_chunk_whether_chunks_are_small_or_large(
    size: int, place: int
) -> None:
    events = [bytearray(event_of([bytes(size), b"x"], chunk_id=2 * n)) for n in range(3)]
    good = b"".join(events)
    assert verify(memoryview(good)) == (0, len(good))
    assert verify(memoryview(good[:-1])) == (0, 2 * len(events[0]))

    events[place][-1] ^= 1

    bad = b"".join(events)
    assert verify(memoryview(bad)) == (1, place * len(events[0]))

"""What a reader of a stream is given: joined, alone, checked, from memory or from a file."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.log.derived import index as index_module
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.log import StreamLog
from gateway.log.names import writer_of
from gateway.log.reading import cursor as cursor_module
from hutch.formats.chunk import event_number
from store.errors import NoSuchSegment
from tests.chunks import Chunk, Entry, SubBatch, chunk_of
from tests.rings import no_rings
from tests.unit.gateway.log.conftest import MakeRig, reopened_on
from tests.unit.gateway.log.log_rig import (
    FORGETFUL,
    NAMES,
    LogRig,
    OpenStore,
    bytes_of,
    event_of,
    passing_rig,
    put,
)

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
    *,
    history: list[tuple[list[Entry], int, bool]],
    frame_bytes_max: int,
    takes_regions: bool,
    is_reopened: bool,
) -> None:
    with passing_rig(frame_bytes_max=frame_bytes_max) as rig:
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


def test_at_the_tail_nothing_happens_without_a_commit(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"x")
    tap = rig.cursor(log)
    tap.all_now()
    assert tap.next() is None

    rig.loop.run_for(0.05)

    assert tap.wake_count == 0


def test_what_the_log_has_not_committed_is_not_given_though_the_store_has_it(
    rig: LogRig,
) -> None:
    log = rig.create()
    rig.commit(log, b"x")
    tap = rig.cursor(log)
    segment = NAMES.data_segment
    writer = rig.do(rig.store.open_writer, segment, writer_of(segment))
    rig.do(writer.append, event_of([b"y"], chunk_id=1), event_number(2, 1))
    assert log.reader.length > log.committed_length

    delivered = tap.all_now()

    assert offsets_and_records(delivered) == [(0, b"x")]
    assert tap.next() is None


def test_a_cursor_that_was_closed_at_once_gives_nothing(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"x")
    tap = rig.cursor(log)

    tap.cursor.close()

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

    one, other = rig.cursor(log), rig.cursor(log, len(rig.content()) - (60 + 21))

    assert [chunk.chunk_id for chunk in other.all_now()] == [1]
    assert [chunk.chunk_id for chunk in one.all_now()] == [0, 1]


def test_a_cursor_whose_chunks_were_given_up_goes_on_at_the_oldest(rig: LogRig) -> None:
    log = rig.create()
    commit_all(rig, log, *([[b"x"]] * 4))
    tap = rig.cursor(log)
    rig.do(rig.store.truncate_segment, NAMES.data_segment, 2 * 65)

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


# Stores that keep little in memory


@pytest.mark.parametrize("forgetful", FORGETFUL)
@pytest.mark.parametrize("size", [300, 5_000, 70_000, 3_000_000])
@pytest.mark.parametrize("takes_regions", [False, True])
@pytest.mark.parametrize("is_filtered", [False, True])
def test_what_a_store_gives_but_once_is_delivered(
    make_rig: MakeRig,
    forgetful: Callable[[], OpenStore],
    size: int,
    *,
    takes_regions: bool,
    is_filtered: bool,
) -> None:
    bodies = [bytes([number]) * size for number in range(6)]
    rig = reopened_on(make_rig, forgetful(), bodies)
    log = rig.open()
    wanted = SubscriptionFilter([b"none"], unfiltered=True) if is_filtered else None

    for _ in range(2):
        delivered = rig.cursor(log, takes_regions=takes_regions, wanted=wanted).all_now()
        assert offsets_and_records(delivered) == [*enumerate(bodies)]


# Company


def test_readers_that_wait_together_are_given_the_same_without_reading_again(rig: LogRig) -> None:
    log = rig.create()
    taps = [rig.cursor(log) for _ in range(3)]
    assert [tap.next() for tap in taps] == [None] * 3
    put(log, [b"a", b"b"])
    rig.loop.run_until(lambda: taps[0].wake_count > 0)

    first, second, third = (tap.next() for tap in taps)

    assert first is not None
    assert first is second is third
    assert chunk_of(bytes_of(first)).records() == [b"a", b"b"]
    rig.settle(log)
    rig.loop.run_for(0.01)
    assert log.readers.shared is None
    rig.commit(log, b"c")
    assert [[chunk.records() for chunk in tap.all_now()] for tap in taps] == [[[b"c"]]] * 3


def test_what_one_reader_was_given_is_not_given_where_another_stands(rig: LogRig) -> None:
    log = rig.create()
    early, late = rig.cursor(log), rig.cursor(log)
    assert [early.next(), late.next()] == [None, None]
    rig.commit(log, b"a")
    assert early.all_now()[0].records() == [b"a"]
    assert early.next() is None
    rig.commit(log, b"b")

    assert late.all_now()[0].records() == [b"a", b"b"]
    assert early.all_now()[0].records() == [b"b"]


def test_what_is_shared_passes_no_filter_unseen(rig: LogRig) -> None:
    log = rig.create()
    wanted = SubscriptionFilter({b"fig"}, unfiltered=False)
    everything, also, figs = rig.cursor(log), rig.cursor(log), rig.cursor(log, wanted=wanted)
    for tap in (everything, also, figs):
        assert tap.next() is None
    rig.commit(log, b"a", values={b"pear"})

    assert everything.all_now()[0].records() == [b"a"]
    assert figs.all_now() == []


def test_a_closed_cursor_goes_without_the_collector(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"a")
    with no_rings():
        tap = rig.cursor(log)
        tap.all_now()
        assert tap.next() is None
        tap.cursor.close()
        del tap

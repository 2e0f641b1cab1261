"""Every byte of a stream is guarded: flipped on the disk, nothing wrong is delivered or known."""

import zlib
from pathlib import Path

import pytest

from gateway.log.damage.errors import CorruptChunk
from gateway.log.damage.verification import verify
from gateway.log.derived import index as index_module
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.names import writer_of
from gateway.log.reading.locations import StartKind, locate
from gateway.log.reading.retention import RetentionLimits, find_cut
from gateway.log.recovery.log_opening import LogNames
from hutch.formats.chunk import event_number, seal_seed
from store.errors import CorruptSegment
from tests.chunks import SubBatch
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import (
    NAMES,
    SEED,
    LogRig,
    change_on_disk,
    event_of,
    file_with,
    put,
)
from tests.unit.gateway.log.reading.test_cursor import offsets_and_records
from tests.unit.gateway.log.recovery.test_log_opening_damage import append_raw

BODIES: list[list[bytes | SubBatch]] = [
    [b"one"],
    [SubBatch.of([b"two", b"three"]), b"four"],
    [b"five"],
    [b"six", b"seven"],
    [b"eight"],
]
REFERENCES = [b"", b"a", b"", b"bb", b""]
VALUES = [b"", b"", b"v", b"v", b""]
RECORDS = list(enumerate([b"one", b"two", b"three", b"four", b"five", b"six", b"seven", b"eight"]))
COUNTS = [1, 3, 1, 2, 1]
IDS = {b"a": 21, b"bb": 41}


def write_all(rig: LogRig) -> list[int]:
    """Write a chunk of each kind; gives where they begin, and where they end."""
    log = rig.create()
    places = [0]
    for number, body in enumerate(BODIES):
        values = [VALUES[number]] if VALUES[number] else ()
        put(log, body, reference=REFERENCES[number], first_id=number * 10 + 10, values=values)
        rig.settle(log)
        places.append(log.committed_length)
    assert log.sequences.all() == IDS
    return places


def flipped(content: bytes, place: int) -> tuple[int, int]:
    """Damage to one bit of a byte; another one for each place."""
    return place, content[place] ^ 1 << place % 8


def change(path: Path, damage: tuple[int, int]) -> None:
    """Write a byte of the segment's content, which begins with the file."""
    place, value = damage
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes([value]))


def of_chunk(number: int) -> list[tuple[int, bytes]]:
    first = sum(COUNTS[:number])
    return RECORDS[first : first + COUNTS[number]]


@pytest.mark.parametrize("number", range(len(BODIES)))
@pytest.mark.parametrize("is_saved", [False, True], ids=["no snapshot", "snapshot"])
def test_no_byte_of_a_chunk_changes_without_notice(
    rig: LogRig, caplog: pytest.LogCaptureFixture, number: int, *, is_saved: bool
) -> None:
    places = write_all(rig)
    if is_saved:
        rig.save(rig.open())
    content = rig.content()
    whole = [each for each in RECORDS if each not in of_chunk(number)]
    path = file_with(rig, content)
    for place in range(places[number], places[number + 1]):
        change(path, flipped(content, place))
        caplog.clear()
        log = rig.open()
        where = place - places[number]
        assert offsets_and_records(rig.cursor(log).all_now()) == whole, where
        is_told = f"stream=orders position={places[number]} " in caplog.text
        assert is_told or f"at position {places[number]}:" in caplog.text, where
        wanted = SubscriptionFilter([b"v"], unfiltered=False)
        filtered = offsets_and_records(rig.cursor(log, wanted=wanted).all_now())
        expected = [each for n in (2, 3) if n != number for each in of_chunk(n)]
        assert set(expected) <= set(filtered) <= set(whole), where
        is_unsure = bool(log.sequences.damaged) or log.read_only is not None
        assert is_unsure or log.sequences.all() == IDS, where
        if is_saved:
            assert not is_unsure, where
        if log.read_only is None:
            assert log.committed_next_offset == len(RECORDS), where
        for offset in range(len(RECORDS)):
            start = rig.run(locate(log, StartKind.OFFSET, offset))
            delivered = offsets_and_records(rig.cursor(log, start.position).all_now())
            assert whole_from(delivered, offset) == whole_from(whole, offset), where
        change(path, (place, content[place]))


def whole_from(records: list[tuple[int, bytes]], offset: int) -> list[tuple[int, bytes]]:
    return [each for each in records if each[0] >= offset]


@pytest.mark.parametrize("place", [4, 7, 8, 15, 39, 56, -1])
@pytest.mark.parametrize("number", [1, 4])
def test_a_log_that_was_stopped_and_damaged_goes_on_with_the_right_offset(
    make_rig: MakeRig, number: int, place: int
) -> None:
    rig = make_rig()
    places = write_all(rig)
    rig.save(rig.open())
    content = rig.content()
    rig.close()
    start = places[number + 1] if place < 0 else places[number]
    change_on_disk(rig, content, flipped(content, start + place))
    rig = make_rig(rig.directory)
    log = rig.open()
    rig.commit(log, b"nine")

    whole = [each for each in RECORDS if each not in of_chunk(number)]
    delivered = offsets_and_records(rig.cursor(log).all_now())
    assert delivered == [*whole, (len(RECORDS), b"nine")]


def test_named_publishers_are_known_where_the_damaged_chunk_cannot_have_had_one(
    make_rig: MakeRig,
) -> None:
    rig = make_rig()
    places = write_all(rig)
    content = rig.content()
    rig.close()
    change_on_disk(rig, content, flipped(content, places[4] + 35))
    log = make_rig(rig.directory).open()

    assert log.sequences.all() == IDS
    assert not log.sequences.damaged


# Chunks in the wrong place


def names_of(stream: str) -> LogNames:
    return LogNames(
        stream=stream,
        data_segment=f"rmq-.2f/_{stream}-1/0.#epoch.0",
        index_segment=f"rmq-.2f/_{stream}-1-index/0.#epoch.0",
        filter_segment=f"rmq-.2f/_{stream}-1-filters/0.#epoch.0",
    )


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("is_saved", [False, True], ids=["no snapshot", "snapshot"])
def test_chunks_of_another_stream_are_never_delivered(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, count: int, *, is_saved: bool
) -> None:
    rig = make_rig()
    paths: list[Path] = []
    for stream in ("orders", "others"):
        names = names_of(stream)
        monkeypatch.setattr("tests.unit.gateway.log.log_rig.NAMES", names)
        monkeypatch.setattr("tests.unit.gateway.log.log_rig.GENERATION", len(paths) + 1)
        log = rig.create()
        for number in range(count):
            rig.commit(log, b"%s %d" % (stream.encode(), number))
        if is_saved:
            rig.save(log)
        paths.append(file_with(rig, rig.content()))
    rig.close()
    one, other = (path.read_bytes() for path in paths)
    paths[0].write_bytes(other)
    paths[1].write_bytes(one)
    rig = make_rig(rig.directory)
    for generation, stream in enumerate(("orders", "others"), 1):
        names = names_of(stream)
        monkeypatch.setattr("tests.unit.gateway.log.log_rig.NAMES", names)
        monkeypatch.setattr("tests.unit.gateway.log.log_rig.GENERATION", generation)
        try:
            log = rig.open()
        except CorruptChunk:
            continue
        assert rig.cursor(log).all_now() == []


def test_a_chunk_where_another_of_its_stream_belongs_is_not_delivered(make_rig: MakeRig) -> None:
    rig = make_rig()
    log = rig.create()
    for number in range(5):
        rig.commit(log, b"%d" % number)
    content = rig.content()
    size = len(content) // 5
    rig.close()
    change_on_disk(rig, content, *((1 * size + n, content[3 * size + n]) for n in range(size)))
    rig = make_rig(rig.directory)
    log = rig.open()

    delivered = offsets_and_records(rig.cursor(log).all_now())
    assert delivered == [(n, b"%d" % n) for n in (0, 2, 3, 4)]
    assert log.sequences.damaged


@pytest.mark.parametrize("is_saved", [False, True], ids=["no snapshot", "snapshot"])
def test_offsets_never_go_back_where_parts_of_a_stream_were_swapped(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture, *, is_saved: bool
) -> None:
    rig = make_rig()
    log = rig.create()
    for number in range(40):
        rig.commit(log, b"%2d" % number)
    if is_saved:
        rig.save(log)
    content = rig.content()
    rig.close()
    half = len(content) // 2
    swapped = content[half:] + content[:half]
    change_on_disk(rig, content, *enumerate(swapped))
    rig = make_rig(rig.directory)
    log = rig.open()

    offsets = [offset for offset, _ in offsets_and_records(rig.cursor(log).all_now())]
    assert offsets == sorted(set(offsets))
    assert "not delivered stream=orders position=" in caplog.text
    assert caplog.text.count("\n") < 20


# The index


def test_no_byte_of_a_stored_index_changes_without_notice(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 150)
    write_all(rig)
    log = rig.open()
    rig.save(log)
    entries = list(zip(log.index.offsets, log.index.positions, strict=True))
    stored = rig.do(rig.store.read, NAMES.index_segment, 0, 1_000).data
    assert len(stored) == 28 * len(entries) > 28
    for place in range(len(stored)):
        path = file_with(rig, stored)
        change(path, flipped(stored, place))
        caplog.clear()
        log = rig.open()
        is_told = f"index is damaged and is rebuilt segment={NAMES.index_segment}"
        assert is_told in caplog.text, place
        assert list(zip(log.index.offsets, log.index.positions, strict=True)) == entries
        rig.save(log)
        stored = rig.do(rig.store.read, NAMES.index_segment, 0, 1_000).data
        entries = list(zip(log.index.offsets, log.index.positions, strict=True))


# Checking


@pytest.fixture(scope="module")
def run() -> tuple[bytes, list[int]]:
    """A run of sealed chunks with trailers, and where each begins and the last ends."""
    events = [
        event_of([b"%d" % n], chunk_id=n, trailer=b"\0\1p" + bytes(8), rest=b"rest")
        for n in range(4)
    ]
    return b"".join(events), [sum(map(len, events[:n])) for n in range(5)]


def test_no_byte_of_a_run_changes_without_notice(run: tuple[bytes, list[int]]) -> None:
    content, places = run
    assert verify(memoryview(content), SEED, 0)[:4] == (0, len(content), 0, 4)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        number = max(n for n in range(4) if places[n] <= place)
        verified = verify(memoryview(damaged), SEED, 0)
        assert verified.end == places[number], place
        assert verified.reason or place - places[number] in range(4, 8), place


def test_chunks_do_not_check_out_under_the_name_of_another_segment(
    run: tuple[bytes, list[int]],
) -> None:
    content, _ = run

    assert verify(memoryview(content), seal_seed("rmq-.2f/_others-1/0.#epoch.0")).end == 0


def test_a_seal_covers_name_header_trailer_and_filter_values() -> None:
    event = event_of([b"data"], trailer=b"\0\1p" + bytes(8), rest=b"rest")
    covered = NAMES.data_segment.encode() + event[8:56] + event[64:-4]

    assert event[-4:] == zlib.crc32(covered).to_bytes(4)
    assert seal_seed(NAMES.data_segment) == SEED


def test_what_the_log_writes_has_the_seal_of_its_segment(rig: LogRig) -> None:
    log = rig.create()
    put(log, [b"data"], reference=b"p", first_id=5, values=[b"v"])
    rig.settle(log)
    content = rig.content()

    covered = NAMES.data_segment.encode() + content[8:56] + content[64:-4]
    assert content[-4:] == zlib.crc32(covered).to_bytes(4)


@pytest.mark.parametrize("size", [10, 100_000], ids=["small", "large"])
def test_a_filter_leaves_out_no_chunk_whose_sizes_are_damaged(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    rig = make_rig()
    log = rig.create()
    for _ in range(3):
        rig.commit(log, bytes(size), values=[b"v"])
    content = rig.content()
    rig.close()
    start = len(content) // 3
    filters = start - 56 - 4 - size - 4
    # Its filter values are taken for a trailer, so that it seems to have none.
    change_on_disk(rig, content, (start + 51, filters))
    rig = make_rig(rig.directory)
    log = rig.open()
    caplog.clear()
    wanted = SubscriptionFilter([b"v"], unfiltered=False)
    delivered = rig.cursor(log, wanted=wanted).all_now()

    assert [offset for offset, _ in offsets_and_records(delivered)] == [0, 2]
    assert f"not delivered stream=orders position={start} bytes={start}" in caplog.text


def test_a_time_that_was_damaged_lets_nothing_seem_too_old(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 70)
    rig = make_rig()
    rig.do(rig.store.create_segment, NAMES.data_segment)
    events = [event_of([b"%d" % n], chunk_id=n, timestamp_ms=1_000 + n) for n in range(8)]
    for number, event in enumerate(events, 1):
        append_raw(rig, event, number)
    content = b"".join(events)
    rig.close()
    size = len(events[0])
    # Chunks at which units end, and one before: their times are zero.
    change_on_disk(rig, content, *((n * size + at, 0) for n in (3, 4) for at in range(16, 24)))
    rig = make_rig(rig.directory)
    log = rig.open()

    limits = RetentionLimits(max_bytes=None, max_age_ms=100, unit_bytes=2 * size)
    assert rig.run(find_cut(log, limits, 1_050)) is None


# What else must not be guessed


def test_a_snapshot_stays_where_the_header_of_its_last_chunk_is_damaged(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make_rig()
    places = write_all(rig)
    log = rig.open()
    rig.save(log)
    rig.commit(log, b"nine")
    content = rig.content()
    rig.close()
    change_on_disk(rig, content, flipped(content, places[4] + 39))
    rig = make_rig(rig.directory)
    log = rig.open()

    assert "does not fit" not in caplog.text
    assert log.sequences.all() == IDS
    assert not log.sequences.damaged
    delivered = offsets_and_records(rig.cursor(log).all_now())
    assert delivered == [*RECORDS[:-1], (8, b"nine")]


@pytest.mark.parametrize("has_removed", [False, True])
def test_publishers_are_unknown_where_a_snapshot_was_lost_and_chunks_were_removed(
    rig: LogRig, *, has_removed: bool
) -> None:
    places = write_all(rig)
    rig.save(rig.open())
    if has_removed:
        rig.do(rig.store.truncate_segment, NAMES.data_segment, places[2])
    rig.run(rig.tracking.forget(1))
    log = rig.open()

    assert bool(log.sequences.damaged) == has_removed
    if not has_removed:
        assert log.sequences.all() == IDS
    rig.commit(log, b"nine")
    rig.save(log)
    assert bool(rig.open().sequences.damaged) == has_removed


def test_the_first_offset_is_not_taken_from_a_damaged_header(make_rig: MakeRig) -> None:
    rig = make_rig()
    places = write_all(rig)
    rig.save(rig.open())
    rig.do(rig.store.truncate_segment, NAMES.data_segment, places[2])
    content = rig.content()
    rig.close()
    change_on_disk(rig, content, (32, 0x70))
    log = make_rig(rig.directory).open()

    assert 4 <= log.first_offset <= len(RECORDS)


def test_a_stream_whose_chunks_are_all_damaged_takes_no_more(make_rig: MakeRig) -> None:
    rig = make_rig()
    places = write_all(rig)
    content = rig.content()
    rig.close()
    change_on_disk(rig, content, *(flipped(content, place + 39) for place in places[:-1]))

    with pytest.raises(CorruptChunk):
        make_rig(rig.directory).open()


def test_the_last_chunks_damaged_leave_those_before_them(make_rig: MakeRig) -> None:
    rig = make_rig()
    places = write_all(rig)
    content = rig.content()
    rig.close()
    change_on_disk(rig, content, *(flipped(content, place + 39) for place in places[3:-1]))
    rig = make_rig(rig.directory)
    log = rig.open()

    assert offsets_and_records(rig.cursor(log).all_now()) == RECORDS[:5]
    assert isinstance(log.read_only, CorruptSegment)
    number = event_number(8, 1)
    assert rig.do(rig.store.get_attribute, NAMES.data_segment, writer_of(NAMES.data_segment)) == (
        number
    )

"""The check of a stream finds what is damaged, where it is, and nothing in what is sound."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.log.damage.flaws import Part
from gateway.log.derived import index as index_module
from gateway.log.derived.index import ENTRY_BYTES
from gateway.log.names import snapshot_key, writer_of
from gateway.log.recovery import chunk_walk as walking
from gateway.log.recovery import log_check as checking
from gateway.log.recovery.log_check import StreamCheck, chunks_from
from hutch.formats.chunk import (
    DATA_POSITION,
    EVENT_HEAD_BYTES,
    event_number,
    pack_trailer,
)
from store.api import AttributeUpdate, TableEntry
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import (
    GENERATION,
    NAMES,
    TABLE,
    LogRig,
    change_on_disk,
    event_of,
    put,
    write_history,
)
from tests.unit.gateway.log.unit_rig import append, blank

CHUNKS = 20


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many index entries and several slices without many bytes."""
    monkeypatch.setattr(index_module, "SPAN_BYTES", 200)
    for module in (checking, walking):
        monkeypatch.setattr(module, "SLICE_BYTES", 300)


@pytest.fixture
def rig(make_rig: MakeRig) -> LogRig:
    """A stream with chunks of several publishers, index entries, filter pages and a snapshot."""
    rig = make_rig()
    log = rig.create()
    for number in range(4):
        put(log, [b"%d" % number * 30], values=[b"v%d" % number])
        rig.settle(log)
    write_history(rig, log)
    rig.save(log)
    write_history(rig, log, 4)
    rig.save(log)
    return rig


def check(rig: LogRig) -> StreamCheck:
    return rig.run(StreamCheck(rig.store, NAMES, TABLE, GENERATION).run())


def place_of(rig: LogRig, number: int) -> int:
    """Where a chunk begins."""
    content, place = rig.content(), 0
    for _ in range(number):
        place += EVENT_HEAD_BYTES + int.from_bytes(content[place + 4 : place + 8])
    return place


def stored(rig: LogRig, segment: str) -> bytes:
    info = rig.do(rig.store.info, segment)
    data: bytes = rig.do(rig.store.read, segment, info.start, info.length).data
    return data


def test_a_sound_stream_has_no_flaws_and_every_record_is_counted(rig: LogRig) -> None:
    report = check(rig)

    chunks = [chunk for chunk, _ in rig.chunks()]
    assert report.flaws == []
    assert report.chunks == len(chunks) == CHUNKS
    assert report.records == chunks[-1].chunk_id + chunks[-1].record_count
    assert report.start == 0


def test_a_stream_that_was_truncated_is_sound(rig: LogRig) -> None:
    begin = place_of(rig, 9)
    rig.do(rig.store.truncate_segment, NAMES.data_segment, begin)

    report = check(rig)

    assert report.flaws == []
    assert report.start == begin


@pytest.mark.parametrize("number", [0, 7, CHUNKS - 1])
@pytest.mark.parametrize(
    "place",
    [
        pytest.param(4, id="size"),
        pytest.param(8, id="magic"),
        pytest.param(11, id="count of entries"),
        pytest.param(12, id="count of records"),
        pytest.param(39, id="offset"),
        pytest.param(DATA_POSITION + 2, id="data"),
    ],
)
def test_a_damaged_chunk_is_found_where_it_is_and_all_others_are_sound(
    rig: LogRig, number: int, place: int
) -> None:
    content, begin = rig.content(), place_of(rig, number)
    count = len(rig.chunks())
    change_on_disk(rig, content, (begin + place, content[begin + place] ^ 1))

    report = check(rig)

    found = [flaw for flaw in report.flaws if flaw.part is Part.CHUNKS]
    assert found[0].position == begin
    assert found[0].segment == NAMES.data_segment
    assert report.chunks == count - 1


def test_chunks_that_changed_places_are_found(rig: LogRig) -> None:
    content = rig.content()
    one, two, end = (place_of(rig, number) for number in (1, 2, 3))
    assert two - one == end - two
    swapped = content[two:end] + content[one:two]
    change_on_disk(rig, content, *((one + at, byte) for at, byte in enumerate(swapped)))

    flaws = [flaw for flaw in check(rig).flaws if flaw.part is Part.CHUNKS]

    assert flaws[0].position == one
    assert "offset does not follow" in flaws[0].what


def test_damaged_publishing_ids_are_found(rig: LogRig) -> None:
    chunks = rig.chunks()
    number = next(n for n, (chunk, _) in enumerate(chunks) if chunk.trailer_size)
    place = place_of(rig, number) + DATA_POSITION + len(chunks[number][0].data)
    content = rig.content()
    change_on_disk(rig, content, (place + 1, content[place + 1] ^ 1))

    assert Part.CHUNKS in {flaw.part for flaw in check(rig).flaws}


def test_a_damaged_index_entry_is_found_where_it_is(rig: LogRig) -> None:
    index = stored(rig, NAMES.index_segment)
    assert len(index) > 6 * ENTRY_BYTES
    change_on_disk(rig, index, (5 * ENTRY_BYTES + 7, index[5 * ENTRY_BYTES + 7] ^ 1))

    (flaw,) = check(rig).flaws

    assert (flaw.part, flaw.segment) == (Part.INDEX, NAMES.index_segment)
    assert flaw.position == 5 * ENTRY_BYTES


def test_a_damaged_filter_page_is_found(rig: LogRig) -> None:
    pages = stored(rig, NAMES.filter_segment)
    change_on_disk(rig, pages, (50, pages[50] ^ 1))

    (flaw,) = check(rig).flaws

    assert (flaw.part, flaw.segment, flaw.position) == (Part.FILTERS, NAMES.filter_segment, 0)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        pytest.param(0, lambda row: row[:-1], id="head cut"),
        pytest.param(0, lambda row: row[:-1] + b"\x03", id="parts missing"),
        pytest.param(0, lambda row: row[:15] + bytes([row[15] ^ 1]) + row[16:], id="next offset"),
        pytest.param(1, lambda row: row[:-1], id="ids cut"),
        pytest.param(1, lambda row: row[:-1] + bytes([row[-1] ^ 1]), id="an id"),
    ],
)
def test_a_snapshot_that_is_damaged_or_not_that_of_the_chunks_is_found(
    rig: LogRig, part: int, change: Callable[[bytes], bytes]
) -> None:
    key = snapshot_key(GENERATION, part)
    (row,) = rig.do(rig.store.read_table, TABLE, [key])
    rows = rig.do(rig.store.read_table, TABLE, [snapshot_key(GENERATION, n) for n in range(2)])
    changed = {entry.key: entry.value for entry in rows} | {key: change(row.value)}
    rig.do(rig.store.update_table, TABLE, [TableEntry(*each) for each in changed.items()])

    (flaw,) = check(rig).flaws

    assert (flaw.part, flaw.segment) == (Part.SNAPSHOT, TABLE)


def test_a_snapshot_of_which_an_older_part_has_come_back_is_found(rig: LogRig) -> None:
    key = snapshot_key(GENERATION, 1)
    (row,) = rig.do(rig.store.read_table, TABLE, [key])
    older = TableEntry(key, row.value[:-1] + bytes([row.value[-1] - 1]))
    rig.do(rig.store.update_table, TABLE, [older])

    (flaw,) = check(rig).flaws

    assert (flaw.part, flaw.what) == (Part.SNAPSHOT, "its parts are not those of its head")


def test_a_snapshot_with_other_publishing_ids_than_the_chunks_is_found(rig: LogRig) -> None:
    snapshot = rig.run(rig.tracking.snapshots.load(GENERATION))
    assert snapshot is not None
    (part,) = snapshot.parts
    wrong = replace(snapshot, parts=[part[:-1] + bytes([part[-1] + 1])])
    rig.run(rig.tracking.snapshots.replace(GENERATION, wrong))

    (flaw,) = check(rig).flaws

    assert flaw.part is Part.SNAPSHOT
    assert "publishing id" in flaw.what


def test_a_snapshot_that_is_lost_is_missed_only_where_chunks_were_removed(rig: LogRig) -> None:
    rig.run(rig.tracking.snapshots.replace(GENERATION, None))
    assert check(rig).flaws == []

    rig.do(rig.store.truncate_segment, NAMES.data_segment, place_of(rig, 9))
    (flaw,) = check(rig).flaws

    assert flaw.part is Part.SNAPSHOT


def test_a_writers_number_that_is_not_that_of_the_chunks_is_found(rig: LogRig) -> None:
    writer = writer_of(NAMES.data_segment)
    update = AttributeUpdate(writer, event_number(9999, 1))
    rig.do(rig.store.update_attributes, NAMES.data_segment, [update])

    flaws = check(rig).flaws

    assert "next offset" in flaws[-1].what
    assert flaws[-1].part is Part.CHUNKS


def test_the_writers_number_counts_also_behind_bytes_that_are_no_chunk(rig: LogRig) -> None:
    content, begin, following = rig.content(), place_of(rig, 7), place_of(rig, 8)
    change_on_disk(rig, content, *((begin + at, 0) for at in range(DATA_POSITION)))
    writer = writer_of(NAMES.data_segment)
    update = AttributeUpdate(writer, event_number(9999, 1))
    rig.do(rig.store.update_attributes, NAMES.data_segment, [update])

    flaws = check(rig).flaws_of(Part.CHUNKS)

    assert [flaw.position for flaw in flaws] == [begin, len(content)]
    size = following - begin
    assert flaws[0].what.startswith(
        f"no chunk begins where one should, no chunk is in {size} bytes"
    )


def test_chunks_are_given_with_their_places_and_bytes(rig: LogRig) -> None:
    content, position, found = rig.content(), 0, b""
    while part := list(rig.run(chunks_from(rig.store, NAMES.data_segment, position))):
        for at, chunk, data in part:
            assert at == len(found)
            assert chunk[1] == len(data)
            found += data
        position = len(found)

    assert found == content


# Units


def test_a_stream_with_units_is_sound(rig: LogRig) -> None:
    log = rig.open()
    append(rig, log, [blank(b"a"), blank(b"b", values=[b"v"])], 3)
    rig.save(log)
    append(rig, log, [blank(b"c")], 4)

    report = check(rig)

    assert report.flaws == []
    assert report.chunks == CHUNKS + 3


def test_a_mark_that_the_snapshot_has_not_is_a_flaw(rig: LogRig) -> None:
    log = rig.open()
    append(rig, log, [blank(b"a")], 3)
    log.sequences.mark = 2
    rig.save(log)

    (flaw,) = check(rig).flaws

    assert flaw.part is Part.SNAPSHOT
    assert "the mark of the last unit is not that of the chunks" in flaw.what


@pytest.mark.parametrize("value", [0, 1 << 63])
def test_an_empty_reference_without_a_mark_is_a_flaw(make_rig: MakeRig, value: int) -> None:
    rig = make_rig()
    rig.do(rig.store.create_segment, NAMES.data_segment)
    event = event_of([b"a"], trailer=pack_trailer({b"": value}))
    writer = rig.do(rig.store.open_writer, NAMES.data_segment, writer_of(NAMES.data_segment))
    rig.do(writer.append, event, event_number(1, 1))

    (flaw,) = check(rig).flaws

    assert "the publishing ids behind a chunk are damaged" in flaw.what

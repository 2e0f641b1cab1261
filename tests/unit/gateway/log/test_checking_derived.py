"""Stored index, snapshot and filter pages are compared with the chunks that they describe."""

from dataclasses import replace

import pytest

from gateway.log import checking_derived
from gateway.log.checking import chunks_from
from gateway.log.checking_derived import (
    Flaw,
    IndexCheck,
    Part,
    SnapshotCheck,
    check_filter_pages,
    load_snapshot,
)
from gateway.log.index import ENTRY_BYTES, _pack
from gateway.log.log import StreamLog
from gateway.log.names import snapshot_key
from gateway.log.snapshot import Snapshot
from gateway.log.verifying import Chunk
from hutch.formats.chunk import seal_seed
from store.api import Reader, TableEntry
from tests.unit.gateway.log.log_rig import GENERATION, NAMES, TABLE, LogRig, put

CHUNKS = 4
SECOND = 1
"""The chunk that the tests are about."""


@pytest.fixture
def log(rig: LogRig) -> StreamLog:
    """A log of a few chunks, each with filter values and its own time, and its snapshot."""
    log = rig.create()
    for number in range(CHUNKS):
        rig.now_ms += 1
        put(log, [bytes(50_000)], values=[b"v%d" % number])
        rig.settle(log)
    rig.save(log)
    return log


def chunks_of(rig: LogRig) -> list[Chunk]:
    found = [chunk for _, chunk, _ in rig.run(chunks_from(rig.store, NAMES.data_segment, 0))]
    assert len(found) == CHUNKS
    return found


def reader_of(rig: LogRig) -> Reader:
    reader: Reader = rig.do(rig.store.open_reader, NAMES.data_segment)
    return reader


# The index


Entry = tuple[int, int, int]
"""Position, offset, timestamp."""


def entries_of(rig: LogRig) -> list[Entry]:
    """The entries of an index that has one for each chunk."""
    found, position = [], 0
    for chunk in chunks_of(rig):
        found.append((position, chunk[2], chunk[4]))
        position += chunk[1]
    return found


def flaws_of_index(rig: LogRig, entries: list[Entry]) -> list[Flaw]:
    """Compare an index of some entries with all chunks."""
    seed = seal_seed(NAMES.index_segment)
    stored = b"".join(_pack(offset, time, position, seed) for position, offset, time in entries)
    flaws: list[Flaw] = []
    check = IndexCheck(flaws, NAMES.index_segment, (0, stored), reader_of(rig))
    check.compare(0, chunks_of(rig))
    check.end()
    return flaws


@pytest.mark.usefixtures("log")
def test_an_index_with_an_entry_for_each_chunk_or_for_some_is_sound(rig: LogRig) -> None:
    entries = entries_of(rig)

    assert flaws_of_index(rig, entries) == []
    assert flaws_of_index(rig, entries[::2]) == []
    assert flaws_of_index(rig, []) == []


@pytest.mark.usefixtures("log")
def test_an_entry_that_is_stored_twice_or_lies_behind_the_end_is_no_damage(rig: LogRig) -> None:
    entries = entries_of(rig)
    end = reader_of(rig).length

    assert flaws_of_index(rig, [*entries[:2], *entries]) == []
    assert flaws_of_index(rig, [*entries, (end, CHUNKS, 5_000)]) == []


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_an_entry_that_points_into_a_chunk_is_found(rig: LogRig, chunk: int) -> None:
    entries = entries_of(rig)
    position, offset, time = entries[chunk]
    entries[chunk] = (position + 1, offset, time)

    (flaw,) = flaws_of_index(rig, entries)

    assert flaw.part is Part.INDEX
    assert flaw.what == f"an entry points to byte {position + 1}, where no chunk begins"
    assert flaw.position == chunk * ENTRY_BYTES


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(("offset_by", "time_by"), [(1, 0), (0, 1)])
def test_an_entry_with_another_offset_or_time_than_its_chunk_is_found(
    rig: LogRig, offset_by: int, time_by: int
) -> None:
    entries = entries_of(rig)
    position, offset, time = entries[SECOND]
    entries[SECOND] = (position, offset + offset_by, time + time_by)

    (flaw,) = flaws_of_index(rig, entries)

    assert flaw.what == f"the entry of the chunk at byte {position} has not its offset and time"


@pytest.mark.usefixtures("log")
def test_entries_of_damaged_chunks_are_passed_over(rig: LogRig) -> None:
    (first, *_), chunks = entries_of(rig), chunks_of(rig)
    seed = seal_seed(NAMES.index_segment)
    stored = _pack(first[1], first[2], first[0], seed) + _pack(0, 0, 7, seed)
    flaws: list[Flaw] = []
    check = IndexCheck(flaws, NAMES.index_segment, (0, stored), reader_of(rig))

    check.skip(chunks[0][1])
    check.compare(chunks[0][1], chunks[1:])
    check.end()

    assert flaws == []


# The snapshot


def flaws_of_snapshot(rig: LogRig, stored: Snapshot | str | None) -> list[str]:
    flaws: list[Flaw] = []
    check = SnapshotCheck(flaws, TABLE, stored, reader_of(rig))
    check.compare(0, chunks_of(rig) if not reader_of(rig).start else [], [])
    assert all((flaw.part, flaw.segment) == (Part.SNAPSHOT, TABLE) for flaw in flaws)
    return [flaw.what for flaw in flaws]


def loaded(rig: LogRig) -> Snapshot | str | None:
    return rig.run(load_snapshot(rig.store, TABLE, GENERATION))


def stored_snapshot(rig: LogRig) -> Snapshot:
    snapshot = loaded(rig)
    assert isinstance(snapshot, Snapshot)
    return snapshot


@pytest.mark.usefixtures("log")
def test_a_snapshot_of_the_last_chunk_is_sound(rig: LogRig) -> None:
    assert flaws_of_snapshot(rig, stored_snapshot(rig)) == []


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    "name", ["position", "next_offset", "last_chunk_position", "last_chunk_id", "timestamp_ms"]
)
def test_a_snapshot_that_says_anything_else_of_the_chunk_is_found(rig: LogRig, name: str) -> None:
    snapshot = stored_snapshot(rig)
    wrong = replace(snapshot, **{name: getattr(snapshot, name) - 1})

    (what,) = flaws_of_snapshot(rig, wrong)

    assert what.startswith("it does not describe the chunk at byte ")


@pytest.mark.usefixtures("log")
def test_damaged_publishing_ids_in_a_snapshot_are_found(rig: LogRig) -> None:
    snapshot = replace(stored_snapshot(rig), parts=[b"\xff"])

    assert "publishing ids in it are damaged or were lost" in flaws_of_snapshot(rig, snapshot)


def test_a_snapshot_that_is_older_than_a_removal_is_found(rig: LogRig, log: StreamLog) -> None:
    snapshot = stored_snapshot(rig)
    removed_to = chunks_of(rig)[0][1]
    rig.do(rig.store.truncate_segment, NAMES.data_segment, removed_to)

    assert flaws_of_snapshot(rig, snapshot) == []
    assert flaws_of_snapshot(rig, replace(snapshot, position=removed_to)) == []
    assert flaws_of_snapshot(rig, replace(snapshot, position=removed_to - 1)) == [
        "it is older than the removal of chunks that it knows nothing of"
    ]
    assert log.failure is None


@pytest.mark.usefixtures("log")
def test_what_is_wrong_with_a_stored_snapshot_is_said(rig: LogRig) -> None:
    heads = [TableEntry(snapshot_key(GENERATION, 0), b"\xff")]
    rig.do(rig.store.update_table, TABLE, heads)
    assert loaded(rig) == "its head is damaged"

    rig.do(rig.store.update_table, TABLE, [heads[0]._replace(value=b"")])
    assert loaded(rig) is None


@pytest.mark.usefixtures("log")
def test_a_part_of_a_snapshot_that_is_missing_is_found(rig: LogRig) -> None:
    snapshot = stored_snapshot(rig)
    head = replace(snapshot, parts=[*snapshot.parts, b"one more"]).pack_head()
    rig.do(rig.store.update_table, TABLE, [TableEntry(snapshot_key(GENERATION, 0), head)])

    assert loaded(rig) == "some of its parts are missing"


def test_a_table_that_is_missing_or_none_has_no_snapshot(rig: LogRig) -> None:
    assert rig.run(load_snapshot(rig.store, "nowhere", GENERATION)) is None

    rig.create()
    said = rig.run(load_snapshot(rig.store, NAMES.data_segment, GENERATION))
    assert isinstance(said, str)
    assert said.startswith("it cannot be read: ")


# Filter pages


def flaws_of_filters(rig: LogRig, segment: str = NAMES.filter_segment) -> list[Flaw]:
    flaws: list[Flaw] = []
    rig.run(check_filter_pages(rig.store, segment, flaws))
    return flaws


def test_pages_that_do_not_fit_into_one_piece_are_sound(
    rig: LogRig, log: StreamLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(log, [bytes(50_000)], values=[b"more"])
    rig.settle(log)
    rig.save(log)  # a second page
    length = rig.do(rig.store.info, NAMES.filter_segment).length
    monkeypatch.setattr(checking_derived, "_PAGE_BYTES_MAX", length - 1)

    assert flaws_of_filters(rig) == []


def test_a_stream_without_pages_is_sound_and_what_is_no_segment_is_said(rig: LogRig) -> None:
    assert flaws_of_filters(rig) == []

    rig.do(rig.store.create_table, "pages")
    (flaw,) = flaws_of_filters(rig, "pages")
    assert flaw.part is Part.FILTERS
    assert flaw.what.startswith("they cannot be read: ")

"""Stored index, snapshot and filter pages are compared with the chunks that they describe."""

import os
from contextlib import suppress
from dataclasses import replace

import pytest

from gateway.log.damage.flaws import Flaw, Part
from gateway.log.damage.verification import Chunk
from gateway.log.derived import filter_pages
from gateway.log.derived.index import ENTRY_BYTES, _pack
from gateway.log.derived.snapshot import Snapshot
from gateway.log.kernel.chunks import walk_chunks
from gateway.log.names import snapshot_key, writer_of
from gateway.log.recovery.log_check import StreamCheck
from hutch.formats.chunk import DATA_POSITION, seal_seed
from store.api import TableEntry
from store.errors import NoSuchSegment
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import (
    GENERATION,
    NAMES,
    TABLE,
    LogRig,
    change_on_disk,
    put,
)
from tests.unit.gateway.log.recovery.test_log_check import check, stored

FEW = 4


# The index


Entry = tuple[int, int, int]
"""Position, offset, timestamp."""


@pytest.fixture
def few(make_rig: MakeRig) -> LogRig:
    """A stream of a few chunks, each with filter values and its own time, and its snapshot."""
    rig = make_rig()
    log = rig.create()
    for number in range(FEW):
        rig.now_ms += 1
        put(log, [bytes(500)], values=[b"v%d" % number])
        rig.settle(log)
    rig.save(log)
    return rig


def entries_of(rig: LogRig) -> list[Entry]:
    """The entries of an index that has one for each chunk."""
    found, position = [], 0
    for chunk in chunks_of(rig):
        found.append((position, chunk[2], chunk[4]))
        position += chunk[1]
    return found


def chunks_of(rig: LogRig) -> list[Chunk]:
    _, _, chunks = walk_chunks(rig.content(), 0, len(rig.content()))
    assert len(chunks) == FEW
    return chunks


def flaws_of_index(rig: LogRig, entries: list[Entry]) -> list[Flaw]:
    """Compare an index of some entries with all chunks."""
    seed = seal_seed(NAMES.index_segment)
    stored = b"".join(_pack(offset, time, position, seed) for position, offset, time in entries)
    with suppress(NoSuchSegment):
        rig.do(rig.store.delete_segment, NAMES.index_segment)
    rig.do(rig.store.create_segment, NAMES.index_segment)
    writer = rig.do(rig.store.open_writer, NAMES.index_segment, writer_of(NAMES.index_segment))
    rig.do(writer.append, stored, 1)
    return check(rig).flaws


def test_an_index_with_an_entry_for_each_chunk_or_for_some_is_sound(few: LogRig) -> None:
    entries = entries_of(few)

    assert flaws_of_index(few, entries) == []
    assert flaws_of_index(few, entries[::2]) == []
    assert flaws_of_index(few, []) == []


def test_an_entry_that_is_stored_twice_or_lies_behind_the_end_is_no_damage(few: LogRig) -> None:
    entries = entries_of(few)
    end = len(few.content())

    assert flaws_of_index(few, [*entries[:2], *entries]) == []
    assert flaws_of_index(few, [*entries, (end, FEW, 5_000)]) == []


@pytest.mark.parametrize("chunk", range(FEW))
def test_an_entry_that_points_into_a_chunk_is_found(few: LogRig, chunk: int) -> None:
    entries = entries_of(few)
    position, offset, time = entries[chunk]
    entries[chunk] = (position + 1, offset, time)

    (flaw,) = flaws_of_index(few, entries)

    assert flaw.part is Part.INDEX
    assert flaw.what == f"an entry points to byte {position + 1}, where no chunk begins"
    assert flaw.position == chunk * ENTRY_BYTES


@pytest.mark.parametrize(("offset_by", "time_by"), [(1, 0), (0, 1)])
def test_an_entry_with_another_offset_or_time_than_its_chunk_is_found(
    few: LogRig, offset_by: int, time_by: int
) -> None:
    entries = entries_of(few)
    position, offset, time = entries[1]
    entries[1] = (position, offset + offset_by, time + time_by)

    (flaw,) = flaws_of_index(few, entries)

    assert flaw.what == f"the entry of the chunk at byte {position} has not its offset and time"
    assert flaw.position == ENTRY_BYTES


def test_entries_of_damaged_chunks_are_passed_over(few: LogRig) -> None:
    entries, content = entries_of(few), few.content()
    change_on_disk(few, content, (DATA_POSITION + 2, content[DATA_POSITION + 2] ^ 1))

    flaws = flaws_of_index(few, [entries[0], (7, 0, 0), *entries[1:]])

    assert {flaw.part for flaw in flaws} == {Part.CHUNKS}


def test_an_index_that_cannot_be_read_is_a_flaw(few: LogRig) -> None:
    index = stored(few, NAMES.index_segment)
    (path,) = [
        each for each in (few.directory / "data").iterdir() if each.read_bytes().startswith(index)
    ]
    os.truncate(path, ENTRY_BYTES - 1)

    (flaw,) = check(few).flaws

    assert flaw.part is Part.INDEX
    assert flaw.what.startswith("it cannot be read: ")


# The snapshot


def flaws_of_snapshot(rig: LogRig, snapshot: Snapshot) -> list[str]:
    rig.run(rig.tracking.snapshots.replace(GENERATION, snapshot))
    flaws = check(rig).flaws_of(Part.SNAPSHOT)
    assert {flaw.segment for flaw in flaws} <= {TABLE}
    return [flaw.what for flaw in flaws]


def stored_snapshot(rig: LogRig) -> Snapshot:
    snapshot = rig.run(rig.tracking.snapshots.load(GENERATION))
    assert snapshot is not None
    return snapshot


@pytest.mark.parametrize(
    "name", ["position", "next_offset", "last_chunk_position", "last_chunk_id", "timestamp_ms"]
)
def test_a_snapshot_that_says_anything_else_of_the_chunk_is_found(few: LogRig, name: str) -> None:
    snapshot = stored_snapshot(few)
    wrong = replace(snapshot, **{name: getattr(snapshot, name) - 1})

    (what,) = flaws_of_snapshot(few, wrong)

    assert what.startswith("it does not describe the chunk at byte ")


def test_a_snapshot_of_damaged_chunks_or_of_lost_ones_is_no_damage(few: LogRig) -> None:
    snapshot, content = stored_snapshot(few), few.content()
    longer = replace(snapshot, position=snapshot.position + 1)
    assert flaws_of_snapshot(few, longer) == []

    place = entries_of(few)[-1][0]
    change_on_disk(few, content, (place + 12, content[place + 12] ^ 1))

    assert flaws_of_snapshot(few, snapshot) == []
    assert flaws_of_snapshot(few, replace(snapshot, next_offset=99)) == []


def test_damaged_publishing_ids_in_a_snapshot_are_found(few: LogRig) -> None:
    snapshot = replace(stored_snapshot(few), parts=[b"\xff"])

    assert flaws_of_snapshot(few, snapshot) == ["publishing ids in it are damaged or were lost"]


def test_a_snapshot_that_is_older_than_a_removal_is_found(few: LogRig) -> None:
    snapshot = stored_snapshot(few)
    removed_to = entries_of(few)[1][0]
    few.do(few.store.truncate_segment, NAMES.data_segment, removed_to)

    assert flaws_of_snapshot(few, snapshot) == []
    assert flaws_of_snapshot(few, replace(snapshot, position=removed_to)) == []
    assert flaws_of_snapshot(few, replace(snapshot, position=removed_to - 1)) == [
        "it is older than the removal of chunks that it knows nothing of"
    ]


def test_what_is_wrong_with_a_stored_snapshot_is_said(few: LogRig) -> None:
    rows = [TableEntry(snapshot_key(GENERATION, 0), b"\xff")]
    few.do(few.store.update_table, TABLE, rows)
    assert [flaw.what for flaw in check(few).flaws] == ["its head is damaged"]

    few.do(few.store.update_table, TABLE, [rows[0]._replace(value=b"")])
    assert check(few).flaws == []


def test_a_table_that_is_missing_or_none_has_no_snapshot(few: LogRig) -> None:
    assert few.run(StreamCheck(few.store, NAMES, "nowhere", GENERATION).run()).flaws == []

    segment = NAMES.data_segment
    (flaw,) = few.run(StreamCheck(few.store, NAMES, segment, GENERATION).run()).flaws
    assert (flaw.part, flaw.segment) == (Part.SNAPSHOT, segment)
    assert flaw.what.startswith("it cannot be read: ")


# Filter pages


def test_pages_that_do_not_fit_into_one_piece_are_sound(
    few: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = few.open()
    put(log, [bytes(500)], values=[b"more"])
    few.settle(log)
    few.save(log)  # a second page
    length = few.do(few.store.info, NAMES.filter_segment).length
    monkeypatch.setattr(filter_pages, "_LOAD_BYTES", length - 1)

    assert check(few).flaws == []


def test_a_stream_without_pages_is_sound_and_what_is_no_segment_is_said(few: LogRig) -> None:
    few.do(few.store.delete_segment, NAMES.filter_segment)
    assert check(few).flaws == []

    few.do(few.store.create_table, NAMES.filter_segment)
    (flaw,) = check(few).flaws
    assert flaw.part is Part.FILTERS
    assert flaw.what.startswith("they cannot be read: ")


def test_a_page_whose_head_hides_the_next_one_is_found(few: LogRig) -> None:
    """Its end reaches behind the pages after it, and a reader would leave those out."""
    pages = stored(few, NAMES.filter_segment)
    change_on_disk(few, pages, (14, pages[14] ^ 1))

    (flaw,) = check(few).flaws

    assert (flaw.part, flaw.position) == (Part.FILTERS, 0)

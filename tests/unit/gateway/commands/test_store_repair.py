"""`hutch store check --repair`: what is mended, what is left, and that no record is lost by it."""

import os
from pathlib import Path

import pytest

from gateway.broker.streams.catalogue import StreamEntry, key_of
from gateway.log.names import index_segment, meta_table, snapshot_key, tracking_table
from store.api import TableEntry
from tests.chunks import Entry
from tests.unit.gateway.commands.store_rig import Stored
from tests.unit.store.local.test_store_check import file_with

CHUNKS: list[list[Entry]] = [[b"first", b"more"], [b"second"], [b"third"]]
BODIES = [b"first", b"more", b"second", b"third"]
TABLE, TRACKING = meta_table("/"), tracking_table("/")


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored(tmp_path / "data")


@pytest.fixture
def segment(stored: Stored) -> str:
    """The chunks of the stream `orders`."""
    return stored.publish("orders", *CHUNKS)


def generation_of(segment: str) -> int:
    return int(segment.partition("/0.")[0].rpartition("-")[2])


def put(stored: Stored, table: str, key: bytes, value: bytes) -> None:
    """Replace an entry behind the broker's back."""
    with stored.store() as checked:
        checked.ask(checked.store.update_table, table, [TableEntry(key, value)])


def remove_entry(stored: Stored, name: str) -> None:
    """Take a stream out of the catalogue; its segments stay."""
    with stored.store() as checked:
        rows = [TableEntry(key_of(name), b"")]
        checked.ask(checked.store.for_removal.remove_keys, TABLE, rows)


def repaired(stored: Stored) -> tuple[list[str], list[str]]:
    """Return the lines of what a repair has mended and has left; its exit code says if all is."""
    assert stored.ask("check")[0] == 1
    code, lines = stored.ask("check", "--repair")
    mended = [line.removeprefix("mended: ") for line in lines if line.startswith("mended: ")]
    left = [line.removeprefix("left: ") for line in lines if line.startswith("left: ")]
    assert code == bool(left), lines
    return mended, left


def is_sound(stored: Stored) -> bool:
    code, lines = stored.ask("check")
    return code == 0 and lines[-1].endswith(": all is sound")


@pytest.mark.usefixtures("segment")
def test_a_file_without_an_owner_is_set_aside(stored: Stored) -> None:
    journal = max((stored.directory / "journal").iterdir(), key=lambda path: int(path.name))
    os.truncate(journal, 0)

    mended, left = repaired(stored)

    assert (mended, left) == (
        ["files of the journal and without an owner are set aside"],
        [],
    )
    assert is_sound(stored)
    assert stored.read("orders", 4) == BODIES


def test_an_index_that_is_not_all_there_is_dropped_and_made_anew(
    stored: Stored, segment: str
) -> None:
    index = index_segment("/", "orders", generation_of(segment))
    with stored.store() as checked:
        shape = checked.shape_of(index)
    assert shape is not None
    for path, _ in shape.files:
        os.truncate(stored.directory / path, 0)

    mended, left = repaired(stored)

    what = f"{index} is dropped, the server makes it anew from the chunks"
    assert (mended, left) == ([what], [])
    assert is_sound(stored)
    assert stored.read("orders", 4) == BODIES


def test_a_damaged_snapshot_is_dropped_where_all_chunks_are_there(
    stored: Stored, segment: str
) -> None:
    put(stored, TRACKING, snapshot_key(generation_of(segment), 0), b"no snapshot")

    mended, left = repaired(stored)

    assert left == []
    assert [line.rpartition(" is dropped, ")[2] for line in mended] == ["the server makes it anew"]
    assert is_sound(stored)
    with stored.broker() as broker:
        assert broker.log("orders").sequences.all() == {b"shop": 4}


def test_a_damaged_snapshot_tells_no_publishing_ids_where_chunks_were_removed(
    stored: Stored, segment: str
) -> None:
    cut = stored.chunk_places(segment)[0][1]
    with stored.store() as checked:
        checked.ask(checked.store.for_removal.truncate_segment, segment, cut)
    put(stored, TRACKING, snapshot_key(generation_of(segment), 0), b"no snapshot")

    mended, left = repaired(stored)

    assert any("says now that publishing ids were lost" in line for line in mended)
    (line,) = left
    assert line.endswith("are lost: the stream takes no named publishers any more")
    code, lines = stored.ask("check")  # goes on telling it
    assert code == 1
    assert lines[0].startswith("damaged: snapshot: publishing ids in it are damaged or were lost ")
    assert stored.read("orders", 2) == BODIES[2:]


@pytest.mark.usefixtures("segment")
def test_a_stream_that_the_catalogue_has_lost_is_put_back(stored: Stored) -> None:
    remove_entry(stored, "orders")

    mended, left = repaired(stored)

    assert left == []
    assert len(mended) == 1
    assert mended[0].endswith(" put back without its arguments, which are lost")
    assert is_sound(stored)
    assert stored.read("orders", 4) == BODIES


def test_a_stream_with_a_wrong_number_in_the_catalogue_is_put_back_with_its_arguments(
    stored: Stored, segment: str
) -> None:
    other = generation_of(segment) + 1_000
    entry = StreamEntry("orders", other, {"max-age": "1h"})
    put(stored, TABLE, key_of("orders"), entry.pack())

    mended, left = repaired(stored)

    assert left == []
    assert [line.endswith(" put back") for line in mended] == [True]
    assert is_sound(stored)
    assert stored.read("orders", 4) == BODIES
    with stored.broker() as broker:
        assert dict(broker.stream("orders").entry.arguments) == {"max-age": "1h"}


def test_a_stream_is_not_put_back_in_the_place_of_another_one_of_its_name(
    stored: Stored, segment: str
) -> None:
    remove_entry(stored, "orders")
    assert stored.publish("orders", [b"of the new one"]) != segment

    mended, left = repaired(stored)

    assert mended == []
    assert [line.endswith(" put back: another stream has its name now") for line in left] == [True]
    assert stored.read("orders", 1) == [b"of the new one"]


@pytest.mark.usefixtures("segment")
def test_chunks_that_are_damaged_stay_and_are_told(stored: Stored) -> None:
    path = file_with(stored.directory, b"second")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"second", b"secund"))

    mended, left = repaired(stored)

    assert mended == []
    assert [line.startswith("chunks of ") and "stay damaged" in line for line in left] == [True]
    assert path.read_bytes() == content.replace(b"second", b"secund")


def test_a_stream_without_its_chunks_is_told_to_be_lost(stored: Stored, segment: str) -> None:
    with stored.store() as checked:
        checked.ask(checked.store.for_removal.delete_segment, segment)

    _, left = repaired(stored)

    assert [line.startswith("all of ") for line in left] == [True]
    assert left[0].endswith(" is lost: delete the stream")


@pytest.mark.usefixtures("segment")
def test_an_entry_that_no_server_can_use_is_taken_out_and_kept(stored: Stored) -> None:
    put(stored, TABLE, b"wrong\n", b"no entry of a stream")

    mended, left = repaired(stored)

    what = rf"entries b'wrong\n' of the table {TABLE} are taken out"
    assert (mended, left) == ([what], [])
    kept = [path.read_bytes() for path in (stored.directory / "set-aside").rglob("*-*")]
    assert any(b"no entry of a stream" in content for content in kept)
    assert is_sound(stored)
    assert stored.read("orders", 4) == BODIES


def test_what_the_store_refuses_is_told_and_the_rest_is_mended(
    stored: Stored, segment: str
) -> None:
    stored.publish("other", [b"one"])
    remove_entry(stored, "other")
    remove_entry(stored, "orders")
    assert stored.publish("orders", [b"of the new one"]) != segment
    put(stored, TABLE, b"wrong", b"no entry of a stream")

    mended, left = repaired(stored)

    assert len(left) == 1
    assert len(mended) == 2
    assert stored.read("other", 1) == [b"one"]

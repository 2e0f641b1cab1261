"""`hutch store inspect`: lists, records, entries and bytes, as far as they can be shown."""

import json
from pathlib import Path

import pytest

from gateway.management.definitions import unfinished
from hutch.formats.chunk import DATA_POSITION
from store.api import TableEntry
from tests.chunks import SubBatch
from tests.integration.administrator import run_here
from tests.unit.gateway.commands.store_rig import Stored
from tests.unit.store.local.opened import WRITER
from tests.unit.store.local.test_overlay import state_of
from tests.unit.store.local.test_store_check import file_with, flip

FAR = 1 << 62
"""A time in milliseconds that no calendar has."""


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    stored = Stored(tmp_path / "data")
    with stored.broker():
        pass
    return stored


def make(stored: Stored, segment: str, data: bytes = b"", *, is_sealed: bool = False) -> None:
    """Make a segment that is none of the broker's."""
    with stored.store() as checked:
        checked.ask(checked.store.create_segment, segment)
        if data:
            opened = checked.ask(checked.store.open_writer, segment, WRITER)
            checked.ask(opened.append, data, 1)
        if is_sealed:
            checked.ask(checked.store.seal_segment, segment)


def make_table(stored: Stored, table: str, rows: dict[bytes, bytes]) -> None:
    with stored.store() as checked:
        checked.ask(checked.store.create_table, table)
        for key, value in rows.items():
            checked.ask(checked.store.update_table, table, [TableEntry(key, value)])


def shown(stored: Stored, *words: str) -> list[str]:
    """Return what is shown, of a directory that stays as it is."""
    before = state_of(stored.directory)
    code, lines = stored.ask("inspect", *words)
    assert code == 0
    assert state_of(stored.directory) == before
    return lines


def content(stored: Stored, *words: str) -> list[str]:
    """Return what is shown behind the description."""
    lines = shown(stored, *words)
    return lines[lines.index("") + 1 :]


def test_the_list_has_the_state_of_each_segment(stored: Stored) -> None:
    make(stored, "scope/sound", b"0123456789")
    make(stored, "scope/shut", b"01234", is_sealed=True)
    make(stored, "scope/lost", b"of which nothing is left", is_sealed=True)
    file_with(stored.directory, b"of which nothing is left").write_bytes(b"")

    rows = {line.split()[-1]: line.split()[:4] for line in shown(stored)}

    assert rows["name"] == ["kind", "bytes", "start", "state"]
    assert rows["scope/sound"] == ["segment", "10", "0", "-"]
    assert rows["scope/shut"] == ["segment", "5", "0", "sealed"]
    assert rows["scope/lost"] == ["segment", "24", "0", "sealed,damaged"]
    assert rows["hutch/_access_kvtable/0.#epoch.0"][0] == "table"


def test_a_segment_of_no_stream_is_shown_in_bytes(stored: Stored) -> None:
    make(stored, "scope/bytes", bytes(range(40)), is_sealed=True)
    row = bytes(range(16)).hex(" ")

    lines = shown(stored, "scope/bytes", "--limit", "2")

    assert "state     sealed" in lines
    assert f"{WRITER.hex} 1" in lines
    assert lines[lines.index("") + 1 :] == [
        f"{0:>12}  {row}",
        f"{16:>12}  {bytes(range(16, 32)).hex(' ')}",
    ]
    assert content(stored, "scope/bytes")[2] == f"{32:>12}  {bytes(range(32, 40)).hex(' ')}"


def test_of_an_empty_segment_only_the_description_is_shown(stored: Stored) -> None:
    make(stored, "scope/empty")

    assert content(stored, "scope/empty") == []


def test_a_segment_of_chunks_is_shown_as_a_stream_also_by_its_own_name(stored: Stored) -> None:
    segment = stored.publish("orders", [b"one", b"two"])

    assert content(stored, segment) == content(stored, "orders")
    assert [line.split()[-1] for line in content(stored, segment)[1:]] == ["one", "two"]


def test_a_limit_counts_records_and_not_chunks(stored: Stored) -> None:
    stored.publish("orders", [b"a", b"b"], [b"c", b"d"], [b"e"])

    def bodies(*words: str) -> list[str]:
        lines = content(stored, "orders", *words)
        return [line.split()[-1] for line in lines if not line.startswith("chunk at")]

    assert bodies("--limit", "1") == ["a"]
    assert bodies("--limit", "3") == ["a", "b", "c"]
    assert bodies() == ["a", "b", "c", "d", "e"]
    assert bodies("--offset", "3") == ["d", "e"]
    assert bodies("--offset", "5") == []


def test_records_are_shown_by_their_beginning_and_sub_batches_by_their_size(
    stored: Stored,
) -> None:
    batch = SubBatch.of([b"a", b"b", b"c"])
    stored.publish("orders", [b"\xff" + b"x" * 60, batch, b"\x1b[2Jlast"])

    lines = content(stored, "orders")

    assert lines[0].startswith("chunk at byte 0: offset=0 records=5 time=")
    assert lines[0].endswith(" publisher=shop id=3")
    assert lines[1:] == [
        f"  {0:>12}  {61:>8} bytes  \\xff{'x' * 59}…",
        f"  {1:>12}  3 records in a batch of {len(batch.body)} bytes",
        f"  {4:>12}  {8:>8} bytes  \\x1b[2Jlast",
    ]


def test_a_time_that_no_calendar_has_is_shown_as_a_number(stored: Stored) -> None:
    with stored.broker() as broker:
        client = broker.link()
        client.create("orders")
        client.declare(1, "orders")
        for number, at_ms in enumerate((1_000, FAR)):
            broker.now_ms = at_ms
            client.publish(1, (number, b"record"))
            broker.settle("orders")

    first, _, second, _ = content(stored, "orders")

    assert " time=1970-01-01T00:00:01.000Z " in first
    assert f" time={FAR} ms " in second


def test_where_a_chunk_is_damaged_the_records_before_it_are_shown_and_the_place(
    stored: Stored,
) -> None:
    segment = stored.publish("orders", [b"first"], [b"second"], [b"third"])
    place = stored.chunk_places(segment)[1][0]
    flip(file_with(stored.directory, b"second"), b"second", -len(b"size") - DATA_POSITION)

    lines = content(stored, "orders")

    assert lines[1].endswith("first")
    assert lines[2:] == [f"no chunk begins at byte {place}: `hutch store check` says more"]


def test_entries_of_a_table_are_shown_up_to_the_limit(stored: Stored) -> None:
    make_table(stored, "scope/_t_kvtable/0", {b"a": b"[1]", b"b": b"[2]", b"c": b"[3]"})

    lines = content(stored, "scope/_t_kvtable/0", "--limit", "2")

    assert [line.split("  (version")[0] for line in lines] == [
        "a",
        "    [1]",
        "b",
        "    [2]",
        "… --limit 2 is reached",
    ]
    assert not [line for line in content(stored, "scope/_t_kvtable/0") if "--limit" in line]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b'{"a": "\xc3\xa9"}', '{"a": "é"}'),
        (b"\x00\x01\xff", "3 bytes: 00 01 ff"),
        (b"[" * 100_000, f"100000 bytes: {' '.join(['5b'] * 60)}"),
        (json.dumps("x" * 300).encode(), f'"{"x" * 199}…'),
        (b'[{"password_hash": "abc", "Password": ["x"]}]', None),
        (b'{"password_hash": "", "more": {"old_password": "abc"}}', None),
    ],
    ids=["text", "bytes", "deep", "long", "list", "object"],
)
def test_a_value_is_shown_as_far_as_it_can_be_and_without_a_password(
    stored: Stored, value: bytes, text: str | None
) -> None:
    make_table(stored, "scope/_t_kvtable/0", {b"key": value})

    (_, line) = content(stored, "scope/_t_kvtable/0")

    if text is not None:
        assert line == f"    {text}"
    else:
        assert "abc" not in line
        assert "(not shown)" in line


def test_nothing_is_shown_of_an_import_that_is_unfinished(stored: Stored) -> None:
    make_table(stored, unfinished.TABLE, {b"key": b'{"users": "secret"}'})

    assert content(stored, unfinished.TABLE)[1] == "    19 bytes"


def test_what_is_not_there_is_wrong_use_and_names_the_virtual_host(stored: Stored) -> None:
    stored.publish("orders", [b"one"])

    code, said, complaint = run_here(
        "store", "inspect", "orders", "--vhost", "eu", "--data", str(stored.directory)
    )

    assert (code, said) == (2, "")
    assert complaint.startswith("hutch: there is no stream 'orders' in the virtual host 'eu',")

"""What a check knows of the entries of tables and of the names of segments."""

import pytest

from gateway.broker.access import access_table
from gateway.broker.access.model import User, UserPermission
from gateway.broker.commits.rows import PartRow, StageRow, pack_number, part_key, stage_key
from gateway.broker.hosts import virtual_hosts
from gateway.broker.hosts.checking import (
    homeless,
    host_of_segment,
    is_sound,
    rows_after_loss,
    streams_of,
    unescaped,
)
from gateway.broker.hosts.virtual_hosts import VirtualHostEntry
from gateway.broker.streams import openings
from gateway.broker.streams.catalogue import StreamEntry, key_of
from gateway.broker.topology.exchange import Binding, Declared, Exchange
from gateway.log import names
from store.api import TableEntry

STREAM = StreamEntry("orders", 7, {"max-age": "1h"})
DECLARED = Declared(Exchange("x"), 1, is_stored=True)
STAGE = StageRow(user="u", sink="q", batch=1, stream="orders", generation=7)
SOUND = [
    (names.meta_table("/"), TableEntry(b"orders", STREAM.pack())),
    (names.commits_table("/"), TableEntry(b"n", pack_number(5))),
    (names.commits_table("/"), TableEntry(stage_key(1), STAGE.pack(b""))),
    (names.commits_table("/"), TableEntry(part_key(1, 2), PartRow("s", (3,)).pack())),
    (names.meta_table("/"), DECLARED.row()),
    (names.meta_table("/"), DECLARED.binding_row(Binding(source="x", destination="orders"), 7)),
    (access_table.TABLE, TableEntry(b"uanna", User("anna", None, (), {}).pack())),
    (
        access_table.TABLE,
        TableEntry(
            b"p\x00\x04anna/",
            UserPermission(user="anna", virtual_host="/", configure="", write="", read="").pack(),
        ),
    ),
    (virtual_hosts.TABLE, TableEntry(b"h/", VirtualHostEntry("/").pack())),
    (openings.TABLE, TableEntry(openings.KEY, b'{"unclean": 3, "clean": true}')),
]


@pytest.mark.parametrize(("table", "row"), SOUND)
def test_an_entry_that_a_server_wrote_is_sound_and_a_damaged_one_is_not(
    table: str, row: TableEntry
) -> None:
    assert is_sound(table, row)
    assert is_sound(table, TableEntry(row.key, b""))  # removed
    assert not is_sound(table, TableEntry(row.key, row.value[:-1]))
    assert not is_sound(table, TableEntry(row.key, b"[1, 2]"))


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        (access_table.TABLE, b"l/", b'{"max-connections": true}'),
        (openings.TABLE, openings.KEY, b'{"unclean": -1, "clean": true}'),
        (openings.TABLE, openings.KEY, b'{"unclean": 1}'),
        (names.meta_table("/"), b"amq.exchange.1", b"{}"),
        (names.meta_table("/"), b"amq.binding.1", b'{"exchange": 1}'),
    ],
)
def test_an_entry_that_an_opening_refuses_or_makes_anew_is_not_sound(
    table: str, key: bytes, value: bytes
) -> None:
    assert not is_sound(table, TableEntry(key, value))


def test_an_entry_of_any_other_table_is_sound() -> None:
    assert is_sound(names.tracking_table("/"), TableEntry(b"1\x00reader", b"\xff"))
    assert is_sound(names.server_table("import"), TableEntry(b"0", b"\xff"))


@pytest.mark.parametrize("name", ["orders", "a/b c", "é", "a\udcff", "x-1-index"])
@pytest.mark.parametrize("host", ["/", "eu-1"])
def test_a_stream_without_an_entry_is_told_by_its_segment(name: str, host: str) -> None:
    stream = homeless(names.data_segment(host, name, 12))

    assert stream is not None
    assert (stream.entry.name, stream.entry.generation, stream.virtual_host) == (name, 12, host)
    assert stream.log_names.index_segment == names.index_segment(host, name, 12)
    assert homeless(names.index_segment(host, name, 12)) is None
    assert homeless(names.meta_table(host)) is None


def test_a_name_of_which_only_a_hash_is_there_is_not_guessed() -> None:
    assert unescaped(names.escape("x" * 300)) is None
    assert homeless(names.data_segment("/", "x" * 300, 1)) is None


def test_a_stage_and_a_unit_are_no_streams() -> None:
    assert homeless(names.stage_segment("/", 5)) is None
    assert homeless(names.unit_segment("/", 5, 6)) is None


def test_a_row_of_commits_that_no_version_has_is_not_sound() -> None:
    assert not is_sound(names.commits_table("/"), TableEntry(b"x", b"1"))


def test_the_virtual_host_of_a_segment() -> None:
    assert host_of_segment(names.meta_table("a b")) == "a b"
    assert host_of_segment(access_table.TABLE) is None


def test_streams_are_given_without_damaged_entries_and_topology() -> None:
    rows = [
        TableEntry(key_of("orders"), STREAM.pack()),
        TableEntry(b"other", STREAM.pack()),
        TableEntry(b"amq.exchange.1", b"{}"),
        TableEntry(b"broken", b"{"),
    ]

    assert [stream.entry for stream in streams_of("/", rows)] == [STREAM]


def test_a_table_that_has_lost_entries_makes_no_first_user_and_no_lower_count() -> None:
    assert [row.key for row in rows_after_loss(access_table.TABLE)] == [b"b"]
    assert rows_after_loss(openings.TABLE) == [TableEntry(openings.KEY, b"")]
    assert rows_after_loss(virtual_hosts.TABLE) == []

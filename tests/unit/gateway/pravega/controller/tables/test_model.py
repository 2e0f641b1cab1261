"""The record of a table."""

from __future__ import annotations

from gateway.pravega.controller.tables.model import KeyValueTable, TableConfig, TableState

TABLE = KeyValueTable(
    scope="scope",
    name="table",
    config=TableConfig(partitions=2, primary=4, secondary=2, rollover_bytes=1_000),
    state=TableState.CREATING,
    first=3,
)


def test_a_record_is_read_as_it_was_written() -> None:
    assert KeyValueTable.from_bytes(TABLE.to_bytes()) == TABLE


def test_parts_have_the_numbers_from_the_first_on_and_keys_of_the_same_width() -> None:
    assert TABLE.segment_names == [
        "scope/table_kvtable/3.#epoch.0",
        "scope/table_kvtable/4.#epoch.0",
    ]
    assert [(each.low, each.high) for each in TABLE.segments] == [(0.0, 0.5), (0.5, 1.0)]
    assert TABLE.next_number == 5


def test_a_key_of_the_store_has_both_parts() -> None:
    assert TABLE.config.key_length == 6
    assert TableConfig(partitions=1).key_length == 0

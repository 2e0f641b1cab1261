"""The record of a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.pravega.controller.errors import NoSuchTable
from gateway.pravega.controller.records.key_value_tables import (
    KeyValueTable,
    TableConfig,
    TableState,
)
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World

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


def table(scope: str, name: str) -> KeyValueTable:
    return KeyValueTable(
        scope=scope, name=name, config=TableConfig(), state=TableState.ACTIVE, first=0
    )


async def test_what_is_saved_is_known_to_the_next_process_until_it_is_forgotten(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    await awaited((await world.open()).open())
    known = world.controller.registry.tables
    for each in (table("a", "y"), table("a", "x"), table("b", "z")):
        await awaited(known.save(each))
    await awaited(known.forget(table("b", "z")))

    await world.close()
    await awaited((await world.open()).open())

    again = world.controller.registry.tables
    assert again.table("a", "x") == table("a", "x")
    assert list(again.of("a")) == ["x", "y"]
    assert list(again.of("b")) == []
    assert again.all() == [table("a", "x"), table("a", "y")]
    for scope, name in (("b", "z"), ("a", "z"), ("c", "x")):
        with pytest.raises(NoSuchTable, match=f"{scope}/{name}"):
            again.table(scope, name)
    await world.close()

"""The tables that the controller knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.pravega.controller.errors import NoSuchTable
from gateway.pravega.controller.tables.model import KeyValueTable, TableConfig, TableState
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World


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

"""Tables are made and deleted whole, wherever a change is cut short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gateway.pending import start
from gateway.pravega.controller.controller import Controller
from gateway.pravega.controller.errors import (
    BadName,
    ChangeRefused,
    InvalidRequest,
    NoSuchScope,
    NoSuchTable,
    ScopeNotEmpty,
    TableExists,
)
from gateway.pravega.controller.key_value_tables import PARTITIONS_MAX
from gateway.pravega.controller.records.key_value_tables import TableConfig, TableState
from gateway.pravega.controller.records.model import StreamPolicy
from gateway.pravega.names import TABLE
from gateway.server.loop.awaiting import awaited
from store.api import KEY_BYTES_MAX
from tests.controller_rig import World

CONFIG = TableConfig(partitions=3, primary=4, secondary=2)
Change = Callable[[Controller], Coroutine[Any, Any, object]]


@pytest.fixture
async def worlds(tmp_path: Path) -> AsyncIterator[Callable[[], World]]:
    made: list[World] = []

    def make() -> World:
        made.append(World(tmp_path / str(len(made))))
        return made[-1]

    yield make
    for world in made:
        await world.close()


@pytest.fixture
async def world(worlds: Callable[[], World]) -> World:
    """A world with the scope `scope`."""
    world = worlds()
    await awaited((await world.open()).open())
    await awaited(world.controller.streams.create_scope("scope"))
    return world


async def _made(controller: Controller) -> None:
    await controller.streams.create_scope("scope")
    await controller.tables.create("scope", "table", CONFIG)


def parts_in(world: World) -> list[str]:
    return [name for name in world.segments() if name != TABLE]


async def test_parts_take_keys_of_the_length_of_both_keys(world: World) -> None:
    await awaited(world.controller.tables.create("scope", "table", CONFIG))
    await awaited(world.controller.tables.create("scope", "any", TableConfig(partitions=1)))

    infos = [await world.info(name) for name in parts_in(world)]
    assert [(each.name, each.is_table, each.key_length) for each in infos if each] == [
        ("scope/any_kvtable/0.#epoch.0", True, 0),
        *((f"scope/table_kvtable/{number}.#epoch.0", True, 6) for number in range(3)),
    ]


async def test_a_table_that_is_made_again_has_other_parts(world: World) -> None:
    tables = world.controller.tables
    await awaited(tables.create("scope", "table", CONFIG))
    await awaited(tables.delete("scope", "table"))
    assert parts_in(world) == []

    await awaited(tables.create("scope", "table", TableConfig(partitions=1, primary=1)))

    assert parts_in(world) == ["scope/table_kvtable/3.#epoch.0"]
    await awaited(world.controller.delete_all("scope"))
    await awaited(_made(world.controller))
    assert parts_in(world)[0] == "scope/table_kvtable/4.#epoch.0"


async def test_what_is_forgotten_of_deleted_tables_goes_from_the_controller_s_table(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.pravega.controller.records.ended.KEPT", 1)
    for name in ("a", "b"):
        await awaited(world.controller.tables.create("scope", name, CONFIG))
        await awaited(world.controller.tables.delete("scope", name))

    await world.close()
    await awaited((await world.open()).open())

    ended = world.controller.registry.ended
    numbers = [ended.first_number("scope", f"{name}_kvtable") for name in ("a", "b", "c")]
    assert numbers == [3, 3, 3]
    rows = await awaited(world.controller.registry._table.load())
    assert sorted(rows) == [b"ended\0/", b"ended\0scope/b_kvtable", b"scope\0scope"]


async def test_names_that_are_taken_or_missing_are_refused(world: World) -> None:
    tables = world.controller.tables
    await awaited(tables.create("scope", "table", CONFIG))
    with pytest.raises(TableExists):
        await awaited(tables.create("scope", "table", CONFIG))
    with pytest.raises(BadName):
        await awaited(tables.create("scope", "_table", CONFIG))
    with pytest.raises(NoSuchScope):
        await awaited(tables.create("other", "table", CONFIG))
    for scope, name in (("scope", "other"), ("other", "table")):
        with pytest.raises(NoSuchTable):
            await awaited(tables.delete(scope, name))
        with pytest.raises(NoSuchTable):
            await awaited(tables.settled(scope, name))


async def test_a_table_that_a_client_has_made_on_the_wire_is_not_taken_over(world: World) -> None:
    await world.ask(
        lambda done: world.local.create_table("scope/state_kvtable/0.#epoch.0", done=done)
    )
    with pytest.raises(TableExists):
        await awaited(world.controller.tables.create("scope", "state", CONFIG))
    assert list(world.controller.registry.tables.of("scope")) == []


@pytest.mark.parametrize(
    "config",
    [
        TableConfig(partitions=0, primary=1),
        TableConfig(partitions=-1, primary=1),
        TableConfig(partitions=PARTITIONS_MAX + 1, primary=1),
        TableConfig(primary=-1),
        TableConfig(primary=0, secondary=1),
        TableConfig(primary=1, secondary=-1),
        TableConfig(primary=KEY_BYTES_MAX, secondary=1),
        TableConfig(primary=1, rollover_bytes=-1),
    ],
)
async def test_configurations_that_cannot_be_are_refused(world: World, config: TableConfig) -> None:
    with pytest.raises(InvalidRequest):
        await awaited(world.controller.tables.create("scope", "table", config))
    assert parts_in(world) == []


@pytest.mark.parametrize(
    "config",
    [
        TableConfig(partitions=PARTITIONS_MAX, primary=1),
        TableConfig(primary=KEY_BYTES_MAX - 1, secondary=1),
    ],
)
async def test_the_largest_configurations_are_taken(world: World, config: TableConfig) -> None:
    await awaited(world.controller.tables.create("scope", "table", config))
    assert len(parts_in(world)) == config.partitions


async def test_a_scope_with_a_table_is_deleted_only_with_all_that_it_has(world: World) -> None:
    await awaited(world.controller.tables.create("scope", "table", CONFIG))
    with pytest.raises(ScopeNotEmpty):
        await awaited(world.controller.streams.delete_scope("scope"))

    await awaited(world.controller.delete_all("scope"))

    assert parts_in(world) == []
    assert world.controller.registry.tables.all() == []


async def test_a_stream_and_a_table_may_have_the_same_name(world: World) -> None:
    controller = world.controller
    await awaited(controller.streams.create("scope", "same", StreamPolicy()))
    await awaited(controller.tables.create("scope", "same", TableConfig(primary=1)))
    await awaited(controller.seal("scope", "same"))
    await awaited(controller.streams.delete("scope", "same"))

    assert parts_in(world) == ["scope/same_kvtable/0.#epoch.0"]
    assert controller.registry.ended.first_number("scope", "same_kvtable") == 0


# Cut short

CHANGES: dict[str, tuple[Change, Change]] = {
    "create": (
        lambda c: c.streams.create_scope("scope"),
        lambda c: c.tables.create("scope", "table", CONFIG),
    ),
    "delete": (_made, lambda c: c.tables.delete("scope", "table")),
    "delete all": (_made, lambda c: c.delete_all("scope")),
}


async def tried(world: World, change: Change) -> bool:
    """Begin a change; True if it came to its end before the store stopped."""
    pending = start(change(world.controller))
    ended = asyncio.Event()
    pending.when_settled(ended.set)
    stopped = asyncio.create_task(world.store.stopped.wait())
    done = asyncio.create_task(ended.wait())
    await asyncio.wait({stopped, done}, return_when=asyncio.FIRST_COMPLETED)
    is_done = done.done()
    for task in (stopped, done):
        task.cancel()
    if is_done:
        pending.result()
    return is_done


def check(world: World) -> None:
    """Every part there belongs to a table, and none is missing."""
    tables = world.controller.registry.tables.all()
    assert all(each.state is TableState.ACTIVE for each in tables)
    assert parts_in(world) == [name for each in tables for name in each.segment_names]


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_that_is_cut_short_anywhere_is_finished_or_undone(
    name: str, worlds: Callable[[], World]
) -> None:
    before, change = CHANGES[name]
    for changes in count():
        world = worlds()
        await awaited((await world.open()).open())
        await awaited(before(world.controller))
        world.store.changes = changes
        is_done = await tried(world, change)

        await world.close()
        await awaited((await world.open()).open())
        check(world)
        with suppress(ChangeRefused):
            await awaited(change(world.controller))
        check(world)
        if is_done:
            break
    assert changes > 1


@pytest.mark.parametrize("state", [TableState.CREATING, TableState.DELETING])
async def test_a_change_that_the_store_refused_is_finished_before_the_next_one(
    world: World, state: TableState
) -> None:
    tables = world.controller.tables
    await awaited(tables.create("scope", "table", CONFIG))
    table = world.controller.registry.tables.table("scope", "table")
    left = type(table)(
        scope="scope", name="table", config=table.config, state=state, first=table.first
    )
    await awaited(world.controller.registry.tables.save(left))

    if state is TableState.CREATING:
        with pytest.raises(TableExists):
            await awaited(tables.create("scope", "table", CONFIG))
        assert await awaited(tables.settled("scope", "table")) == table
    else:
        await awaited(tables.create("scope", "table", CONFIG))
        assert parts_in(world)[0] == "scope/table_kvtable/3.#epoch.0"

"""Lists of scopes and of what is in them, on a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.broker.access.model import Right
from gateway.pravega.access.callers import Anyone, StreamRights
from gateway.pravega.controller.lists import ScopeLists, stream_row
from gateway.pravega.controller.records.key_value_tables import TableConfig
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord
from gateway.server.loop.awaiting import awaited
from store.errors import CorruptSegment
from tests.controller_rig import World
from tests.group_states import add, begun, changes, framed, whole
from tests.unit.gateway.pravega.controller.readers.test_group import group
from tests.unit.gateway.pravega.controller.test_rights import Caller

READ, WRITE = Right.READ, Right.WRITE
BY_EVENTS = StreamPolicy(
    scale_type=2, rate=10, factor=3, segments=2, retention_type=1, retention=7, tags=("a", "b")
)
Rows = list[dict[str, Any]]
UNREADABLE: list[tuple[str, str]] = []
"""Log lines of states that cannot be read."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world with the scopes `empty` and `scope`, which has something of each kind."""
    UNREADABLE.clear()
    world = World(tmp_path / "data")
    controller = await world.open()
    await awaited(controller.open())
    for scope in ("scope", "empty"):
        await awaited(controller.streams.create_scope(scope))
    await awaited(controller.streams.create("scope", "two", StreamPolicy()))
    await awaited(controller.streams.create("scope", "one", BY_EVENTS))
    await world.write("scope/one/0.#epoch.0", b"12345")
    subscribed = group(1, starts={"scope/one": {}}, ends={}, cuts={})
    await awaited(controller.groups.create(replace(subscribed, name="waited")))
    await awaited(controller.groups.create(replace(subscribed, name="free", retention=0)))
    state = framed(whole(begun({"scope/one/0.#epoch.0": 2})), changes(add("b"), add("a")))
    await world.write("scope/_RGwaited/0.#epoch.0", state)
    await awaited(controller.tables.create("scope", "table", TableConfig(partitions=3, primary=8)))
    yield world
    await world.close()


async def rows_of(kind: str, world: World, caller: StreamRights, *scope: str) -> Rows | None:
    lists = ScopeLists(
        world.controller, lambda group, error: UNREADABLE.append((group, str(error)))
    )
    ask: Callable[..., Any] = getattr(lists, kind)
    found = await awaited(ask(caller, *scope))
    if found is None:
        return None
    items, view = found
    return [view(each) for each in items]


async def names(kind: str, world: World, caller: StreamRights, *scope: str) -> list[str] | None:
    found = await rows_of(kind, world, caller, *scope)
    return None if found is None else [each["name"] for each in found]


async def test_a_scope_has_numbers_of_what_is_in_it(world: World) -> None:
    assert await rows_of("scopes", world, Anyone()) == [
        {"name": "empty", "streams": 0, "reader_groups": 0, "tables": 0},
        {"name": "scope", "streams": 4, "reader_groups": 2, "tables": 1},
    ]


async def test_a_stream_is_shown_with_its_policy(world: World) -> None:
    found = await rows_of("streams", world, Anyone(), "scope")

    assert found is not None
    assert [each["name"] for each in found] == ["_RGfree", "_RGwaited", "one", "two"]
    assert found[2:] == [
        {
            "name": "one",
            "state": "active",
            "segments": 2,
            "epoch": 0,
            "scaling": {
                "type": "events_per_second",
                "target_rate": 10,
                "scale_factor": 3,
                "min_segments": 2,
            },
            "retention": {"type": "time", "min": 7, "max": 0},
            "tags": ["a", "b"],
        },
        {
            "name": "two",
            "state": "active",
            "segments": 1,
            "epoch": 0,
            "scaling": {"type": "fixed", "min_segments": 1},
            "retention": {"type": "none"},
            "tags": [],
        },
    ]


async def test_a_stream_is_shown_as_it_is_now(world: World) -> None:
    ranges = [(0.0, 0.25), (0.25, 0.5)]
    await awaited(world.controller.streams.scale("scope", "one", [0], ranges))
    await awaited(world.controller.seal("scope", "one"))

    found = await rows_of("streams", world, Anyone(), "scope")

    assert found is not None
    assert (found[2]["segments"], found[2]["epoch"], found[2]["state"]) == (3, 1, "sealed")


def test_a_policy_of_a_kind_that_pravega_has_not_is_shown_by_its_number(world: World) -> None:
    stream: StreamRecord = world.controller.registry.stream("scope", "two")
    odd = replace(stream, policy=StreamPolicy(scale_type=7, rate=1, factor=1, retention_type=-1))

    row: dict[str, Any] = stream_row(odd)

    assert (row["scaling"]["type"], row["retention"]["type"]) == ("7", "-1")


async def test_groups_have_their_members_and_the_bytes_that_they_have_not_read(
    world: World,
) -> None:
    assert await rows_of("reader_groups", world, Anyone(), "scope") == [
        {
            "name": "free",
            "streams": ["scope/one"],
            "retention": "none",
            "members": [],
            "unread_bytes": None,  # no client has written a state
        },
        {
            "name": "waited",
            "streams": ["scope/one"],
            "retention": "manual_at_stream_cut",
            "members": ["a", "b"],
            "unread_bytes": 3,
        },
    ]


async def test_a_group_of_which_nothing_can_be_read_is_shown_all_the_same(world: World) -> None:
    await world.write("scope/_RGfree/0.#epoch.0", b"no event")

    found = await rows_of("reader_groups", world, Anyone(), "scope")

    assert found is not None
    shown = [(each["name"], each["members"], each["unread_bytes"]) for each in found]
    assert shown == [("free", None, None), ("waited", ["a", "b"], 3)]
    assert UNREADABLE == [("scope/free", "it holds what is no event")]


async def test_a_group_whose_stream_the_store_cannot_read_is_shown_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> None:
        raise CorruptSegment("lost")

    monkeypatch.setattr(world.controller.states, "of", fail)
    found = await rows_of("reader_groups", world, Anyone(), "scope")

    assert found is not None
    assert [each["members"] for each in found] == [None, None]
    assert UNREADABLE == [("scope/free", "lost"), ("scope/waited", "lost")]


async def test_tables_are_shown_with_their_keys(world: World) -> None:
    assert await rows_of("tables", world, Anyone(), "scope") == [
        {
            "name": "table",
            "state": "active",
            "partitions": 3,
            "primary_key_bytes": 8,
            "secondary_key_bytes": 0,
        }
    ]


async def test_a_group_that_is_being_deleted_is_not_shown(world: World) -> None:
    there = world.controller.groups.find("scope", "free")
    await awaited(world.controller.registry.save_group(replace(there, is_ending=True)))

    assert await names("reader_groups", world, Anyone(), "scope") == ["waited"]
    found = await rows_of("scopes", world, Anyone())
    assert found is not None
    assert found[1]["reader_groups"] == 1


@pytest.mark.parametrize("kind", ["streams", "reader_groups", "tables"])
async def test_a_scope_that_is_not_there_or_not_seen_has_no_lists(world: World, kind: str) -> None:
    stranger = Caller((WRITE, "scope/one"), (READ, "other/"))

    assert await rows_of(kind, world, Anyone(), "none") is None
    assert await rows_of(kind, world, stranger, "scope") is None
    assert await names("scopes", world, stranger) == []
    assert await rows_of(kind, world, Anyone(), "empty") == []


async def test_a_caller_sees_what_it_has_rights_on(world: World) -> None:
    member = Caller((READ, "scope/one"), (WRITE, "scope/_RGwaited"))

    assert await rows_of("scopes", world, member) == [
        {"name": "scope", "streams": 1, "reader_groups": 1, "tables": 0}
    ]
    assert await names("streams", world, member, "scope") == ["one"]
    assert await names("tables", world, member, "scope") == []
    found = await rows_of("reader_groups", world, member, "scope")
    assert found is not None
    shown = [(each["name"], each["members"], each["unread_bytes"]) for each in found]
    assert shown == [("waited", ["a", "b"], 3)]


async def test_the_size_of_a_stream_is_not_told_without_a_right_on_it(world: World) -> None:
    blind = Caller((READ, "scope/"), (WRITE, "scope/_RGwaited"))

    found = await rows_of("reader_groups", world, blind, "scope")

    assert found is not None
    shown = [(each["name"], each["members"], each["unread_bytes"]) for each in found]
    assert shown == [("waited", ["a", "b"], None)]


async def test_the_size_of_a_stream_that_a_client_has_written_into_a_state_is_not_told(
    world: World,
) -> None:
    state = framed(whole(begun({"scope/two/0.#epoch.0": 0})))
    await world.write("scope/_RGfree/0.#epoch.0", state)
    curious = Caller((READ, "scope/one"), (WRITE, "scope/_RGfree"))

    found = await rows_of("reader_groups", world, curious, "scope")

    assert found is not None
    assert [each["unread_bytes"] for each in found] == [None]


async def test_the_members_of_a_group_are_not_told_without_the_right_to_read_it(
    world: World,
) -> None:
    maker = Caller((READ, "scope/one"), (Right.CONFIGURE, "scope/_RGwaited"))

    found = await rows_of("reader_groups", world, maker, "scope")

    assert found is not None
    shown = [(each["name"], each["members"], each["unread_bytes"]) for each in found]
    assert shown == [("waited", None, None)]

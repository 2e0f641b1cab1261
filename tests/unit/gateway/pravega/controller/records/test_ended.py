"""A stream that is made again goes on behind the deleted one; a deleted scope leaves nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.pravega.controller.errors import ScopeNotEmpty
from gateway.pravega.controller.records import ended as ended_streams
from gateway.pravega.controller.records.ended import LAST_MAX, EndedStreams
from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.records.model import Ended, StreamPolicy
from gateway.pravega.names import TABLE
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await again(world)
    await awaited(world.controller.streams.create_scope("scope"))
    yield world
    await world.close()


async def again(world: World) -> None:
    """Open the store and the controller."""
    await awaited((await world.open()).open())


async def make(world: World, name: str = "stream", segments: int = 2) -> list[int]:
    """Make a stream; return the numbers of its segments."""
    await awaited(world.controller.streams.create("scope", name, StreamPolicy(segments=segments)))
    stream = world.controller.registry.stream("scope", name)
    return [each.number for each in stream.history.open]


async def end(world: World, name: str = "stream") -> None:
    await awaited(world.controller.seal("scope", name))
    await awaited(world.controller.streams.delete("scope", name))


async def test_numbers_go_on_behind_the_deleted_stream_s_also_behind_those_it_was_scaled_to(
    world: World,
) -> None:
    assert await make(world) == [0, 1]
    await awaited(world.controller.streams.scale("scope", "stream", [0], [(0.0, 0.2), (0.2, 0.5)]))
    await end(world)

    assert await make(world, segments=1) == [4]
    assert await make(world, "other") == [0, 1]
    await end(world)
    await world.close()
    await again(world)
    assert await make(world) == [5, 6]


async def test_numbers_go_on_over_the_deletion_of_the_scope(world: World) -> None:
    await make(world)
    await awaited(world.controller.delete_all("scope"))
    await world.close()
    await again(world)
    await awaited(world.controller.streams.create_scope("scope"))

    assert await make(world) == [2, 3]


async def test_what_was_last_of_the_deleted_stream_is_followed_by_the_first_of_the_new_one(
    world: World,
) -> None:
    await make(world, segments=2)
    await end(world)
    await make(world, segments=1)
    stream = world.controller.registry.stream("scope", "stream")
    before = world.controller.registry.ended.last_segments("scope", "stream")
    (first,) = stream.history.open

    assert stream.history.successors(0, before) == {first: [0, 1]}
    assert stream.history.successors(1, before) == {first: [0, 1]}
    assert stream.history.successors(first.identity, before) == {}


@pytest.mark.parametrize("left", ["stream/9.#epoch.0", "stream/0.#epoch.0#transient.1", "stream/x"])
async def test_a_deleted_stream_leaves_no_segment_that_clients_made_of_it(
    world: World, left: str
) -> None:
    await make(world)
    await world.ask(lambda done: world.local.create_segment(f"scope/{left}", done=done))
    await make(world, "stream2")
    await end(world)

    assert [name for name in world.segments() if "/stream/" in name] == []
    assert len([name for name in world.segments() if "/stream2/" in name]) == 2


async def test_a_deleted_scope_leaves_no_table_of_its_clients(world: World) -> None:
    table = "scope/group_kvtable/0.#epoch.0"
    await world.ask(lambda done: world.local.create_table(table, done=done))

    await awaited(world.controller.streams.delete_scope("scope"))

    assert world.segments() == [TABLE]


async def test_a_scope_with_a_stream_that_was_made_without_the_controller_is_not_empty(
    world: World,
) -> None:
    segment = "scope/stream/0.#epoch.0"
    await world.ask(lambda done: world.local.create_segment(segment, done=done))

    with pytest.raises(ScopeNotEmpty):
        await awaited(world.controller.streams.delete_scope("scope"))
    assert segment in world.segments()

    await awaited(world.controller.delete_all("scope"))
    assert world.segments() == [TABLE]


def test_new_streams_begin_behind_the_numbers_of_those_that_were_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended_streams, "KEPT", 2)
    ended = EndedStreams()
    stored: dict[tuple[str, str], Ended] = {}
    for name, number in (("a", 7), ("b", 5), ("c", 3), ("a", 9), ("d", 1)):
        kept, gone = ended.add(Ended(scope="scope", name=name, next_number=number))
        stored |= {(each.scope, each.name): each for each in kept}
        for each in gone:
            del stored[each.scope, each.name]
    read = EndedStreams()
    read.load(stored.values())

    for known in (ended, read):
        found: dict[str, Any] = {name: known.first_number("scope", name) for name in "abcdx"}
        assert found == {"a": 9, "b": 7, "c": 7, "d": 1, "x": 7}


def test_a_stream_of_very_many_segments_is_remembered_by_its_number_alone() -> None:
    ended = EndedStreams()
    last = tuple(StreamSegment(0.0, 1.0, number, 0) for number in range(LAST_MAX + 1))
    ended.add(Ended(scope="scope", name="many", next_number=33, last=last))
    ended.add(Ended(scope="scope", name="few", next_number=32, last=last[1:]))

    assert ended.first_number("scope", "many") == 33
    assert ended.last_segments("scope", "many") == ()
    assert ended.last_segments("scope", "few") == last[1:]

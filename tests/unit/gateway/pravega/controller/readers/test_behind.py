"""Bytes that groups of readers have not read, on a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.pravega.controller.readers import behind
from gateway.pravega.controller.readers.group import Cut
from gateway.pravega.controller.readers.state import Agreed
from gateway.pravega.controller.records.history import READ_OFF
from gateway.pravega.controller.records.model import StreamPolicy
from gateway.pravega.names import segment_name
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World

ONE, TWO = ("scope", "one"), ("scope", "two")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world whose stream `one` has two segments, of 10 bytes and 20."""
    world = World(tmp_path / "data")
    await awaited((await world.open()).open())
    await awaited(world.controller.streams.create_scope("scope"))
    await awaited(world.controller.streams.create("scope", "one", StreamPolicy(segments=2)))
    await awaited(world.controller.streams.create("scope", "two", StreamPolicy()))
    await write(world, 0, 10)
    await write(world, 1, 20)
    yield world
    await world.close()


async def write(world: World, identity: int, size: int, stream: str = "one") -> None:
    await world.write(segment_name("scope", stream, identity), b"x" * size, number=1)


async def left(world: World, cut: Cut, ends: Cut | None = None) -> int | None:
    """Return what is left of `one` behind a cut, and before its ends."""
    agreed = Agreed((), {ONE: cut}, {} if ends is None else {ONE: ends, TWO: {0: 1}})
    return await awaited(world.controller.behind.unread(agreed))


async def merged(world: World) -> int:
    """Merge both segments of `one`; return the new one, with 5 bytes in it."""
    await awaited(
        world.controller.streams.update(
            "scope", "one", StreamPolicy(scale_type=2, rate=1, factor=2)
        )
    )
    epoch = await awaited(world.controller.streams.scale("scope", "one", [0, 1], [(0.0, 1.0)]))
    assert epoch is not None
    (made,) = epoch.made
    await write(world, made.identity, 5)
    return made.identity


async def test_what_a_group_has_reached_is_not_left(world: World) -> None:
    assert await left(world, {0: 0, 1: 0}) == 30
    assert await left(world, {0: 4, 1: 20}) == 6
    assert await left(world, {0: 10, 1: 20}) == 0
    await world.write(segment_name("scope", "one", 0), b"more", number=2)
    assert await left(world, {0: 10, 1: 20}) == 4


async def test_what_lies_behind_the_ends_of_a_group_is_not_left(world: World) -> None:
    assert await left(world, {0: 4, 1: 0}, {0: 9, 1: 2**63 - 1}) == 25
    assert await left(world, {0: 4, 1: 0}, {0: 3, 1: 1}) == 1
    new = await merged(world)
    assert await left(world, {0: 10, 1: 19}, {new: 3}) == 4
    assert await left(world, {0: 10, 1: 19}, {0: 10, 1: 20}) == 1
    assert await left(world, {new: 1}, {77: 0}) == 4


async def test_what_follows_a_scaling_is_left_with_the_rest_of_what_ended(world: World) -> None:
    new = await merged(world)

    assert await left(world, {0: 4, 1: 20}) == 11
    assert await left(world, {0: READ_OFF, 1: 18}) == 7
    assert await left(world, {new: 1}) == 4


async def test_a_segment_that_is_read_off_is_not_left_where_what_follows_waits_for_another(
    world: World,
) -> None:
    assert await left(world, {1: 18}) == 2
    await merged(world)
    assert await left(world, {1: 18}) == 7


async def test_what_a_truncation_has_taken_is_not_left(world: World) -> None:
    await awaited(world.controller.streams.truncate("scope", "one", {0: 6, 1: 0}))
    assert await left(world, {0: 4, 1: 20}) == 4

    new = await merged(world)
    await awaited(world.controller.streams.truncate("scope", "one", {new: 2}))
    assert await left(world, {0: 4, 1: 20}) == 3


async def test_all_is_left_behind_a_cut_of_segments_that_are_forgotten(world: World) -> None:
    assert await left(world, {77: 4}) == 30


async def test_an_offset_that_is_none_leaves_no_more_than_there_is(world: World) -> None:
    assert await left(world, {0: -(2**63), 1: 2**63 - 1}) == 10


async def test_all_streams_of_a_group_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behind, "LOOKS_A_TURN", 1)
    await write(world, 0, 7, "two")
    agreed = Agreed((), {ONE: {0: 10, 1: 19}, TWO: {0: 0}}, {})

    assert await awaited(world.controller.behind.unread(agreed)) == 8
    assert await awaited(world.controller.behind.unread(Agreed((), {}, {}))) == 0


async def test_a_stream_that_was_made_without_the_controller_counts(world: World) -> None:
    await world.ask(
        lambda done: world.local.create_segment(segment_name("own", "stream", 0), done=done)
    )
    await world.write(segment_name("own", "stream", 0), b"12345")
    agreed = Agreed((), {("own", "stream"): {0: 2}}, {})

    assert await awaited(world.controller.behind.unread(agreed)) == 3


async def test_nothing_is_known_where_a_stream_is_not_there(world: World) -> None:
    for place in (("scope", "none"), ("none", "one"), ("hutch", "_controller_kvtable")):
        agreed = Agreed((), {ONE: {0: 0}, place: {0: 0}}, {})
        assert await awaited(world.controller.behind.unread(agreed)) is None

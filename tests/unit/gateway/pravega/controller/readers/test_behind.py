"""Bytes that groups of readers have not given up, on a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.awaiting import awaited
from gateway.pravega.controller.history import READ_OFF
from gateway.pravega.controller.model import Policy
from gateway.pravega.controller.names import segment_name
from gateway.pravega.controller.readers import behind
from tests.controller_rig import World
from tests.unit.gateway.pravega.controller.readers.test_group import group

ONE, TWO = "scope/one", "scope/two"
MINE = group(1, starts={ONE: {}}, ends={}, cuts={})
"""A group for which its stream waits, and that has given up nothing."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world whose stream `one` has two segments, of 10 bytes and 20."""
    world = World(tmp_path / "data")
    await awaited((await world.open()).open())
    await awaited(world.controller.streams.create_scope("scope"))
    await awaited(world.controller.streams.create("scope", "one", Policy(segments=2)))
    await awaited(world.controller.streams.create("scope", "two", Policy()))
    await write(world, 0, 10)
    await write(world, 1, 20)
    yield world
    await world.close()


async def write(world: World, identity: int, size: int, stream: str = "one") -> None:
    await world.write(segment_name("scope", stream, identity), b"x" * size, number=1)


async def left(world: World, **given: object) -> int | None:
    return await awaited(world.controller.behind.bytes_of(replace(MINE, **given)))  # type: ignore[arg-type]


async def merged(world: World) -> int:
    """Merge both segments of `one`; return the new one, with 5 bytes in it."""
    await awaited(
        world.controller.streams.update("scope", "one", Policy(scale_type=2, rate=1, factor=2))
    )
    epoch = await awaited(world.controller.streams.scale("scope", "one", [0, 1], [(0.0, 1.0)]))
    assert epoch is not None
    (made,) = epoch.made
    await write(world, made.identity, 5)
    return made.identity


async def test_all_is_left_to_a_group_that_has_given_up_nothing(world: World) -> None:
    assert await left(world) == 30
    assert await left(world, starts={ONE: {0: 4, 1: 20}}) == 6


async def test_what_a_group_has_given_up_is_not_left(world: World) -> None:
    assert await left(world, cuts={ONE: {0: 4, 1: 20}}) == 6
    assert await left(world, cuts={ONE: {0: 10, 1: 20}}) == 0
    await world.write(segment_name("scope", "one", 0), b"more", number=2)
    assert await left(world, cuts={ONE: {0: 10, 1: 20}}) == 4


async def test_what_follows_a_scaling_is_left_with_the_rest_of_what_ended(world: World) -> None:
    new = await merged(world)

    assert await left(world, cuts={ONE: {0: 4, 1: 20}}) == 11
    assert await left(world, cuts={ONE: {0: READ_OFF, 1: 18}}) == 7
    assert await left(world, cuts={ONE: {new: 1}}) == 4


async def test_what_a_truncation_has_taken_is_not_left(world: World) -> None:
    await awaited(world.controller.streams.truncate("scope", "one", {0: 6, 1: 0}))
    assert await left(world, cuts={ONE: {0: 4, 1: 20}}) == 4

    new = await merged(world)
    await awaited(world.controller.streams.truncate("scope", "one", {new: 2}))
    assert await left(world, cuts={ONE: {0: 4, 1: 20}}) == 3


async def test_all_is_left_behind_a_cut_of_segments_that_are_forgotten(world: World) -> None:
    assert await left(world, cuts={ONE: {77: 4}}) == 30


async def test_all_streams_of_a_group_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behind, "LOOKS_A_TURN", 1)
    await write(world, 0, 7, "two")

    assert await left(world, starts={ONE: {}, TWO: {}}, cuts={ONE: {0: 10, 1: 20}}) == 7


async def test_nothing_is_known_where_no_stream_waits_or_one_is_not_known(world: World) -> None:
    assert await left(world, retention=0) is None
    assert await left(world, starts={ONE: {}, "scope/none": {}}) is None
    assert await left(world, starts={"rmq-.2f/_orders-1": {}}) is None

"""Changes of groups of readers, on a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.pravega.controller.errors import (
    BadName,
    InvalidRequest,
    NoSuchGroup,
    NoSuchScope,
    NoSuchStream,
    OldGeneration,
    OtherGroup,
)
from gateway.pravega.controller.readers.group import ReaderGroup
from gateway.pravega.controller.readers.groups import CUTS_MAX, STREAMS_MAX
from gateway.pravega.controller.records.model import StreamPolicy
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World
from tests.unit.gateway.pravega.controller.readers.test_group import group

STREAM = "scope/stream"
MINE = group(1, generation=0, starts={STREAM: {}}, ends={STREAM: {}}, cuts={})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path / "data")
    await awaited((await world.open()).open())
    await awaited(world.controller.streams.create_scope("scope"))
    await awaited(world.controller.streams.create("scope", "stream", StreamPolicy(segments=2)))
    merging = StreamPolicy(scale_type=2, rate=1, factor=2)
    await awaited(world.controller.streams.update("scope", "stream", merging))
    yield world
    await world.close()


async def made(world: World, wanted: ReaderGroup = MINE) -> ReaderGroup:
    return await awaited(world.controller.groups.create(wanted))


async def reopened(world: World) -> None:
    await world.close()
    await awaited((await world.open()).open())


def names(world: World) -> list[str]:
    return list(world.controller.registry.streams("scope"))


async def give_up(world: World, cut: dict[int, int], **given: object) -> None:
    now = world.controller.groups.find("scope", "group")
    fields = {"identity": now.identity, "generation": now.generation, "stream": STREAM} | given
    await awaited(world.controller.groups.give_up(now, cut=cut, **fields))  # type: ignore[arg-type]


async def test_a_group_has_a_stream_of_one_segment_and_is_there_after_a_restart(
    world: World,
) -> None:
    assert await made(world) == MINE

    await reopened(world)

    assert world.controller.groups.find("scope", "group") == MINE
    stream = world.controller.registry.stream("scope", "_RGgroup")
    assert len(stream.history.open) == 1
    assert stream.policy.rollover_bytes == MINE.rollover_bytes


async def test_a_group_that_is_there_stays_as_it_is(world: World) -> None:
    await made(world)

    assert await made(world, replace(MINE, identity="other", refresh_ms=1)) == MINE


@pytest.mark.parametrize("name", ["_group", "a/b", "", ".", "a" * 252, "ä"])
async def test_no_group_has_a_name_that_is_none(world: World, name: str) -> None:
    with pytest.raises(BadName):
        await made(world, replace(MINE, name=name))
    assert names(world) == ["stream"]


async def test_a_group_needs_a_scope_and_room_in_its_record(world: World) -> None:
    with pytest.raises(NoSuchScope):
        await made(world, replace(MINE, scope="none"))
    with pytest.raises(InvalidRequest, match="10001 segments in the cuts"):
        await made(world, replace(MINE, starts={STREAM: dict.fromkeys(range(CUTS_MAX + 1), 0)}))
    many = {f"scope/{number}": dict[int, int]() for number in range(STREAMS_MAX + 1)}
    with pytest.raises(InvalidRequest, match="1001 streams"):
        await made(world, replace(MINE, starts=many))
    long = {f"scope/{number:01000}": dict[int, int]() for number in range(STREAMS_MAX)}
    with pytest.raises(InvalidRequest, match=r"bytes of .*, above 524288"):
        await made(world, replace(MINE, starts=long))


async def test_a_group_is_configured_anew_from_the_generation_that_it_has(world: World) -> None:
    await made(world)

    changed = await awaited(world.controller.groups.update(replace(MINE, refresh_ms=7)))
    assert changed == replace(MINE, refresh_ms=7, generation=1)

    with pytest.raises(OldGeneration):
        await awaited(world.controller.groups.update(MINE))
    with pytest.raises(OtherGroup):
        await awaited(world.controller.groups.update(replace(changed, identity="other")))
    with pytest.raises(NoSuchGroup):
        await awaited(world.controller.groups.update(replace(changed, name="none")))
    await reopened(world)
    assert world.controller.groups.find("scope", "group") == changed


async def test_a_deleted_group_goes_with_its_stream_and_is_another_one_afterwards(
    world: World,
) -> None:
    groups = world.controller.groups
    await made(world)
    with pytest.raises(OtherGroup):
        await awaited(groups.delete("scope", "group", "other"))

    await awaited(groups.delete("scope", "group", MINE.identity))

    assert names(world) == ["stream"]
    with pytest.raises(NoSuchGroup):
        await awaited(groups.delete("scope", "group", MINE.identity))
    assert await made(world, replace(MINE, identity="new")) == replace(MINE, identity="new")
    (segment,) = world.controller.registry.stream("scope", "_RGgroup").history.open
    assert segment.number == 1, "an old place would be one of the new group"


async def test_a_deletion_that_was_cut_short_is_finished_at_the_next_start(world: World) -> None:
    await made(world)
    await awaited(world.controller.registry.save_group(replace(MINE, is_ending=True)))
    with pytest.raises(NoSuchGroup):
        world.controller.groups.find("scope", "group")

    await reopened(world)

    assert not world.controller.registry.groups
    assert names(world) == ["stream"]


async def test_a_group_that_is_being_deleted_may_be_made_again(world: World) -> None:
    await made(world)
    await awaited(world.controller.registry.save_group(replace(MINE, is_ending=True)))

    assert await made(world, replace(MINE, identity="new")) == replace(MINE, identity="new")


async def test_a_scope_goes_with_its_groups(world: World) -> None:
    await made(world)

    await awaited(world.controller.delete_all("scope"))

    assert not world.controller.registry.groups
    await reopened(world)
    assert not world.controller.registry.groups
    assert "scope" not in world.controller.registry.scopes


async def test_a_stream_lists_the_groups_that_it_waits_for(world: World) -> None:
    def subscribers() -> list[str]:
        return [each.name for each in world.controller.registry.subscribers("scope", "stream")]

    for name, retention in (("b", 1), ("a", 2), ("none", 0)):
        await made(world, replace(MINE, name=name, retention=retention))
    assert subscribers() == ["a", "b"]
    await reopened(world)
    assert subscribers() == ["a", "b"]

    await awaited(world.controller.groups.update(replace(MINE, name="b", retention=0)))
    assert subscribers() == ["a"]
    await awaited(world.controller.groups.delete("scope", "a", MINE.identity))
    assert subscribers() == []


async def test_what_a_group_gives_up_is_kept_over_a_restart(world: World) -> None:
    await made(world)

    await give_up(world, {0: 0, 1: 0})
    await give_up(world, {0: 5, 1: 0})
    await reopened(world)

    assert world.controller.groups.find("scope", "group").cuts == {STREAM: {0: 5, 1: 0}}


async def test_nothing_is_given_up_that_was_given_up_before_or_is_none(world: World) -> None:
    await made(world)
    await give_up(world, {0: 5, 1: 3})

    with pytest.raises(InvalidRequest, match="lies before"):
        await give_up(world, {0: 5, 1: 2})
    for cut in ({}, {0: 9}, {0: 9, 9: 9}, {0: -1, 1: 3}):
        with pytest.raises(InvalidRequest, match="no cut"):
            await give_up(world, cut)
    with pytest.raises(OldGeneration):
        await give_up(world, {0: 9, 1: 9}, generation=1)
    with pytest.raises(OtherGroup):
        await give_up(world, {0: 9, 1: 9}, identity="other")
    with pytest.raises(NoSuchStream):
        await give_up(world, {0: 9, 1: 9}, stream="scope/none")
    with pytest.raises(NoSuchGroup):
        await give_up(world, {0: 9}, stream="scope/_RGgroup")
    assert world.controller.groups.find("scope", "group").cuts == {STREAM: {0: 5, 1: 3}}


async def test_a_cut_may_leave_segments_behind_that_were_scaled_away(world: World) -> None:
    await made(world)
    await give_up(world, {0: 5, 1: 3})
    scaled = await awaited(world.controller.streams.scale("scope", "stream", [0, 1], [(0.0, 1.0)]))
    assert scaled is not None

    await give_up(world, {scaled.made[0].identity: 0})

    with pytest.raises(InvalidRequest, match="lies before"):
        await give_up(world, {0: 6, 1: 4})


async def test_what_was_given_up_of_a_stream_goes_when_it_waits_no_more(world: World) -> None:
    await made(world)
    await give_up(world, {0: 5, 1: 3})

    changed = await awaited(world.controller.groups.update(replace(MINE, retention=0)))

    assert changed.cuts == {}

"""States of groups, read from their streams on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.broker import yielding
from gateway.pravega.controller.readers import packed
from gateway.pravega.controller.readers import states as module
from gateway.pravega.controller.readers.group import ReaderGroup
from gateway.pravega.controller.readers.packed import UnreadableValue
from gateway.pravega.controller.readers.state import Agreed
from gateway.pravega.controller.readers.states import BYTES_MAX, MARK, NOTHING
from gateway.server.loop.awaiting import awaited
from store.api import AttributeUpdate
from store.errors import SegmentTruncated
from tests.controller_rig import World
from tests.group_states import ONE, TWO, add, begun, changes, compacted, framed, whole
from tests.unit.gateway.pravega.controller.readers.test_group import group

SEGMENT = "scope/_RGgroup/0.#epoch.0"
STREAM = "scope", "one"
FIRST = framed(whole(begun({ONE: 1})), changes(add("a")))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world with a group of readers that have written nothing."""
    world = World(tmp_path / "data")
    controller = await world.open()
    await awaited(controller.open())
    await awaited(controller.streams.create_scope("scope"))
    await awaited(controller.groups.create(the_group()))
    yield world
    await world.close()


def the_group() -> ReaderGroup:
    return group(starts={"scope/one": {}}, ends={}, cuts={})


async def read(world: World, **given: object) -> Agreed | None:
    return await awaited(world.controller.states.of(replace(the_group(), **given)))  # type: ignore[arg-type]


async def mark(world: World, position: int) -> None:
    update = [AttributeUpdate(MARK, position)]
    await world.ask(lambda done: world.local.update_attributes(SEGMENT, update, done=done))


async def truncate(world: World, position: int) -> None:
    await world.ask(lambda done: world.local.truncate_segment(SEGMENT, position, done=done))


async def test_a_state_is_read_with_its_changes(world: World) -> None:
    await world.write(SEGMENT, FIRST)

    assert await read(world) == Agreed(("a",), {STREAM: {0: 1}}, {})


async def test_a_group_of_which_nothing_is_written_has_no_members(world: World) -> None:
    assert await read(world) is NOTHING


@pytest.mark.parametrize("is_truncated", [False, True])
async def test_it_is_read_from_the_newest_whole_state_on(
    world: World, *, is_truncated: bool
) -> None:
    await world.write(SEGMENT, b"what is no event")
    await world.write(SEGMENT, framed(whole(compacted({"b": {}}, {TWO: 2}))), number=2)
    if is_truncated:
        await truncate(world, 16)
    await mark(world, 3 if is_truncated else 16)

    assert await read(world) == Agreed(("b",), {STREAM: {1: 2}}, {})


async def test_a_truncated_stream_without_a_mark_begins_with_a_whole_state(world: World) -> None:
    await world.write(SEGMENT, b"gone" + FIRST)
    await truncate(world, 4)

    assert await read(world) == Agreed(("a",), {STREAM: {0: 1}}, {})


async def test_a_state_is_read_in_pieces(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 7)
    await world.write(SEGMENT, FIRST)

    assert await read(world) == Agreed(("a",), {STREAM: {0: 1}}, {})


async def test_a_state_that_is_truncated_meanwhile_is_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.write(SEGMENT, FIRST)
    segments: Any = world.controller.states._segments
    wanted = segments.read
    refused = [SegmentTruncated("meanwhile", 1)] * (module.TRIES - 1)

    async def read_later(*place: object) -> bytes:
        if refused:
            raise refused.pop()
        data: bytes = await wanted(*place)
        return data

    monkeypatch.setattr(segments, "read", read_later)
    assert await read(world) == Agreed(("a",), {STREAM: {0: 1}}, {})
    refused = [SegmentTruncated("meanwhile", 1)] * module.TRIES
    with pytest.raises(UnreadableValue, match="truncated all the time"):
        await read(world)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\0\0\0\1\0\0\0\0", "no event"),
        (FIRST[:-1], "not whole"),
        (framed(b"\0\0\0\1"), "bytes are wanted"),
        (framed(changes()), "no whole state"),
    ],
)
async def test_what_is_no_state_is_an_error(world: World, data: bytes, words: str) -> None:
    await world.write(SEGMENT, data)

    with pytest.raises(UnreadableValue, match=words):
        await read(world)


async def test_a_state_has_a_largest_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert BYTES_MAX == 8 * 1024 * 1024
    await world.write(SEGMENT, FIRST)
    for size in (len(FIRST), len(FIRST) + 1):
        monkeypatch.setattr(module, "BYTES_MAX", size)
        assert await read(world) is not None

    monkeypatch.setattr(module, "BYTES_MAX", len(FIRST) - 1)
    with pytest.raises(UnreadableValue, match=f"{len(FIRST)} bytes, and may have {len(FIRST) - 1}"):
        await read(world)


async def test_a_mark_behind_the_end_is_no_place(world: World) -> None:
    await world.write(SEGMENT, FIRST)
    await mark(world, len(FIRST) + 1)

    with pytest.raises(UnreadableValue, match="it has -1 bytes"):
        await read(world)


async def test_a_group_that_is_gone_has_no_state(world: World) -> None:
    assert await read(world, name="none") is None
    assert await read(world, scope="none") is None
    await world.ask(lambda done: world.local.delete_segment(SEGMENT, done=done))
    assert await read(world) is None


async def test_one_state_is_read_at_a_time(world: World) -> None:
    await world.write(SEGMENT, FIRST)
    states = world.controller.states

    async with states._locks.hold(module._ONE):
        pending = asyncio.create_task(awaited(states.of(the_group())))
        await asyncio.sleep(0)
        assert not pending.done()

    assert await pending == Agreed(("a",), {STREAM: {0: 1}}, {})


async def test_others_have_their_turn_while_a_long_state_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"scope/one/{number}.#epoch.0": number for number in range(packed.ENTRIES_MAX)}
    await world.write(SEGMENT, framed(whole(begun(many))))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await asyncio.sleep(0)
    # Steps, of which each may take a turn: the entries are read, and sorted by their streams.
    monkeypatch.setattr(yielding, "THINGS_A_TURN", 1)
    found = await read(world)
    counting.cancel()

    assert found is not None
    assert len(found.reached[STREAM]) == packed.ENTRIES_MAX
    assert turns > 2 * packed.ENTRIES_MAX // packed.ENTRIES_A_STEP

"""A change that the end of the process cuts short is finished or undone by the next one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gateway.pending import start
from gateway.pravega.controller.controller import Controller
from gateway.pravega.controller.errors import ChangeRefused
from gateway.pravega.controller.records.model import (
    StreamPolicy,
    StreamRecord,
    StreamState,
    TransactionState,
)
from gateway.pravega.names import TABLE
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World

Change = Callable[[Controller], Coroutine[Any, Any, object]]


async def _made(controller: Controller) -> None:
    await controller.streams.create_scope("scope")
    await controller.streams.create("scope", "stream", StreamPolicy(segments=2))
    # Its segments may merge, as it needs only one.
    await controller.streams.update("scope", "stream", StreamPolicy(scale_type=2, rate=1, factor=2))


async def _sealed(controller: Controller) -> None:
    await _made(controller)
    await controller.seal("scope", "stream")


async def _scaled(controller: Controller) -> None:
    await _made(controller)
    await controller.streams.scale("scope", "stream", [0, 1], [(0.0, 1.0)])


async def _begun(controller: Controller) -> None:
    await _made(controller)
    await controller.transactions.create("scope", "stream", 60_000)


async def _begun_and_scaled(controller: Controller) -> None:
    await _begun(controller)
    await controller.streams.scale("scope", "stream", [0, 1], [(0.0, 1.0)])


def _only_transaction(controller: Controller) -> int:
    return next(iter(controller.registry.transactions["scope", "stream"]))


async def _commit(controller: Controller) -> object:
    return await controller.transactions.commit("scope", "stream", _only_transaction(controller))


async def _abort(controller: Controller) -> object:
    return await controller.transactions.abort("scope", "stream", _only_transaction(controller))


CHANGES: dict[str, tuple[Change, Change]] = {
    "scope": (lambda c: c.registry.load(), lambda c: c.streams.create_scope("scope")),
    "create": (
        lambda c: c.streams.create_scope("scope"),
        lambda c: c.streams.create("scope", "stream", StreamPolicy(segments=3)),
    ),
    "update": (
        _made,
        lambda c: c.streams.update("scope", "stream", StreamPolicy(segments=2, tags=("a",))),
    ),
    "update to more segments": (
        _made,
        lambda c: c.streams.update("scope", "stream", StreamPolicy(segments=3)),
    ),
    "scale": (_made, lambda c: c.streams.scale("scope", "stream", [0], [(0.0, 0.2), (0.2, 0.5)])),
    "truncate": (_scaled, lambda c: c.streams.truncate("scope", "stream", {(1 << 32) + 2: 0})),
    "seal": (_begun, lambda c: c.seal("scope", "stream")),
    "delete": (_sealed, lambda c: c.streams.delete("scope", "stream")),
    "delete all": (_begun, lambda c: c.delete_all("scope")),
    "commit": (_begun, _commit),
    "commit after scaling": (_begun_and_scaled, _commit),
    "abort": (_begun, _abort),
}


@dataclass
class Outcome:
    """State after a change: streams, transactions' states, and segments in the store."""

    streams: list[StreamRecord]
    states: list[TransactionState]
    segments: dict[str, bool]


async def outcome(world: World) -> Outcome:
    registry = world.controller.registry
    streams = [each for some in registry.scopes.values() for each in some.values()]
    states = [each.state for some in registry.transactions.values() for each in some.values()]
    names = [name for name in world.segments() if name != TABLE]
    infos = [await world.info(name) for name in names]
    return Outcome(streams, states, {each.name: each.sealed for each in infos if each})


def check(found: Outcome) -> None:
    """Every segment there belongs to a stream as it is, and none is missing."""
    expected: dict[str, bool] = {}
    for stream in found.streams:
        assert stream.state.is_settled
        now = {each.identity for each in stream.history.open}
        gone = set()
        if stream.cut:
            gone = {identity for identity in stream.history.segments if identity not in now}
        for identity in set(stream.history.segments) - gone:
            is_open = identity in now and stream.state is not StreamState.SEALED
            expected[stream.segment_name(identity)] = not is_open
    of_streams = {k: v for k, v in found.segments.items() if "#transaction" not in k}
    assert of_streams == expected
    parts = [name for name in found.segments if "#transaction" in name]
    assert bool(parts) == (TransactionState.OPEN in found.states)


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


@pytest.fixture
async def worlds(tmp_path: Path) -> AsyncIterator[Callable[[], World]]:
    made: list[World] = []

    def make() -> World:
        made.append(World(tmp_path / str(len(made))))
        return made[-1]

    yield make
    for world in made:
        await world.close()


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
        check(await outcome(world))
        with suppress(ChangeRefused, StopIteration):
            await awaited(change(world.controller))
        check(await outcome(world))
        if is_done:
            break
    assert changes > 0


async def test_what_a_transaction_wrote_is_there_once_wherever_its_commit_is_cut_short(
    worlds: Callable[[], World],
) -> None:
    for changes in count():
        world = worlds()
        await awaited((await world.open()).open())
        await awaited(_begun(world.controller))
        identity = _only_transaction(world.controller)
        for number in (0, 1):
            part = f"scope/stream/{number}.#epoch.0#transaction.{identity:032x}"
            await world.write(part, b"event-%d" % number)
        halves = [(0.0, 0.25), (0.25, 0.5)]
        await awaited(world.controller.streams.scale("scope", "stream", [0], halves))
        world.store.changes = changes
        is_done = await tried(world, _commit)

        await world.close()
        await awaited((await world.open()).open())
        state = world.controller.transactions.find("scope", "stream", identity).state
        assert state is (TransactionState.COMMITTED if changes else TransactionState.OPEN)
        if state is TransactionState.OPEN:
            assert await awaited(_commit(world.controller))
        stream = world.controller.registry.stream("scope", "stream")
        there = [
            await world.content(stream.segment_name(each))
            for each in sorted(stream.history.segments)
        ]
        assert sorted(filter(None, there)) == [b"event-0", b"event-1"]
        keys = [(each.low, each.high) for each in stream.history.open]
        assert keys == [*halves, (0.5, 1.0)]
        if is_done:
            break
    assert changes > 5

"""Rounds of retention, on a real store and with a clock of the test's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord
from gateway.pravega.controller.rounds.places import BY_SIZE, BY_TIME
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World
from tests.unit.gateway.pravega.controller.readers.test_groups import MINE, STREAM

HOUR = 3_600_000
FIRST = "scope/stream/0.#epoch.0"


class Rig(World):
    """A stream that is written to in rounds."""

    number = 0

    async def make(self, **policy: int) -> None:
        made = replace(StreamPolicy(), **policy)  # type: ignore[arg-type]  # numbers of a policy
        await awaited(self.controller.streams.create("scope", "stream", made))

    async def append(self, size: int, segment: str = FIRST) -> None:
        self.number += 1
        await self.write(segment, bytes(size), self.number)

    async def look(self, later_ms: int = HOUR) -> None:
        await awaited(self.controller.retain())
        self.clock.now_ms += later_ms

    async def start_of(self, segment: str = FIRST) -> int:
        info = await self.info(segment)
        assert info is not None
        return info.start

    @property
    def stream(self) -> StreamRecord:
        return self.controller.registry.stream("scope", "stream")

    @property
    def places(self) -> list[int]:
        return [each.size for each in self.controller.registry.places_of(self.stream)]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path / "data")
    await awaited((await rig.open()).open())
    await awaited(rig.controller.streams.create_scope("scope"))
    yield rig
    await rig.close()


async def test_what_is_older_than_the_policy_keeps_is_truncated(rig: Rig) -> None:
    await rig.make(retention_type=BY_TIME, retention=2 * HOUR)
    starts = []
    for _ in range(6):
        await rig.append(100)
        await rig.look()
        starts.append(await rig.start_of())

    assert starts == [0, 0, 100, 200, 300, 400]


async def test_a_stream_to_which_nothing_comes_is_emptied(rig: Rig) -> None:
    await rig.make(retention_type=BY_TIME, retention=2 * HOUR)
    await rig.append(100)
    for _ in range(4):
        await rig.look()

    assert await rig.start_of() == 100
    assert len(rig.places) == 1


async def test_what_is_above_the_size_that_is_kept_is_truncated(rig: Rig) -> None:
    await rig.make(retention_type=BY_SIZE, retention=250)
    starts = []
    for _ in range(6):
        await rig.append(100)
        await rig.look()
        starts.append(await rig.start_of())

    assert starts == [0, 0, 0, 100, 200, 300]


async def test_a_restart_forgets_no_place(rig: Rig) -> None:
    await rig.make(retention_type=BY_TIME, retention=2 * HOUR)
    await rig.append(100)
    await rig.look()
    await rig.append(100)
    await rig.look()

    await rig.reopened()
    assert rig.places == [100, 200]
    await rig.look()

    assert await rig.start_of() == 100


async def test_a_stream_is_truncated_over_a_scaling(rig: Rig) -> None:
    await rig.make(retention_type=BY_SIZE, retention=150)
    await rig.append(100)
    await rig.look()
    scaled = await awaited(
        rig.controller.streams.scale("scope", "stream", [0], [(0.0, 0.5), (0.5, 1.0)])
    )
    assert scaled is not None
    new = [rig.stream.segment_name(each.identity) for each in scaled.made]
    for segment in new:
        await rig.append(100, segment)
    await rig.look()
    assert await rig.start_of() == 100
    for segment in new:
        await rig.append(100, segment)
    await rig.look()

    assert await rig.info(FIRST) is None
    assert [await rig.start_of(segment) for segment in new] == [100, 100]
    assert rig.places == [300, 500]


async def group(rig: Rig, name: str, offset: int | None) -> None:
    """Make a group that the stream waits for, and that has given up so much."""
    made = await awaited(rig.controller.groups.create(replace(MINE, name=name)))
    if offset is not None:
        given_up = rig.controller.groups.give_up(made, made.identity, 0, STREAM, {0: offset})
        await awaited(given_up)


async def test_truncation_obeys_the_slowest_reader(rig: Rig) -> None:
    await rig.make(retention_type=BY_TIME, retention=HOUR)
    for _ in range(4):
        await rig.append(100)
        await rig.look()
    assert await rig.start_of() == 300

    await group(rig, "slow", 350)
    await group(rig, "fast", 400)
    await group(rig, "silent", None)
    await rig.append(100)
    await rig.look()
    assert await rig.start_of() == 350

    slow = rig.controller.groups.find("scope", "slow")
    await awaited(rig.controller.groups.give_up(slow, slow.identity, 0, STREAM, {0: 400}))
    await rig.look()
    assert await rig.start_of() == 400


async def test_what_all_have_given_up_goes_though_no_round_has_noted_that_place(rig: Rig) -> None:
    await rig.make(retention_type=BY_SIZE, retention=10)
    await rig.append(34)
    await group(rig, "slow", 17)
    await group(rig, "fast", 30)
    await rig.look()
    assert await rig.start_of() == 17

    slow = rig.controller.groups.find("scope", "slow")
    await awaited(rig.controller.groups.give_up(slow, slow.identity, 0, STREAM, {0: 30}))
    for _ in range(3):
        await rig.look()
    assert await rig.start_of() == 17  # behind 30 there is less than the least

    await rig.append(6)
    await rig.look()
    assert await rig.start_of() == 30


async def test_a_reader_that_is_too_slow_loses_what_is_above_the_most(rig: Rig) -> None:
    await rig.make(retention_type=BY_TIME, retention=HOUR, retention_max=3 * HOUR)
    await rig.append(100)
    await group(rig, "slow", 0)
    starts = []
    for _ in range(5):
        await rig.look()
        await rig.append(100)
        starts.append(await rig.start_of())

    assert starts == [0, 0, 0, 100, 200]


async def test_places_go_with_the_policy_and_with_the_stream(rig: Rig) -> None:
    await rig.make(retention_type=BY_TIME, retention=HOUR)
    await rig.append(100)
    await rig.look()
    assert rig.places == [100]

    await awaited(rig.controller.streams.update("scope", "stream", StreamPolicy()))
    await rig.look()
    assert rig.places == []

    await awaited(
        rig.controller.streams.update(
            "scope", "stream", StreamPolicy(retention_type=BY_TIME, retention=HOUR)
        )
    )
    await rig.look()
    await awaited(rig.controller.delete_all("scope"))
    await rig.look()
    await rig.reopened()
    assert not rig.controller.registry.places


async def test_a_truncation_by_hand_is_gone_on_from(rig: Rig) -> None:
    await rig.make(retention_type=BY_TIME, retention=2 * HOUR)
    for _ in range(2):
        await rig.append(100)
        await rig.look()
    await awaited(rig.controller.streams.truncate("scope", "stream", {0: 150}))
    await rig.look()
    assert await rig.start_of() == 150

    await rig.look()
    assert await rig.start_of() == 200


async def test_a_sealed_stream_keeps_what_it_has(rig: Rig) -> None:
    await rig.make(retention_type=BY_TIME, retention=HOUR)
    await rig.append(100)
    await awaited(rig.controller.seal("scope", "stream"))
    for _ in range(3):
        await rig.look()

    assert await rig.start_of() == 0


async def test_what_was_given_up_of_a_deleted_stream_harms_none_of_its_name(rig: Rig) -> None:
    await rig.make()
    await rig.append(100)
    await group(rig, "old", 100)
    await awaited(rig.controller.seal("scope", "stream"))
    await awaited(rig.controller.streams.delete("scope", "stream"))
    await rig.make(retention_type=BY_TIME, retention=HOUR)
    segment = "scope/stream/1.#epoch.0"
    for _ in range(3):
        await rig.append(100, segment)
        await rig.look()
    assert await rig.start_of(segment) == 0

    old = rig.controller.groups.find("scope", "old")
    await awaited(rig.controller.groups.give_up(old, old.identity, 0, STREAM, {1: 200}))
    await rig.look()

    assert await rig.start_of(segment) == 200

"""Scaling by policies, on a real store and with a clock of the test's."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.pending import Pending
from gateway.pravega.controller import streams
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord
from gateway.pravega.controller.rounds import scaling
from gateway.pravega.controller.rounds.plans import BY_EVENTS, BY_SIZE
from gateway.server.loop.awaiting import awaited, next_turn
from tests.controller_rig import World

MINUTE = 60_000
TICK = 5_000
TARGET = 100


class Rig(World):
    """A stream that is written to for some minutes."""

    async def make(self, segments: int = 1, scale_type: int = BY_EVENTS, factor: int = 2) -> None:
        policy = StreamPolicy(scale_type=scale_type, rate=TARGET, factor=factor, segments=segments)
        await awaited(self.controller.streams.create("scope", "stream", policy))

    async def run(self, minutes: float, rate: Callable[[float], float], size: int = 1) -> None:
        """Let time pass; `rate` gives the events a second of the segment at a key."""
        for _ in range(round(minutes * MINUTE / TICK)):
            for each in self.stream.history.open:
                events = round(rate(each.low) * TICK / 1_000)
                name = self.stream.segment_name(each.identity)
                self.traffic.note(name, size * events, events)
            self.clock.now_ms += TICK
            await awaited(self.controller.rescale())

    @property
    def stream(self) -> StreamRecord:
        return self.controller.registry.stream("scope", "stream")

    @property
    def keys(self) -> list[float]:
        return [each.low for each in self.stream.history.open]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path / "data")
    await awaited((await rig.open()).open())
    await awaited(rig.controller.streams.create_scope("scope"))
    yield rig
    await rig.close()


async def test_a_busy_segment_is_split_once_within_the_cooldown(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await rig.make()
    await rig.run(10, lambda _: 10 * TARGET)
    assert rig.keys == [0]
    await rig.run(4, lambda _: 10 * TARGET)
    assert rig.keys == [0, 0.5]
    await rig.run(8, lambda _: 10 * TARGET)
    assert rig.keys == [0, 0.5]
    await rig.run(4, lambda _: 10 * TARGET)
    assert rig.keys == [0, 0.25, 0.5, 0.75]
    lines = [each for each in caplog.messages if "scaled by the policy" in each]
    assert len(lines) == 3
    assert "stream=scope/stream segments=0.#epoch.0 into=2 rate=1000.0 why=" in lines[0]
    assert "above 5 times 100" in lines[0]


async def test_cold_neighbours_merge_down_to_the_least_number(rig: Rig) -> None:
    await rig.make(segments=2)
    await awaited(rig.controller.streams.scale("scope", "stream", [0], [(0, 0.25), (0.25, 0.5)]))
    await rig.run(19, lambda _: 0)
    assert len(rig.keys) == 3
    await rig.run(5, lambda _: 0)
    assert len(rig.keys) == 2
    await rig.run(60, lambda _: 0)
    assert len(rig.keys) == 2


async def test_a_quiet_segment_beside_a_busy_one_stays_and_the_busy_one_is_split(rig: Rig) -> None:
    await rig.make(segments=2)
    await rig.run(12, lambda key: 3 * TARGET if key < 0.5 else 0)
    assert rig.keys == [0, 0.25, 0.5]
    await rig.run(30, lambda key: 0.9 * TARGET if key < 0.5 else 0)
    assert rig.keys == [0, 0.25, 0.5]


async def test_bytes_count_where_the_policy_is_of_bytes(rig: Rig) -> None:
    await rig.make(scale_type=BY_SIZE)
    await rig.run(20, lambda _: 10, size=9 * 1_024)
    assert rig.keys == [0]
    await rig.run(9, lambda _: 10, size=11 * 1_024)
    assert rig.keys == [0, 0.5]


async def test_a_stream_of_a_fixed_number_is_left_as_it_is(rig: Rig) -> None:
    await rig.make(segments=2, scale_type=0)
    await rig.run(60, lambda key: 100 * TARGET if key else 0)

    assert rig.keys == [0, 0.5]


async def test_after_a_restart_a_busy_stream_is_not_taken_for_a_quiet_one(rig: Rig) -> None:
    await rig.make(segments=1)
    await awaited(rig.controller.streams.scale("scope", "stream", [0], [(0, 0.5), (0.5, 1)]))
    await rig.run(60, lambda _: 0.9 * TARGET)
    await rig.reopened()
    await rig.run(30, lambda _: 0.9 * TARGET)

    assert len(rig.keys) == 2


async def test_a_policy_that_changes_its_rate_begins_anew(rig: Rig) -> None:
    await rig.make()
    await rig.run(30, lambda _: 0.9 * TARGET)
    policy = replace(rig.stream.policy, rate=TARGET // 10)
    await awaited(rig.controller.streams.update("scope", "stream", policy))
    await rig.run(9, lambda _: 0.9 * TARGET)
    assert rig.keys == [0]
    await rig.run(4, lambda _: 0.9 * TARGET)
    assert rig.keys == [0, 0.5]


async def test_a_commit_to_what_was_scaled_does_not_make_the_rates_begin_anew(rig: Rig) -> None:
    await rig.make()
    of_all = rig.controller.transactions
    made, _ = await awaited(of_all.create("scope", "stream", 10_000_000))
    scale = rig.controller.streams.scale
    await awaited(scale("scope", "stream", [0], [(0, 0.5), (0.5, 1)]))
    await rig.write(f"scope/stream/0.#epoch.0#transaction.{made.identity:032x}", b"x")
    await rig.run(9, lambda _: 10 * TARGET)
    assert await awaited(of_all.commit("scope", "stream", made.identity))
    assert rig.stream.history.last.number == 3
    await rig.run(4, lambda _: 10 * TARGET)

    assert rig.keys == [0, 0.25, 0.5, 0.75]


async def test_a_stream_that_cannot_be_scaled_is_tried_again_later(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await rig.make()
    monkeypatch.setattr(streams, "SEGMENTS_MAX", 1)
    await rig.run(30, lambda _: 10 * TARGET)
    assert rig.keys == [0]
    lines = [each for each in caplog.messages if "cannot scale" in each]
    assert len(lines) == 2
    assert "stream=scope/stream reason=" in lines[0]

    monkeypatch.undo()
    await rig.run(14, lambda _: 10 * TARGET)
    assert rig.keys == [0, 0.5]


async def test_many_segments_are_counted_and_judged_in_several_turns(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0

    def counted() -> Pending[None]:
        nonlocal turns
        turns += 1
        return next_turn()

    monkeypatch.setattr(scaling, "COUNTED_A_TURN", 3)
    monkeypatch.setattr(scaling, "next_turn", counted)
    await rig.make(segments=10)
    await rig.run(1, lambda _: TARGET)
    assert turns == 3 * MINUTE // TICK
    await rig.run(1, lambda _: TARGET)
    assert turns == 6 * MINUTE // TICK + 1


async def test_a_sealed_and_a_deleted_stream_are_left_alone(rig: Rig) -> None:
    await rig.make(segments=1)
    await awaited(rig.controller.streams.scale("scope", "stream", [0], [(0, 0.5), (0.5, 1)]))
    await awaited(rig.controller.seal("scope", "stream"))
    await rig.run(30, lambda _: 0)
    assert len(rig.keys) == 2

    await awaited(rig.controller.streams.delete("scope", "stream"))
    rig.clock.now_ms += 10 * MINUTE
    await awaited(rig.controller.rescale())

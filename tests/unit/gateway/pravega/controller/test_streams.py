"""How many segments a stream may have: open ones, those that hold data, and those remembered."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.pravega.controller import streams, transactions
from gateway.pravega.controller.errors import InvalidRequest, TooFewSegments
from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord
from gateway.pravega.controller.streams import GIVEN_UP_MAX, KNOWN_MAX, OPEN_MAX
from gateway.pravega.segments import SEGMENTS_MAX, USER_PARTS_MAX
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World

IS_WHOLE = float(os.environ.get("HUTCH_TEST_FACTOR") or 1) > 1
TIMES = 20_000 if IS_WHOLE else 300


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path / "data")
    await awaited((await world.open()).open())
    await awaited(world.controller.streams.create_scope("scope"))
    yield world
    await world.close()


def stream_of(world: World) -> StreamRecord:
    return world.controller.registry.stream("scope", "stream")


async def make(world: World, segments: int) -> None:
    await awaited(
        world.controller.streams.create("scope", "stream", StreamPolicy(segments=segments))
    )


def parts(count: int) -> list[tuple[float, float]]:
    return [(place / count, (place + 1) / count) for place in range(count)]


async def scale(world: World, count: int) -> tuple[StreamSegment, ...]:
    """Replace all open segments by so many."""
    ids = [each.identity for each in stream_of(world).history.open]
    scaled = await awaited(world.controller.streams.scale("scope", "stream", ids, parts(count)))
    assert scaled is not None
    return scaled.made


async def truncate(world: World) -> None:
    """Give up all that ended."""
    cut = {each.identity: 0 for each in stream_of(world).history.open}
    await awaited(world.controller.streams.truncate("scope", "stream", cut))


async def test_no_more_segments_are_open_than_may_be(world: World) -> None:
    with pytest.raises(InvalidRequest, match="1001 segments"):
        await make(world, OPEN_MAX + 1)
    await make(world, OPEN_MAX)
    with pytest.raises(InvalidRequest, match="1001 open segments of scope/stream"):
        await scale(world, OPEN_MAX + 1)
    assert len(stream_of(world).history.open) == OPEN_MAX
    assert len(await scale(world, OPEN_MAX)) == OPEN_MAX


async def test_no_more_segments_hold_data_than_may_be_until_some_are_given_up(
    world: World,
) -> None:
    await make(world, OPEN_MAX)
    for _ in range(SEGMENTS_MAX // OPEN_MAX - 1):
        await scale(world, OPEN_MAX)
    with pytest.raises(InvalidRequest, match="truncate it first"):
        await scale(world, OPEN_MAX)
    await truncate(world)
    assert len(await scale(world, OPEN_MAX)) == OPEN_MAX


async def test_segments_that_were_given_up_are_forgotten_where_there_are_too_many(
    world: World,
) -> None:
    await make(world, OPEN_MAX)
    (first, *_) = new, *_ = stream_of(world).history.open
    for _ in range(3):
        (new, *_) = await scale(world, OPEN_MAX)
        await truncate(world)
    history = stream_of(world).history

    assert len(history.segments) == OPEN_MAX + GIVEN_UP_MAX + OPEN_MAX
    assert first.identity not in history.segments
    assert new.identity in history.segments
    await world.close()
    await awaited((await world.open()).open())
    assert stream_of(world).history == history


async def test_a_stream_that_is_truncated_is_scaled_without_end_in_a_small_record(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not IS_WHOLE:
        monkeypatch.setattr(streams, "GIVEN_UP_MAX", TIMES // 4)
    await make(world, 1)
    for number in range(TIMES):
        await scale(world, 1 + number % 3)
        await truncate(world)
    stream = stream_of(world)

    assert stream.history.last.number == TIMES
    assert len(stream.to_bytes()) < 1 << 20
    assert len(stream.history.segments) < 2 * streams.GIVEN_UP_MAX
    assert len(world.segments()) < 10


async def test_a_policy_with_another_number_scales_at_once(world: World) -> None:
    await make(world, 2)
    for count in (5, 3):
        await awaited(
            world.controller.streams.update("scope", "stream", StreamPolicy(segments=count))
        )
        there = stream_of(world).history.open
        assert [each.low for each in there] == pytest.approx([low for low, _ in parts(count)])


async def test_a_policy_that_only_asks_for_the_least_scales_up_and_never_down(
    world: World,
) -> None:
    await make(world, 2)
    update = world.controller.streams.update
    await awaited(update("scope", "stream", StreamPolicy(scale_type=2, rate=1, factor=1)))
    assert len(stream_of(world).history.open) == 2
    await awaited(
        update("scope", "stream", StreamPolicy(scale_type=2, rate=1, factor=1, segments=3))
    )
    assert len(stream_of(world).history.open) == 3


async def test_a_scaling_by_hand_keeps_the_least_number(world: World) -> None:
    await make(world, 2)
    await scale(world, 3)
    with pytest.raises(TooFewSegments, match="1 segments of scope/stream would be left, of at"):
        await scale(world, 1)
    assert len(await scale(world, 2)) == 2


@pytest.mark.parametrize(
    "policy",
    [
        StreamPolicy(segments=0),
        StreamPolicy(segments=OPEN_MAX + 1),
        StreamPolicy(scale_type=1, rate=0, factor=2),
        StreamPolicy(scale_type=2, rate=5, factor=0),
        StreamPolicy(retention_type=1, retention=-1),
    ],
)
async def test_a_policy_that_nothing_could_act_on_is_refused(
    world: World, policy: StreamPolicy
) -> None:
    await make(world, 1)
    with pytest.raises(InvalidRequest):
        await awaited(world.controller.streams.update("scope", "stream", policy))
    with pytest.raises(InvalidRequest):
        await awaited(world.controller.streams.create("scope", "other", policy))


async def test_a_stream_forgets_an_epoch_though_a_transaction_writes_beside_it(
    world: World,
) -> None:
    await make(world, 2)
    of_all = world.controller.transactions
    transaction, before = await awaited(of_all.create("scope", "stream", 1_000_000))
    for _ in range(KNOWN_MAX // OPEN_MAX):
        await scale(world, OPEN_MAX)
        await truncate(world)
    assert stream_of(world).history.at(transaction.epoch) == ()
    await world.close()
    await awaited((await world.open()).open())
    of_all = world.controller.transactions

    assert of_all.shape(stream_of(world), transaction.epoch) == before
    assert await awaited(of_all.commit("scope", "stream", transaction.identity))
    await truncate(world)
    assert len(await scale(world, OPEN_MAX)) == OPEN_MAX


async def test_transactions_have_no_more_parts_than_may_be_and_take_no_room_of_others(
    world: World,
) -> None:
    await make(world, OPEN_MAX)
    of_all = world.controller.transactions
    some = []
    for user in ("one", "two"):
        for _ in range(USER_PARTS_MAX // OPEN_MAX):
            made = of_all.create("scope", "stream", 1_000_000, user)
            some.append((await awaited(made))[0].identity)
        if user == "one":
            with pytest.raises(InvalidRequest, match="user 'one' have 5000 segments beside"):
                await awaited(of_all.create("scope", "stream", 1_000_000, user))
    with pytest.raises(InvalidRequest, match="transactions have 10000 segments beside"):
        await awaited(of_all.create("scope", "stream", 1_000_000))
    assert len(await scale(world, OPEN_MAX)) == OPEN_MAX

    assert await awaited(of_all.abort("scope", "stream", some[3]))
    await awaited(of_all.create("scope", "stream", 1_000_000, "one"))


async def test_what_a_user_has_of_the_parts_of_transactions_is_known_after_a_restart(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "USER_PARTS_MAX", 5)
    await make(world, 2)
    create = world.controller.transactions.create
    for _ in range(2):
        await awaited(create("scope", "stream", 1_000_000, "one"))
    last, _ = await awaited(create("scope", "stream", 1_000_000, "two"))
    await world.close()
    await awaited((await world.open()).open())
    again = world.controller.transactions

    with pytest.raises(InvalidRequest, match="user 'one' have 4 segments"):
        await awaited(again.create("scope", "stream", 1_000_000, "one"))
    assert await awaited(again.commit("scope", "stream", last.identity))
    for _ in range(2):
        await awaited(again.create("scope", "stream", 1_000_000, "two"))
    with pytest.raises(InvalidRequest, match="user 'two' have 4 segments"):
        await awaited(again.create("scope", "stream", 1_000_000, "two"))


async def test_segments_that_commits_open_have_room_apart_and_scaling_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SEGMENTS_MAX", 5)
    monkeypatch.setattr(transactions, "COMMITTED_MAX", 7)
    await make(world, 1)
    controller = world.controller
    some = [
        (await awaited(controller.transactions.create("scope", "stream", 1_000_000)))[0].identity
        for _ in range(3)
    ]
    await scale(world, 2)
    for identity in some[:2]:
        assert await awaited(controller.transactions.commit("scope", "stream", identity))
    with pytest.raises(InvalidRequest, match="would open 3 more segments"):
        await awaited(controller.transactions.commit("scope", "stream", some[2]))
    assert len(stream_of(world).history.segments) == 3 + 2 * 3
    assert len(await scale(world, 2)) == 2
    with pytest.raises(InvalidRequest, match="6 segments of scope/stream would hold data, above 5"):
        await scale(world, 1)
    await world.close()
    await awaited((await world.open()).open())
    assert stream_of(world).held_by_commits == 6

    await truncate(world)
    assert await awaited(world.controller.transactions.commit("scope", "stream", some[2]))

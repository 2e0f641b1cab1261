"""The end of a route's work: what is waited for, and for how long."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from gateway.bridge.ends import EndUnreachable, Parcel
from tests.unit.gateway.bridge.bridge_rig import (
    ended,
    soon,
)
from tests.unit.gateway.bridge.pump_rig import WINDOW, Rig, idle


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def begun(window: int = WINDOW) -> Rig:
        made.append(Rig(window))
        return made[-1]

    yield begun
    for rig in made:
        rig.work.cancel()
        await asyncio.gather(rig.work, return_exceptions=True)


async def test_at_the_end_nothing_more_is_sent_and_confirms_are_waited_for(
    make: Callable[..., Rig],
) -> None:
    rig = make()
    rig.put(*range(15))
    await idle()

    finish = asyncio.ensure_future(rig.finish(within_s=30))
    await soon(lambda: rig.source.is_paused)
    await idle()
    assert not finish.done()
    rig.target.answer_all()
    await finish

    assert rig.source.settled == list(range(WINDOW))
    assert rig.source.saved[-1] == WINDOW


async def test_the_end_without_messages_is_at_once(make: Callable[..., Rig]) -> None:
    rig = make()
    await idle()

    await asyncio.wait_for(rig.finish(within_s=30), 20)

    assert rig.source.is_paused
    assert rig.source.saved


async def test_the_end_does_not_wait_for_ever(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.put(0)
    await idle()

    await asyncio.wait_for(rig.finish(within_s=0.05), 20)

    assert rig.source.settled == []


async def test_an_acknowledgement_that_is_under_way_at_the_end_is_waited_for(
    make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make()
    goes_on = asyncio.Event()
    settle = rig.source.settle

    async def slowly(parcels: list[Parcel]) -> None:
        await goes_on.wait()
        await settle(parcels)

    monkeypatch.setattr(rig.source, "settle", slowly)
    rig.put(0)
    await idle()
    rig.target.answer_all()
    await idle()
    finish = asyncio.ensure_future(rig.finish(within_s=30))
    await soon(lambda: rig.source.is_paused)
    await idle()
    assert rig.source.saved == []

    goes_on.set()
    await finish

    assert rig.source.saved[-1] == 1


async def test_a_target_that_is_lost_at_the_end_ends_the_wait(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.put(0)
    await idle()
    finish = asyncio.ensure_future(rig.finish(within_s=30))
    await soon(lambda: rig.source.is_paused)

    rig.target.link.fail(ConnectionError("it broke"))

    assert isinstance(await ended(finish), EndUnreachable)

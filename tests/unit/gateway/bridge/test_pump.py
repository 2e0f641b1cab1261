"""The middle of a route: what is under way, in which order it is acknowledged, what is lost."""

import asyncio
import gc
import re
import time
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from gateway.bridge import pump as pumps
from gateway.bridge.ends import BYTES_MAX, EndUnreachable, Parcel
from tests.unit.gateway.bridge.bridge_rig import (
    ended,
    parcel,
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


# ---- how much is under way -------------------------------------------------------------------


async def test_no_more_than_the_window_is_under_way(make: Callable[..., Rig]) -> None:
    rig = make()
    parcels = rig.put(*range(25))

    await idle()
    assert rig.sent == list(range(WINDOW))
    assert (rig.counts.taken, rig.counts.under_way) == (25, WINDOW)
    assert rig.pump.unsettled == 25

    for each in parcels[:3]:
        rig.target.answer(each)
    await idle()
    assert rig.sent == list(range(3, 10)), "three would still come again after a kill"
    assert rig.source.settled == [0, 1, 2]

    await rig.source.save()
    rig.target.answer(parcels[3])
    await idle()
    assert rig.sent == list(range(4, 13))


async def test_what_would_come_again_after_a_kill_is_never_above_the_window(
    make: Callable[..., Rig],
) -> None:
    rig = make()
    rig.source.save_each = 4
    rig.put(*range(100))
    most = 0

    for _ in range(100):
        await idle()
        saved = rig.source.saved[-1] if rig.source.saved else 0
        sent = len(rig.target.confirmed) + len(rig.target.sent)
        most = max(most, sent - saved)
        assert sent - saved <= WINDOW
        rig.target.answer(rig.target.sent[0])

    await idle()
    assert rig.source.settled == list(range(100))
    assert most == WINDOW
    assert rig.source.saved[-1] == 100


@pytest.mark.parametrize("window", [1, 2, 3])
async def test_the_smallest_windows_carry_everything(make: Callable[..., Rig], window: int) -> None:
    rig = make(window)
    rig.source.save_each = max(window // 2, 1)
    rig.put(*range(20))

    for _ in range(20):
        await idle()
        assert 0 < len(rig.target.sent) <= window
        rig.target.answer(rig.target.sent[0])
    await idle()

    assert rig.source.settled == list(range(20))


@pytest.mark.parametrize(("size", "count"), [(BYTES_MAX // 4, 4), (BYTES_MAX // 4 + 1, 3)])
async def test_no_more_than_64_mib_are_under_way(
    make: Callable[..., Rig], size: int, count: int
) -> None:
    assert BYTES_MAX == 64 << 20
    rig = make()
    record = bytes(size)
    parcels = [Parcel(record, offset) for offset in range(6)]
    rig.source.put(*parcels)

    await idle()
    assert rig.sent == list(range(count))

    rig.target.answer(parcels[0])
    await idle()
    assert rig.sent == list(range(1, count + 1))


async def test_a_message_that_is_larger_than_all_the_room_goes_alone(
    make: Callable[..., Rig],
) -> None:
    rig = make()
    parcels = [Parcel(b"a", 0), Parcel(bytes(BYTES_MAX + 1), 1), Parcel(b"c", 2)]
    rig.source.put(*parcels)

    await idle()
    assert rig.sent == [0]
    rig.target.answer(parcels[0])
    await idle()
    assert rig.sent == [1]
    rig.target.answer(parcels[1])
    await idle()
    assert rig.sent == [2]


# ---- in which order --------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)])
async def test_messages_are_acknowledged_in_their_order_whatever_that_of_confirms(
    make: Callable[..., Rig], order: tuple[int, ...]
) -> None:
    rig = make()
    parcels = rig.put(*range(4))
    await idle()

    for index in order:
        rig.target.answer(parcels[index])
        await idle()
        assert rig.source.settled == list(range(len(rig.source.settled)))

    assert rig.source.settled == [0, 1, 2, 3]


async def test_a_message_that_is_never_confirmed_holds_those_behind_it(
    make: Callable[..., Rig],
) -> None:
    rig = make()
    parcels = rig.put(*range(4))
    await idle()

    for index in (0, 2, 3):
        rig.target.answer(parcels[index])
    await idle()
    await rig.finish()

    assert rig.source.settled == [0]
    assert rig.source.is_paused
    assert rig.source.saved[-1] == 1


# ---- what is refused -------------------------------------------------------------------------


async def test_a_refused_message_is_counted_and_acknowledged_in_its_turn(
    make: Callable[..., Rig],
) -> None:
    rig = make()
    parcels = rig.put(*range(3))
    await idle()

    rig.target.answer(parcels[1], "too large")
    await idle()
    assert rig.source.settled == []
    rig.target.answer(parcels[0])
    rig.target.answer(parcels[2])
    await idle()

    assert rig.refusals == [(1, "too large")]
    assert rig.source.settled == [0, 1, 2]
    assert (rig.counts.delivered, rig.counts.refused) == (2, 1)


async def test_a_refused_message_may_be_done_with_later(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.is_done = False
    parcels = rig.put(0, 1)
    await idle()

    rig.target.answer(parcels[0], "too large")
    rig.target.answer(parcels[1])
    await idle()
    assert rig.source.settled == []

    rig.pump.done(parcels[0])
    await idle()
    assert rig.source.settled == [0, 1]
    assert rig.counts.delivered == 1


async def test_a_message_that_cannot_be_a_record_is_not_sent(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.source.put(parcel(0), parcel(1, refusal="as a record: a number"), parcel(2))

    await idle()
    assert rig.sent == [0, 2]
    assert rig.refusals == [(1, "as a record: a number")]
    rig.target.answer_all()
    await idle()
    assert rig.source.settled == [0, 1, 2]


@pytest.mark.parametrize("is_late", [True, False])
async def test_a_refusal_that_ends_the_route_does_so_when_what_came_before_is_acknowledged(
    make: Callable[..., Rig],
    is_late: bool,  # noqa: FBT001  # of the table
) -> None:
    rig = make()
    rig.error = ValueError("stop")
    parcels = rig.put(*range(4))
    await idle()

    for index in (0, 1):
        rig.target.answer(parcels[index])
    if is_late:
        await idle()
    rig.target.answer(parcels[2], "too large")

    assert await ended(rig.work) is rig.error
    assert rig.source.settled == [0, 1]
    assert rig.source.saved[-1] == 2


async def test_a_refusal_waits_for_confirms_of_what_came_before_and_sends_no_more(
    make: Callable[..., Rig],
) -> None:
    rig = make()
    rig.error = ValueError("stop")
    parcels = rig.put(*range(3))
    await idle()

    rig.target.answer(parcels[1], "too large")
    rig.put(3)
    await idle()
    assert not rig.work.done()
    rig.target.answer(parcels[0])

    assert await ended(rig.work) is rig.error
    assert rig.source.settled == [0]
    assert rig.sent == [2]


async def test_the_first_of_several_failures_counts(make: Callable[..., Rig]) -> None:
    rig = make()
    first = ValueError("first")

    rig.pump.fail(first)
    rig.pump.fail(ValueError("second"))

    assert await ended(rig.work) is first


# ---- stalled and lost ------------------------------------------------------------------------


async def test_no_confirm_for_long_is_found_and_said(
    make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pumps.STALLED_S == 60
    monkeypatch.setattr(pumps, "STALLED_S", 0.04)
    rig = make()
    rig.put(0, 1, 2)

    error = await ended(rig.work)

    assert isinstance(error, EndUnreachable)
    assert re.fullmatch(r"no confirm for \d+ s, 3 messages under way", str(error))


async def test_a_route_without_messages_is_not_stalled(
    make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pumps, "STALLED_S", 0.02)
    rig = make()
    rig.put(0)
    await idle()
    rig.target.answer_all()

    await asyncio.sleep(0.1)

    assert not rig.work.done()


async def test_a_confirm_puts_the_stall_off_and_a_first_message_too(
    make: Callable[..., Rig],
) -> None:
    rig = make()
    begun = time.monotonic()
    rig.pump._judged_at = 0
    first, _ = rig.put(0, 1)
    await idle()
    assert rig.pump._judged_at >= begun

    rig.pump._judged_at = 0
    rig.put(2)
    await soon(lambda: rig.sent == [0, 1, 2])
    assert rig.pump._judged_at == 0, "a message more is no confirm"

    rig.target.answer(first)
    assert rig.pump._judged_at >= begun


@pytest.mark.parametrize("end", ["source", "target"])
async def test_a_lost_end_ends_the_work(make: Callable[..., Rig], end: str) -> None:
    rig = make()
    rig.put(0)
    await idle()

    getattr(rig, end).link.fail(ConnectionError("it broke"))

    error = await ended(rig.work)
    assert isinstance(error, EndUnreachable)
    assert str(error).endswith("at h: it broke")


async def test_a_lost_target_ends_the_work_while_there_is_no_room(
    make: Callable[..., Rig],
) -> None:
    rig = make()
    rig.put(*range(20))
    await idle()

    rig.target.link.fail(ConnectionError("it broke"))

    assert isinstance(await ended(rig.work), EndUnreachable)


async def test_what_ends_the_work_may_be_anything(make: Callable[..., Rig]) -> None:
    rig = make()
    more = asyncio.Event()
    work = asyncio.ensure_future(rig.pump.run(rig.stop.wait(), more.wait()))
    await idle()

    more.set()

    await work


async def test_an_error_of_a_source_that_acknowledges_ends_the_work(
    make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make()

    async def broken(_parcels: object) -> None:
        raise EndUnreachable("the channel is closed")

    monkeypatch.setattr(rig.source, "settle", broken)
    rig.put(0)
    await idle()
    rig.target.answer_all()

    assert str(await ended(rig.work)) == "the channel is closed"


async def test_an_acknowledgement_that_fails_behind_a_lost_target_is_no_complaint(
    make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))
    rig = make()
    fails = asyncio.Event()

    async def settle(_parcels: object) -> None:
        await fails.wait()
        raise EndUnreachable("the channel is closed")

    monkeypatch.setattr(rig.source, "settle", settle)
    rig.put(0)
    await idle()
    rig.target.answer_all()
    await idle()
    rig.target.link.fail(ConnectionError("it broke"))
    assert str(await ended(rig.work)).endswith("it broke")

    fails.set()
    await idle()
    rig.pump._settling = None
    gc.collect()

    assert complaints == []

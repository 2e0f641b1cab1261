"""The bridge from an event loop to coroutines that know none."""

import asyncio

from gateway.server.loop.awaiting import next_turn, settled, settled_after


async def test_a_pending_is_settled_after_its_time_and_not_before() -> None:
    loop = asyncio.get_running_loop()
    order: list[str] = []
    loop.call_later(0.001, order.append, "before")
    settled_after(loop, 2).when_settled(lambda: order.append("settled"))
    loop.call_later(0.003, order.append, "behind")

    await settled(settled_after(loop, 4))

    assert order == ["before", "settled", "behind"]


async def test_others_have_their_turn_before_the_next_one() -> None:
    order: list[str] = []
    turn = next_turn()
    asyncio.get_running_loop().call_soon(order.append, "other")

    await settled(turn)
    order.append("next")

    assert order == ["other", "next"]

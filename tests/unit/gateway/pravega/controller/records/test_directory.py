import asyncio
import time

import pytest

from gateway.pravega.controller.records.directory import LOOKS_A_TURN, Directory, Looks
from gateway.server.loop.awaiting import awaited


def test_names_are_in_order_and_follow_each_other() -> None:
    directory: Directory[int] = Directory()
    for number, name in enumerate(("b", "d", "a", "b", "c")):
        directory[name] = number
    del directory["c"]

    assert list(directory.items()) == [("a", 2), ("b", 3), ("d", 1)]
    assert [directory.after(name) for name in ("", "a", "b", "c", "d")] == [
        "a",
        "b",
        "d",
        "d",
        None,
    ]
    assert ("b" in directory, "c" in directory, len(directory)) == (True, False, 3)


@pytest.mark.parametrize(("look_s", "turns_min"), [(0.0, 1), (0.006, 9)])
async def test_others_have_their_turn_after_many_looks_or_few_that_take_long(
    look_s: float, turns_min: int
) -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def look() -> None:
        looks = Looks()
        for _ in range(10 if look_s else LOOKS_A_TURN):
            time.sleep(look_s)  # noqa: ASYNC251  # as a pattern does
            await looks.give()

    counting = asyncio.create_task(count_turns())
    await awaited(look())
    counting.cancel()

    assert turns >= turns_min

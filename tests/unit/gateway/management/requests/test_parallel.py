"""Steps of an import that are done many at a time."""

import pytest

from gateway.broker.errors import InternalError
from gateway.management.kinds.kind import AT_ONCE
from gateway.management.requests.parallel import in_parallel
from gateway.pending import Pending, start


def test_many_steps_are_under_way_at_once_but_not_all() -> None:
    waiting: list[Pending[None]] = []

    async def step() -> None:
        pending: Pending[None] = Pending()
        waiting.append(pending)
        await pending

    done = start(in_parallel(step() for _ in range(AT_ONCE * 2)))

    assert len(waiting) == AT_ONCE
    for number in range(AT_ONCE * 2):
        waiting[number].settle(None)
    assert done.is_settled


def test_the_first_failure_is_told_when_all_that_were_begun_have_ended() -> None:
    waiting: list[Pending[None]] = []

    async def step() -> None:
        pending: Pending[None] = Pending()
        waiting.append(pending)
        await pending

    done = start(in_parallel(step() for _ in range(AT_ONCE * 2)))
    waiting[0].settle(InternalError("first"))

    assert len(waiting) == AT_ONCE
    assert not done.is_settled
    for pending in waiting[1:]:
        pending.settle(InternalError("later"))
    with pytest.raises(InternalError, match="first"):
        done.result()


def test_others_may_have_their_turn_before_each_step() -> None:
    turns: list[Pending[None]] = []
    done: list[int] = []

    async def step(number: int) -> None:
        done.append(number)

    async def give() -> None:
        turns.append(Pending())
        await turns[-1]

    whole = start(in_parallel(map(step, range(3)), give=give))

    for number in range(3):
        assert (len(turns), len(done)) == (number + 1, number)
        turns[number].settle(None)
    assert whole.is_settled
    assert done == [0, 1, 2]

from contextlib import suppress

import pytest

from gateway.pending import Pending, asked, run, start
from tests.rings import no_rings


async def answer_of(pending: Pending[int]) -> int:
    return await pending + 1


async def sum_of(*pendings: Pending[int]) -> int:
    return sum([await each for each in pendings])


def settled(value: int) -> Pending[int]:
    pending: Pending[int] = Pending()
    pending.settle(value)
    return pending


def test_a_pending_gives_the_value_it_was_settled_with() -> None:
    pending: Pending[str] = Pending()
    before = pending.is_settled

    pending.settle("value")

    assert (before, pending.is_settled) == (False, True)
    assert pending.result() == "value"


def test_a_pending_raises_the_exception_it_was_settled_with() -> None:
    pending: Pending[str] = Pending()

    pending.settle(KeyError("gone"))

    with pytest.raises(KeyError, match="gone"):
        pending.result()


@pytest.mark.parametrize("value", [None, False, 0])
def test_any_value_settles(value: object) -> None:
    pending: Pending[object] = Pending()

    pending.settle(value)

    assert pending.result() is value


def test_who_asked_is_called_once_in_order_when_it_is_settled() -> None:
    pending: Pending[int] = Pending()
    called: list[str] = []
    pending.when_settled(lambda: called.append("first"))
    pending.when_settled(lambda: called.append("second"))
    assert called == []

    pending.settle(1)

    assert called == ["first", "second"]


def test_who_asks_afterwards_is_called_at_once() -> None:
    called: list[int] = []

    settled(1).when_settled(lambda: called.append(1))

    assert called == [1]


def test_a_pending_is_settled_once_and_read_only_then() -> None:
    pending: Pending[int] = Pending()
    with pytest.raises(AssertionError):
        pending.result()
    pending.settle(1)

    with pytest.raises(AssertionError):
        pending.settle(2)


def test_a_coroutine_that_waits_for_nothing_has_ended_when_run_returns() -> None:
    outcomes: list[object] = []

    run(sum_of(settled(1), settled(2)), outcomes.append)

    assert outcomes == [3]


def test_a_coroutine_goes_on_when_what_it_awaits_is_settled() -> None:
    one: Pending[int] = Pending()
    other: Pending[int] = Pending()
    outcomes: list[object] = []

    run(sum_of(one, other), outcomes.append)
    assert outcomes == []
    other.settle(2)
    assert outcomes == []
    one.settle(1)

    assert outcomes == [3]


def test_an_exception_is_raised_where_it_is_awaited_and_handed_on() -> None:
    error = KeyError("gone")
    pending: Pending[int] = Pending()
    outcomes: list[object] = []

    async def handle() -> str:
        try:
            await pending
        except KeyError as caught:
            raise ValueError from caught
        return "not reached"

    run(handle(), outcomes.append)
    pending.settle(error)

    (outcome,) = outcomes
    assert isinstance(outcome, ValueError)
    assert outcome.__cause__ is error


def test_what_is_no_ordinary_exception_passes() -> None:
    async def leave() -> None:
        raise KeyboardInterrupt

    outcomes: list[object] = []
    with pytest.raises(KeyboardInterrupt):
        run(leave(), outcomes.append)

    assert outcomes == []


def test_one_pending_is_awaited_by_many() -> None:
    pending: Pending[int] = Pending()
    outcomes: list[object] = []
    for _ in range(3):
        run(answer_of(pending), outcomes.append)

    pending.settle(1)

    assert outcomes == [2, 2, 2]


def test_a_started_coroutine_is_a_pending_itself() -> None:
    inner: Pending[int] = Pending()
    outer = start(answer_of(inner))
    assert not outer.is_settled

    inner.settle(1)

    assert outer.result() == 2
    assert start(answer_of(outer)).result() == 3


def test_a_long_chain_of_settled_pendings_needs_no_deep_stack() -> None:
    async def count() -> int:
        return sum([await settled(1) for _ in range(100_000)])

    assert start(count()).result() == 100_000


def test_what_is_asked_with_a_callback_gives_what_that_gets() -> None:
    got: Pending[int] = asked(lambda done: done(7))
    failed: Pending[int] = asked(lambda done: done(KeyError("gone")))

    assert got.result() == 7
    with pytest.raises(KeyError, match="gone"):
        failed.result()


def test_an_error_that_was_caught_goes_without_the_collector() -> None:
    async def caught() -> None:
        with suppress(KeyError):
            await asked(lambda done: done(KeyError("gone")))

    with no_rings():
        run(caught(), lambda _: None)

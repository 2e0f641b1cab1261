"""Locks: who waits has them one after the other, in the order of coming."""

from gateway.broker.locks import Locks
from gateway.pending import Pending, run, start


class CountedName(str):
    """A name that counts how often it is looked up."""

    __slots__ = ()
    looks = 0

    def __hash__(self) -> int:
        CountedName.looks += 1
        return super().__hash__()


def looks_of(waiters: int) -> int:
    """Return how often a lock is looked up until all that wait for it have had it."""
    locks, name, first = Locks(), CountedName("lock"), Pending[None]()
    order: list[int] = []

    async def hold(number: int, until: Pending[None]) -> None:
        async with locks.hold(name):
            order.append(number)
            await until

    async def hold_until_it_is_asked_again(number: int) -> None:
        await hold(number, steps[number])

    CountedName.looks = 0
    steps: list[Pending[None]] = [Pending() for _ in range(waiters)]
    start(hold(-1, first))
    for number in range(waiters):
        start(hold_until_it_is_asked_again(number))
    first.settle(None)
    for step in steps:
        step.settle(None)
    assert order == [-1, *range(waiters)]
    assert len(locks) == 0
    return CountedName.looks


def test_a_lock_goes_to_those_in_line_at_a_cost_that_grows_with_their_number() -> None:
    assert looks_of(2_000) <= 2.3 * looks_of(1_000)


def test_a_lock_that_comes_back_at_once_goes_through_a_long_line() -> None:
    locks, first = Locks(), Pending[None]()
    done: list[int] = []

    async def hold(number: int) -> None:
        async with locks.hold("lock"):
            done.append(number)

    async def begin() -> None:
        async with locks.hold("lock"):
            await first

    start(begin())
    for number in range(10_000):
        start(hold(number))
    first.settle(None)
    assert done == list(range(10_000))
    assert len(locks) == 0


def test_all_released_waits_for_what_is_held_and_in_line() -> None:
    locks, first, second = Locks(), Pending[None](), Pending[None]()

    async def hold(until: Pending[None]) -> None:
        async with locks.hold("lock"):
            await until

    held = [start(hold(first)), start(hold(second))]
    released = start(locks.all_released())
    first.settle(None)
    seen = [released.is_settled]
    second.settle(None)
    seen.append(released.is_settled)
    assert seen == [False, True]
    assert all(each.is_settled for each in held)
    assert len(locks) == 0


def test_one_that_fails_when_it_had_waited_keeps_no_lock_from_those_behind_it() -> None:
    locks, first = Locks(), Pending[None]()
    done: list[str] = []

    async def hold(until: Pending[None] | None = None) -> str:
        async with locks.hold("lock"):
            if until is not None:
                await until
        return "had it"

    def fails(_outcome: object) -> None:
        raise ValueError

    start(hold(first))
    run(hold(), fails)
    run(hold(), lambda outcome: done.append(str(outcome)))
    first.settle(None)
    assert done == ["had it"]
    assert len(locks) == 0

"""When one frame that names a great many things, or a reader of much, lets others go first."""

import time
from collections.abc import Callable
from functools import partial

import pytest

from gateway.broker import yielding as slices
from gateway.broker.yielding import THINGS_A_TURN, Slice, TurnBudget
from gateway.pending import Pending, start


def test_a_turn_has_so_many_things() -> None:
    time_slice = Slice()
    counts: list[int] = []
    count = 0
    while len(counts) < 2:
        count += 1
        if time_slice.is_over():
            counts.append(count)
            time_slice.begin()
            count = 0
    assert max(counts) <= THINGS_A_TURN


def test_what_takes_long_is_over_after_a_few() -> None:
    time_slice = Slice()
    count = 1
    while not time_slice.is_over():
        time.sleep(0.001)
        count += 1
    assert count <= 8


def test_one_thing_that_takes_longer_than_a_slice_is_all_of_it() -> None:
    """A pattern may take 10 ms for a name: eight of them would be too much for a turn."""
    time_slice = Slice()
    time.sleep(0.006)
    assert time_slice.is_over()


def test_the_clock_is_looked_at_as_often_as_is_asked_for() -> None:
    time_slice = Slice(every=1)
    time.sleep(0.006)
    assert time_slice.is_over()
    time_slice = Slice(every=3)
    time.sleep(0.006)
    assert [time_slice.is_over() for _ in range(3)] == [False, False, True]


# Turns that are shared

LONG_S = 0.006


class Loop:
    """Turns of an event loop, the readers that looked in each, and a clock of its own."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.turns = TurnBudget(self._next_turn)
        self.looks: list[list[str]] = [[]]
        self._next: list[Callable[[], object]] = []
        self._slice = Slice(every=1)

    def _next_turn(self, action: Callable[[], object]) -> None:
        self._next.append(action)

    @property
    def is_idle(self) -> bool:
        return not self._next

    def turn(self) -> None:
        self.looks.append([])
        actions, self._next = self._next, []
        for action in actions:
            action()

    def look(self, name: str, for_s: float, times: int = 1) -> None:
        """Let a reader look so often, each time as soon as it may."""
        if not times:
            return
        again = partial(self.look, name, for_s, times)
        if self.turns.begin(name, again, self._slice):
            self.looks[-1].append(name)
            self.now_s += for_s
            self.turns.end(self._slice)
            self.look(name, for_s, times - 1)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    loop = Loop()
    monkeypatch.setattr(slices, "perf_counter", lambda: loop.now_s)
    return loop


def test_readers_that_look_long_do_so_in_turns_of_their_own_one_after_the_other(
    loop: Loop,
) -> None:
    names = [f"{number:02}" for number in range(20)]
    loop.look("before", LONG_S)
    for name in names:
        loop.look(name, LONG_S, times=2)
    while not loop.is_idle:
        loop.turn()
    assert max(map(len, loop.looks)) == 1
    looks = [name for each in loop.looks for name in each]
    assert looks[0] == "before"
    assert sorted(looks[1:21]) == sorted(looks[21:]) == names


def test_readers_that_look_for_a_moment_share_a_turn(loop: Loop) -> None:
    for number in range(10):
        loop.look(str(number), 0)
    assert len(loop.looks[0]) == 10
    assert loop.is_idle


def test_a_reader_that_waits_twice_is_woken_once(loop: Loop) -> None:
    loop.look("long", LONG_S)
    woken: list[int] = []
    for number in range(3):
        assert not loop.turns.begin("again", partial(woken.append, number), Slice())
    loop.turn()
    assert woken == [2]


def test_readers_that_do_not_come_again_are_forgotten(loop: Loop) -> None:
    loop.look("long", LONG_S)
    for number in range(30):
        assert not loop.turns.begin(number, lambda: None, Slice())
    for _ in range(6):
        loop.turn()
    assert loop.is_idle
    assert not loop.turns._line
    assert not loop.turns._first
    assert not loop.turns._woken


def test_time_that_others_had_counts_for_rest(loop: Loop) -> None:
    loop.look("one", 0.004)
    loop.now_s += 0.02
    loop.look("two", 0.004)
    loop.look("three", 0)
    assert loop.looks == [["one", "two", "three"]]
    loop.look("four", 0.004)
    loop.look("five", 0)
    assert loop.looks == [["one", "two", "three", "four"]]


def test_a_coroutine_waits_for_its_slices(loop: Loop) -> None:
    done: list[int] = []

    async def work() -> None:
        time_slice = await loop.turns.slice()
        for number in range(3):
            loop.now_s += LONG_S
            done.append(number)
            time_slice = await loop.turns.go_on(time_slice)
        loop.turns.end(time_slice)

    outcome: Pending[None] = start(work())
    for count in (1, 2, 3):
        assert len(done) == count
        loop.turn()
    assert outcome.is_settled

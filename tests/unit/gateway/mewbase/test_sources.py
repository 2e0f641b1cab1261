"""State that readers share: work one after the other, lines of the log, times to let go."""

import logging
from collections.abc import Callable
from mmap import mmap
from typing import Any, NoReturn

import pytest

from gateway.log.records.openings import Opener, Opening, Room
from gateway.mewbase.sources import Holding, PassedOver, Reading, SourcePorts
from gateway.pending import Pending, start


class Times:
    """Delays that end when the test says so, in place of a connection."""

    def __init__(self) -> None:
        self.waits: list[tuple[int, Pending[None]]] = []
        self.timers: dict[int, tuple[int, Callable[[], object]]] = {}
        self._number = 0

    def wait(self, delay_ms: int) -> Pending[None]:
        pending: Pending[None] = Pending()
        self.waits.append((delay_ms, pending))
        return pending

    def later(self, delay_ms: int, action: Callable[[], object]) -> Callable[[], object]:
        self._number = number = self._number + 1
        self.timers[number] = delay_ms, action
        return lambda: self.timers.pop(number, None)

    def next_turn(self) -> None:
        ((delay_ms, turn),) = self.waits
        self.waits.clear()
        assert delay_ms == 0
        turn.settle(None)

    @property
    def delays(self) -> list[int]:
        return [delay_ms for delay_ms, _ in self.timers.values()]

    def fire(self, delay_ms: int) -> None:
        for number, (each_ms, action) in list(self.timers.items()):
            if each_ms == delay_ms:
                del self.timers[number]
                action()


@pytest.fixture
def times() -> Times:
    return Times()


def no_thread(make: object) -> NoReturn:
    raise AssertionError(make)


# Work one after the other


def test_one_reader_works_after_the_other(times: Times) -> None:
    reading = Reading(times.wait, Room(0, no_thread))
    answers: list[Pending[int]] = [Pending() for _ in range(3)]
    begun: list[int] = []

    async def work(number: int) -> int:
        begun.append(number)
        return await answers[number]

    done = [start(reading.alone(work(number))) for number in range(3)]
    assert begun == [0]
    answers[0].settle(10)
    assert begun == [0], "the next one has a turn of its own"
    times.next_turn()
    assert begun == [0, 1]
    answers[1].settle(ValueError("no"))
    times.next_turn()
    assert begun == [0, 1, 2]
    answers[2].settle(12)
    assert done[0].result() == 10
    with pytest.raises(ValueError, match="no"):
        done[1].result()
    assert done[2].result() == 12
    start(reading.alone(work(0)))
    assert begun == [0, 1, 2, 0]


# What is passed over


def test_events_that_are_passed_over_are_counted_and_told_from_time_to_time(
    times: Times, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    passed_over = PassedOver(times.wait, "events are %s", "100%")
    passed_over.add("a", [])
    assert not caplog.messages
    passed_over.add("a", [(7, "one"), (8, "two")])
    passed_over.add("b", [(3, "three")])
    passed_over.add("a", [(9, "four")])
    first = "events are 100% channel=a events=2 first=7 reason=one since_start=2"
    assert caplog.messages == [first]
    ((delay_ms, quiet),) = times.waits
    assert delay_ms == 10_000
    quiet.settle(None)
    second = "events are 100% channel=b events=2 first=3 reason=three since_start=4"
    assert caplog.messages == [first, second]
    times.waits[1][1].settle(None)
    assert caplog.messages == [first, second]
    assert len(times.waits) == 2
    assert passed_over.count == 4


# Times to let go


class Held:
    """A reader that holds something, and an open sub-batch that another one may wait for."""

    def __init__(self, times: Times) -> None:
        self.count = 0
        self.times = times
        self.holding = Holding(times)  # type: ignore[arg-type]
        room = Room(1, self._made)
        self.opening = self.open(Opener(room))
        self.other = Opener(room)

    def begin(self, opening: Opening | None) -> None:
        self.holding.begin(opening, self._let_go)

    def _let_go(self) -> None:
        self.count += 1
        self.holding.end()

    @staticmethod
    def _made(make: Callable[[], Any]) -> Pending[Any]:
        made: Pending[Any] = Pending()
        made.settle(make())
        return made

    @staticmethod
    def open(opener: Opener) -> Opening:
        opening = opener.open(1, lambda: None)
        if opening.is_ready:
            opening.begin(lambda: mmap(-1, 1))
        return opening


@pytest.fixture
def held(times: Times) -> Held:
    return Held(times)


def test_a_reader_lets_go_when_its_client_takes_nothing(times: Times, held: Held) -> None:
    for _ in range(3):
        held.begin(None)
        assert times.delays == [100]
        held.holding.taken()
        assert not times.delays
    held.begin(None)
    times.fire(100)
    assert held.count == 1
    assert not times.delays


def test_a_reader_keeps_a_sub_batch_open_until_others_wait(times: Times, held: Held) -> None:
    for _ in range(3):
        held.begin(held.opening)
        held.holding.taken()
        assert times.delays == [1_000]
        times.fire(1_000)
    assert held.count == 0
    waiting = held.open(held.other)
    assert times.delays == [1_000]
    times.fire(1_000)
    assert held.count == 1
    assert not times.delays
    waiting.close()


def test_a_sub_batch_that_is_closed_is_not_waited_for(times: Times, held: Held) -> None:
    held.begin(held.opening)
    held.holding.taken()
    held.opening.close()
    held.open(held.other)
    held.open(held.other)
    times.fire(1_000)
    assert held.count == 0
    assert not times.delays


def test_a_sub_batch_that_is_being_opened_makes_way_for_no_other(times: Times, held: Held) -> None:
    held.opening.close()
    not_yet = held.other.open(1, lambda: None)
    assert not_yet.is_ready
    held.begin(not_yet)
    held.holding.taken()
    assert not times.delays
    not_yet.begin(lambda: mmap(-1, 1))
    held.begin(not_yet)
    held.holding.taken()
    assert times.delays == [1_000]
    not_yet.close()


def test_a_connection_opens_its_sub_batches_by_itself(times: Times) -> None:
    reading = Reading(times.wait, Room(0, no_thread))
    one, other = (SourcePorts(times, reading) for _ in range(2))  # type: ignore[arg-type]
    assert one.opener is not other.opener
    assert one.reading is other.reading

"""State that readers share: work one after the other, lines of the log, times to let go."""

import logging
from collections.abc import Callable
from typing import NoReturn

import pytest

from gateway.log.records.openings import OpeningRoom
from gateway.mewbase.sources import EventReading, Holding, PassedOver, SourcePorts
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
    reading = EventReading(times.wait, OpeningRoom(0, no_thread, times.wait))
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


def test_a_reader_lets_go_when_its_client_takes_nothing(times: Times) -> None:
    holding = Holding(times)  # type: ignore[arg-type]
    let_go: list[bool] = []

    def begin() -> None:
        holding.begin(lambda: let_go.append(True))

    for _ in range(3):
        begin()
        begin()
        assert times.delays == [100]
        holding.end()
        holding.end()
        assert not times.delays
    begin()
    times.fire(100)
    assert let_go == [True]
    assert not times.delays


def test_a_connection_opens_its_sub_batches_by_itself(times: Times) -> None:
    reading = EventReading(times.wait, OpeningRoom(0, no_thread, times.wait))
    one, other = (SourcePorts(times, reading) for _ in range(2))  # type: ignore[arg-type]
    assert one.opener is not other.opener
    assert one.reading is other.reading

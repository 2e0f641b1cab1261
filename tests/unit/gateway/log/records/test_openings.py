"""Large sub-batches are opened in order: one for each client, and no more bytes than there are."""

from collections.abc import Callable
from mmap import mmap
from typing import Any

import pytest

from gateway.log.records.openings import Make, Opener, OpeningRoom, SubBatchOpening
from gateway.pending import Pending

SIZE = 100


class Threads:
    """Functions that wait for a thread, which runs one when it is told to."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Pending[Any]]] = []

    def run(self, function: Callable[[], Any]) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        self.jobs.append((function, pending))
        return pending

    def go_on(self) -> None:
        function, pending = self.jobs.pop(0)
        pending.settle(function())


class Rig:
    """Room for three sub-batches, and what was woken."""

    def __init__(self) -> None:
        self.threads = Threads()
        self.room = OpeningRoom(3 * SIZE, self.threads.run, self.wait)
        self.waits: list[Pending[None]] = []
        self.woken: list[str] = []
        self.given_back: list[str] = []
        self.made: dict[str, mmap] = {}

    def wait(self, delay_ms: int) -> Pending[None]:
        assert delay_ms == 1_000
        self.waits.append(Pending())
        return self.waits[-1]

    def pass_a_second(self) -> None:
        """End the waits that have begun."""
        waits, self.waits = self.waits, []
        for each in waits:
            each.settle(None)

    def open(self, opener: Opener, name: str, size: int = SIZE) -> SubBatchOpening:
        """Open one as a reader does: it is made when it has its turn."""

        def make() -> mmap:
            self.made[name] = mmap(-1, size)
            return self.made[name]

        return self.begin(opener, name, size, make)

    def begin(self, opener: Opener, name: str, size: int, make: Make) -> SubBatchOpening:
        openings: list[SubBatchOpening] = []

        def wake() -> None:
            for opening in openings:
                if opening.is_ready:
                    opening.begin(make)
                else:
                    self.woken.append(name)

        def give_back() -> None:
            self.given_back.append(name)
            openings[0].close()

        openings.append(opener.open(size, wake, give_back))
        if openings[0].is_ready:
            wake()
        return openings[0]

    def go_on(self) -> None:
        while self.threads.jobs:
            self.threads.go_on()


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_client_has_one_open_at_a_time(rig: Rig) -> None:
    opener = Opener(rig.room)
    first, second = rig.open(opener, "first"), rig.open(opener, "second")
    rig.go_on()
    assert rig.woken == ["first"]
    assert first.outcome is rig.made["first"]
    assert first.is_awaited
    assert second.outcome is None
    first.close()
    rig.go_on()
    assert rig.made["first"].closed
    assert rig.woken == ["first", "second"]
    assert not second.is_awaited
    second.close()


def test_those_of_all_clients_have_so_many_bytes_together(rig: Rig) -> None:
    openings = [rig.open(Opener(rig.room), str(number)) for number in range(5)]
    rig.go_on()
    assert rig.woken == ["0", "1", "2"]
    assert rig.room._line
    openings[1].close()
    rig.go_on()
    assert rig.woken == ["0", "1", "2", "3"]
    for each in openings:
        each.close()
        rig.go_on()
    assert not rig.room._line
    assert all(made.closed for made in rig.made.values())
    assert rig.room._left == 3 * SIZE


def test_a_large_one_is_not_overtaken_by_small_ones(rig: Rig) -> None:
    holder = rig.open(Opener(rig.room), "holder", SIZE)
    large = rig.open(Opener(rig.room), "large", 3 * SIZE)
    small = rig.open(Opener(rig.room), "small", 1)
    rig.go_on()
    assert rig.woken == ["holder"]
    holder.close()
    rig.go_on()
    assert rig.woken == ["holder", "large"]
    large.close()
    rig.go_on()
    assert rig.woken == ["holder", "large", "small"]
    small.close()


def test_one_that_is_given_up_is_not_waited_for(rig: Rig) -> None:
    """In line, in the room's line, and while the thread has it."""
    busy, other = Opener(rig.room), Opener(rig.room)
    current, in_line = rig.open(busy, "current"), rig.open(busy, "in line")
    in_line.close()
    full = rig.open(other, "full", 2 * SIZE)
    last = rig.open(Opener(rig.room), "last")
    last.close()
    current.close()
    assert current.is_closed
    assert not rig.made
    rig.go_on()
    assert rig.woken == ["full"]
    assert rig.made["current"].closed
    full.close()
    rig.go_on()
    assert rig.room._left == 3 * SIZE
    assert not rig.room.is_awaited


def test_one_that_has_its_turn_and_is_not_begun_gives_it_back(rig: Rig) -> None:
    opener = Opener(rig.room)
    idle = opener.open(2 * SIZE, lambda: rig.woken.append("idle"), lambda: None)
    assert idle.is_ready
    after, other = rig.open(opener, "after"), rig.open(Opener(rig.room), "other", 2 * SIZE)
    rig.go_on()
    assert not rig.woken
    idle.close()
    idle.close()
    rig.go_on()
    assert rig.woken == ["other", "after"]
    other.close()
    after.close()
    rig.go_on()
    assert rig.room._left == 3 * SIZE
    assert not rig.threads.jobs


def test_an_error_of_the_thread_is_the_outcome(rig: Rig) -> None:
    def fail() -> mmap:
        raise ValueError("no")

    opener = Opener(rig.room)
    opening = rig.begin(opener, "failed", SIZE, fail)
    after = rig.open(opener, "after")
    rig.go_on()
    assert rig.woken == ["failed"]
    assert isinstance(opening.outcome, ValueError)
    assert opening.outcome.__traceback__ is None
    opening.close()
    rig.go_on()
    assert rig.woken == ["failed", "after"]
    after.close()
    rig.go_on()
    assert rig.room._left == 3 * SIZE


def test_one_is_kept_open_until_others_wait(rig: Rig) -> None:
    """Others of the same client, and other clients."""
    opener = Opener(rig.room)
    first = rig.open(opener, "first")
    rig.go_on()
    for _ in range(3):
        rig.pass_a_second()
    assert not rig.given_back
    second = rig.open(opener, "second", 3 * SIZE)
    rig.go_on()
    assert not rig.given_back, "it has its second"
    rig.pass_a_second()
    rig.go_on()
    assert rig.given_back == ["first"]
    assert rig.woken == ["first", "second"]
    third = rig.open(Opener(rig.room), "third")
    rig.pass_a_second()
    rig.go_on()
    assert rig.given_back == ["first", "second"]
    assert third.outcome is rig.made["third"]
    assert first.is_closed
    assert second.is_closed
    third.close()
    rig.go_on()
    rig.pass_a_second()
    assert not rig.waits
    assert rig.room._left == 3 * SIZE


def test_one_that_is_not_begun_makes_way(rig: Rig) -> None:
    """Its reader may do something slow when it gets its turn."""
    given_back: list[str] = []
    idle = Opener(rig.room).open(3 * SIZE, lambda: None, lambda: given_back.append("idle"))
    assert idle.is_ready
    other = rig.open(Opener(rig.room), "other")
    rig.pass_a_second()
    assert given_back == ["idle"]
    idle.close()
    rig.go_on()
    assert rig.woken == ["other"]
    other.close()
    rig.go_on()


def test_one_that_is_being_opened_makes_way_for_no_other(rig: Rig) -> None:
    """The time that the thread takes counts for nothing, or some would never be read."""
    slow = rig.open(Opener(rig.room), "slow", 3 * SIZE)
    other = rig.open(Opener(rig.room), "other")
    rig.pass_a_second()
    rig.pass_a_second()
    rig.threads.go_on()
    assert rig.woken == ["slow"]
    assert not rig.given_back
    rig.pass_a_second()
    assert rig.given_back == ["slow"]
    slow.close()
    other.close()
    rig.go_on()
    assert rig.room._left == 3 * SIZE

"""Which of many things counts for a name, and how often their patterns are looked for."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from gateway.broker.patterns import Pattern
from gateway.broker.rules import ranking
from gateway.broker.rules.ranking import Ranking, RankingMatch, Took
from gateway.broker.yielding import TurnBudget
from gateway.pending import Pending, start

LONG_S = 0.006
"""Above what searches may take in one turn."""


@dataclass(eq=False)
class Thing:
    rank: int
    pattern: Pattern


class Counted(Pattern):
    """A pattern that counts how often patterns are looked for."""

    __slots__ = ()
    looks = 0

    def matches(self, name: str) -> bool:
        Counted.looks += 1
        return super().matches(name)


class Slow(Counted):
    """A pattern for which it takes a turn to look."""

    __slots__ = ()

    def matches(self, name: str) -> bool:
        time.sleep(LONG_S)
        return super().matches(name)


class Rig:
    """A ranking, and turns of an event loop that has nothing else to do."""

    def __init__(self) -> None:
        self._next: list[Callable[[], object]] = []
        self.took: list[tuple[str, Took[Thing]]] = []
        self.things: Ranking[Thing] = Ranking(
            TurnBudget(self._next.append), lambda *took: self.took.append(took)
        )
        self._found: dict[str, RankingMatch[Thing]] = {}

    def found(self, name: str) -> RankingMatch[Thing]:
        """Return what counts for a name, as it was last looked for."""
        return self._found.setdefault(name, RankingMatch(name))

    def begin(self, name: str) -> Pending[None]:
        """Begin to look for a name."""
        return start(self.things.look_for(self.found(name)))

    def turn(self) -> None:
        due, self._next[:] = self._next[:], []
        for action in due:
            action()

    def first(self, name: str) -> Thing | None:
        """Look for a name, in as many turns as that takes."""
        looking = self.begin(name)
        while not looking.is_settled:
            self.turn()
        looking.result()
        return self.found(name).first

    def looks_for(self, name: str) -> int:
        Counted.looks = 0
        self.first(name)
        return Counted.looks

    def add(self, rank: int, pattern: str, kind: type[Counted] = Counted) -> Thing:
        one = Thing(rank, kind(pattern))
        self.things.add(one)
        return one

    def add_never(self, count: int) -> None:
        """Add things whose pattern is in no name."""
        for rank in range(count):
            self.add(rank, "never")


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize("few", [0, 2, 1_000])
def test_the_first_is_that_of_a_search_whatever_comes_and_goes(
    monkeypatch: pytest.MonkeyPatch, rig: Rig, few: int
) -> None:
    monkeypatch.setattr(ranking, "_FEW", few)
    choose = random.Random(7)
    there: dict[int, Thing] = {}
    for _ in range(3_000):
        rank, name = choose.randrange(20), choose.choice("abcdefgh")
        if choose.random() < 0.4:
            if rank in there:
                rig.things.discard(there.pop(rank))
            if choose.random() < 0.6:
                there[rank] = rig.add(rank, name)
        searched = (there[each] for each in sorted(there) if there[each].pattern.matches(name))
        assert rig.first(name) is next(searched, None)


@pytest.mark.parametrize("few", [0, 1_000])
def test_the_first_is_right_whatever_comes_and_goes_during_searches(
    monkeypatch: pytest.MonkeyPatch, rig: Rig, few: int
) -> None:
    """Each look takes the time of a turn, so that all else comes in the midst of some search."""
    monkeypatch.setattr(ranking, "_FEW", few)
    monkeypatch.setattr("gateway.broker.yielding._TURN_S", 0.0)
    choose = random.Random(8)
    there: dict[int, Thing] = {}
    for _ in range(300):
        looking = {name: rig.begin(name) for name in "abc"}
        for _ in range(choose.randrange(8)):
            rank, name = choose.randrange(12), choose.choice("abc")
            if rank in there:
                rig.things.discard(there.pop(rank))
            if choose.random() < 0.6:
                there[rank] = rig.add(rank, name)
            rig.turn()
        name = choose.choice("abc")
        searched = (there[each] for each in sorted(there) if there[each].pattern.matches(name))
        assert rig.first(name) is next(searched, None)
        while not all(each.is_settled for each in looking.values()):
            rig.turn()


def test_a_name_is_compared_once_with_each(rig: Rig) -> None:
    rig.add_never(2_000)

    assert rig.looks_for("s") == 2_000
    assert rig.looks_for("s") == 0


def test_what_comes_is_looked_for_once_unless_it_ranks_behind_what_counts(rig: Rig) -> None:
    rig.add_never(2_000)
    rig.add(5_000, "s")
    rig.first("s")

    rig.add(9_000, "s")
    assert rig.looks_for("s") == 0
    rig.add(4_000, "never")
    assert rig.looks_for("s") == 1


def test_what_takes_the_place_of_what_counts_is_found_at_once(rig: Rig) -> None:
    rig.add_never(2_000)
    first = rig.add(1_000_000, "s")
    rig.first("s")

    rig.things.discard(first)
    rig.add(1_000_000, "s")

    assert rig.looks_for("s") == 1


def test_what_is_not_there_is_not_removed(rig: Rig) -> None:
    rig.add_never(1)

    rig.things.discard(Thing(0, Pattern("s")))

    assert rig.looks_for("s") == 1


# Turns


def test_a_turn_has_one_look_if_that_takes_long_and_what_was_found_counts_till_the_end(
    rig: Rig,
) -> None:
    before = rig.add(9, "s")
    rig.first("s")
    for rank in range(4):
        rig.add(rank, "never", Slow)
    after = rig.add(5, "s")
    Counted.looks = 0

    looking = rig.begin("s")

    looks = [Counted.looks]
    while not looking.is_settled:
        assert rig.found("s").first is before
        rig.turn()
        looks.append(Counted.looks)
    assert max(later - sooner for sooner, later in zip([0, *looks], looks, strict=False)) <= 2
    assert rig.found("s").first is after


def test_two_that_look_for_a_name_share_one_search(rig: Rig) -> None:
    for rank in range(3):
        rig.add(rank, "never", Slow)
    Counted.looks = 0

    both = [rig.begin("s"), rig.begin("s")]

    while not all(each.is_settled for each in both):
        rig.turn()
    assert Counted.looks == 3


def test_a_search_ends_however_fast_others_come(rig: Rig) -> None:
    rig.add(0, "never", Slow)
    looking = rig.begin("s")
    for rank in range(1, 5):
        rig.add(rank, "never", Slow)
        rig.turn()
    assert looking.is_settled


def test_a_search_for_what_is_gone_ends_with_the_look_that_is_under_way(rig: Rig) -> None:
    for rank in range(3):
        rig.add(rank, "never", Slow)
    Counted.looks = 0
    looking = rig.begin("s")

    rig.found("s").is_over = True

    while not looking.is_settled:
        rig.turn()
    assert Counted.looks == 1
    assert rig.looks_for("s") == 0


def test_a_pattern_that_fails_ends_the_search_and_the_next_one_begins_anew(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.add(0, "s")
    monkeypatch.setattr(Counted, "matches", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        rig.first("s")
    monkeypatch.undo()

    assert rig.first("s") is not None


def test_what_a_search_took_is_told_with_the_one_that_took_longest(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((10.0, 11.0, 11.0, 14.0, 20.0, 21.0))
    monkeypatch.setattr(ranking, "thread_time", lambda: next(clock))
    rig.add(0, "never")
    slow = rig.add(1, "never")
    rig.add(2, "never")

    rig.first("s")

    ((name, took),) = rig.took
    assert (name, took.looks, took.longest) == ("s", 3, slow)
    assert (took.longest_s, took.seconds) == (3.0, 5.0)

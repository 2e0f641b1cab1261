"""Which of many things counts for a name, and how often their patterns are looked for."""

import random
from dataclasses import dataclass

import pytest

from gateway.broker import ranking
from gateway.broker.patterns import Pattern
from gateway.broker.ranking import Ranking


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


def thing(rank: int, pattern: str) -> Thing:
    return Thing(rank, Counted(pattern))


def looks_for(things: Ranking[Thing], name: str) -> int:
    Counted.looks = 0
    things.first(name)
    return Counted.looks


def of_never(count: int) -> Ranking[Thing]:
    """Return a ranking of things whose pattern is in no name."""
    things: Ranking[Thing] = Ranking()
    for rank in range(count):
        things.add(thing(rank, "never"))
    return things


@pytest.mark.parametrize("most", [2, 100_000])
def test_the_first_is_that_of_a_search_whatever_comes_and_goes(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(ranking, "_CAME_MAX", most)
    monkeypatch.setattr(ranking, "_NAMES_MAX", most)
    choose = random.Random(7)
    things: Ranking[Thing] = Ranking()
    there: dict[int, Thing] = {}
    for _ in range(3_000):
        rank, name = choose.randrange(20), choose.choice("abcdefgh")
        if choose.random() < 0.4:
            if rank in there:
                things.discard(there.pop(rank))
            if choose.random() < 0.6:
                there[rank] = thing(rank, name)
                things.add(there[rank])
        searched = (there[each] for each in sorted(there) if there[each].pattern.matches(name))
        assert things.first(name) is next(searched, None)


def test_a_name_is_compared_once_with_each() -> None:
    things = of_never(2_000)

    assert looks_for(things, "s") == 2_000
    assert looks_for(things, "s") == 0


def test_what_comes_is_looked_for_once_unless_it_ranks_behind_what_counts() -> None:
    things = of_never(2_000)
    things.add(thing(5_000, "s"))
    things.first("s")

    things.add(thing(9_000, "s"))
    assert looks_for(things, "s") == 0
    things.add(thing(4_000, "never"))
    assert looks_for(things, "s") == 1


def test_what_takes_the_place_of_what_counts_is_found_at_once() -> None:
    things = of_never(2_000)
    things.add(first := thing(1_000_000, "s"))
    things.first("s")

    things.discard(first)
    things.add(thing(1_000_000, "s"))

    assert looks_for(things, "s") == 1


def test_what_is_not_there_is_not_removed() -> None:
    things = of_never(1)

    things.discard(thing(0, "s"))

    assert looks_for(things, "s") == 1

"""A difference stands if it shows every time that its script is played."""

from collections.abc import Callable, Sequence

import pytest

from compat.comparison import REPEATS, UNSTEADY_MAX, Expected, Outcomes, Played, compare
from compat.differential.script import Script, opened

SCRIPTS = [Script(f"script {number}", (opened("A"),)) for number in range(UNSTEADY_MAX + 1)]


class Server:
    """Answers each script with the next of its lines, the last of them for ever."""

    def __init__(self, lines: Callable[[str], Sequence[str]]) -> None:
        self.lines = lines
        self.plays: dict[str, int] = {}

    def __call__(self, scripts: Sequence[Script]) -> Outcomes:
        return {script.name: [self.answer(script.name)] for script in scripts}

    def answer(self, name: str) -> Played:
        lines = self.lines(name)
        play = self.plays[name] = self.plays.get(name, 0) + 1
        return Played(1, "A ask", "", (lines[min(play, len(lines)) - 1],))


def steady(_: str) -> Sequence[str]:
    return ("ok",)


def test_a_difference_that_shows_every_time_stands() -> None:
    wrong = Server(lambda name: ("wrong",) if name == "script 2" else ("ok",))
    found = compare(SCRIPTS, Server(steady), wrong, ())
    assert [one.script for one in found.verdict.unexpected] == ["script 2"]
    assert found.unsteady == ()
    assert wrong.plays["script 2"] == 1 + REPEATS


@pytest.mark.parametrize("late", [0, 1], ids=["theirs", "ours"])
@pytest.mark.parametrize("wrong_times", range(1, REPEATS + 1))
def test_a_difference_that_does_not_come_again_is_told_apart(late: int, wrong_times: int) -> None:
    lines = (*["late"] * wrong_times, "ok")
    servers = [Server(steady), Server(steady)]
    servers[late] = Server(lambda name: lines if name == "script 3" else ("ok",))
    found = compare(SCRIPTS, servers[0], servers[1], ())
    assert found.verdict.unexpected == ()
    assert [one.script for one in found.unsteady] == ["script 3"]


def test_too_many_differences_are_not_chance_and_are_not_played_again() -> None:
    wrong = Server(lambda _: ("late", "ok"))
    found = compare(SCRIPTS, Server(steady), wrong, ())
    assert len(found.verdict.unexpected) == UNSTEADY_MAX + 1
    assert set(wrong.plays.values()) == {1}


def test_a_meant_difference_is_not_played_again_and_one_that_is_gone_is_stale() -> None:
    meant = Expected(script="script 1", theirs="ok", ours="ours", reason="meant")
    gone = Expected(script="script 4", reason="was mended")
    ours = Server(lambda name: ("ours",) if name == "script 1" else ("ok",))
    found = compare(SCRIPTS, Server(steady), ours, (meant, gone))
    assert found.verdict.unexpected == found.unsteady == ()
    assert found.verdict.stale == (gone,)
    assert ours.plays["script 1"] == 1

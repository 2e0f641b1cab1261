"""Two servers' answers to the same scripts, step by step, and what of it was not meant.

One server is the reference: its answers are the expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Protocol, TypeAlias, TypeVar

# A server that was kept waiting by the machine answers otherwise, now and then; a server that is
# wrong does so again. More scripts than this are not chance.
UNSTEADY_MAX = 5
REPEATS = 2


class Named(Protocol):
    """A script: steps that can be played on any server."""

    @property
    def name(self) -> str:
        """Name of the script, which no other has."""


@dataclass(frozen=True, slots=True)
class Played:
    """One step's outcome: the step, what it was called, and the answers in words."""

    number: int
    title: str
    label: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A difference that is meant.

    An entry that explains nothing any more fails the comparison, so that the list stays true.

    Attributes:
        script: The script's name, or a pattern with `*`.
        label: The step's label, or a pattern.
        theirs: Words in the reference's answer.
        ours: Words in Hutch's answer.
        reason: Why it is meant.
        is_by_chance: The reference's answer is now and then the same.
    """

    script: str
    label: str = "*"
    theirs: str = ""
    ours: str = ""
    reason: str
    is_by_chance: bool = False


N = TypeVar("N", bound=Named)
Outcomes: TypeAlias = Mapping[str, Sequence[Played]]
Play: TypeAlias = Callable[[Sequence[N]], Outcomes]


@dataclass(frozen=True, slots=True)
class Difference:
    """A step to which the two servers gave different answers."""

    script: str
    step: str
    label: str
    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    reference: str = "RabbitMQ"

    def __str__(self) -> str:
        lines = [f"{self.script}", f"  {self.step}{f'  ({self.label})' if self.label else ''}"]
        ours = f"{'Hutch':{len(self.reference)}}"
        lines += [f"    {self.reference}  {line}" for line in self.theirs or ("nothing",)]
        lines += [f"    {ours}  {line}" for line in self.ours or ("nothing",)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Findings of a comparison.

    Attributes:
        unexpected: Differences that no entry of the list speaks of.
        explained: The others, with their entries.
        stale: Entries for which there was no difference.
    """

    unexpected: tuple[Difference, ...]
    explained: tuple[tuple[Difference, Expected], ...]
    stale: tuple[Expected, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two servers compared.

    Attributes:
        theirs: The first server's outcomes, by script.
        verdict: What differs.
        unsteady: What differed at first and not when it was played again.
    """

    theirs: Outcomes
    verdict: Verdict
    unsteady: tuple[Difference, ...]


def compare(
    scripts: Sequence[N],
    theirs: Play[N],
    ours: Play[N],
    expected: Sequence[Expected],
    *,
    reference: str = "RabbitMQ",
) -> Comparison:
    """Play scripts on two servers and judge what differs.

    A few scripts with a difference that is not meant are played again, each alone: a difference
    stands if it shows every time.

    Args:
        scripts: What to play.
        theirs: Plays scripts on the reference.
        ours: Plays scripts on Hutch.
        expected: Differences that are meant.
        reference: What the reference is called in reports.
    """
    with ThreadPoolExecutor(1) as pool:  # both mostly wait
        played = pool.submit(theirs, scripts)
        our_outcomes = ours(scripts)
    their_outcomes = played.result()
    verdict = judge(differences(their_outcomes, our_outcomes, reference), expected)
    suspects = {difference.script for difference in verdict.unexpected}
    if len(suspects) > UNSTEADY_MAX:
        return Comparison(their_outcomes, verdict, ())
    steady = {
        script.name
        for script in scripts
        if script.name in suspects
        and all(
            judge(differences(theirs([script]), ours([script]), reference), expected).unexpected
            for _ in range(REPEATS)
        )
    }
    standing = tuple(one for one in verdict.unexpected if one.script in steady)
    unsteady = tuple(one for one in verdict.unexpected if one.script not in steady)
    return Comparison(their_outcomes, replace(verdict, unexpected=standing), unsteady)


def differences(theirs: Outcomes, ours: Outcomes, reference: str = "RabbitMQ") -> list[Difference]:
    """Return every step that the two answered differently."""
    found = []
    for name, their_steps in theirs.items():
        # By number and title, since what comes after the last step may come on other connections.
        theirs_by_place = {(step.number, step.title): step for step in their_steps}
        ours_by_place = {(step.number, step.title): step for step in ours[name]}
        for place, step in sorted((theirs_by_place | ours_by_place).items()):
            their_lines = lines_at(theirs_by_place, place)
            our_lines = lines_at(ours_by_place, place)
            if their_lines != our_lines:
                text = f"step {step.number}: {step.title}"
                found.append(Difference(name, text, step.label, their_lines, our_lines, reference))
    return found


def lines_at(steps: Mapping[tuple[int, str], Played], place: tuple[int, str]) -> tuple[str, ...]:
    """Return what came in a step, nothing if there was no such step."""
    return steps[place].lines if place in steps else ()


def judge(found: Iterable[Difference], expected: Sequence[Expected]) -> Verdict:
    """Sort differences into meant and not meant."""
    unexpected, explained, used = [], [], set()
    for difference in found:
        entry = next((entry for entry in expected if covers(entry, difference)), None)
        if entry is None:
            unexpected.append(difference)
        else:
            explained.append((difference, entry))
            used.add(entry)
    stale = [entry for entry in expected if entry not in used and not entry.is_by_chance]
    return Verdict(tuple(unexpected), tuple(explained), tuple(stale))


def covers(entry: Expected, difference: Difference) -> bool:
    """Return whether an entry speaks of a difference: the place, and both answers."""
    return (
        fnmatchcase(difference.script, entry.script)
        and fnmatchcase(difference.label, entry.label)
        and entry.theirs in " / ".join(difference.theirs)
        and entry.ours in " / ".join(difference.ours)
    )

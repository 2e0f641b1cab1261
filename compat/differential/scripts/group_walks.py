"""Groups of single active consumers on random walks: members come, go and answer at random.

The model says what to wait for, and what may be answered; what is compared is what comes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compat.differential import frames as f
from compat.differential.group_model import ModelGroup, Status, Told
from compat.differential.script import Script, Step, Wait, ask, drop, opened, script, silence
from compat.differential.scripts.groups import SINGLE, plain
from compat.differential.scripts.partition_groups import PARTS, of_parts, parts

WALKS = 4
STEPS = 14
MEMBERS_MAX = 4
QUIET_S = 0.1


@dataclass(eq=False)
class Member:
    """A subscription on a connection of its own, and what it was asked."""

    letter: str
    asked_count: int = 0
    is_asked: bool = False


class Walk:
    """One group from its first member on."""

    def __init__(self, seed: int, partition_index: int) -> None:
        self.chance = random.Random(f"{seed} {partition_index}")  # noqa: S311 - a walk
        self.model = ModelGroup(partition_index)
        self.members: list[Member] = []
        self.letters = iter("ABCDEFGHIJKLMNO")
        is_plain = partition_index < 0
        self.stream = "~s" if is_plain else PARTS[partition_index]
        self.pairs = SINGLE if is_plain else of_parts()

    def steps(self) -> Iterator[Step]:
        """Yield the steps of the walk; at its end all members have answered."""
        for _ in range(STEPS):
            yield from self.event()
        while asked := [each for each in self.members if each.is_asked]:
            yield from self.answer(asked[0])

    def event(self) -> Iterator[Step]:
        """Draw what happens next."""
        asked = [each for each in self.members if each.is_asked]
        leaving = self.model.find(Status.DEACTIVATING)
        if isinstance(leaving, Member):  # others neither come nor go meanwhile
            if self.chance.random() < 0.7:  # noqa: PLR2004 - a chance
                return self.answer(leaving)
            return self.leave(leaving)
        if asked and self.chance.random() < 0.5:  # noqa: PLR2004
            return self.answer(self.chance.choice(asked))
        if not self.members or self.chance.random() * MEMBERS_MAX > len(self.members):
            return self.join()
        return self.leave(self.chance.choice(self.members))

    def join(self) -> Iterator[Step]:
        """A member comes."""
        member = Member(next(self.letters))
        self.members.append(member)
        told = self.model.register(member)
        yield opened(member.letter)
        frame = f.subscribe(1, self.stream, pairs=self.pairs)
        yield ask(member.letter, frame, wait=Wait(frames=1 + self.count(told, member)))
        yield from self.heard(told, member)

    def leave(self, member: Member) -> Iterator[Step]:
        """A member goes, politely or not."""
        self.members.remove(member)
        # RabbitMQ takes an unsubscription in the middle of a step-down for two events.
        is_polite = self.model.rows[member] is not Status.DEACTIVATING
        told = self.model.unregister([member])
        if is_polite and self.chance.random() < 0.5:  # noqa: PLR2004
            yield ask(member.letter, f.unsubscribe(1))
        yield drop(member.letter)
        yield from self.heard(told)

    def answer(self, member: Member) -> Iterator[Step]:
        """A member answers what it was asked last."""
        member.is_asked = False
        told: list[Told] = []
        is_start = self.model.rows[member] is Status.ACTIVE
        if not is_start:
            told = self.model.answered_step_down(member)
        frame = f.consumer_update_answer(member.asked_count - 1, f.NONE)
        wait = Wait(records=int(is_start), frames=self.count(told, member))
        yield ask(member.letter, frame, wait=wait)
        yield from self.heard(told, member)

    def count(self, told: Iterable[Told], member: Member) -> int:
        """Count what one member is told, and note it."""
        own = sum(each is member for each, _ in told)
        member.asked_count += own
        member.is_asked |= own > 0
        return own

    def heard(self, told: Iterable[Told], but: Member | None = None) -> Iterator[Step]:
        """Listen on every other connection, and wait where something comes."""
        for member in self.members:
            if member is not but:
                own = self.count(told, member)
                step = silence(member.letter, QUIET_S)
                yield ask(member.letter, wait=Wait(frames=own)) if own else step


def walk(number: int, partition_index: int) -> Script:
    """Return a walk as a script."""
    taken = Walk(number, partition_index)
    is_plain = partition_index < 0
    where = "a stream" if is_plain else f"partition {partition_index}"
    begin = plain(records=1) if is_plain else parts()
    return script(f"walk: a group on {where}, walk {number}", *begin, *taken.steps())


SCRIPTS: tuple[Script, ...] = tuple(
    walk(number, index) for index in (-1, 0, 1, 2) for number in range(WALKS)
)

"""The log of the simulation, and each process's connection to it, which has faults."""

import enum
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from store.replica.log import NOTHING, Answer, Entry, LogAway, Outcome, Unstored
from tests.conformance.memory_log import MemoryLog

T = TypeVar("T")

STALE: Final = 0.1
"""Part of the faults of a question for the last message that are an answer from before."""


class Fate(enum.Enum):
    """The fate of a message on its way, if it has one."""

    LOST = "lost"
    """It is stored, and the answer is lost."""
    DROPPED = "dropped"
    """It never comes to the log, and that is not known."""
    LATE = "late"
    """It may come to the log later, and that is not known."""
    DOUBLED = "doubled"
    """It comes twice, and the answer to the second one is the one that is heard."""
    REFUSED = "refused"
    """The log refuses it without a reason."""


class Harm(enum.Enum):
    """What readers get in place of a message."""

    GAP = "gap"
    FLIPPED = "flipped bit"


@dataclass(frozen=True)
class Damage:
    """What one server has lost, for some time: the first message from a position on."""

    position: int
    harm: Harm
    until: float


class SharedLog:
    """The log, as its servers agree on it.

    Attributes:
        memory: What is in it.
        rate: How often something goes wrong on the way to it.
        away_until: The time up to which it does not answer.
        damage: What readers are given instead.
        record: All messages that it has taken.
        trimmed: The position up to which they are gone.
    """

    def __init__(self, chance: random.Random, clock: Callable[[], float], bytes_max: int) -> None:
        self.chance = chance
        self.clock = clock
        self.memory = MemoryLog(bytes_max)
        self.rate = 0.0
        self.away_until = 0.0
        self.damage: Damage | None = None
        self.record: list[bytes] = []
        self.trimmed = 1
        self._late: list[tuple[bytes, int]] = []

    @property
    def is_away(self) -> bool:
        """True if it does not answer."""
        return self.clock() < self.away_until

    def fails(self) -> bool:
        """Draw whether something goes wrong now."""
        return self.chance.random() < self.rate

    def append(self, data: bytes, after: int) -> Outcome:
        """Take a message, on its condition."""
        outcome = self.memory.append(data, after).wait()
        if isinstance(outcome, int):
            self.record.append(data)
        return outcome

    def comes_later(self, data: bytes, after: int) -> None:
        """Have a message come at another time."""
        self._late.append((data, after))

    def deliver_late(self) -> None:
        """Have some of the messages come that are late, in any order."""
        self.chance.shuffle(self._late)
        for _ in range(self.chance.randint(0, len(self._late))):
            self.append(*self._late.pop())

    def heal(self) -> None:
        """Have all come that is late, and nothing go wrong any more."""
        self.rate = self.away_until = 0.0
        self.damage = None
        while self._late:
            self.append(*self._late.pop())

    def last(self, back: int = 0) -> Entry | None:
        """Return the last message, or one so many before it."""
        found = self.memory.read(self.trimmed, 10**9)
        return found[-1 - back] if back < len(found) else None

    def trim(self, position: int) -> None:
        """Remove messages."""
        last = self.memory.last()
        self.memory.trim(position)
        end = NOTHING if last is None else last.position
        self.trimmed = max(self.trimmed, min(position, end))

    def harmed(self, entries: list[Entry]) -> list[Entry]:
        """Return what a reader is given in place of messages."""
        damage = self.damage
        if damage is None or self.clock() >= damage.until:
            return entries
        behind = self.memory.read(max(damage.position, self.trimmed), 1)
        found = []
        for entry in entries:
            if entry not in behind:
                found.append(entry)
            elif damage.harm is Harm.FLIPPED:
                found.append(Entry(entry.position, _flipped(entry.data, self.chance)))
        return found


def _flipped(data: bytes, chance: random.Random) -> bytes:
    whole = bytearray(data)
    whole[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
    return bytes(whole)


@dataclass(frozen=True)
class Known(Generic[T]):
    """An answer that is there."""

    value: T

    def wait(self) -> T:
        """Return it."""
        return self.value


class Sent:
    """A message on its way, whose answer is drawn when it comes to the log."""

    def __init__(self, connection: "Connection", data: bytes, after: int | Answer[Outcome]) -> None:
        self.data = data
        self.after = after
        self.outcome: Outcome | None = None
        self._connection = connection

    def wait(self) -> Outcome:
        """Return its outcome; whatever else was sent before has come to the log then."""
        return self._connection.outcome_of(self)


class Connection:
    """One process's way to the log; `DurableLog`.

    Attributes:
        is_cut: This way alone does not lead there.
        reads_error: How it takes a refusal.
    """

    def __init__(self, shared: SharedLog, meanwhile: Callable[[str], object]) -> None:
        """Begin; `meanwhile` is called wherever time passes, with what is waited for."""
        self.bytes_max = shared.memory.bytes_max
        self.trouble = ""
        self.cut_until = 0.0
        self._shared = shared
        self._meanwhile = meanwhile
        self._under_way: list[Sent] = []

    def append(self, data: bytes, after: int | Answer[Outcome]) -> Sent:
        self._meanwhile("append")
        sent = Sent(self, data, after)
        self._under_way.append(sent)
        self.come_in(self._shared.chance.randint(0, 1) * len(self._under_way))
        return sent

    def outcome_of(self, sent: Sent) -> Outcome:
        """Return the outcome of a message."""
        self._meanwhile("answer")
        if sent in self._under_way:
            self.come_in(self._under_way.index(sent) + 1)
        assert sent.outcome is not None
        self._meanwhile("answered")
        return sent.outcome

    def come_in(self, count: int) -> None:
        """Have the first messages that are under way come to the log, or go wrong."""
        while count and self._under_way:
            count -= 1
            sent = self._under_way.pop(0)
            sent.outcome = self.taken(sent)

    def taken(self, sent: Sent) -> Outcome:
        """Return the outcome of a message that comes to the log now."""
        after = sent.after.outcome if isinstance(sent.after, Sent) else sent.after
        if not isinstance(after, int):
            return Unstored.OVERTAKEN
        shared = self._shared
        if self._is_away():
            fate = shared.chance.choice([Fate.DROPPED, Fate.LATE, Fate.LOST])
        elif not shared.fails():
            return shared.append(sent.data, after)
        else:
            fate = shared.chance.choice([*Fate])
        return self._gone_wrong(fate, sent.data, after)

    def _gone_wrong(self, fate: Fate, data: bytes, after: int) -> Outcome:
        self.trouble = fate.value
        if fate is Fate.REFUSED:
            return Unstored.OVERTAKEN
        if fate is Fate.LATE:
            self._shared.comes_later(data, after)
        elif fate is not Fate.DROPPED:
            self._shared.append(data, after)
        return self._shared.append(data, after) if fate is Fate.DOUBLED else Unstored.UNKNOWN

    def last(self) -> Entry | None:
        self._need_answer("last")
        self._shared.deliver_late()
        is_stale = self._shared.fails() and self._shared.chance.random() < STALE
        return self._shared.last(self._shared.chance.randint(1, 3) if is_stale else 0)

    def read(self, position: int, count_max: int) -> list[Entry]:
        self._need_answer("read")
        shared = self._shared
        found = shared.memory.read(position, count_max)
        if found and shared.fails():  # it lags behind
            found = found[: shared.chance.randint(0, len(found))]
        return shared.harmed(found)

    def trim(self, position: int) -> None:
        self._need_answer("trim")
        self._shared.trim(position)

    def beat(self, member: str, data: bytes) -> Known[bool]:
        self._meanwhile("beat")
        if self._is_away():
            return Known(value=False)
        self._shared.memory.beat(member, data)
        return Known(value=not self._shared.fails())

    def beats(self) -> dict[str, tuple[int, bytes]]:
        self._need_answer("beats")
        return self._shared.memory.beats()

    def forget(self, member: str) -> None:
        self._need_answer("forget")
        self._shared.memory.forget(member)

    def size(self) -> int:
        self._need_answer("size")
        return self._shared.memory.size()

    def close(self) -> None:
        pass

    def lose(self) -> None:
        """End with the process: what is under way comes later, or not at all."""
        for sent in self._under_way:
            after = sent.after.outcome if isinstance(sent.after, Sent) else sent.after
            if isinstance(after, int) and self._shared.chance.random() < 0.5:
                self._shared.comes_later(sent.data, after)
        self._under_way.clear()

    def _is_away(self) -> bool:
        return self._shared.is_away or self._shared.clock() < self.cut_until

    def _need_answer(self, question: str) -> None:
        self._meanwhile(question)
        if self._is_away() or self._shared.fails():
            raise LogAway(f"no answer to {question}")

"""A log in memory that does what a test has written down, and members on it."""

import enum
import random
from collections import deque
from collections.abc import Callable

from store.files import Files
from store.replica.files import ROOM_BYTES, ReplicatedFiles
from store.replica.follower import Follower
from store.replica.local_copy import LocalCopy, Place, is_own, place_in
from store.replica.log import NOTHING, Answer, Entry, LogAway, Outcome, Unstored
from store.replica.message import BEGINNING, Message, MessageKind
from store.replica.operations import Operation, unpack
from store.replica.shipping import Shipping
from tests.conformance.memory_log import BYTES_MAX, MemoryLog
from tests.simulation.disk import Disk, Image

CLUSTER = bytes(range(16))


class Fault(enum.Enum):
    """The fate of an append."""

    LOST = "lost"
    """It is stored, and the answer is lost."""
    DROPPED = "dropped"
    """It never comes to the log, and that is not known."""
    LATE = "late"
    """It comes to the log at a later call, and that is not known."""
    BEAT = "beat"
    """A beat takes the position before it."""
    REFUSED = "refused"
    """The log decides on another message, and refuses this one."""


class ScriptedLog(MemoryLog):
    """A log with faults.

    Attributes:
        script: What becomes of the next appends: a fault, something that happens before, or None.
        away: How many questions for the last message get no answer.
        late: What comes to the log later.
        appends: How many there were.
        on_wait: Called when an answer is waited for.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        super().__init__(bytes_max)
        self.script: deque[Fault | Callable[[], object] | None] = deque()
        self.away = 0
        self.late: list[tuple[bytes, int]] = []
        self.appends = 0
        self.on_wait: Callable[[], object] = lambda: None
        self.is_empty = False
        self.sizes: list[int] = []

    def append(self, data: bytes, after: int | Answer[Outcome]) -> Answer[Outcome]:
        self.appends += 1
        self.sizes.append(len(data))
        expected = after.outcome if isinstance(after, Answered) else after
        if not isinstance(expected, int):
            return Answered(self, Unstored.OVERTAKEN)
        return Answered(self, self._outcome(data, expected))

    def last(self) -> Entry | None:
        self.deliver()
        if self.away:
            self.away -= 1
            raise LogAway("no answer")
        return None if self.is_empty else super().last()

    def deliver(self) -> None:
        """Have come to the log what is late."""
        late, self.late = self.late, []
        for data, after in late:
            super().append(data, after)

    def entries(self) -> list[Entry]:
        """Return all messages."""
        return self.read(1, 10**9)

    def _outcome(self, data: bytes, after: int) -> Outcome:
        fault = self.script.popleft() if self.script else None
        if fault is Fault.REFUSED:
            return Unstored.OVERTAKEN
        if fault in {Fault.DROPPED, Fault.LATE}:
            self.trouble = "time-out"
            if fault is Fault.LATE:
                self.late.append((data, after))
            return Unstored.UNKNOWN
        if fault is Fault.BEAT:
            self.beat("other", b"")
        elif callable(fault):
            script, self.script = self.script, deque()
            fault()
            self.script = script
        outcome = super().append(data, after).wait()
        return Unstored.UNKNOWN if fault is Fault.LOST else outcome


class ChangedLog(ScriptedLog):
    """A log that gives to its readers what a test has made of it.

    Attributes:
        changed: Makes other messages of those that are read.
        reads: How many times it was read.
    """

    def __init__(self, bytes_max: int) -> None:
        super().__init__(bytes_max)
        self.changed: Callable[[list[Entry]], list[Entry]] = lambda entries: entries
        self.reads = 0

    def read(self, position: int, count_max: int) -> list[Entry]:
        self.reads += 1
        return self.changed(super().read(position, count_max))


class Answered:
    """An answer; the log is told when it is waited for."""

    def __init__(self, shared_log: ScriptedLog, outcome: Outcome) -> None:
        self._log = shared_log
        self.outcome = outcome

    def wait(self) -> Outcome:
        """Return it."""
        self._log.on_wait()
        return self.outcome


def copy_on(own: Files, cluster: bytes = CLUSTER) -> LocalCopy:
    """Return the copy of a directory."""
    place = place_in(own)
    return LocalCopy(own, place or Place(cluster), is_begun=place is not None)


def contents(image: Image) -> dict[str, bytes]:
    """Return what a disk has of the files that are in messages."""
    return {path: image.contents[inode] for path, inode in image.names.items() if not is_own(path)}


def operations_of(shared_log: ScriptedLog) -> list[Operation]:
    """Return what is in a log, of which each message has to follow the one before."""
    link, found = BEGINNING, list[Operation]()
    for entry in shared_log.entries():
        link, message = link.after(entry.data, CLUSTER)
        if message.kind is MessageKind.OPERATIONS:
            found += unpack(memoryview(message.body))
    return found


def kinds_of(shared_log: ScriptedLog) -> list[MessageKind]:
    """Return what kinds of messages are in a log."""
    return [Message.unpack(entry.data).kind for entry in shared_log.entries()]


class Active:
    """An active member, as far as it ships.

    Attributes:
        applied: What was applied, in its order.
        pauses: How often it has waited for the log.
    """

    def __init__(self, shared_log: MemoryLog, name: str = "one", disk: Disk | None = None) -> None:
        self.disk = Disk() if disk is None else disk
        self.copy = copy_on(self.disk)
        self.applied: list[Operation] = []
        self.pauses = 0
        self.on_pause: Callable[[], object] = lambda: None
        self.now_ms = 0
        position = Follower(shared_log, self.copy).take_over(name, 0)
        assert position is not None
        self.shipping = Shipping(
            shared_log,
            self.copy,
            position,
            now_ms=lambda: self.now_ms,
            pause=self._pause,
            applied=self.applied.append,
        )

    def _pause(self) -> None:
        self.pauses += 1
        self.on_pause()


class Opened:
    """A replicated directory.

    Attributes:
        room: What the disk has free.
    """

    def __init__(self, own: Files, ordered: tuple[str, ...] = ()) -> None:
        self.log = ScriptedLog()
        self.room = ROOM_BYTES * 100
        self.copy = copy_on(own)
        position = Follower(self.log, self.copy).take_over("one", 0)
        assert position is not None
        at = position

        def ship(applied: object) -> Shipping:
            return Shipping(
                self.log,
                self.copy,
                at,
                now_ms=lambda: 0,
                pause=lambda: None,
                applied=applied,  # type: ignore[arg-type]  # as the call says
            )

        self.files = ReplicatedFiles(
            own,
            ship,
            lock=own.lock("lock"),
            ordered=ordered,
            has_room=lambda size: size <= self.room,
        )

    def settle(self) -> list[Operation]:
        """Have all in the log, and return what is there."""
        self.files.shipping.settle()
        return operations_of(self.log)


def follower_of(shared_log: MemoryLog, disk: Disk | None = None) -> Follower:
    """Return a member that follows, and has all that is in the log."""
    follower = Follower(shared_log, copy_on(Disk() if disk is None else disk))
    follower.catch_up()
    return follower


def taken_over(shared_log: MemoryLog, name: str = "two") -> int | None:
    """Have another member begin a term."""
    return follower_of(shared_log).take_over(name, 0)


class RandomLog(ScriptedLog):
    """A log whose faults come from a seed."""

    def __init__(self, chance: random.Random, bytes_max: int = BYTES_MAX) -> None:
        super().__init__(bytes_max)
        self.chance = chance
        self.rate = 0.0

    def append(self, data: bytes, after: int | Answer[Outcome]) -> Answer[Outcome]:
        self.script.clear()
        if self.chance.random() < self.rate:
            self.script.append(self.chance.choice([*Fault]))
        if self.chance.random() < self.rate:
            self.beat("other", b"")
        self._deliver_some()
        return super().append(data, after)

    def last(self) -> Entry | None:
        if self.chance.random() < self.rate:
            self.away = self.chance.randint(1, 3)
        return super().last()

    def deliver(self) -> None:
        self._deliver_some()

    def read(self, position: int, count_max: int) -> list[Entry]:
        found = super().read(max(position, NOTHING + 1), count_max)
        lags = self.chance.random() < self.rate
        return found[: self.chance.randint(0, len(found))] if lags else found

    def _deliver_some(self) -> None:
        self.chance.shuffle(self.late)
        for _ in range(self.chance.randint(0, len(self.late))):
            MemoryLog.append(self, *self.late.pop())

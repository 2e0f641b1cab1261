"""The state of a group of readers, replayed from the changes in its stream.

Each event is a whole state, or a list of changes that follow one another. Only members and
positions are kept. A change that no client would write ends in UnreadableValue, as it ends in an
exception of the client: a change of a reader that is not there, say.

Source: Pravega, io.pravega.client.stream.impl.ReaderGroupState, UpdateOrInitSerializer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.pravega.controller.readers.checkpoints import Checkpoints, is_silent
from gateway.pravega.controller.readers.group import Cut
from gateway.pravega.controller.readers.packed import (
    ENTRIES_MAX,
    Packed,
    Steps,
    UnreadableValue,
    Work,
)
from gateway.pravega.names import place_of

Place: TypeAlias = tuple[str, str]
"""Scope and name of a stream."""

MEMBERS_MAX: Final = 1_000
MEMBER_LETTERS_MAX: Final = 255
"""Pravega's limit for the name of a reader."""
LETTERS_MAX: Final = 64 * 1024
"""Letters of the names of all members: a list of 1,000 groups then takes 64 MB at most."""

_WHOLE: Final = 1
_CHANGES: Final = 2
_ENTRIES_AN_EVENT: Final = 4
"""Entries that are read in the time that an event or a change takes, whatever it is."""
_LOOKS_AN_ENTRY: Final = 8
"""Sets that are looked at in the time in which one entry is read."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """Agreement of the readers of a group.

    Attributes:
        members: Names of the readers that are online, in order.
        reached: Offsets by segments, in each stream of which there is something left to read: those
            of the last checkpoint, or if there was none those from which segments were taken last.
        ends: Where the group ends, in streams in which it does.
    """

    members: tuple[str, ...]
    reached: Mapping[Place, Cut]
    ends: Mapping[Place, Cut]


class Replay:
    """Replays the events of a group's stream, in order, from a whole state on."""

    def __init__(self) -> None:
        """Begin before the first event."""
        self._work = Work()
        self._state: _State | None = None

    def take(self, event: bytes) -> Steps[None]:
        """Take in an event. Raises UnreadableValue."""
        self._work.count(_ENTRIES_AN_EVENT)
        packed = Packed(event, self._work)
        kind = packed.integer()
        if kind == _WHOLE:
            packed.begin()
            yield from self._change(packed.byte(), packed.contents(), _WHOLE_STATES)
        elif kind == _CHANGES:
            while not packed.is_at_end:
                change = Packed(packed.bytes_of(packed.integer()), self._work)
                change.begin()
                self._work.count(_ENTRIES_AN_EVENT)
                yield from self._change(change.byte(), change.contents(), _CHANGES_OF)
                if self._work.is_step_over():
                    yield
        else:
            raise UnreadableValue(f"an event has the kind {kind}")

    def agreed(self) -> Steps[Agreed]:
        """Return the state that was agreed on. Raises UnreadableValue."""
        if self._state is None:
            raise UnreadableValue("there is no whole state")
        return (yield from self._state.agreed())

    def _change(self, kind: int, packed: Packed, kinds: Mapping[int, "_Change"]) -> Steps[None]:
        if kind in _STATES:
            self._state = yield from _STATES[kind](packed, self._work)
        elif self._state is None:
            raise UnreadableValue("a change comes before the first state")
        elif kind not in kinds:
            raise UnreadableValue(f"a change has the kind {kind}")
        else:
            yield from kinds[kind](self._state, packed)
            self._state.check()


class _State:
    """Segments of the readers, and those of none, with the offsets from which they are read."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.assigned: dict[str, dict[str, int]] = {}
        self.unassigned: dict[str, int] = {}
        self.future: dict[str, set[int]] = {}
        """Segments that are read once others are read off, whose numbers these are."""
        self.ends: dict[str, int] = {}
        self.checkpoints = Checkpoints(work)

    @classmethod
    def begun(cls, packed: Packed, work: Work) -> Steps["_State"]:
        """Read the state with which a group begins."""
        found = cls(work)
        packed.bytes_of(packed.count())  # the configuration
        found.unassigned = yield from packed.offsets()
        found.ends = yield from packed.offsets()
        return found

    @classmethod
    def compacted(cls, packed: Packed, work: Work) -> Steps["_State"]:
        """Read a state that was written down in place of the changes before it."""
        found = cls(work)
        packed.bytes_of(packed.count())  # the configuration
        found.checkpoints = yield from Checkpoints.read(packed.whole(), work)
        yield from packed.offsets()  # distances to the tails, by readers
        found.future = yield from packed.nested(_numbers)
        found.assigned = yield from packed.nested(Packed.offsets)
        found.unassigned = yield from packed.offsets()
        found.ends = yield from packed.offsets()
        found.check()
        return found

    def check(self) -> None:
        """Raise UnreadableValue if there is too much of something."""
        if len(self.assigned) > MEMBERS_MAX:
            raise UnreadableValue(f"the group has more than {MEMBERS_MAX} readers")
        if max(len(self.unassigned), len(self.future)) > ENTRIES_MAX:
            raise UnreadableValue(f"the group has more than {ENTRIES_MAX} segments")

    def agreed(self) -> Steps[Agreed]:
        """Return the state that was agreed on. Raises UnreadableValue."""
        members = tuple(sorted(self.assigned))
        longest = max(map(len, members), default=0)
        if longest > MEMBER_LETTERS_MAX or sum(map(len, members)) > LETTERS_MAX:
            raise UnreadableValue(f"the names of readers have more than {LETTERS_MAX} letters")
        reached = self.checkpoints.last
        if not reached:
            reached = dict(self.unassigned)
            for each in self.assigned.values():
                reached.update(each)
        streams = yield from _by_streams(reached, self._work)
        ends = yield from _by_streams(self.ends, self._work)
        return Agreed(members, streams, ends)

    def of(self, reader: str) -> dict[str, int]:
        """Return the segments of a reader."""
        if reader not in self.assigned:
            raise UnreadableValue("a reader is not online")
        return self.assigned[reader]

    # Changes

    def add_reader(self, packed: Packed) -> Steps[None]:
        """Let a reader come."""
        reader = packed.text()
        if reader in self.assigned:
            raise UnreadableValue("a reader that is online comes")
        self.assigned[reader] = {}
        yield from ()

    def remove_reader(self, packed: Packed) -> Steps[None]:
        """Let a reader go; its segments are free."""
        reader = packed.text()
        offsets = yield from packed.offsets()
        freed = self.assigned.pop(reader, {})
        self._work.count(len(freed))
        known = {segment: offsets.get(segment, offset) for segment, offset in freed.items()}
        self.unassigned.update(known)
        self.checkpoints.remove(reader, known)

    def release(self, packed: Packed) -> Steps[None]:
        """Free a segment of a reader."""
        own, segment = self.of(packed.text()), packed.text()
        _take(own, segment)
        self.unassigned[segment] = packed.long()
        yield from ()

    def acquire(self, packed: Packed) -> Steps[None]:
        """Assign a free segment to a reader."""
        own, segment = self.of(packed.text()), packed.text()
        own[segment] = _take(self.unassigned, segment)
        yield from ()

    def complete(self, packed: Packed) -> Steps[None]:
        """Note that a reader has read a segment to its end, and the segment's successors."""
        own, segment = self.of(packed.text()), packed.text()
        followers = yield from packed.nested(_numbers)
        _take(own, segment)
        self.future = {**followers, **self.future}
        self._work.count(len(self.future) // _LOOKS_AN_ENTRY)
        number = _parsed(segment)[2]
        for awaited in self.future.values():
            awaited.discard(number)
        for name in [each for each, awaited in self.future.items() if not awaited]:
            del self.future[name]
            self.unassigned[name] = 0

    def reach_checkpoint(self, packed: Packed) -> Steps[None]:
        """Note where a reader was at a checkpoint."""
        checkpoint, reader = packed.text(), packed.text()
        offsets = yield from packed.offsets()
        self.checkpoints.reach(checkpoint, reader, offsets)
        if not is_silent(checkpoint):
            own = self.of(reader)
            self._work.count(len(own))
            own.update({each: offsets[each] for each in own.keys() & offsets.keys()})

    def begin_checkpoint(self, packed: Packed) -> Steps[None]:
        """Begin a checkpoint."""
        self.checkpoints.begin(packed.text(), self.assigned, self.unassigned)
        yield from ()

    def clear_checkpoints(self, packed: Packed) -> Steps[None]:
        """Forget the checkpoints before one."""
        self.checkpoints.clear_before(packed.text())
        yield from ()

    def cancel_checkpoints(self, packed: Packed) -> Steps[None]:  # noqa: ARG002
        """Forget the checkpoints that are under way."""
        self.checkpoints.cancel()
        yield from ()

    def leave(self, packed: Packed) -> Steps[None]:  # noqa: ARG002
        """Leave out a change that tells nothing of members and positions."""
        yield from ()


_Change: TypeAlias = Callable[[_State, Packed], Steps[None]]

_STATES: Final[Mapping[int, Callable[[Packed, Work], Steps[_State]]]] = {
    0: _State.begun,
    1: _State.compacted,
}
_WHOLE_STATES: Final[Mapping[int, _Change]] = {}
_CHANGES_OF: Final[Mapping[int, _Change]] = {
    2: _State.add_reader,
    3: _State.remove_reader,
    4: _State.release,
    5: _State.acquire,
    6: _State.leave,  # distance to the tail
    7: _State.complete,
    8: _State.reach_checkpoint,
    9: _State.begin_checkpoint,
    10: _State.clear_checkpoints,
    11: _State.leave,  # the last checkpoint was told to the controller
    12: _State.leave,  # the configuration is being changed
    13: _State.cancel_checkpoints,
}


def _take(segments: dict[str, int], segment: str) -> int:
    """Take a segment away; return its offset."""
    if segment not in segments:
        raise UnreadableValue("a segment is not where it is taken from")
    return segments.pop(segment)


def _numbers(packed: Packed) -> Steps[set[int]]:
    """Read numbers of segments."""
    return set((yield from packed.list_of(Packed.long)))


def _by_streams(offsets: Mapping[str, int], work: Work) -> Steps[dict[Place, Cut]]:
    """Sort offsets by the streams of their segments."""
    found: dict[Place, dict[int, int]] = {}
    for segment, offset in offsets.items():
        scope, stream, identity = _parsed(segment)
        found.setdefault((scope, stream), {})[identity] = offset
        if work.is_step_over():
            yield
    return dict(found)


def _parsed(segment: str) -> tuple[str, str, int]:
    found = place_of(segment)
    if found is None:
        raise UnreadableValue("a segment has no name of one")
    return found

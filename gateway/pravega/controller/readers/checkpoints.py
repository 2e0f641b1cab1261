"""Checkpoints of a group of readers, as far as they say where the last one was.

Source: Pravega, io.pravega.client.stream.impl.CheckpointState.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.pravega.controller.readers.packed import (
    ENTRIES_MAX,
    Packed,
    Steps,
    UnreadableValue,
    Work,
)

CHECKPOINTS_MAX: Final = 1_000
"""A client has three under way, unless it is told otherwise."""
_SILENT: Final = "_SILENT_"
"""Part of the name of a checkpoint that only asks for a cut, and counts as none."""


def is_silent(checkpoint: str) -> bool:
    """Return whether a checkpoint is one of which readers are not told."""
    return _SILENT in checkpoint


class Checkpoints:
    """Checkpoints that are under way or were not cleared, and the place of the last one.

    Attributes:
        last: Offsets by segments, when all readers had reached the last checkpoint; none if there
            was none. A state that was written down whole does not tell these two apart.
    """

    def __init__(self, work: Work) -> None:
        """Begin with none."""
        self._work = work
        self.last: Mapping[str, int] = {}
        self._order: list[str] = []
        self._offsets: dict[str, dict[str, int]] = {}
        self._awaited: dict[str, list[str]] = {}
        """Readers that have not reached a checkpoint yet."""

    @classmethod
    def read(cls, packed: Packed, work: Work) -> Steps["Checkpoints"]:
        """Read them, as they are written down whole."""
        found = cls(work)
        found._order = yield from packed.list_of(Packed.text)
        found._awaited = yield from packed.nested(lambda inner: inner.list_of(Packed.text))
        found._offsets = yield from packed.nested(Packed.offsets)
        found.last = yield from packed.offsets()
        found.check()
        return found

    def check(self) -> None:
        """Raise UnreadableValue if there are too many."""
        if max(len(self._awaited), len(self._offsets)) > CHECKPOINTS_MAX:
            raise UnreadableValue(
                f"the group has more than {CHECKPOINTS_MAX} checkpoints under way"
            )
        if len(self._order) > ENTRIES_MAX:
            raise UnreadableValue(f"the group has had more than {ENTRIES_MAX} checkpoints")

    def begin(self, checkpoint: str, readers: Iterable[str], unassigned: Mapping[str, int]) -> None:
        """Begin a checkpoint, unless it has begun."""
        if checkpoint in self._offsets:
            return
        awaited = list(readers)
        self._work.count(len(awaited) + len(unassigned))
        if awaited:
            self._awaited[checkpoint] = awaited
        self._offsets[checkpoint] = dict(unassigned)
        self._order.append(checkpoint)
        self.check()

    def reach(self, checkpoint: str, reader: str, offsets: Mapping[str, int]) -> None:
        """Note where a reader was at a checkpoint; the last one of its readers completes it."""
        awaited = self._awaited.get(checkpoint)
        if awaited is None:
            return
        self._work.count(len(awaited) + len(offsets))
        if reader not in awaited or checkpoint not in self._offsets:
            raise UnreadableValue("a reader was at a checkpoint that does not wait for it")
        awaited.remove(reader)
        self._offsets[checkpoint].update(offsets)
        if not awaited:
            del self._awaited[checkpoint]
            if not is_silent(checkpoint):
                self.last = self._offsets[checkpoint]

    def remove(self, reader: str, offsets: Mapping[str, int]) -> None:
        """Let a reader that has ended have reached all that wait for it."""
        for checkpoint, awaited in list(self._awaited.items()):
            self._work.count(len(awaited))
            if reader in awaited:
                self.reach(checkpoint, reader, offsets)

    def clear_before(self, checkpoint: str) -> None:
        """Forget those that began before one."""
        if checkpoint not in self._offsets:
            return
        known = checkpoint in self._order
        place = self._order.index(checkpoint) if known else len(self._order)
        self._work.count(len(self._order))
        self._forget(self._order[:place])
        del self._order[:place]

    def cancel(self) -> None:
        """Forget those that readers have not reached."""
        self._work.count(len(self._order))
        self._forget(
            [each for each in self._order if each in self._awaited and not is_silent(each)]
        )

    def _forget(self, checkpoints: Iterable[str]) -> None:
        for each in checkpoints:
            self._awaited.pop(each, None)
            self._offsets.pop(each, None)

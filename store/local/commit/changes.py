# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Changes on their way into the journal, and their effects when committed or rolled back.

The caller that issues a change also changes the pending state, and puts the change into a round.
`apply` does the same to the committed state once the round is committed; then `report` tells the
caller. If the change is dropped instead, only `report` is called, with the reason.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from store.api import Appended, Done
from store.errors import SegmentSealed, StoreError
from store.local.commit.records import AttributeValues, attributes_record, create_record
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import DataFile
from store.local.state.segment import Extent, Segment

log = logging.getLogger(__name__)

Key = int | str
"""Object of a change: a segment by its number (the content), or a name (its owner)."""

NOTHING: Final = b""

_new_tuple: Final = tuple.__new__  # past the Python function that makes a named tuple


class Change:
    """One step of a round.

    Attributes:
        record: What the journal gets; empty if nothing.
        late: Data that is not written yet, for `place` in `file`.
        gives_space: There is more space after it: on a full disk it may use the reserve.
        completes: It belongs to the change before it: the journal has both in one frame.
    """

    __slots__ = ("completes", "file", "gives_space", "late", "place", "record")

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.record = NOTHING
        self.file: DataFile | None = None
        self.late: bytes | None = None
        self.place = 0
        self.gives_space = False
        self.completes = False

    def touches(self) -> tuple[Key, ...]:
        """Return the objects of the change: if one of them is rolled back, so is the change."""
        raise NotImplementedError

    def apply(self, at_ms: int) -> None:
        """Change the committed state."""
        raise NotImplementedError

    def report(self, error: StoreError | None) -> None:
        """Notify the caller."""
        raise NotImplementedError


class AppendChange(Change):
    """Data, and perhaps a writer's number, at the end of a segment."""

    __slots__ = (
        "catalogue",
        "done",
        "event_number",
        "extent",
        "position",
        "segment",
        "size",
        "writer",
    )

    def __init__(
        self, catalogue: Catalogue, segment: Segment, writer: bytes | None, event_number: int
    ) -> None:
        self._begin()  # a call in C, which that of the base's `__init__` is not
        self.catalogue = catalogue
        self.segment = segment
        self.writer = writer
        self.event_number = event_number
        # Set if the append begins a new file.
        self.extent: Extent | None = None
        self.position = 0
        self.size = 0
        self.done: Done[Appended] | None = None

    def touches(self) -> tuple[Key, ...]:
        return (self.segment.number,)

    def apply(self, at_ms: int) -> None:
        segment = self.segment
        state = segment.committed
        if self.extent is not None:
            state.extents += (self.extent,)
            self.catalogue.loose.discard(self.extent[1].number)
        if self.writer is not None:
            forgotten = state.attributes.append(self.writer, self.event_number)
            if forgotten:
                log.warning(
                    "the writers that have not written for longest are forgotten, what one of them"
                    " sends again is stored again segment=%s writers=%d",
                    segment.name,
                    forgotten,
                )
        state.length = self.position + self.size
        state.modified_at_ms = at_ms
        self.catalogue.changed.add(segment)

    def report(self, error: StoreError | None) -> None:
        done = self.done
        if done is not None:
            done(error or _new_tuple(Appended, (self.position, self.size, self.event_number)))
        segment = self.segment
        if segment.waiters is not None and error is None:
            self.catalogue.wake(segment)


class StateChange(Change):
    """A change that is only a record: no data of its own."""

    __slots__ = ("catalogue", "done", "segment")

    def __init__(
        self, catalogue: Catalogue, segment: Segment, record: bytes, done: Done[None]
    ) -> None:
        super().__init__()
        self.catalogue = catalogue
        self.segment = segment
        self.record = record
        self.done = done

    def touches(self) -> tuple[Key, ...]:
        return (self.segment.number,)

    def apply(self, at_ms: int) -> None:
        self.segment.committed.modified_at_ms = at_ms
        self.catalogue.changed.add(self.segment)

    def report(self, error: StoreError | None) -> None:
        self.done(error)


class CreateChange(StateChange):
    """A new segment."""

    __slots__ = ()

    def touches(self) -> tuple[Key, ...]:
        return (self.segment.number, self.segment.name)

    def apply(self, at_ms: int) -> None:
        super().apply(at_ms)
        self.segment.pending.modified_at_ms = at_ms
        self.catalogue.commit_creation(self.segment)

    def report(self, error: StoreError | None) -> None:
        if error is not None:
            self.catalogue.forget_creation(self.segment)
        self.done(error)


class DeleteChange(StateChange):
    """A segment goes. It goes also if what was issued before it is taken back."""

    __slots__ = ()

    def __init__(
        self, catalogue: Catalogue, segment: Segment, record: bytes, done: Done[None]
    ) -> None:
        super().__init__(catalogue, segment, record, done)
        self.gives_space = True

    def touches(self) -> tuple[Key, ...]:
        return (self.segment.name,)

    def apply(self, at_ms: int) -> None:  # noqa: ARG002 (what is gone has no time)
        segment = self.segment
        files = {file for _, file in segment.committed.extents}
        files.update(file for _, file in segment.pending.extents)
        self.catalogue.commit_removal(segment, files)

    def report(self, error: StoreError | None) -> None:
        self.done(error)
        if error is None:
            self.catalogue.wake(self.segment)


class SealChange(StateChange):
    """No more appends; gives the final length."""

    __slots__ = ("sealed_done",)

    def __init__(
        self, catalogue: Catalogue, segment: Segment, record: bytes, done: Done[int]
    ) -> None:
        super().__init__(catalogue, segment, record, _ignore)
        self.sealed_done = done

    def apply(self, at_ms: int) -> None:
        super().apply(at_ms)
        self.segment.committed.sealed = True

    def report(self, error: StoreError | None) -> None:
        self.sealed_done(error or self.segment.committed.length)
        if error is None:
            self.catalogue.wake(self.segment)


class TruncateChange(StateChange):
    """The start moves."""

    __slots__ = ("position",)

    def __init__(
        self,
        catalogue: Catalogue,
        segment: Segment,
        record: bytes,
        done: Done[None],
        position: int,
    ) -> None:
        super().__init__(catalogue, segment, record, done)
        self.position = position
        self.gives_space = True

    def apply(self, at_ms: int) -> None:
        super().apply(at_ms)
        self.catalogue.discard(self.segment.committed.truncate(self.position))
        self.catalogue.truncated.append(self.segment)

    def report(self, error: StoreError | None) -> None:
        self.done(error)
        if error is None:
            self.catalogue.wake(self.segment)


class AttributesChange(StateChange):
    """Attributes get new values."""

    __slots__ = ("values",)

    def __init__(
        self,
        catalogue: Catalogue,
        segment: Segment,
        record: bytes,
        done: Done[None],
        values: AttributeValues,
    ) -> None:
        super().__init__(catalogue, segment, record, done)
        self.values = values

    def apply(self, at_ms: int) -> None:
        super().apply(at_ms)
        self.segment.committed.attributes.update(self.values)


def creation(
    catalogue: Catalogue,
    segment: Segment,
    values: AttributeValues,
    done: Done[None],
    *,
    durable: bool,
) -> Sequence[CreateChange | AttributesChange]:
    """Return the changes that make a segment with its attributes: all or none come to pass."""
    number = segment.number
    record = create_record(number, segment.name, segment.key_length, durable=durable)
    if not values:
        return (CreateChange(catalogue, segment, record, done),)
    created = CreateChange(catalogue, segment, record, _ignore)
    record = attributes_record(number, values, durable=durable)
    set_ = AttributesChange(catalogue, segment, record, done, values)
    set_.completes = True
    return created, set_


class MergeChange(StateChange):
    """All of `source` moves to the end of the segment, and `source` goes."""

    __slots__ = ("length", "merged_done", "source", "values")

    def __init__(
        self,
        catalogue: Catalogue,
        segment: Segment,
        record: bytes,
        done: Done[int],
        source: Segment,
        values: AttributeValues,
    ) -> None:
        super().__init__(catalogue, segment, record, _ignore)
        self.merged_done = done
        self.source = source
        self.values = values
        self.length = segment.pending.length

    def touches(self) -> tuple[Key, ...]:
        return (self.segment.number, self.source.number, self.source.name)

    def apply(self, at_ms: int) -> None:
        super().apply(at_ms)
        segment, source = self.segment, self.source
        segment.committed.merge(source.committed)
        segment.committed.attributes.update(self.values)
        for _, file in source.committed.extents:
            file.owner = segment.number
        self.catalogue.commit_removal(source, ())

    def report(self, error: StoreError | None) -> None:
        self.merged_done(error or self.length)
        if error is None:
            self.catalogue.wake(self.source)
            self.catalogue.wake(self.segment)


class NoChange(Change):
    """Nothing to change, but as true and as durable as changes issued for the segment before.

    A resend, or the removal of an absent key.
    """

    __slots__ = ("done", "segment")

    def __init__(self, segment: Segment, done: Callable[[StoreError | None], object]) -> None:
        super().__init__()
        self.segment = segment
        self.done = done

    def touches(self) -> tuple[Key, ...]:
        return (self.segment.number,)

    def apply(self, at_ms: int) -> None:
        pass

    def report(self, error: StoreError | None) -> None:
        self.done(error)


class Later(Change):
    """Something to be called in its turn, after the changes before it."""

    __slots__ = ("call", "keys")

    def __init__(self, keys: tuple[Key, ...], call: Callable[[], object]) -> None:
        super().__init__()
        self.keys = keys
        self.call = call

    def touches(self) -> tuple[Key, ...]:
        return self.keys

    def apply(self, at_ms: int) -> None:
        pass

    def report(self, error: StoreError | None) -> None:  # noqa: ARG002 (it finds out by itself)
        self.call()


def sealed_error(segment: Segment) -> SegmentSealed:
    """The error of a change to a sealed segment."""
    return SegmentSealed(f"segment {segment.name!r} is sealed")


def _ignore(_: StoreError | None) -> None:
    pass

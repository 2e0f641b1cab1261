"""The operations on segments by name: checks against the issued state, then a change in a round.

`store.api` says what each promises. The classes build on one another: SegmentOperations,
TableOperations (a table is a segment), LocalStore.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from store.api import (
    ABSENT,
    ATTRIBUTES_MAX,
    NAME_BYTES_MAX,
    AttributeUpdate,
    Cancel,
    Done,
    Durability,
    Reader,
    ReadResult,
    SegmentInfo,
    Writer,
)
from store.errors import (
    AttributeMismatch,
    InvalidArgument,
    IsATable,
    NoSuchSegment,
    SegmentExists,
    SegmentTruncated,
    StoreError,
)
from store.local.commit.changes import (
    AttributesChange,
    DeleteChange,
    MergeChange,
    SealChange,
    TruncateChange,
    creation,
    sealed_error,
)
from store.local.commit.records import (
    attributes_record,
    delete_record,
    merge_record,
    seal_record,
    truncate_record,
)
from store.local.listing import Listing
from store.local.reads import LocalReader, PendingRead, Reading
from store.local.state.attributes import Attributes
from store.local.state.segment import Segment
from store.local.writes import LocalWriter, Staging, blocked_error, corrupt_error

_INT64_MAX: Final = 2**63 - 1


class SegmentOperations:
    """Operations on plain segments, and on tables as segments.

    Attributes:
        gives_space: Everything is done for a removal (`SegmentStore.for_removal`).
        staging: Takes what writers append.
        rounds: Gathers the changes.
        catalogue: The segments.
        reading: Reads what is stored.
        call_soon: Calls a function later, on the loop's thread, in the order of the calls.
    """

    def __init__(
        self,
        staging: Staging,
        reading: Reading,
        call_soon: Callable[..., object],
        *,
        gives_space: bool,
    ) -> None:
        self.gives_space = gives_space
        self.staging = staging
        self.rounds = staging.rounds
        self.catalogue = staging.catalogue
        self.reading = reading
        self.call_soon = call_soon

    def find(self, name: str, done: Callable[[StoreError], None]) -> Segment | None:
        """Look a name up; if it is unknown or the store closed, tell `done` and give None."""
        closed = self.rounds.closed
        if closed is not None:
            self.rounds.after_all(partial(done, closed), [name])
            return None
        segment = self.catalogue.names.get(name)
        if segment is None:
            self.rounds.after_all(partial(done, NoSuchSegment(f"no segment {name!r}")), [name])
        return segment

    def refuse(
        self, segment: Segment, done: Callable[[StoreError], None], error: StoreError
    ) -> None:
        """Report an error in its turn."""
        self.rounds.after(segment, partial(done, error))

    def create_segment(
        self,
        name: str,
        *,
        done: Done[None],
        durability: Durability | None = None,
        attributes: Sequence[AttributeUpdate] = (),
    ) -> None:
        self.create(name, None, done, durability, attributes)

    def create(
        self,
        name: str,
        key_length: int | None,
        done: Done[None],
        durability: Durability | None,
        attributes: Sequence[AttributeUpdate] = (),
    ) -> None:
        """Create a segment, or a table if there is a key length."""
        values = (
            self.rounds.closed or _name_error(name) or _values_of(name, Attributes(), attributes)
        )
        if isinstance(values, StoreError):
            self.rounds.after_all(partial(done, values), [name])
            return
        holder = self.catalogue.names.get(name)
        if holder is not None:
            self.refuse(holder, done, SegmentExists(f"segment {name!r} exists"))
            return
        segment = self.catalogue.add(name, key_length)
        segment.block()
        segment.pending.attributes.update(values)
        self._prepare(segment, durability)
        durable = self._is_durable(durability)
        for change in creation(self.catalogue, segment, values, done, durable=durable):
            change.gives_space = self.gives_space
            self.rounds.add(change, segment)

    def delete_segment(self, name: str, *, done: Done[None]) -> None:
        if (segment := self.find(name, done)) is not None:
            self.delete_found(segment, done)

    def delete_found(self, segment: Segment, done: Done[None]) -> None:
        """Delete a segment that was looked up."""
        self.catalogue.hide(segment)
        record = delete_record(segment.number, durable=self._is_durable(None))
        self.rounds.gathering.ask(self.staging.durability)
        self.rounds.add(DeleteChange(self.catalogue, segment, record, done), segment)

    def seal_segment(self, name: str, *, done: Done[int]) -> None:
        segment = self.find(name, done)
        if segment is None:
            return
        error = _sealed_or_corrupt(segment)
        if error is not None:
            self.refuse(segment, done, error)
            return
        segment.pending.sealed = True
        segment.blocked = True
        record = seal_record(segment.number, durable=self._is_durable(None))
        self._prepare(segment, None)
        self.rounds.add(SealChange(self.catalogue, segment, record, done), segment)

    def truncate_segment(self, name: str, position: int, *, done: Done[None]) -> None:
        segment = self.find(name, done)
        if segment is None:
            return
        pending = segment.pending
        if segment.is_table:
            self.refuse(segment, done, IsATable(f"segment {name!r} is a table"))
        elif not pending.start <= position <= pending.length:
            error = SegmentTruncated(
                f"position {position} is not in {pending.start} … {pending.length} of {name!r}",
                pending.start,
            )
            self.refuse(segment, done, error)
        else:
            self.truncate_found(segment, position, done)

    def truncate_found(self, segment: Segment, position: int, done: Done[None]) -> None:
        """Truncate a segment to a position that was checked."""
        segment.pending.truncate(position)
        if segment.pending.extents:
            base, file = segment.pending.extents[-1]
            if position - base > self.catalogue.file_bytes(segment):
                file.size_max = 0  # the next append begins another, so that this one can go
        record = truncate_record(segment.number, position, durable=self._is_durable(None))
        self._prepare(segment, None)
        change = TruncateChange(self.catalogue, segment, record, done, position)
        self.rounds.add(change, segment)

    def merge_segments(
        self,
        target: str,
        source: str,
        *,
        done: Done[int],
        attributes: Sequence[AttributeUpdate] = (),
    ) -> None:
        if self.rounds.closed is not None:
            self.rounds.after_all(partial(done, self.rounds.closed))
            return
        into = self.catalogue.names.get(target)
        merged = self.catalogue.names.get(source)
        if into is None or merged is None:
            error = NoSuchSegment(f"no segment {target if into is None else source!r}")
            found = list(filter(None, (into, merged)))
            self.rounds.after_all(partial(done, error), (target, source), found)
            return
        values = _merge_error(into, merged) or _new_values(into, attributes)
        if isinstance(values, StoreError):
            self.rounds.after_all(partial(done, values), (target, source), (into, merged))
            return
        self.catalogue.hide(merged)
        into.pending.merge(merged.pending)
        into.pending.attributes.update(values)
        into.bulk_files = into.bulk_files | merged.bulk_files
        durable = self._is_durable(None)
        record = merge_record(into.number, merged.number, values, durable=durable)
        self._prepare(into, None)
        change = MergeChange(self.catalogue, into, record, done, merged, values)
        self.rounds.add(change, merged)
        into.round = merged.round

    def info(self, name: str, *, done: Done[SegmentInfo]) -> None:
        if (segment := self.find(name, done)) is not None:
            self.rounds.after(segment, lambda: done(self.alive(segment) or info_of(segment)))

    def list_segments(self, prefix: str, *, done: Done[Sequence[str]]) -> None:
        begin = Listing(prefix, done, self.call_soon).begin
        names = self.catalogue.committed_names
        self.rounds.after_all(lambda: begin(self.rounds.closed, names))

    def count_segments(self, name: str, *, done: Done[int]) -> None:
        self.call_soon(lambda: done(self.rounds.closed or self.catalogue.count_beside(name)))

    def open_writer(self, name: str, writer: UUID, *, done: Done[Writer]) -> None:
        segment = self.find(name, done)
        if segment is None:
            return

        def answer() -> None:
            session = LocalWriter(self.staging, segment, writer.bytes, gives_space=self.gives_space)
            done(self.alive(segment) or session)

        self.rounds.after(segment, answer)

    def open_reader(self, name: str, *, done: Done[Reader]) -> None:
        segment = self.find(name, done)
        if segment is None:
            return
        if segment.is_table:
            self.refuse(segment, done, IsATable(f"segment {name!r} is a table"))
            return
        self.rounds.after(
            segment, lambda: done(self.alive(segment) or LocalReader(self.reading, segment))
        )

    def read(
        self, name: str, position: int, size: int, *, done: Done[ReadResult], wait: bool = False
    ) -> Cancel:
        segment = self.find(name, done)
        if segment is None:
            return _nothing_to_cancel
        pending = PendingRead(self.reading, segment, position, size, done, wait=wait)
        if wait and segment.created:
            self.call_soon(pending.begin)
        else:
            self.rounds.after(segment, pending.begin)
        return pending.cancel

    def get_attribute(self, name: str, attribute: UUID, *, done: Done[int]) -> None:
        if (segment := self.find(name, done)) is not None:
            state, key = segment.committed, attribute.bytes
            self.rounds.after(
                segment, lambda: done(self.alive(segment) or state.attributes.get(key))
            )

    def update_attributes(
        self, name: str, updates: Sequence[AttributeUpdate], *, done: Done[None]
    ) -> None:
        segment = self.find(name, done)
        if segment is None:
            return
        values = _sealed_or_corrupt(segment) or _new_values(segment, updates)
        if isinstance(values, StoreError):
            self.refuse(segment, done, values)
            return
        segment.pending.attributes.update(values)
        record = attributes_record(segment.number, values, durable=self._is_durable(None))
        self._prepare(segment, None)
        self.rounds.add(AttributesChange(self.catalogue, segment, record, done, values), segment)

    def alive(self, segment: Segment) -> StoreError | None:
        """Return the error of every call on a segment that is closed or gone."""
        if self.rounds.closed is not None:
            return self.rounds.closed
        if segment.dead or not segment.created:
            return NoSuchSegment(f"no segment {segment.name!r}")
        return None

    def _is_durable(self, durability: Durability | None) -> bool:
        return (durability or self.staging.durability) is Durability.DISK

    def _prepare(self, segment: Segment, durability: Durability | None) -> None:
        """Prepare the syncs that the durability of the next change of a segment needs."""
        if self._is_durable(durability):
            self.staging.make_durable(segment)
        self.rounds.gathering.ask(durability or self.staging.durability)


def info_of(segment: Segment) -> SegmentInfo:
    """Describe a segment as it is committed now."""
    state = segment.committed
    return SegmentInfo(
        segment.name,
        state.start,
        state.length,
        state.sealed,
        segment.is_table,
        state.modified_at_ms,
        segment.corrupt or (segment.table is not None and segment.table.is_damaged(state.start)),
        segment.key_length or 0,
    )


def _new_values(
    segment: Segment, updates: Sequence[AttributeUpdate]
) -> list[tuple[bytes, int]] | StoreError:
    return _values_of(segment.name, segment.pending.attributes, updates)


def _values_of(
    name: str, current: Attributes, updates: Sequence[AttributeUpdate]
) -> list[tuple[bytes, int]] | StoreError:
    """Check the conditions of updates of attributes; gives the values to set."""
    values: dict[bytes, int] = {}
    for update in updates:
        attribute = update.attribute.bytes
        found = values[attribute] if attribute in values else current.get(attribute)
        if update.expected is not None and update.expected != found:
            return AttributeMismatch(
                f"attribute {update.attribute} of {name!r} is {found}, not {update.expected}"
            )
        if not ABSENT <= update.value <= _INT64_MAX:
            return InvalidArgument(f"attribute value {update.value} does not fit 64 bits")
        values[attribute] = update.value
    if not current.has_room(values.items()):
        return InvalidArgument(f"{name!r} may have {ATTRIBUTES_MAX} attributes, and no more")
    return list(values.items())


def _merge_error(target: Segment, source: Segment) -> StoreError | None:
    """Return the reason to refuse a merge, apart from its conditions on attributes."""
    if target is source:
        return InvalidArgument(f"segment {target.name!r} cannot be merged into itself")
    table = next((segment for segment in (target, source) if segment.is_table), None)
    if table is not None:
        return IsATable(f"segment {table.name!r} is a table")
    # A sealed source is fine.
    error = blocked_error(target) or _damage_error(source)
    if error is not None:
        return error
    if source.pending.start:
        start = source.pending.start
        return SegmentTruncated(f"segment {source.name!r} begins at {start}", start)
    return None


def _name_error(name: str) -> InvalidArgument | None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return InvalidArgument(f"segment name {name!r} is no text")
    if 1 <= size <= NAME_BYTES_MAX:
        return None
    return InvalidArgument(f"a segment name has 1 to {NAME_BYTES_MAX} bytes, not {size}")


def _sealed_or_corrupt(segment: Segment) -> StoreError | None:
    if segment.pending.sealed:
        return sealed_error(segment)
    return corrupt_error(segment) if segment.corrupt else None


def _damage_error(segment: Segment) -> StoreError | None:
    return corrupt_error(segment) if segment.corrupt else segment.failure


def _nothing_to_cancel() -> None:
    pass

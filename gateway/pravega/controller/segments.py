"""Steps of the controller on segments. Each step may be done again: what is done already is fine.

Coroutines on `gateway.pending`; they raise StoreError.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final
from uuid import UUID

from gateway.pending import Pending, asked
from gateway.pravega.controller.records.model import StreamPolicy
from gateway.pravega.segments import CREATED_AT, ROLLOVER_SIZE, SCALE_RATE, SCALE_TYPE
from gateway.pravega.traffic import Traffic
from store.api import (
    Appended,
    AttributeUpdate,
    Operations,
    ReadResult,
    SegmentInfo,
    Writer,
)
from store.errors import (
    NoSuchSegment,
    SegmentExists,
    SegmentSealed,
    SegmentTruncated,
    StoreError,
)

_AT_ONCE: Final = 50
"""Segments that are changed at a time, which takes some 1 ms; others have their turn then."""
CREATION_EPOCH: Final = UUID(int=(0x8000_0000_0000_0000 << 64) + 15)


class Segments:
    """Segments of the controller's streams, by their names in the store."""

    def __init__(self, store: Operations, removal: Operations, traffic: Traffic) -> None:
        """Prepare them.

        Args:
            store: The open store.
            removal: The store for calls that free space.
            traffic: Is told what becomes of what transactions wrote.
        """
        self._store = store
        self._removal = removal
        self._traffic = traffic

    async def create(self, names: Mapping[str, int], policy: StreamPolicy, at_ms: int) -> None:
        """Create segments, each in an epoch."""

        def create(name: str, epoch: int) -> Pending[None]:
            values = {
                CREATED_AT: at_ms,
                SCALE_TYPE: policy.scale_type,
                SCALE_RATE: policy.rate,
                ROLLOVER_SIZE: policy.rollover_bytes,
                CREATION_EPOCH: epoch,
            }
            attributes = [AttributeUpdate(key, value) for key, value in values.items()]
            return asked(
                lambda done: self._store.create_segment(name, done=done, attributes=attributes)
            )

        await _all((create(*each) for each in names.items()), SegmentExists)

    async def create_tables(self, names: Iterable[str], key_length: int) -> None:
        """Create tables whose keys have a length; 0: any."""

        def create(name: str) -> Pending[None]:
            return asked(
                lambda done: self._store.create_table(name, key_length=key_length, done=done)
            )

        await _all(map(create, names), SegmentExists)

    async def configure(self, names: Iterable[str], policy: StreamPolicy) -> None:
        """Note a policy in segments."""
        updates = [
            AttributeUpdate(SCALE_TYPE, policy.scale_type),
            AttributeUpdate(SCALE_RATE, policy.rate),
        ]

        def configure(name: str) -> Pending[None]:
            return asked(lambda done: self._store.update_attributes(name, updates, done=done))

        await _all(map(configure, names), NoSuchSegment, SegmentSealed)

    async def seal(self, names: Iterable[str]) -> None:
        """Let segments take no more."""

        def seal(name: str) -> Pending[int]:
            return asked(lambda done: self._store.seal_segment(name, done=done))

        await _all(map(seal, names), NoSuchSegment, SegmentSealed)

    async def delete(self, names: Iterable[str]) -> None:
        """Delete segments."""

        def delete(name: str) -> Pending[None]:
            return asked(lambda done: self._removal.delete_segment(name, done=done))

        names = list(names)
        await _all(map(delete, names), NoSuchSegment)
        for name in names:
            self._traffic.abort(name)

    def beneath(self, place: str) -> Pending[Sequence[str]]:
        """Return the names of all segments and tables of a scope, or of `scope/stream`."""
        return asked(lambda done: self._store.list_segments(f"{place}/", done=done))

    def count(self, place: str, mark: str = "") -> Pending[int]:
        """Return how many segments and tables `scope/stream` has, or parts with a mark."""
        return asked(lambda done: self._store.count_segments(f"{place}/{mark}", done=done))

    async def holds_data(self, names: Iterable[str]) -> bool:
        """Return whether one of some segments is there and no table."""
        for name in names:
            if await self.bounds(name) is not None:
                return True
        return False

    async def truncate(self, offsets: Mapping[str, int]) -> None:
        """Truncate segments, each at an offset; one that is truncated further stays so."""

        def truncate(name: str, offset: int) -> Pending[None]:
            return asked(lambda done: self._removal.truncate_segment(name, offset, done=done))

        await _all((truncate(*each) for each in offsets.items()), NoSuchSegment, SegmentTruncated)

    async def merge(self, targets: Mapping[str, str]) -> None:
        """Move the bytes of segments, the keys, behind those of others."""

        def merge(source: str, target: str) -> Pending[int]:
            return asked(lambda done: self._store.merge_segments(target, source, done=done))

        await _all((merge(*each) for each in targets.items()), NoSuchSegment)
        for source, target in targets.items():
            self._traffic.commit(source, target)

    async def append(self, name: str, writer: UUID, data: bytes) -> None:
        """Append to a segment that one writer alone writes to."""
        opened: Writer = await asked(lambda done: self._store.open_writer(name, writer, done=done))
        number = max(opened.event_number, 0) + 1
        appended: Pending[Appended] = asked(lambda done: opened.append(data, number, done=done))
        await appended

    async def existing(self, names: Iterable[str]) -> set[str]:
        """Return those of some segments that exist."""
        return {name for name in names if await self.bounds(name) is not None}

    async def bounds(self, name: str) -> tuple[int, int] | None:
        """Return start and length of a segment, None if there is none."""
        try:
            info = await self._info(name)
        except NoSuchSegment:
            return None
        return None if info.is_table else (info.start, info.length)

    def attribute(self, name: str, attribute: UUID) -> Pending[int]:
        """Return the value of an attribute of a segment; ABSENT if it has none."""
        return asked(lambda done: self._store.get_attribute(name, attribute, done=done))

    async def read(self, name: str, position: int, size: int) -> bytes:
        """Return some bytes of a segment, perhaps fewer; none at its end."""
        found: ReadResult = await asked(
            lambda done: self._store.read(name, position, size, done=done)
        )
        return found.data

    def _info(self, name: str) -> Pending[SegmentInfo]:
        return asked(lambda done: self._store.info(name, done=done))


async def _all(steps: Iterable[Pending[Any]], *done_before: type[StoreError]) -> None:
    """Take steps, some at a time, until one fails for another reason than that it was done."""
    failure: StoreError | None = None
    left = iter(steps)
    while some := list(islice(left, _AT_ONCE)):
        for step in some:
            try:
                await step
            except done_before:
                pass
            except StoreError as error:
                failure = failure or error
        if failure is not None:
            raise failure

"""States of groups of readers, read from the streams in which their readers agree.

The events of such a stream are changes, and now and then a whole state in place of those before it.
An attribute of the segment says where the newest whole state begins, and the segment begins at the
one before that. So what has to be read is bounded by the client, and here by BYTES_MAX.

Source: Pravega, io.pravega.client.state.impl.StateSynchronizerImpl, RevisionedStreamClientImpl.
"""

from typing import Final, TypeVar
from uuid import UUID

from gateway.broker.locks import Locks
from gateway.broker.yielding import Slice
from gateway.pravega.controller.errors import NoSuchScope, NoSuchStream
from gateway.pravega.controller.readers.group import ReaderGroup
from gateway.pravega.controller.readers.packed import Framed, Steps, UnreadableValue
from gateway.pravega.controller.readers.state import Agreed, Replay
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.segments import Segments
from gateway.pravega.names import GROUP
from gateway.server.loop.awaiting import next_turn
from store.errors import NoSuchSegment, SegmentTruncated

T = TypeVar("T")

MARK: Final = UUID("7df9a874-246c-c9d6-9397-cdd19ead68c5")
"""Attribute of the segment, `RevisionStreamClientMark`: the position of the newest whole state."""

BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of a state with the changes behind it: as many as an event of Pravega's client may have.
Its readers write a whole state soon after 512 KiB of changes."""
PIECE_BYTES: Final = 64 * 1024
TRIES: Final = 3
"""Reads of one state: each time it is truncated meanwhile there is a newer whole state."""

_ONE: Final = "one at a time"

NOTHING: Final = Agreed((), {}, {})
"""State of a group into whose stream no client has written yet."""


class States:
    """States of groups. One is read at a time: it may take 100 MB while it is."""

    def __init__(self, registry: Registry, segments: Segments) -> None:
        self._registry = registry
        self._segments = segments
        self._locks = Locks()

    async def of(self, group: ReaderGroup) -> Agreed | None:
        """Return the state of a group of readers; None if the group is gone.

        Raises UnreadableValue, StoreError.
        """
        async with self._locks.hold(_ONE):
            for _ in range(TRIES):
                try:
                    return await self._read(group)
                except SegmentTruncated:
                    continue
                except (NoSuchScope, NoSuchStream, NoSuchSegment):
                    return None
            raise UnreadableValue("it is truncated all the time")

    async def _read(self, group: ReaderGroup) -> Agreed | None:
        stream = self._registry.stream(group.scope, GROUP + group.name)
        segment = stream.segment_name(stream.history.open[0].identity)
        # The mark first: a whole state lies behind the segment's start, whenever that is looked at.
        mark = await self._segments.attribute(segment, MARK)
        bounds = await self._segments.bounds(segment)
        if bounds is None:
            return None
        start, end = bounds
        start = max(start, mark)
        if start == end:
            return NOTHING
        if not 0 < end - start <= BYTES_MAX:
            raise UnreadableValue(f"it has {end - start} bytes, and may have {BYTES_MAX}")
        replay, framed, time_slice = Replay(), Framed(), Slice()
        while start < end:
            data = await self._segments.read(segment, start, min(end - start, PIECE_BYTES))
            if not data:
                raise UnreadableValue("its bytes end before its end")
            start += len(data)
            time_slice.begin()
            for event in framed.fed(data):
                await _done(replay.take(event), time_slice)
        if not framed.is_whole:
            raise UnreadableValue("its last event is not whole")
        return await _done(replay.agreed(), time_slice)


async def _done(steps: Steps[T], time_slice: Slice) -> T:
    """Take the steps of some work, between which others have their turn."""
    while True:
        if time_slice.is_over():
            await next_turn()
            time_slice.begin()
        try:
            next(steps)
        except StopIteration as stop:
            found: T = stop.value
            return found

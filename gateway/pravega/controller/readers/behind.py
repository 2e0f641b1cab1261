"""Distances of groups of readers from the ends of their streams."""

from typing import Final

from gateway.awaiting import next_turn
from gateway.pravega.controller.errors import NoSuchScope, NoSuchStream
from gateway.pravega.controller.history import READ_OFF, between
from gateway.pravega.controller.model import Stream
from gateway.pravega.controller.readers.group import Cut, ReaderGroup
from gateway.pravega.controller.registry import Registry
from gateway.pravega.controller.segments import Segments

LOOKS_A_TURN: Final = 100
"""Segments that are looked at before others have their turn."""


class Behind:
    """Bytes that groups have not given up; coroutines on `gateway.pending`."""

    def __init__(self, registry: Registry, segments: Segments) -> None:
        self._registry = registry
        self._segments = segments
        self._looks = 0

    async def bytes_of(self, group: ReaderGroup) -> int | None:
        """Return how many bytes lie behind what a group has given up, in all its streams.

        A stream of which it has given up nothing counts from the group's beginning on. None: its
        streams do not wait for it, or the controller does not know one of them. Raises StoreError.
        """
        if not group.subscribed:
            return None
        total = 0
        for place in sorted(group.subscribed):
            scope, _, name = place.partition("/")
            try:
                stream = self._registry.stream(scope, name)
            except (NoSuchScope, NoSuchStream):
                return None
            total += await self._left(stream, group.cuts.get(place) or group.starts[place])
        return total

    async def _left(self, stream: Stream, cut: Cut) -> int:
        """Return how many bytes lie behind a cut; one that is empty is the stream's head."""
        known = {key: offset for key, offset in cut.items() if key in stream.history.segments}
        left = 0
        for identity in between(stream, known, {}):
            self._looks += 1
            if self._looks % LOOKS_A_TURN == 0:
                await next_turn()
            offset = known.get(identity, 0)
            bounds = await self._segments.bounds(stream.segment_name(identity))
            if bounds is not None and offset != READ_OFF:
                start, end = bounds
                left += max(end - max(start, offset), 0)
        return left

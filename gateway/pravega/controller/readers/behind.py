"""Distances of groups of readers from the ends of their streams."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from gateway.pending import Pending
from gateway.pravega.controller.errors import NoSuchScope, NoSuchStream
from gateway.pravega.controller.readers.group import Cut
from gateway.pravega.controller.readers.state import Agreed
from gateway.pravega.controller.records.history import READ_OFF, between
from gateway.pravega.controller.records.model import StreamRecord
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.segments import Segments
from gateway.server.loop.awaiting import next_turn

LOOKS_A_TURN: Final = 100
"""Segments that are looked at before others have their turn."""

Find = Callable[[str, str], Coroutine[Pending[Any], None, StreamRecord | None]]
"""Finds a stream that was made without the controller."""


class Behind:
    """Bytes that groups have not read; coroutines on `gateway.pending`."""

    def __init__(self, registry: Registry, segments: Segments, find: Find) -> None:
        self._registry = registry
        self._segments = segments
        self._find = find
        self._looks = 0

    async def unread(self, agreed: Agreed) -> int | None:
        """Return how many bytes lie between the places that a group has reached and its ends.

        What is truncated is not there to be read. None: nothing is known of one of the streams.
        Raises StoreError.
        """
        total = 0
        for place, cut in sorted(agreed.reached.items()):
            stream = await self._stream(*place)
            if stream is None:
                return None
            total += await self._left(stream, cut, agreed.ends.get(place, {}))
        return total

    async def _stream(self, scope: str, name: str) -> StreamRecord | None:
        try:
            return self._registry.stream(scope, name)
        except (NoSuchScope, NoSuchStream):
            return await self._find(scope, name)

    async def _left(self, stream: StreamRecord, cut: Cut, ends: Cut) -> int:
        """Return how many bytes lie between two cuts, of which the second may be empty.

        All lies behind a cut of a deleted stream of the same name.
        """
        history = stream.history
        known = {key: offset for key, offset in cut.items() if key in history.segments}
        ends = {key: offset for key, offset in ends.items() if key in history.segments}
        unread = set(between(stream, known, ends))
        if known:
            unread &= history.behind(known)
        left = 0
        for identity in unread:
            self._looks += 1
            if self._looks % LOOKS_A_TURN == 0:
                await next_turn()
            offset = known.get(identity, 0)
            bounds = await self._segments.bounds(stream.segment_name(identity))
            if bounds is not None and offset != READ_OFF:
                start, end = bounds
                end = min(end, ends.get(identity, end))
                left += max(end - max(start, offset), 0)
        return left

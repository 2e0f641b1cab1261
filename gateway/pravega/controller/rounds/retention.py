"""Retention of streams: each round notes where they end, and truncates old data."""

import logging
from bisect import bisect
from collections.abc import Callable

from gateway.pravega.controller.errors import InvalidRequest, NoSuchScope, NoSuchStream
from gateway.pravega.controller.readers.group import Cut
from gateway.pravega.controller.records.history import between, precedes
from gateway.pravega.controller.records.model import StreamRecord, StreamState
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.rounds.places import BY_SIZE, StreamEnd, chosen, slowest, thinned
from gateway.pravega.controller.segments import Segments
from gateway.pravega.controller.streams import StreamChanges

log = logging.getLogger(__name__)


class RetentionRounds:
    """The retention of all streams; `hold` the scope of each."""

    def __init__(
        self,
        registry: Registry,
        streams: StreamChanges,
        segments: Segments,
        clock_ms: Callable[[], int],
    ) -> None:
        self._registry = registry
        self._streams = streams
        self._segments = segments
        self._clock_ms = clock_ms

    def concerned(self) -> list[tuple[str, str]]:
        """Return scope and name of the streams that have such a policy, or had one."""
        with_policy = {
            (scope, name)
            for scope, streams in self._registry.scopes.items()
            for name, stream in streams.items()
            if stream.policy.retention_type
        }
        return sorted(with_policy | set(self._registry.places))

    async def look(self, scope: str, name: str) -> None:
        """Note where a stream ends, and truncate it if it keeps too much. Raises StoreError."""
        try:
            stream = await self._streams.settled(scope, name)
        except (NoSuchScope, NoSuchStream):
            return
        policy = stream.policy
        if not policy.retention_type:
            await self._registry.forget_places(stream, self._registry.places_of(stream))
        elif stream.state is not StreamState.SEALED:
            now = await self._noted(stream)
            places = self._registry.places_of(stream)
            groups = self._registry.subscribers(scope, name)
            cuts = [
                each.cuts[f"{scope}/{name}"] for each in groups if f"{scope}/{name}" in each.cuts
            ]
            place = chosen(places, policy, now, stream.history, cuts)
            given_up = slowest(stream.history, cuts)
            if place is not None and given_up and precedes(stream.history, given_up, place.cut):
                given_up = None  # the maximum of the policy lies behind it
            # What all have given up lies behind all other places, and need not be one of them.
            if given_up and await self._is_enough_behind(stream, given_up, now):
                await self._truncate(stream, given_up)
            elif place is not None:
                await self._truncate(stream, place.cut)

    async def _is_enough_behind(self, stream: StreamRecord, cut: Cut, now: StreamEnd) -> bool:
        """Return whether the policy's minimum is left where a stream is truncated at a cut.

        False as well for a cut of a deleted stream of the same name.
        """
        policy = stream.policy
        if not cut.keys() <= stream.history.segments.keys():
            return False
        if policy.retention_type == BY_SIZE:
            return await self._written(stream, cut, now.cut) >= policy.retention
        return any(
            now.at_ms - place.at_ms >= policy.retention and precedes(stream.history, cut, place.cut)
            for place in self._registry.places_of(stream)
        )

    async def _noted(self, stream: StreamRecord) -> StreamEnd:
        """Return where a stream ends, and note it unless it ended there before."""
        places = self._registry.places_of(stream)
        cut = {
            each.identity: await self._end(stream, each.identity) for each in stream.history.open
        }
        at_ms = self._clock_ms()
        if places and places[-1].cut == cut:
            return places[-1]._replace(at_ms=at_ms)
        begin = places[-1] if places else StreamEnd(at_ms, 0, dict(stream.cut))
        size = begin.size + await self._written(stream, begin.cut, cut)
        place = StreamEnd(max(at_ms, begin.at_ms + 1) if places else at_ms, size, cut)
        await self._registry.save_place(stream, place)
        await self._registry.forget_places(stream, thinned(self._registry.places_of(stream)))
        return place

    async def _written(self, stream: StreamRecord, begin: Cut, end: Cut) -> int:
        """Return how many bytes lie between two cuts."""
        known = stream.history.segments
        some = begin if all(identity in known for identity in begin) else {}
        written = 0
        for identity in between(stream, some, end):
            until = end[identity] if identity in end else await self._end(stream, identity)
            written += max(until - some.get(identity, 0), 0)
        return written

    async def _end(self, stream: StreamRecord, identity: int) -> int:
        bounds = await self._segments.bounds(stream.segment_name(identity))
        return 0 if bounds is None else bounds[1]

    async def _truncate(self, stream: StreamRecord, cut: Cut) -> None:
        """Truncate a stream at a cut, unless it begins behind that; forget places before it."""
        if not (stream.cut and precedes(stream.history, cut, stream.cut)):
            try:
                await self._streams.truncate(stream.scope, stream.name, cut)
            except InvalidRequest as error:  # it was truncated by hand, to between two places
                log.info("retention cannot truncate stream=%s reason=%s", _named(stream), error)
            else:
                log.info("stream truncated by its retention stream=%s", _named(stream))
        places = self._registry.places_of(stream)
        behind = bisect(places, 0, key=lambda each: not precedes(stream.history, each.cut, cut))
        await self._registry.forget_places(stream, places[: max(behind - 1, 0)])


def _named(stream: StreamRecord) -> str:
    return f"{stream.scope}/{stream.name}"

"""The times of all streams: those of writers are kept, and each round marks how far streams are."""

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

from gateway.pravega.controller.errors import InvalidRequest, NoSuchWriter
from gateway.pravega.controller.readers.group import Cut
from gateway.pravega.controller.records.model import StreamRecord
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.rounds.marks import marks_of, pack
from gateway.pravega.controller.rounds.writers import (
    ENTRIES_MAX,
    NAME_LETTERS_MAX,
    WRITERS_MAX,
    Times,
    Told,
)
from gateway.pravega.controller.segments import Segments

log = logging.getLogger(__name__)

WRITER: Final = UUID("5f4d4152-4b00-4000-8000-000000000001")
"""Writes all streams of marks."""


class StreamTimes:
    """The times of all streams; `hold` the scope of each."""

    def __init__(self, registry: Registry, segments: Segments, clock_ms: Callable[[], int]) -> None:
        self._registry = registry
        self._segments = segments
        self._clock_ms = clock_ms
        self._silent_since: dict[tuple[str, str, str], int] = {}

    async def tell(self, stream: StreamRecord, writer: str, time: int, position: Cut) -> Told:
        """Keep the time that a writer tells. Raises InvalidRequest: there are too many."""
        told, after = self._times_of(stream).tell(writer, time, position)
        if told is Told.TOO_MANY:
            most = (
                f"{WRITERS_MAX} writers, of {NAME_LETTERS_MAX} letters, with {ENTRIES_MAX} segments"
            )
            raise InvalidRequest(f"at most {most} tell times of {stream.scope}/{stream.name}")
        if told is Told.TAKEN:
            await self._registry.save_times(after)
        return told

    async def tell_committed(self, stream: StreamRecord, writer: str, time: int) -> None:
        """Keep the time that a writer tells with a transaction, which is in the stream now.

        Its place is the stream's end, which is not before that of the transaction's events.
        """
        names = {each.identity: stream.segment_name(each.identity) for each in stream.history.open}
        found = {key: await self._segments.bounds(name) for key, name in names.items()}
        position = {key: bounds[1] for key, bounds in found.items() if bounds is not None}
        await self.tell(stream, writer, time, position)

    async def end(self, stream: StreamRecord, writer: str) -> None:
        """Wait for a writer no more. Raises NoSuchWriter."""
        after = self._times_of(stream).end(writer)
        if after is None:
            raise NoSuchWriter(f"{stream.scope}/{stream.name} has no times of writer {writer!r}")
        await self._registry.save_times(after)

    async def look(self, scope: str, name: str) -> None:
        """Mark how far a stream is, if its writers have gone on. Raises StoreError."""
        times = self._registry.times.get((scope, name))
        if times is None:
            return
        stream = self._registry.stream(scope, name)
        after = times.mark(self._silent(times, stream.policy.aggregation_ms), stream.history)
        if after == times:
            return
        # Were the mark written first, it might be written twice.
        await self._registry.save_times(after)
        if after.last is not None and after.last != times.last:
            marks = marks_of(stream)
            first = marks.history.open[0]
            segment = marks.segment_name(first.identity)
            await self._segments.create({segment: first.epoch}, marks.policy, self._clock_ms())
            await self._segments.append(segment, WRITER, pack(after.last))

    def _silent(self, times: Times, timeout_ms: int) -> list[str]:
        """Return the writers that are not waited for any more."""
        now, silent = self._clock_ms(), []
        for name, writer in times.writers.items():
            key = times.scope, times.stream, name
            if times.takes_part(name):
                self._silent_since.pop(key, None)
                continue
            since = self._silent_since.setdefault(key, now)
            if not writer.is_alive or now - since >= timeout_ms:
                silent.append(name)
                del self._silent_since[key]
        return silent

    def _times_of(self, stream: StreamRecord) -> Times:
        known = self._registry.times.get((stream.scope, stream.name))
        return known or Times(scope=stream.scope, stream=stream.name)

"""Retention: streams are checked for data that may go, on a timer and when they have grown.

One stream is looked at once at a time. What goes wrong with one stream is logged and tried again
when it is looked at next; the others have nothing to do with it.
"""

import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Final

from gateway.broker.errors import BrokerError, StreamDoesNotExist
from gateway.broker.rules.arguments import SEGMENT_BYTES_DEFAULT, StreamArguments
from gateway.broker.streams.catalogue import Stream, StreamEntry
from gateway.broker.yielding import Slice
from gateway.log.damage.errors import LogError, NothingRemoved
from gateway.log.derived.snapshot import Snapshot
from gateway.log.log import StreamLog
from gateway.log.reading.locations import StartKind, locate
from gateway.log.reading.retention import (
    Cut,
    RetentionLimits,
    cut_before,
    cut_within,
    find_cut,
    remove_before,
)
from gateway.log.recovery.log_opening import LogNames
from gateway.log.recovery.persistence import trim_index
from gateway.logs import AGAIN_S, RateLimitedLog
from gateway.pending import Pending, run
from store.api import SegmentInfo, SegmentStore
from store.errors import NoSuchSegment, StoreClosed, StoreError

log = logging.getLogger(__name__)

_MS: Final = 1_000

_UNITS: Final = 8
"""Units that a stream's size limit is divided into, if their size is not given."""
_UNIT_BYTES_MIN: Final = 1024 * 1024
_AGED_UNIT_BYTES: Final = 16 * 1024 * 1024
"""The unit of a stream with a limit of age, if its size is not given."""

_AHEAD_MS: Final = 60_000
_INDEX_GARBAGE_MAX: Final = 1024
"""Entries of the stored index, 28 bytes each, that may lie before the start of the chunks."""


def limits_of(arguments: StreamArguments) -> RetentionLimits:
    """Return the limits of a stream with these arguments."""
    age_s = None if arguments.max_age is None else arguments.max_age.seconds
    unit_bytes = arguments.segment_bytes
    if unit_bytes is None:
        unit_bytes = SEGMENT_BYTES_DEFAULT
        if arguments.max_length_bytes is not None:
            unit_bytes = min(unit_bytes, max(_UNIT_BYTES_MIN, arguments.max_length_bytes // _UNITS))
        if age_s is not None:
            unit_bytes = min(unit_bytes, _AGED_UNIT_BYTES)
    return RetentionLimits(
        arguments.max_length_bytes, None if age_s is None else age_s * _MS, unit_bytes
    )


@dataclass(frozen=True, slots=True)
class RetentionPorts:
    """Ports of retention.

    Attributes:
        store: The segment store.
        schedule: Calls a function at the end of this turn of the event loop.
        now_for_age_ms: Given an age in ms, the earliest time that it can be now.
        log_of: Returns a stream's log.
        limits_of: Returns a stream's limits, by the policies that there are now.
        names_of: Returns a stream's segments.
        save: Stores a log's snapshot and index.
        first_held: Returns the lowest offset of a stream, by its generation, that a plan holds.
        is_disk_full: Returns whether plans hold nothing, since there is no space.
    """

    store: SegmentStore
    schedule: Callable[[Callable[[], None]], object]
    now_for_age_ms: Callable[[int], int]
    log_of: Callable[[Stream], Coroutine[Pending[Any], None, StreamLog]]
    limits_of: Callable[[Stream], Coroutine[Pending[Any], None, RetentionLimits]]
    names_of: Callable[[StreamEntry], LogNames]
    save: Callable[[StreamEntry, StreamLog, Snapshot], Pending[None]]
    first_held: Callable[[int], int | None]
    is_disk_full: Callable[[], bool]


class StreamRetention:
    """Removes records that the streams of a virtual host need not keep any more."""

    def __init__(self, ports: RetentionPorts) -> None:
        self._ports = ports
        self._grown: dict[Stream, None] = {}
        # Of a look at all streams; None while there is none under way.
        self._remaining: Iterator[Coroutine[Pending[Any], None, None]] | None = None
        self._is_wanted = False
        line = "disk is full, so planned records are removed stream=%s held_from=%d before=%d"
        self._held_removed = RateLimitedLog(log, line)

    def let_go(self) -> None:
        """Look at no stream any more, and refer to no logs: all streams are deleted."""
        self._ports = replace(self._ports, log_of=_no_log, limits_of=_no_limits)

    # When

    def grown(self, stream: Stream) -> None:
        """Look at a stream at the end of this turn; costs little for one without limits.

        Other limits since a change of policies are not asked for: then all streams are looked at.
        """
        limits = stream.limits
        if (limits is not None and limits.is_endless) or stream in self._grown:
            return
        self._grown[stream] = None
        if len(self._grown) == 1:
            self._ports.schedule(self._look_at_grown)

    def _look_at_grown(self) -> None:
        grown, self._grown = self._grown, {}
        self._look_at_some(iter(grown))

    def _look_at_some(self, grown: Iterator[Stream]) -> None:
        time_slice = Slice(every=1)
        for stream in grown:
            run(self.evaluate(stream), _ended)
            if time_slice.is_over():
                self._ports.schedule(partial(self._look_at_some, grown))
                break

    def rounds(self, streams: Iterable[Stream]) -> Iterator[Coroutine[Pending[Any], None, None]]:
        """Yield coroutines that look at all streams; between them others should have a turn.

        Each is to be awaited before the next one is asked for.
        """
        remaining = iter(streams)
        for stream in remaining:
            yield self._evaluate_some(chain([stream], remaining))

    def look_soon(self, streams: Iterable[Stream]) -> None:
        """Look at all streams, some at the end of this turn, some in the next ones.

        Asked for again while that is under way, it is done once more when it is through.
        """
        self._is_wanted = True
        if self._remaining is None:
            self._remaining = iter(())
            self._ports.schedule(lambda: self._look_at_all(streams))

    def _look_at_all(self, streams: Iterable[Stream]) -> None:
        assert self._remaining is not None
        some = next(self._remaining, None)
        if some is None and self._is_wanted:
            self._is_wanted = False
            self._remaining = self.rounds(streams)
            some = next(self._remaining, None)
        if some is None:
            self._remaining = None
            return

        def ended(outcome: BaseException | None) -> None:
            _ended(outcome)
            self._ports.schedule(lambda: self._look_at_all(streams))

        run(some, ended)

    async def _evaluate_some(self, streams: Iterable[Stream]) -> None:
        time_slice = Slice(every=1)
        for stream in streams:
            await self.evaluate(stream)
            if time_slice.is_over():
                break

    async def evaluate(self, stream: Stream) -> None:
        """Remove records that a stream need not keep; errors are logged."""
        limits = await self._ports.limits_of(stream)
        if limits.is_endless or stream.is_deleted:
            return
        if stream.evaluation is not None:
            stream.is_to_be_evaluated = True
            return
        await self._in_turn(stream)
        try:
            await self._evaluate(stream, limits)
        except (StoreError, LogError, BrokerError) as error:
            self._tell(stream, error)
        finally:
            self._end_turn(stream)

    async def _evaluate(self, stream: Stream, limits: RetentionLimits) -> None:
        if stream.log is None:
            described: Pending[SegmentInfo] = Pending()
            name = self._ports.names_of(stream.entry).data_segment
            self._ports.store.info(name, done=described.settle)
            info = await described
            # A stream that cannot have more than one unit is not opened for this.
            if info.length - info.start <= limits.unit_bytes:
                return
        stream_log = await self._ports.log_of(stream)
        age_ms = limits.max_age_ms
        now_ms = 0 if age_ms is None else self._ports.now_for_age_ms(age_ms)
        if age_ms is not None:
            _remark_clock(stream, stream_log, now_ms)
        cut = await find_cut(stream_log, limits, now_ms)
        if cut is not None:
            cut = self._without_held(stream, stream_log, cut)
        if cut is not None:
            await self._remove(stream, stream_log, cut)

    def _without_held(self, stream: Stream, stream_log: StreamLog, cut: Cut) -> Cut | None:
        """Return a cut that spares ranges held by plans, if there is one; all on a full disk."""
        held = self._ports.first_held(stream.entry.generation)
        if held is None or cut.offset <= held:
            return cut
        if not self._ports.is_disk_full():
            return cut_before(stream_log, cut, held)
        self._held_removed.warning(stream_log.stream, held, cut.offset)
        return cut

    async def truncate(
        self, stream: Stream, stream_log: StreamLog, offset: int | None, timestamp_ms: int | None
    ) -> None:
        """Remove the records before an offset or a time, whatever the limits.

        Raises:
            StoreError: The store refused.
            CorruptChunk: There are no chunks where some should be.
        """
        if (offset is None) == (timestamp_ms is None):
            raise ValueError("give either an offset or a time")
        await self._in_turn(stream)
        try:
            if timestamp_ms is None:
                place = await locate(stream_log, StartKind.OFFSET, offset or 0)
            else:
                place = await locate(stream_log, StartKind.TIMESTAMP, timestamp_ms)
            await self._remove(stream, stream_log, Cut(place.position, place.offset))
        finally:
            self._end_turn(stream)
        log.info(
            "stream truncated on demand stream=%s before_offset=%s before_ms=%s first_offset=%d",
            stream_log.stream,
            offset,
            timestamp_ms,
            stream_log.first_offset,
        )

    async def _in_turn(self, stream: Stream) -> None:
        while stream.evaluation is not None:
            await stream.evaluation
        stream.evaluation = Pending()

    def _end_turn(self, stream: Stream) -> None:
        turn, stream.evaluation = stream.evaluation, None
        assert turn is not None
        turn.settle(None)
        if stream.is_to_be_evaluated:
            stream.is_to_be_evaluated = False
            self.grown(stream)

    def _tell(self, stream: Stream, error: Exception) -> None:
        """Log a failure, unless there is nothing more to be removed."""
        if not stream.is_deleted and not isinstance(error, StoreClosed):
            shown = self._ports.names_of(stream.entry).stream
            log.error("retention failed stream=%s error=%s", shown, error)

    # How

    async def _remove(self, stream: Stream, stream_log: StreamLog, cut: Cut) -> None:
        if cut.position <= stream_log.start:
            return
        if stream_log.saved.snapshot_position < cut.position and not stream.is_deleted:
            # Publishers whose chunks go are remembered by the snapshot alone from then on.
            snapshot = stream_log.take_snapshot()
            # Not if it takes more space than the chunks, or a full disk would be fuller after it.
            gives_space = snapshot.stored_bytes < cut.position - stream_log.start
            snapshot = replace(snapshot, gives_space=gives_space)
            await self._ports.save(stream.entry, stream_log, snapshot)
            # Where there was no room for it, what the last snapshot covers can go all the same.
            within = cut_within(stream_log, cut, stream_log.saved.snapshot_position)
            if within is None:
                raise NothingRemoved(stream_log.stream)
            cut = within
        before = stream_log.start
        segments = self._ports.names_of(stream.entry)
        removed = await remove_before(self._ports.store, segments.data_segment, stream_log, cut)
        _tell_removed(stream, stream_log, cut.position - before)
        await self._note_garbage(stream, stream_log, segments, removed)

    async def _note_garbage(
        self, stream: Stream, stream_log: StreamLog, segments: LogNames, removed: int
    ) -> None:
        """Truncate the stored index as well, when it is worth it."""
        stream.index_garbage += removed
        if stream.index_garbage >= _INDEX_GARBAGE_MAX:
            stream.index_garbage = 0
            with suppress(NoSuchSegment):
                await trim_index(self._ports.store, segments.index_segment, stream_log.start)


def _tell_removed(stream: Stream, stream_log: StreamLog, size: int) -> None:
    """Log removals: of a stream at most every few seconds, and then all since."""
    stream.removed_bytes += size
    now_s = time.monotonic()
    if now_s >= stream.removal_is_told_at_s:
        log.info(
            "records removed stream=%s bytes=%d first_offset=%d",
            stream_log.stream,
            stream.removed_bytes,
            stream_log.first_offset,
        )
        stream.removed_bytes, stream.removal_is_told_at_s = 0, now_s + AGAIN_S


def _remark_clock(stream: Stream, stream_log: StreamLog, now_ms: int) -> None:
    """Say once that chunks are kept for longer because the clock was ahead when they came."""
    times = stream_log.index.timestamps_ms
    if times and times[-1] > now_ms + _AHEAD_MS and not stream.is_ahead_remarked:
        stream.is_ahead_remarked = True
        log.warning(
            "timestamps lie in the future, max-age acts late stream=%s ahead_s=%d",
            stream_log.stream,
            (times[-1] - now_ms) // _MS,
        )


def _ended(outcome: BaseException | None) -> None:
    """Let a programming error be seen: no caller waits for these coroutines."""
    if outcome is not None:
        log.error("retention check failed", exc_info=outcome)


async def _no_log(stream: Stream) -> StreamLog:
    raise StreamDoesNotExist(stream.name)


async def _no_limits(_stream: Stream) -> RetentionLimits:
    return RetentionLimits(None, None, SEGMENT_BYTES_DEFAULT)

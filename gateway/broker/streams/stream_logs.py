"""The logs of a virtual host's streams: opened when first used, watched, limited and closed."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from gateway.broker.errors import (
    InternalError,
    StreamDoesNotExist,
    StreamNotAvailable,
    StreamRestarted,
)
from gateway.broker.rules.policies import Policies
from gateway.broker.streams.catalogue import Stream
from gateway.broker.streams.retention import RetentionPorts, StreamRetention, limits_of
from gateway.broker.streams.retention_holds import RetentionHolds
from gateway.broker.streams.stream_storage import StreamStorage
from gateway.broker.streams.streams_ports import StreamsPorts
from gateway.broker.yielding import Slice
from gateway.log.damage.errors import LogError
from gateway.log.derived.snapshot import Snapshot
from gateway.log.derived.tracking import Tracking
from gateway.log.log import StreamLog
from gateway.log.ports import when_all_committed
from gateway.log.reading.extent import Extent, extent_of, stored_extent
from gateway.log.reading.retention import RetentionLimits, span_for
from gateway.log.recovery.log_opening import LogSettings, open_log
from gateway.logs import NameInHost, RateLimitedLog
from gateway.pending import Pending, start
from store.errors import DiskFull, StoreClosed, StoreError

log = logging.getLogger(__name__)

NOT_TOLD: Final = "telling that a stream is gone failed stream=%s"


class StreamLogs:
    """Logs of streams, with their limits and consumers' offsets.

    Attributes:
        policies: Those of the virtual host.
        tracking: Stored offsets of consumers.
        retention: Removes what streams may not keep.
        holds: Ranges that it must leave.
    """

    def __init__(
        self,
        virtual_host: str,
        ports: StreamsPorts,
        tracking: Tracking,
        policies: Policies,
        storage: StreamStorage,
        streams: Iterable[Stream],
    ) -> None:
        """`streams` gives those that there are at each iteration."""
        self._virtual_host = virtual_host
        self._ports = ports
        self._storage = storage
        self._streams = streams
        self._found_no_space = RateLimitedLog(log, "stream failed stream=%s error=%s")
        self.holds = RetentionHolds()
        self.tracking = tracking
        self.policies = policies
        policies.changed = lambda: self.retention.look_soon(self._streams)
        self.retention = StreamRetention(
            RetentionPorts(
                store=ports.store,
                schedule=ports.schedule,
                now_for_age_ms=ports.earliest_ms,
                log_of=self.of,
                limits_of=self.limits_now,
                names_of=storage.names_of,
                save=storage.save,
                first_held=self.holds.first_held,
                is_disk_full=ports.is_disk_full,
            )
        )

    def _at(self, name: str) -> str:
        return NameInHost(name, self._virtual_host)

    async def of(self, stream: Stream) -> StreamLog:
        """Return a stream's log, opening it if need be.

        Raises:
            StreamNotAvailable: It cannot be opened now.
            StreamDoesNotExist: It was deleted meanwhile.
        """
        if stream.log is not None and stream.log.failure is None:
            return stream.log
        if stream.opening is None:
            stream.opening = start(self._open(stream))
        try:
            return await stream.opening
        except (StoreError, LogError) as error:
            if stream.is_deleted:
                raise StreamDoesNotExist(stream.name) from error
            log.error("stream cannot be opened stream=%s error=%s", self._at(stream.name), error)  # noqa: TRY400  # a line, not a traceback, for the operator
            raise StreamNotAvailable(stream.name) from error

    async def _open(self, stream: Stream) -> StreamLog:
        entry = stream.entry

        def save(opened: StreamLog, snapshot: Snapshot) -> None:
            if not stream.is_deleted:
                self._storage.save(entry, opened, snapshot)

        try:
            opened = await open_log(
                self._ports.store,
                self._storage.names_of(entry),
                self._ports.log_ports(
                    failed=lambda _log, error: self._failed(stream, error),
                    save=save,
                    grown=lambda _log: self.retention.grown(stream),
                ),
                snapshot=await self.tracking.snapshots.load(entry.generation),
                replace_snapshot=partial(self.tracking.snapshots.replace, entry.generation),
                epoch=self._ports.openings.epoch_of(entry.born),
                settings=LogSettings(
                    references_max=self._ports.references_max,
                    initial_offset=stream.arguments.initial_offset or 0,
                    span_bytes=span_for((await self.limits_now(stream)).unit_bytes),
                ),
            )
        finally:
            stream.opening = None
        stream.log = opened
        if opened.saved.is_behind(opened.start):
            save(opened, opened.take_snapshot())
        return opened

    def _failed(self, stream: Stream, error: StoreError) -> None:
        if stream.is_deleted:  # its watchers are told after the reply to the deletion
            log.debug("deleted stream failed stream=%s error=%s", self._at(stream.name), error)
        else:
            if isinstance(error, DiskFull):
                self._found_no_space.error(self._at(stream.name), error)
            elif not isinstance(error, StreamRestarted):
                log.error("stream failed stream=%s error=%s", self._at(stream.name), error)
            self.tell_watchers(stream)
        if isinstance(error, DiskFull):  # what may go should go now
            self.retention.look_soon(self._streams)
        if isinstance(error, StoreClosed):
            self._ports.fatal(error)

    def tell_watchers(self, stream: Stream) -> None:
        """Notify all users of a stream that it is gone."""
        watchers, stream.watchers = stream.watchers, set()
        for watcher in watchers:
            try:
                watcher.stream_gone(stream)
            except Exception:  # the others must know it too
                log.exception(NOT_TOLD, self._at(stream.name))

    async def extent_of(self, stream: Stream) -> Extent:
        """Return where a stream begins and ends; its log is opened only if nothing else tells.

        Raises:
            StreamNotAvailable: It cannot be opened now.
            StreamDoesNotExist: It was deleted meanwhile.
        """
        await self._look_up(stream)
        found = self.extent_at_hand(stream)
        return extent_of(await self.of(stream)) if found is None else found

    async def _look_up(self, stream: Stream) -> None:
        """Look up where a stream at rest begins and ends: once, since changes open its log."""
        if stream.log is None and stream.opening is None and stream.resting is None:
            with suppress(StoreError):  # opening the log says what is wrong
                stream.resting = await stored_extent(
                    self._ports.store,
                    self._storage.names_of(stream.entry).data_segment,
                    stream.arguments.initial_offset or 0,
                )

    async def look_up_all(self) -> None:
        """Look up where streams at rest begin and end, and policies; no log is opened for that."""
        async for stream in _in_turns(tuple(self._streams), self._ports.wait):
            await self._look_up(stream)
            await self.policies.look_for_stream(stream.governed)

    def extent_at_hand(self, stream: Stream) -> Extent | None:
        """Return where a stream begins and ends, None if that is not known without opening it."""
        if stream.log is not None:
            return None if stream.log.failure is not None else extent_of(stream.log)
        return None if stream.opening is not None else stream.resting

    async def restart(self, stream: Stream) -> None:
        """Close a stream for all its users and open it anew; accepted messages are stored first.

        Raises:
            StreamNotAvailable: It cannot be opened now.
        """
        stream_log = await self.of(stream)
        stream_log.flush()
        await when_all_committed(stream_log)
        stream_log.fail(StreamRestarted("restarted by an administrator"))
        await self.of(stream)
        log.info("stream restarted stream=%s", self._at(stream.name))

    def limits_of(self, stream: Stream) -> RetentionLimits:
        """Return the limits of a stream, by the policies that were last looked for."""
        state = stream.governed.state
        if stream.limits is None or stream.limits_as_of != state:
            stream.limits = limits_of(stream.governed.over(stream.arguments))
            stream.limits_as_of = state
            if stream.log is not None:
                stream.log.index.set_span(span_for(stream.limits.unit_bytes))
        return stream.limits

    async def limits_now(self, stream: Stream) -> RetentionLimits:
        """Return the limits of a stream, by the policies that there are now."""
        await self.policies.look_for_stream(stream.governed)
        return self.limits_of(stream)

    def let_go(self) -> None:
        """Refer to nothing that refers to this: all streams are deleted."""
        self._streams = ()
        self.policies.let_go()
        self.retention.let_go()

    async def truncate(
        self, stream: Stream, *, offset: int | None = None, timestamp_ms: int | None = None
    ) -> int:
        """Remove records older than a place; consumers that were there go on behind it.

        Only whole chunks go, so that some records before the place may stay. All goes if the place
        is behind the end. Offsets are never given out again, publishers stay known.

        Args:
            stream: It.
            offset: The first offset that is wanted; or
            timestamp_ms: The first time, in milliseconds since the epoch, that is wanted.

        Returns:
            The stream's first offset now: of the oldest record, or of the next one.

        Raises:
            StreamNotAvailable: It cannot be opened or read now.
            InternalError: The store refused.
        """
        stream_log = await self.of(stream)
        try:
            await self.retention.truncate(stream, stream_log, offset, timestamp_ms)
        except (StoreError, LogError) as error:
            raise InternalError(str(error)) from error
        return stream_log.first_offset

    async def stored_offset(self, stream: Stream, reference: bytes) -> int | None:
        """Return a consumer's stored offset; None if there is none.

        Raises:
            StoreError: The table cannot be read.
            StreamNotAvailable: The stream cannot be opened.
            StreamDoesNotExist: It was deleted meanwhile.
        """
        await self.of(stream)
        return await self.tracking.query_offset(stream.entry.generation, reference)

    def store_offset(self, stream: Stream, reference: bytes, offset: int) -> None:
        """Remember a consumer's offset, any u64."""
        self.tracking.store_offset(stream.entry.generation, reference, offset)

    async def close(self) -> None:
        """Wait until all that was accepted is stored, and save the data that make opening fast."""
        opened = [
            (stream, stream.log)
            for stream in self._streams
            if stream.log is not None and stream.log.failure is None
        ]
        for _, stream_log in opened:
            stream_log.flush()
        for _, stream_log in opened:
            await when_all_committed(stream_log)
        saves: list[Pending[None]] = []
        for stream, stream_log in opened:
            snapshot = stream_log.final_snapshot()
            if snapshot is not None:
                saves.append(self._storage.save(stream.entry, stream_log, snapshot))
        for save in saves:
            await save
        await self.tracking.settled()


async def _in_turns(
    streams: Iterable[Stream], wait: Callable[[int], Pending[None]]
) -> AsyncIterator[Stream]:
    """Yield streams; others have turns meanwhile."""
    time_slice = Slice()
    for stream in streams:
        yield stream
        if time_slice.is_over():
            await wait(0)
            time_slice.begin()

"""The streams of one virtual host: create, find, open, watch, delete.

A stream's log is opened when it is first used and stays open. Who uses a stream watches it: a
watcher is told when the stream is deleted or has failed, after which nothing of it works any more.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from gateway.broker.arguments import InvalidArgument, StreamArguments
from gateway.broker.catalogue import DELETING, Catalogue, StreamEntry
from gateway.broker.errors import (
    InternalError,
    PreconditionFailed,
    StreamDoesNotExist,
    StreamExists,
    StreamNotAvailable,
)
from gateway.broker.openings import Openings
from gateway.broker.policies import Policies, open_policies
from gateway.broker.retention import Retention, RetentionPorts, limits_of
from gateway.broker.stream import Stream, Watcher
from gateway.log import names
from gateway.log.errors import LogError
from gateway.log.log import LogPorts, StreamLog
from gateway.log.opening import LogNames, LogSettings, open_log
from gateway.log.persisting import save_log
from gateway.log.retention import Limits, span_for
from gateway.log.snapshot import Snapshot
from gateway.log.tracking import Tracking, open_tracking
from gateway.pending import Pending, start
from store.api import SegmentStore
from store.errors import NoSuchSegment, SegmentExists, StoreClosed, StoreError

__all__ = ["Stream", "Streams", "StreamsPorts", "Watcher", "open_streams"]

log = logging.getLogger(__name__)

_RESERVED_PREFIX: Final = "amq."


def clean_name(name: str) -> str:
    """Return the name that a new stream gets: without CR and LF.

    Raises:
        PreconditionFailed: It is empty or reserved.
    """
    name = name.replace("\r", "").replace("\n", "")
    if not name or name.startswith(_RESERVED_PREFIX):
        raise PreconditionFailed(f"stream name {name!r} is empty or reserved")
    return name


@dataclass(frozen=True, slots=True)
class StreamsPorts:
    """What the streams need from outside.

    Attributes:
        store: The segment store.
        openings: Gives each stream's epoch.
        log_ports: Makes a log's ports from its `failed` and `save`.
        schedule: Calls a function at the end of this turn of the event loop.
        clock_ms: Milliseconds since the epoch.
        fatal: Told when the store takes nothing any more.
        references_max: Publisher references remembered per stream.
        now_for_age_ms: The earliest time it may be, to whom removes what is older than so many
            milliseconds (see `gateway.log.clock`); None: `clock_ms`.
    """

    store: SegmentStore
    openings: Openings
    log_ports: Callable[..., LogPorts]
    schedule: Callable[[Callable[[], None]], object]
    clock_ms: Callable[[], int]
    fatal: Callable[[StoreError], object]
    references_max: int
    now_for_age_ms: Callable[[int], int] | None = None


class Streams:
    """All streams of a virtual host. Create it with `open_streams`."""

    def __init__(
        self,
        virtual_host: str,
        ports: StreamsPorts,
        catalogue: Catalogue,
        tracking: Tracking,
        policies: Policies,
    ) -> None:
        self.virtual_host = virtual_host
        self.policies = policies
        policies.changed = self._policies_changed
        self.tracking = tracking
        self.count_limit: Callable[[], int] = lambda: -1
        """How many streams there may be; below 0 is no limit."""
        self._is_going = False
        self._ports = ports
        self._catalogue = catalogue
        self._streams: dict[str, Stream] = {}
        self._last_generation = 0
        # Deleted, but not out of the store: the next creation of the name would hide it there.
        self._leftovers: dict[str, Stream] = {}
        # Creations and deletions of one name go one after the other.
        self._busy: dict[str, Pending[None]] = {}
        self.retention = Retention(
            RetentionPorts(
                ports.store,
                ports.schedule,
                ports.now_for_age_ms or (lambda _age_ms: ports.clock_ms()),
                self.log_of,
                self.limits_of,
                self._names_of,
                self._save,
            )
        )

    def __iter__(self) -> Iterator[Stream]:
        return iter(list(self._streams.values()))

    def __len__(self) -> int:
        return len(self._streams)

    def has_room_for(self, count: int) -> bool:
        """Tell whether the limit of the virtual host allows so many streams more."""
        limit = self.count_limit()
        return limit < 0 or len(self._streams) + count <= limit

    def names(self) -> list[str]:
        """Return the names of all streams, sorted."""
        return sorted(self._streams)

    def find(self, name: str) -> Stream:
        """Return a stream. Raises StreamDoesNotExist."""
        stream = self._streams.get(name)
        if stream is None:
            raise StreamDoesNotExist(name)
        return stream

    # Creating and deleting

    async def create(self, name: str, arguments: Mapping[str, str]) -> Stream:
        """Create a stream; its name loses CR and LF.

        Raises:
            PreconditionFailed: A bad name or argument, or the stream exists with other arguments.
            StreamExists: It exists with these arguments.
            InternalError: The store refused.
        """
        name = clean_name(name)
        try:
            parsed = StreamArguments.parse(arguments)
        except InvalidArgument as error:
            raise PreconditionFailed(str(error)) from error
        await self._take_turn(name)
        try:
            return await self._create(name, parsed)
        finally:
            self._end_turn(name)

    async def _create(self, name: str, arguments: StreamArguments) -> Stream:
        existing = self._streams.get(name)
        if existing is not None:
            if existing.arguments == arguments:
                raise StreamExists(name)
            raise PreconditionFailed(f"stream {name!r} exists with other arguments")
        if self._is_going:
            raise InternalError("the virtual host is being deleted")
        if not self.has_room_for(1):
            raise PreconditionFailed("the virtual host has as many streams as its limit allows")
        if name in self._leftovers:
            await self._discard(self._leftovers[name])
        # Three random digits: even with a clock set back no creation gets the number of another.
        generation = self._ports.clock_ms() * 1000 + secrets.randbelow(1000)
        generation = max(self._last_generation + 1, generation)
        self._last_generation = generation
        born = self._ports.openings.unclean_count
        entry = StreamEntry(name, generation, arguments.texts(), born)
        stream = Stream(entry, arguments)
        try:
            await self._catalogue.put(entry)
            await self._create_segment(entry)
        except StoreError as error:
            log.exception("stream not created stream=%s", name)
            with suppress(InternalError):
                await self._discard(stream)
            raise InternalError(str(error)) from error
        self._streams[name] = stream
        log.info("stream created stream=%s generation=%d", name, generation)
        return stream

    async def _create_segment(self, entry: StreamEntry) -> bool:
        """Create a stream's segment; False if it exists."""
        created: Pending[None] = Pending()
        segment = names.data_segment(self.virtual_host, entry.name, entry.generation)
        self._ports.store.create_segment(segment, done=created.settle)
        try:
            await created
        except SegmentExists:
            return False
        return True

    async def delete(self, name: str, gone: Callable[[Stream], object]) -> None:
        """Delete a stream.

        Args:
            name: Which one.
            gone: Told at once that it is gone for clients, whatever the store says: the caller has
                to tell its watchers (`tell_watchers`) when it has answered.

        Raises:
            StreamDoesNotExist: No such stream.
            InternalError: The store refused; what is left goes before the name is used again.
        """
        await self._take_turn(name)
        try:
            stream = self.find(name)
            del self._streams[name]
            stream.is_deleted = True
            gone(stream)
            await self._discard(stream)
        finally:
            self._end_turn(name)
        log.info("stream deleted stream=%s", name)

    async def delete_all(self) -> None:
        """Delete every stream, and let none be created any more. Raises InternalError."""
        self._is_going = True
        while self._streams or self._busy:
            for name in self.names():
                with suppress(StreamDoesNotExist):  # somebody was faster
                    await self.delete(name, self.tell_watchers)
            for turn in tuple(self._busy.values()):
                await turn

    async def _discard(self, stream: Stream) -> None:
        """Remove all of a stream; what is left if that fails is remembered as a leftover."""
        self._leftovers[stream.name] = stream
        try:
            await self._remove(stream)
        except StoreError as error:
            log.exception("stream not deleted stream=%s", stream.name)
            raise InternalError(str(error)) from error
        del self._leftovers[stream.name]

    async def _remove(self, stream: Stream) -> None:
        """Remove all of a stream; its place in the catalogue goes last and stands for the rest."""
        entry = stream.entry
        entry.state = DELETING
        await self._catalogue.put(entry)
        segments = self._names_of(entry)
        await self._delete_segment(segments.data_segment)
        await self._let_finish(stream)
        await self._delete_segment(segments.index_segment)
        await self.tracking.forget(entry.generation)
        await self._catalogue.remove(entry)

    async def _delete_segment(self, segment: str) -> None:
        deleted: Pending[None] = Pending()
        self._ports.store.delete_segment(segment, done=deleted.settle)
        with suppress(NoSuchSegment):
            await deleted

    async def _let_finish(self, stream: Stream) -> None:
        """Wait for what is under way and would leave something behind a deletion."""
        if stream.opening is not None:
            with suppress(StoreError, LogError):
                await stream.opening
        if stream.log is not None and stream.log.saving is not None:
            stream.log.to_save = None
            await stream.log.saving

    def tell_watchers(self, stream: Stream) -> None:
        """Tell everybody who uses a stream that it is gone."""
        watchers, stream.watchers = stream.watchers, set()
        for watcher in watchers:
            watcher.stream_gone(stream)

    async def _take_turn(self, name: str) -> None:
        while name in self._busy:
            await self._busy[name]
        self._busy[name] = Pending()

    def _end_turn(self, name: str) -> None:
        self._busy.pop(name).settle(None)

    # Opening

    async def log_of(self, stream: Stream) -> StreamLog:
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
            log.error("stream cannot be opened stream=%s error=%s", stream.name, error)  # noqa: TRY400  # a line, not a traceback, for the operator
            raise StreamNotAvailable(stream.name) from error

    async def _open(self, stream: Stream) -> StreamLog:
        entry = stream.entry

        def failed(_log: StreamLog, error: StoreError) -> None:
            if stream.is_deleted:  # its watchers are told after the reply to the deletion
                log.debug("deleted stream failed stream=%s error=%s", stream.name, error)
            else:
                log.error("stream failed stream=%s error=%s", stream.name, error)
                self.tell_watchers(stream)
            if isinstance(error, StoreClosed):
                self._ports.fatal(error)

        def save(opened: StreamLog, snapshot: Snapshot) -> None:
            if not stream.is_deleted:
                self._save(entry, opened, snapshot)

        try:
            opened = await open_log(
                self._ports.store,
                self._names_of(entry),
                self._ports.log_ports(
                    failed=failed, save=save, grown=lambda _log: self.retention.grown(stream)
                ),
                snapshot=await self.tracking.load_snapshot(entry.generation),
                drop_snapshot=partial(self.tracking.drop_snapshot, entry.generation),
                epoch=self._ports.openings.epoch_of(entry.born),
                settings=LogSettings(
                    self._ports.references_max,
                    stream.arguments.initial_offset or 0,
                    span_for(self.limits_of(stream).unit_bytes),
                ),
            )
        finally:
            stream.opening = None
        stream.log = opened
        if opened.snapshot_position < opened.start:  # what it knew of removed chunks is kept
            save(opened, opened.take_snapshot())
        return opened

    # What is kept

    def limits_of(self, stream: Stream) -> Limits:
        """Return what a stream may keep."""
        if stream.limits is None:
            stream.limits = limits_of(self.policies.over(stream.name, stream.arguments))
        return stream.limits

    def _policies_changed(self) -> None:
        for stream in self._streams.values():
            stream.limits = None
            if stream.log is not None:
                stream.log.index.set_span(span_for(self.limits_of(stream).unit_bytes))
        self.retention.look_soon(self)

    async def truncate(
        self, name: str, *, offset: int | None = None, timestamp_ms: int | None = None
    ) -> int:
        """Remove what is older than a place; consumers that were there go on behind it.

        Only whole chunks go, so that some records before the place may stay. All goes if the place
        is behind the end. Offsets are never given out again, publishers stay known.

        Args:
            name: The stream.
            offset: The first offset that is wanted; or
            timestamp_ms: The first time, in milliseconds since the epoch, that is wanted.

        Returns:
            The stream's first offset now: of the oldest record, or of the next one.

        Raises:
            StreamDoesNotExist: No such stream.
            StreamNotAvailable: It cannot be opened or read now.
            InternalError: The store refused.
        """
        stream = self.find(name)
        stream_log = await self.log_of(stream)
        try:
            await self.retention.truncate(stream, stream_log, offset, timestamp_ms)
        except (StoreError, LogError) as error:
            raise InternalError(str(error)) from error
        return stream_log.first_offset

    async def stored_offset(self, stream: Stream, reference: bytes) -> int | None:
        """Return a consumer's stored offset; None if there is none, or its record is removed.

        Raises:
            StoreError: The table cannot be read.
            StreamNotAvailable: The stream cannot be opened.
            StreamDoesNotExist: It was deleted meanwhile.
        """
        offset = await self.tracking.query_offset(stream.entry.generation, reference)
        if offset is None:
            return None
        stream_log = await self.log_of(stream)
        return None if offset < stream_log.first_offset else offset

    async def retry_deletions(self) -> None:
        """Try again to remove what is left of deleted streams."""
        for name in list(self._leftovers):
            await self._take_turn(name)
            try:
                if name in self._leftovers:
                    await self._discard(self._leftovers[name])
            except InternalError:
                continue  # it is in the log, and the next time comes
            finally:
                self._end_turn(name)

    # Life

    async def load(self) -> None:
        """Take over what the catalogue holds; finish deletions that were under way."""
        for entry in await self._catalogue.load():
            self._last_generation = max(self._last_generation, entry.generation)
            stream = Stream(entry, StreamArguments.parse(entry.arguments))
            if entry.state == DELETING:
                with suppress(InternalError):  # it is in the log, and is tried again
                    await self._discard(stream)
                continue
            if await self._create_segment(entry):
                log.error("stream has lost its segment and begins empty stream=%s", entry.name)
            self._streams[entry.name] = stream

    async def close(self) -> None:
        """Wait until all that was accepted is stored, and save what makes opening fast."""
        opened = [
            (stream, stream.log)
            for stream in self._streams.values()
            if stream.log is not None and stream.log.failure is None
        ]
        for _, stream_log in opened:
            stream_log.flush()
        for _, stream_log in opened:
            await stream_log.when_all_committed()
        saves: list[Pending[None]] = []
        for stream, stream_log in opened:
            snapshot = stream_log.final_snapshot()
            if snapshot is not None:
                saves.append(self._save(stream.entry, stream_log, snapshot))
        for save in saves:
            await save
        await self.tracking.settled()

    def _names_of(self, entry: StreamEntry) -> LogNames:
        return LogNames(
            entry.name,
            names.data_segment(self.virtual_host, entry.name, entry.generation),
            names.index_segment(self.virtual_host, entry.name, entry.generation),
        )

    def _save(self, entry: StreamEntry, stream_log: StreamLog, snapshot: Snapshot) -> Pending[None]:
        return save_log(
            self._ports.store,
            self.tracking,
            entry.generation,
            self._names_of(entry),
            stream_log,
            snapshot,
        )


async def open_streams(virtual_host: str, ports: StreamsPorts) -> Streams:
    """Open everything of a virtual host. Raises StoreError."""
    catalogue = Catalogue(ports.store, names.meta_table(virtual_host))
    tracking = await open_tracking(ports.store, names.tracking_table(virtual_host), ports.schedule)
    policies = await open_policies(ports.store, virtual_host)
    streams = Streams(virtual_host, ports, catalogue, tracking, policies)
    await streams.load()
    return streams

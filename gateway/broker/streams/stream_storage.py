"""Creation and removal of streams in the store: entries of the catalogue, segments, tracking.

A stream's entry in the catalogue is written first and removed last, so that the store never holds
data that the catalogue does not know.
"""

import logging
import secrets
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from gateway.broker.errors import InternalError
from gateway.broker.streams.catalogue import DELETING, LIVE, Stream, StreamCatalogue, StreamEntry
from gateway.log import names
from gateway.log.derived.snapshot import Snapshot
from gateway.log.derived.tracking import Tracking
from gateway.log.log import StreamLog
from gateway.log.recovery.log_opening import LogNames
from gateway.log.recovery.persistence import save_log
from gateway.logs import NameInHost, RateLimitedLog
from gateway.pending import Pending, asked, start
from store.api import Operations, SegmentInfo, SegmentStore, TableEntry
from store.errors import DiskFull, NoSuchSegment, SegmentExists, StoreError

log = logging.getLogger(__name__)

_TRIES: Final = 3


def names_of(virtual_host: str, entry: StreamEntry) -> LogNames:
    """Return the names of the segments of a stream."""
    where = (virtual_host, entry.name, entry.generation)
    return LogNames(
        stream=NameInHost(entry.name, virtual_host),
        data_segment=names.data_segment(*where),
        index_segment=names.index_segment(*where),
        filter_segment=names.filter_segment(*where),
    )


class StreamStorage:
    """The store as a virtual host's streams use it.

    Attributes:
        leftovers: Deleted streams that are still in the store, by name: a new stream of the name
            would hide them there.
    """

    def __init__(
        self,
        virtual_host: str,
        store: SegmentStore,
        clock_ms: Callable[[], int],
        catalogue: StreamCatalogue,
        tracking: Tracking,
    ) -> None:
        self.leftovers: dict[str, Stream] = {}
        self._virtual_host = virtual_host
        self._store = store
        self._clock_ms = clock_ms
        self._last_generation = 0
        self._catalogue = catalogue
        self._tracking = tracking
        # A refusal of the store is no bug, so a traceback would not help.
        self._not_created = RateLimitedLog(
            log, "streams not created virtual_host=%s streams=%s error=%s"
        )
        self._not_deleted = RateLimitedLog(
            log, "streams not deleted virtual_host=%s streams=%s error=%s"
        )

    def names_of(self, entry: StreamEntry) -> LogNames:
        """Return the names of a stream's segments."""
        return names_of(self._virtual_host, entry)

    def _marks_of(self, entry: StreamEntry) -> str:
        return names.marks_segment(self._virtual_host, entry.name, entry.generation)

    async def size_of(self, stream: Stream) -> int:
        """Return the stored size of a stream in bytes. Raises StoreError."""
        if (stream_log := stream.log) is not None:
            return stream_log.committed_length - stream_log.start
        described: Pending[SegmentInfo] = Pending()
        self._store.info(self.names_of(stream.entry).data_segment, done=described.settle)
        info = await described
        return info.length - info.start

    def new_generation(self) -> int:
        """Return a number that was never used in this virtual host."""
        # Three random digits: even if the clock was set back, no two creations get the same number.
        generation = self._clock_ms() * 1000 + secrets.randbelow(1000)
        self._last_generation = max(self._last_generation + 1, generation)
        return self._last_generation

    def note_generation(self, generation: int) -> None:
        """Note a number that was given out before this opening."""
        self._last_generation = max(self._last_generation, generation)

    def save(self, entry: StreamEntry, stream_log: StreamLog, snapshot: Snapshot) -> Pending[None]:
        """Store a stream's snapshot; the result settles at the end, even after a failure."""
        return save_log(
            self._store,
            self._tracking,
            entry.generation,
            self.names_of(entry),
            stream_log,
            snapshot,
        )

    # Making

    async def make(self, stream: Stream) -> None:
        """Make a stream's segments and entries. Raises InternalError."""
        try:
            await self._catalogue.put(stream.entry)
            await self.make_segment(stream.entry)
        except StoreError as error:
            self._not_created.error(self._virtual_host, [stream.name], error)
            with suppress(InternalError):
                await self.discard(stream)
            raise InternalError(str(error)) from error

    async def make_together(
        self, streams: Sequence[Stream], topology: Sequence[TableEntry]
    ) -> None:
        """Make the data of streams in state CREATING; then one write makes them LIVE.

        Args:
            streams: Any number of streams, or none.
            topology: Rows for the same write.

        Raises:
            InternalError: The store refused; everything is undone.
        """
        entries = [stream.entry for stream in streams]
        try:
            await self._catalogue.put(*entries)
            for made in [start(self.make_segment(entry)) for entry in entries]:
                await made
            for entry in entries:
                entry.state = LIVE
            await self._catalogue.put(*entries, topology=topology)
        except StoreError as error:
            self._not_created.error(self._virtual_host, [entry.name for entry in entries], error)
            with suppress(InternalError):
                await self.discard(*streams)
            raise InternalError(str(error)) from error

    async def make_segment(self, entry: StreamEntry) -> bool:
        """Make the segment of a stream's chunks; False if it exists. Raises StoreError."""
        created: Pending[None] = Pending()
        self._store.create_segment(self.names_of(entry).data_segment, done=created.settle)
        try:
            await created
        except SegmentExists:
            return False
        return True

    # Removing

    async def mark(self, streams: Sequence[Stream], topology: Sequence[TableEntry]) -> None:
        """Mark streams in the catalogue as being deleted, and write other rows with that.

        Raises:
            InternalError: The store refused; nothing has changed.
        """
        for stream in streams:
            stream.entry.state = DELETING
        try:
            await _tried_again(
                lambda: self._catalogue.put(
                    *(stream.entry for stream in streams), topology=topology, gives_space=True
                )
            )
        except StoreError as error:
            for stream in streams:
                stream.entry.state = LIVE
            raise InternalError(str(error)) from error

    async def discard(
        self, *streams: Stream, topology: Iterable[bytes] = (), is_marked: bool = False
    ) -> None:
        """Remove all data of some streams; if that fails they become leftovers.

        Args:
            streams: Streams that are gone for clients.
            topology: Keys to remove from the catalogue's table in the end.
            is_marked: True if `mark` was called for them.

        Raises:
            InternalError: The store refused.
        """
        topology = list(topology)
        self.leftovers.update((stream.name, stream) for stream in streams)
        try:
            await _tried_again(lambda: self._remove(streams, topology, is_marked=is_marked))
        except StoreError as error:
            self._not_deleted.error(self._virtual_host, [stream.name for stream in streams], error)
            raise InternalError(str(error)) from error
        for stream in streams:
            del self.leftovers[stream.name]

    async def discard_leftovers(self, stream_names: Iterable[str]) -> None:
        """Remove leftovers of deleted streams of these names. Raises InternalError."""
        left = [self.leftovers[name] for name in stream_names if name in self.leftovers]
        if left:
            await self.discard(*left)

    async def _remove(
        self, streams: Sequence[Stream], topology: Iterable[bytes], *, is_marked: bool
    ) -> None:
        """Remove all data of some streams; their entries in the catalogue go last."""
        entries = [stream.entry for stream in streams]
        if not is_marked:
            for entry in entries:
                entry.state = DELETING
            await self._mark_or_make_room(entries)
        segments = [self.names_of(entry) for entry in entries]
        await delete_segments(self._store, (each.data_segment for each in segments))
        for stream in streams:
            await _let_finish(stream)
        await delete_segments(self._store, (each.index_segment for each in segments))
        await delete_segments(self._store, (each.filter_segment for each in segments))
        await delete_segments(self._store, map(self._marks_of, entries))
        await self._tracking.forget(*(entry.generation for entry in entries))
        bindings = [key for stream in streams for key in stream.bound_by]
        await self._catalogue.remove(*entries, topology=[*bindings, *topology])

    async def _mark_or_make_room(self, entries: Sequence[StreamEntry]) -> None:
        """Mark streams in the catalogue as being deleted.

        If even the reserve is used up, delete the data first (it needs less space), then mark. A
        crash in between leaves the streams, empty.
        """
        try:
            await self._catalogue.put(*entries, gives_space=True)
        except DiskFull:
            data = (self.names_of(entry).data_segment for entry in entries)
            await delete_segments(self._store, data)
            await self._catalogue.put(*entries, gives_space=True)


async def delete_segments(store: Operations, segments: Iterable[str]) -> None:
    """Delete segments, as far as they are there. Raises StoreError."""
    deletions = [_deletion(store, segment) for segment in segments]
    while deletions:
        with suppress(NoSuchSegment):
            await deletions.pop(0)


def _deletion(store: Operations, segment: str) -> Pending[None]:
    return asked(lambda done: store.delete_segment(segment, done=done))


async def _tried_again(action: Callable[[], Coroutine[Pending[Any], None, None]]) -> None:
    """Run an action that gives space; retry it if a write that took space was in its way."""
    for _ in range(_TRIES - 1):
        with suppress(DiskFull):
            await action()
            return
    await action()


async def _let_finish(stream: Stream) -> None:
    """Wait for work under way that would leave data behind a deletion."""
    if stream.opening is not None:
        with suppress(Exception):  # the caller that opens it gets the error
            await stream.opening
    if stream.log is not None:
        await stream.log.saved.stop()

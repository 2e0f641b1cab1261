"""What streams have in the store, made and removed: place in the catalogue, segments, tracking.

A stream's place in the catalogue comes first and goes last, so that nothing is ever left in the
store that nobody knows of.
"""

import logging
import secrets
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from gateway.broker.catalogue import DELETING, LIVE, Catalogue, StreamEntry
from gateway.broker.errors import InternalError
from gateway.broker.stream import Stream
from gateway.log import names
from gateway.log.log import StreamLog
from gateway.log.opening import LogNames
from gateway.log.persisting import save_log
from gateway.log.seldom import Seldom
from gateway.log.snapshot import Snapshot
from gateway.log.tracking import Tracking
from gateway.logs import InHost
from gateway.pending import Pending, start
from store.api import SegmentInfo, SegmentStore, TableEntry
from store.errors import DiskFull, NoSuchSegment, SegmentExists, StoreError

log = logging.getLogger(__name__)

_TRIES: Final = 3


class StreamStorage:
    """The store as a virtual host's streams use it.

    Attributes:
        leftovers: Streams that are deleted, but not out of the store, by name: the next creation of
            the name would hide them there.
    """

    def __init__(
        self,
        virtual_host: str,
        store: SegmentStore,
        clock_ms: Callable[[], int],
        catalogue: Catalogue,
        tracking: Tracking,
    ) -> None:
        self.leftovers: dict[str, Stream] = {}
        self._virtual_host = virtual_host
        self._store = store
        self._clock_ms = clock_ms
        self._last_generation = 0
        self._catalogue = catalogue
        self._tracking = tracking
        # The store's refusals are no bugs, so there is nothing that a traceback would tell.
        self._not_created = Seldom(log, "streams not created virtual_host=%s streams=%s error=%s")
        self._not_deleted = Seldom(log, "streams not deleted virtual_host=%s streams=%s error=%s")

    def names_of(self, entry: StreamEntry) -> LogNames:
        """Return the names of a stream's segments."""
        return LogNames(
            stream=InHost(entry.name, self._virtual_host),
            data_segment=names.data_segment(self._virtual_host, entry.name, entry.generation),
            index_segment=names.index_segment(self._virtual_host, entry.name, entry.generation),
            filter_segment=names.filter_segment(self._virtual_host, entry.name, entry.generation),
        )

    async def size_of(self, stream: Stream) -> int:
        """Return how many bytes a stream has stored. Raises StoreError."""
        if (stream_log := stream.log) is not None:
            return stream_log.committed_length - stream_log.start
        described: Pending[SegmentInfo] = Pending()
        self._store.info(self.names_of(stream.entry).data_segment, done=described.settle)
        info = await described
        return info.length - info.start

    def new_generation(self) -> int:
        """Return a number that nothing of this virtual host ever had."""
        # Three random digits: even with a clock set back no creation gets the number of another.
        generation = self._clock_ms() * 1000 + secrets.randbelow(1000)
        self._last_generation = max(self._last_generation + 1, generation)
        return self._last_generation

    def note_generation(self, generation: int) -> None:
        """Take note of a number that was given before this opening."""
        self._last_generation = max(self._last_generation, generation)

    def save(self, entry: StreamEntry, stream_log: StreamLog, snapshot: Snapshot) -> Pending[None]:
        """Store a stream's snapshot; the result is settled when that has ended, however."""
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
        """Make what a stream needs. Raises InternalError."""
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
        """Make what streams in state CREATING need; then, in one write, they are LIVE.

        Args:
            streams: Any number of them, also none.
            topology: Rows that are written together with that.

        Raises:
            InternalError: The store refused; all of it is undone.
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
        """Write down that streams are being deleted, and something else with it.

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
        """Remove all of some streams; what is left if that fails is a leftover.

        Args:
            streams: They are gone for clients.
            topology: Keys to remove from the catalogue's table in the end.
            is_marked: `mark` was done.

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
        """Remove what is left of deleted streams of these names. Raises InternalError."""
        left = [self.leftovers[name] for name in stream_names if name in self.leftovers]
        if left:
            await self.discard(*left)

    async def _remove(
        self, streams: Sequence[Stream], topology: Iterable[bytes], *, is_marked: bool
    ) -> None:
        """Remove all of some streams; their place in the catalogue goes last, for all the rest."""
        entries = [stream.entry for stream in streams]
        if not is_marked:
            for entry in entries:
                entry.state = DELETING
            await self._mark_or_make_room(entries)
        segments = [self.names_of(entry) for entry in entries]
        await self._delete_segments(each.data_segment for each in segments)
        for stream in streams:
            await _let_finish(stream)
        await self._delete_segments(each.index_segment for each in segments)
        await self._delete_segments(each.filter_segment for each in segments)
        await self._tracking.forget(*(entry.generation for entry in entries))
        bindings = [key for stream in streams for key in stream.bound_by]
        await self._catalogue.remove(*entries, topology=[*bindings, *topology])

    async def _mark_or_make_room(self, entries: Sequence[StreamEntry]) -> None:
        """Write down that streams are being deleted.

        Where not even the room that the store keeps is left for that, their data goes first, which
        needs less. After a crash in between they are there again, empty.
        """
        try:
            await self._catalogue.put(*entries, gives_space=True)
        except DiskFull:
            await self._delete_segments(self.names_of(entry).data_segment for entry in entries)
            await self._catalogue.put(*entries, gives_space=True)

    async def _delete_segments(self, segments: Iterable[str]) -> None:
        deletions: list[Pending[None]] = []
        for segment in segments:
            deleted: Pending[None] = Pending()
            self._store.delete_segment(segment, done=deleted.settle)
            deletions.append(deleted)
        for each in deletions:
            with suppress(NoSuchSegment):
                await each


async def _tried_again(action: Callable[[], Coroutine[Pending[Any], None, None]]) -> None:
    """Do something that gives space; again if something that took some was in its way."""
    for _ in range(_TRIES - 1):
        with suppress(DiskFull):
            await action()
            return
    await action()


async def _let_finish(stream: Stream) -> None:
    """Wait for what is under way and would leave something behind a deletion."""
    if stream.opening is not None:
        with suppress(Exception):  # whoever opens it is told
            await stream.opening
    if stream.log is not None:
        await stream.log.saved.stop()

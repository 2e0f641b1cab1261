"""The streams of one virtual host: create, find, open, watch, delete.

A stream's log is opened when it is first used, and stays open. Users of a stream watch it: a
watcher is told when the stream is deleted or has failed. Nothing of the stream works after that.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Final

from gateway.broker.errors import (
    InternalError,
    PreconditionFailed,
    StreamDoesNotExist,
    StreamExists,
)
from gateway.broker.locks import Check, Locks, unchecked
from gateway.broker.naming import clean_name
from gateway.broker.rules.arguments import InvalidStreamArgument, StreamArguments, brief, doubts
from gateway.broker.rules.policies import Policies, open_policies
from gateway.broker.streams.catalogue import (
    CREATING,
    LIVE,
    Stream,
    StreamCatalogue,
    StreamEntry,
    Watcher,
)
from gateway.broker.streams.stream_logs import NOT_TOLD, StreamLogs
from gateway.broker.streams.stream_storage import StreamStorage
from gateway.broker.streams.streams_ports import StreamsPorts
from gateway.log import names
from gateway.log.derived.tracking import Tracking, open_tracking
from gateway.logs import NameInHost
from gateway.pending import nothing
from store.api import TableEntry

__all__ = ["Stream", "Streams", "StreamsPorts", "Watcher", "open_streams"]

log = logging.getLogger(__name__)

_STREAMS_MAX: Final = "max-queues"
"""The virtual host's limit on the number of streams; below 0 is no limit."""
_DOUBTS_MAX: Final = 5


class Streams:
    """All streams of a virtual host. Create it with `open_streams`."""

    def __init__(
        self,
        virtual_host: str,
        ports: StreamsPorts,
        catalogue: StreamCatalogue,
        tracking: Tracking,
        policies: Policies,
    ) -> None:
        self.virtual_host = virtual_host
        self._is_going = False
        self.catalogue = catalogue
        self.when_gone: Callable[[Stream], object] = nothing
        """Called with a stream at the moment in which it is gone for clients."""
        self._ports = ports
        self._streams: dict[str, Stream] = {}
        self._promised = 0
        self.limits: Callable[[], Mapping[str, int]] = dict
        """Returns the limits of the virtual host."""
        self.storage = StreamStorage(virtual_host, ports.store, ports.clock_ms, catalogue, tracking)
        self.locks = Locks()  # for creations and deletions of one name
        self.logs = StreamLogs(virtual_host, ports, tracking, policies, self.storage, self)

    def __iter__(self) -> Iterator[Stream]:
        return iter(list(self._streams.values()))

    def __len__(self) -> int:
        return len(self._streams)

    def _at(self, name: str) -> str:
        return NameInHost(name, self.virtual_host)

    def names(self) -> list[str]:
        """Return the names of all streams, sorted."""
        return sorted(self._streams)

    def __contains__(self, name: str) -> bool:
        return name in self._streams

    def find(self, name: str) -> Stream:
        """Return a stream. Raises StreamDoesNotExist."""
        stream = self._streams.get(name)
        if stream is None:
            raise StreamDoesNotExist(name)
        return stream

    # Creating and deleting

    async def create(
        self, name: str, arguments: Mapping[str, str], *, check: Check = unchecked
    ) -> Stream:
        """Create a stream; its name loses CR and LF; `check` is called under the name's lock.

        Raises:
            PreconditionFailed: A bad name or argument, or the stream exists with other arguments.
            StreamExists: It exists with these arguments.
            InternalError: The store refused.
        """
        name = clean_name(name)
        try:
            parsed = StreamArguments.parse(arguments)
        except InvalidStreamArgument as error:
            raise PreconditionFailed(str(error)) from error
        async with self.locks.hold(name):
            check()
            stream = await self._create(name, parsed)
        log.info(
            "stream created stream=%s generation=%d arguments=%s",
            self._at(name),
            stream.entry.generation,
            brief(arguments),
        )
        tell_doubts(self._at(name), arguments)
        return stream

    async def _create(self, name: str, arguments: StreamArguments) -> Stream:
        existing = self._streams.get(name)
        if existing is not None:
            if existing.arguments == arguments:
                raise StreamExists(name)
            raise PreconditionFailed(f"stream {name!r} exists with other arguments")
        with self.room_for(1):
            await self.storage.discard_leftovers([name])
            stream = self._new_stream(name, arguments, LIVE)
            await self.storage.make(stream)
            self._streams[name] = stream
        return stream

    @contextmanager
    def room_for(self, count: int) -> Iterator[None]:
        """Reserve room for streams while they are created.

        Raises:
            PreconditionFailed: There would be more streams than the limit allows.
            InternalError: The virtual host is being deleted.
        """
        if self._is_going:
            raise InternalError("the virtual host is being deleted")
        if 0 <= self.limits().get(_STREAMS_MAX, -1) < len(self) + self._promised + count:
            raise PreconditionFailed("the virtual host has as many streams as its limit allows")
        self._promised += count
        try:
            yield
        finally:
            self._promised -= count

    def _new_stream(self, name: str, arguments: StreamArguments, state: str) -> Stream:
        born = self._ports.openings.unclean_count
        entry = StreamEntry(name, self.storage.new_generation(), arguments.texts(), born, state)
        return Stream(entry, arguments)

    def drafts(self, stream_names: Iterable[str], arguments: StreamArguments) -> list[Stream]:
        """Return new streams that are neither stored nor visible yet, for `create_together`."""
        return [self._new_stream(name, arguments, CREATING) for name in stream_names]

    async def create_together(
        self, drafts: Sequence[Stream], topology: Sequence[TableEntry]
    ) -> None:
        """Create several streams, all or none, even if the process dies meanwhile.

        Args:
            drafts: The streams. The caller holds the locks of their names, and reserved room.
            topology: Rows to write at the same time as the streams come into being.

        Raises:
            InternalError: The store refused; nothing is left.
        """
        await self.storage.discard_leftovers(stream.name for stream in drafts)
        await self.storage.make_together(drafts, topology)
        self._streams.update((stream.name, stream) for stream in drafts)

    async def delete(
        self, name: str, gone: Callable[[Stream], object], *, check: Check = unchecked
    ) -> None:
        """Delete a stream.

        Args:
            name: Its name.
            gone: Called at once when it is gone for clients, even if the store refuses: the caller
                has to tell its watchers (`StreamLogs.tell_watchers`) when it has answered.
            check: Called under the name's lock.

        Raises:
            StreamDoesNotExist: No such stream.
            InternalError: The store refused; leftovers go before the name is used again.
        """
        async with self.locks.hold(name):
            check()
            stream = self.find(name)
            self._take_out(stream, gone)
            await self.storage.discard(stream)
            self._ports.schedule(stream.end_log)
        log.info("stream deleted stream=%s", self._at(name))

    async def delete_all(self) -> None:
        """Delete every stream, and let none be created any more. Raises InternalError."""
        self._is_going = True
        while self._streams or self.locks:
            for name in self.names():
                with suppress(StreamDoesNotExist):  # deleted meanwhile
                    await self.delete(name, self.logs.tell_watchers)
            await self.locks.all_released()

    async def begin_deletion(
        self, stream_names: Iterable[str], marks: Sequence[TableEntry]
    ) -> list[Stream]:
        """Mark those of several streams that exist as deleted, all or none; return them.

        Args:
            stream_names: Their names, each once. The caller holds their locks until
                `end_deletion` has returned.
            marks: Topology to write at the same time as the streams cease to exist.

        Raises:
            InternalError: The store refused; nothing has changed.
        """
        streams = [self._streams[name] for name in stream_names if name in self._streams]
        await self.storage.mark(streams, marks)
        return streams

    async def end_deletion(
        self, streams: Sequence[Stream], gone: Callable[[Stream], object], topology: Iterable[bytes]
    ) -> None:
        """Remove streams that are marked.

        Args:
            streams: The streams that `begin_deletion` returned.
            gone: As for `delete`, for each of them.
            topology: Keys of the topology to remove in the end.

        Raises:
            InternalError: The store refused; leftovers go before a name is used again.
        """
        for stream in streams:
            self._take_out(stream, gone)
        await self.storage.discard(*streams, topology=topology, is_marked=True)
        for stream in streams:
            self._ports.schedule(stream.end_log)

    def _take_out(self, stream: Stream, gone: Callable[[Stream], object]) -> None:
        """Hide a stream from clients."""
        del self._streams[stream.name]
        stream.be_gone()
        for told in (self.when_gone, gone):
            try:
                told(stream)
            except Exception:  # it is gone all the same, so its stored data must go too
                log.exception(NOT_TOLD, self._at(stream.name))

    async def retry_deletions(self) -> None:
        """Try again to remove leftovers of deleted streams."""
        for name in list(self.storage.leftovers):
            try:
                async with self.locks.hold(name):
                    await self.storage.discard_leftovers([name])
            except InternalError:
                continue  # it was logged, and there will be a next time
            except Exception:  # one stream's error must not stop the others
                log.exception("stream not deleted stream=%s", self._at(name))

    # Life

    async def load(self) -> None:
        """Load the streams of the catalogue; finish deletions, undo unfinished creations."""
        undone: list[Stream] = []
        for entry in await self.catalogue.load():
            self.storage.note_generation(entry.generation)
            stream = Stream(entry, StreamArguments.parse(entry.arguments))
            if entry.state != LIVE:
                undone.append(stream)
                continue
            if await self.storage.make_segment(entry):
                log.error(
                    "stream has lost its segment and begins empty stream=%s",
                    self._at(entry.name),
                )
            self._streams[entry.name] = stream
        if self._ports.openings.is_damaged:
            segments = (self.storage.names_of(stream.entry).data_segment for stream in self)
            await self._ports.openings.note(
                zip(segments, (stream.entry.born for stream in self), strict=True)
            )
        try:
            await self.storage.discard(*undone)
        except InternalError:  # leftovers that cannot be removed must not stop the rest
            for stream in undone:
                with suppress(InternalError):
                    await self.storage.discard(stream)


async def open_streams(virtual_host: str, ports: StreamsPorts) -> Streams:
    """Open all streams of a virtual host. Raises StoreError."""
    catalogue = StreamCatalogue(ports.store, names.meta_table(virtual_host))
    table = names.tracking_table(virtual_host)
    tracking = await open_tracking(ports.store, table, ports.schedule, ports.offset_references_max)
    policies = await open_policies(ports.store, virtual_host, ports.turns)
    streams = Streams(virtual_host, ports, catalogue, tracking, policies)
    await streams.load()
    return streams


def tell_doubts(place: str, arguments: Mapping[str, str]) -> None:
    """Warn of arguments of a new stream, or super stream, that have not their usual effect."""
    if reasons := list(islice(doubts(arguments), _DOUBTS_MAX)):
        log.warning("arguments without effect stream=%s reason=%s", place, "; ".join(reasons))

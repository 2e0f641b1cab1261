"""The controller: its changes, done one after the other in each scope."""

import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from gateway.broker.locks import Locks
from gateway.pending import Pending
from gateway.pravega.controller.errors import ChangeRefused, NoSuchScope, NoSuchStream
from gateway.pravega.controller.key_value_tables import Tables
from gateway.pravega.controller.readers.behind import Behind
from gateway.pravega.controller.readers.groups import GroupChanges
from gateway.pravega.controller.readers.states import States
from gateway.pravega.controller.records.epochs import History
from gateway.pravega.controller.records.history import evenly
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord, StreamState
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.records.table import RecordTable
from gateway.pravega.controller.rounds.marks import marks_of
from gateway.pravega.controller.rounds.retention import RetentionRounds
from gateway.pravega.controller.rounds.scaling import MINUTE_MS, Scaling
from gateway.pravega.controller.rounds.times import StreamTimes
from gateway.pravega.controller.segments import Segments
from gateway.pravega.controller.streams import StreamChanges
from gateway.pravega.controller.transactions import TransactionChanges
from gateway.pravega.names import is_name, is_scope_name, marked, segment_name
from gateway.pravega.traffic import Traffic
from store.api import SegmentStore
from store.errors import StoreError

log = logging.getLogger(__name__)


class Controller:
    """Scopes, streams, tables, transactions and groups of readers on a store. `open` comes first.

    Its methods are coroutines on `gateway.pending`.

    Attributes:
        registry: What there is.
        streams: Changes of scopes and streams; `hold` their scope.
        transactions: Changes of transactions; `hold` their scope.
        groups: Changes of groups of readers; `hold` their scope.
        times: What writers tell of their time; `hold` their scope.
        tables: Changes of tables of keys and values; `hold` their scope.
        states: What the readers of groups have agreed.
        behind: How far groups of readers are from the ends of their streams.
    """

    def __init__(
        self,
        store: SegmentStore,
        clock_ms: Callable[[], int],
        hides: Callable[[str, str], bool] = lambda scope, _stream: not is_scope_name(scope),
        traffic: Traffic | None = None,
        scaling_minute_ms: int = MINUTE_MS,
    ) -> None:
        """Begin with nothing known.

        Args:
            store: The open store.
            clock_ms: Milliseconds since the epoch.
            hides: Returns of a scope and a stream whether clients hear nothing of it.
            traffic: What clients write.
            scaling_minute_ms: How long a minute of the policies of scaling takes.
        """
        traffic = traffic or Traffic()
        self._hides = hides
        self._segments = Segments(store, store.for_removal, traffic)
        self._locks = Locks()
        self.registry = Registry(RecordTable(store, store.for_removal))
        self.streams = StreamChanges(self.registry, self._segments, clock_ms)
        self.transactions = TransactionChanges(
            self.registry, self.streams, self._segments, clock_ms
        )
        self.groups = GroupChanges(self.registry, self.streams)
        self.times = StreamTimes(self.registry, self._segments, clock_ms)
        self._retention = RetentionRounds(self.registry, self.streams, self._segments, clock_ms)
        self._scaling = Scaling(self.registry, self.streams, traffic, clock_ms, scaling_minute_ms)
        self.tables = Tables(self.registry, self._segments)
        self.states = States(self.registry, self._segments)
        self.behind = Behind(self.registry, self._segments, self._found)

    async def open(self) -> None:
        """Read the table; finish changes that the last process began and did not finish."""
        await self.registry.load()
        for streams in list(self.registry.scopes.values()):
            for stream in list(streams.values()):
                if not stream.state.is_settled:
                    await _tried(self.streams.finish(stream), f"{stream.scope}/{stream.name}")
        for group in [each for each in self.registry.groups.values() if each.is_ending]:
            await _tried(self.groups.finish(group), f"{group.scope}/{group.name}")
        for table in self.registry.tables.all():
            await _tried(self.tables.finish(table), f"{table.scope}/{table.name}")
        for each in self.transactions.all_began():
            await _tried(self.transactions.finish(each), f"{each.scope}/{each.stream}")

    @asynccontextmanager
    async def hold(self, scope: str) -> AsyncIterator[None]:
        """Keep other changes away from a scope."""
        async with self._locks.hold(scope):
            yield

    async def stream(self, scope: str, name: str) -> StreamRecord:
        """Return a stream; one that was made without the controller has one segment.

        Raises NoSuchScope, NoSuchStream.
        """
        if (of := marked(name)) is not None:
            if marked(of) is not None:  # marks have no marks
                raise NoSuchStream(f"no such stream: {scope}/{name[:100]}")
            return await self._marks(scope, of)
        try:
            async with self.hold(scope):
                return await self.streams.settled(scope, name)
        except (NoSuchScope, NoSuchStream):
            found = await self._found(scope, name)
            if found is None:
                raise
            return found

    async def _marks(self, scope: str, name: str) -> StreamRecord:
        """Return the stream of a stream's marks; make its segment if it is not there yet."""
        marks = marks_of(await self.stream(scope, name))
        async with self.hold(scope):  # so that it is not made beside the stream's deletion
            first = marks.history.open[0]
            segment = marks.segment_name(first.identity)
            if name in self.registry.scopes.get(scope, ()) or await self._found(scope, name):
                await self._segments.create(
                    {segment: first.epoch}, marks.policy, marks.history.last.at_ms
                )
        return marks

    async def _found(self, scope: str, name: str) -> StreamRecord | None:
        bounds = None
        if is_name(scope) and is_name(name) and not self._hides(scope, name):
            bounds = await self._segments.bounds(segment_name(scope, name, 0))
        if bounds is None:
            return None
        stream = StreamRecord(
            scope=scope,
            name=name,
            policy=StreamPolicy(),
            state=StreamState.ACTIVE,
            history=History((evenly(1, 0, 0),)),
        )
        return replace(stream, cut={0: bounds[0]}) if bounds[0] else stream

    async def seal(self, scope: str, name: str) -> None:
        """End a stream's transactions, and let it take no more. Raises NoSuchStream."""
        await self.streams.settled(scope, name)
        await self.transactions.abort_all(scope, name)
        await self.streams.seal(scope, name)

    async def delete_all(self, scope: str) -> None:
        """Delete a scope with all its streams and tables. Raises NoSuchScope."""
        for group in self.registry.groups_of(scope):
            await self.groups.end(group)
        for name in list(self.registry.streams(scope)):
            await self.seal(scope, name)
            await self.streams.delete(scope, name)
        for name in list(self.registry.tables.of(scope)):
            await self.tables.delete(scope, name)
        await self._segments.delete(await self._segments.beneath(scope))
        await self.streams.delete_scope(scope)

    async def retain(self) -> None:
        """Do a round of retention: truncate each stream as its policy says."""
        for scope, name in self._retention.concerned():
            async with self.hold(scope):
                await _tried(self._retention.look(scope, name), f"{scope}/{name}")

    async def rescale(self) -> None:
        """Count the writes; change the streams whose policies ask for it."""
        await self._scaling.count()
        for scope, name in await self._scaling.due():
            async with self.hold(scope):
                await _tried(self._scaling.look(scope, name), f"{scope}/{name}")

    async def mark(self) -> None:
        """Mark in each stream how far its writers are."""
        for scope, name in list(self.registry.times):
            async with self.hold(scope):
                await _tried(self.times.look(scope, name), f"{scope}/{name}")

    async def abort_expired(self) -> None:
        """Abort the transactions whose leases have run out."""
        for each in self.transactions.expired():
            async with self.hold(each.scope):
                abort = self.transactions.abort(each.scope, each.stream, each.identity)
                await _tried(abort, f"{each.scope}/{each.stream}")


async def _tried(step: Coroutine[Pending[Any], None, object], stream: str) -> None:
    """Do a step that nothing waits for; it is tried again before the stream's next change."""
    try:
        await step
    except (ChangeRefused, StoreError) as error:
        log.warning("a change of a stream is not finished stream=%s error=%s", stream, error)

"""The controller: what its calls ask for, done one change after the other in each scope."""

import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from gateway.broker.locks import Locks
from gateway.pending import Pending
from gateway.pravega.controller.epochs import History
from gateway.pravega.controller.errors import NoSuchScope, NoSuchStream, Refused
from gateway.pravega.controller.history import evenly
from gateway.pravega.controller.model import Policy, State, Stream
from gateway.pravega.controller.names import is_name, is_scope_name, segment_name
from gateway.pravega.controller.registry import Registry
from gateway.pravega.controller.segments import Segments
from gateway.pravega.controller.streams import Streams
from gateway.pravega.controller.table import Table
from gateway.pravega.controller.transactions import Transactions
from store.api import SegmentStore
from store.errors import StoreError

log = logging.getLogger(__name__)


class Controller:
    """Scopes, streams and transactions on a store. `open` comes before all else.

    Its methods are coroutines on `gateway.pending`.

    Attributes:
        registry: What there is.
        streams: Changes of scopes and streams; `hold` their scope.
        transactions: Changes of transactions; `hold` their scope.
    """

    def __init__(
        self,
        store: SegmentStore,
        clock_ms: Callable[[], int],
        hides: Callable[[str, str], bool] = lambda scope, _stream: not is_scope_name(scope),
    ) -> None:
        """Begin with nothing known.

        Args:
            store: The open store.
            clock_ms: Milliseconds since the epoch.
            hides: Tells of a scope and a stream whether clients hear nothing of it.
        """
        self._hides = hides
        self._segments = Segments(store, store.for_removal)
        self._locks = Locks()
        self.registry = Registry(Table(store, store.for_removal))
        self.streams = Streams(self.registry, self._segments, clock_ms)
        self.transactions = Transactions(self.registry, self.streams, self._segments, clock_ms)

    async def open(self) -> None:
        """Read the table; finish what the last process began and did not finish."""
        await self.registry.load()
        for streams in list(self.registry.scopes.values()):
            for stream in list(streams.values()):
                if not stream.state.is_settled:
                    await _tried(self.streams.finish(stream), f"{stream.scope}/{stream.name}")
        for each in self.transactions.all_began():
            await _tried(self.transactions.finish(each), f"{each.scope}/{each.stream}")

    @asynccontextmanager
    async def hold(self, scope: str) -> AsyncIterator[None]:
        """Keep other changes away from a scope."""
        async with self._locks.hold(scope):
            yield

    async def stream(self, scope: str, name: str) -> Stream:
        """Return a stream; one that was made without the controller has one segment.

        Raises NoSuchScope, NoSuchStream.
        """
        try:
            async with self.hold(scope):
                return await self.streams.settled(scope, name)
        except (NoSuchScope, NoSuchStream):
            found = await self._found(scope, name)
            if found is None:
                raise
            return found

    async def _found(self, scope: str, name: str) -> Stream | None:
        bounds = None
        if is_name(scope) and is_name(name) and not self._hides(scope, name):
            bounds = await self._segments.bounds(segment_name(scope, name, 0))
        if bounds is None:
            return None
        stream = Stream(
            scope=scope,
            name=name,
            policy=Policy(),
            state=State.ACTIVE,
            history=History((evenly(1, 0, 0),)),
        )
        return replace(stream, cut={0: bounds[0]}) if bounds[0] else stream

    async def seal(self, scope: str, name: str) -> None:
        """End a stream's transactions, and let it take no more. Raises NoSuchStream."""
        await self.streams.settled(scope, name)
        await self.transactions.abort_all(scope, name)
        await self.streams.seal(scope, name)

    async def delete_all(self, scope: str) -> None:
        """Delete a scope with all its streams. Raises NoSuchScope."""
        for name in list(self.registry.streams(scope)):
            await self.seal(scope, name)
            await self.streams.delete(scope, name)
        await self._segments.delete(await self._segments.beneath(scope))
        await self.streams.delete_scope(scope)

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
    except (Refused, StoreError) as error:
        log.warning("a change of a stream is not finished stream=%s error=%s", stream, error)

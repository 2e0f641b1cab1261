"""Pravega's wire protocol on a real socket and a real store, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from gateway.network.listening import bind
from gateway.pravega.access.guard import Guard, Ownership
from gateway.pravega.context import WireContext
from gateway.pravega.front import PravegaKind
from gateway.server.connections.shared import Shared
from gateway.server.front import ConnectionLimits, FrontKind
from gateway.server.listener import Listener
from gateway.server.loop.schedule import Schedule
from gateway.server.sockets import Sockets
from gateway.settings.wire import WireSettings
from store.api import Done, Durability
from store.errors import StoreError
from store.files import DirectoryFiles
from store.local.store import LocalStore
from tests.pravega_client import WireClient
from tests.waiting import HANG_S

T = TypeVar("T")

NOTHING = Ownership(owns=lambda *_: False, shows=lambda *_: False)
"""A server that keeps nothing to itself."""
LIMITS = ConnectionLimits(
    close_timeout_ms=1_000,
    unconfirmed_max=10_000,
    unconfirmed_resume=8_000,
    backlog_pause_bytes=256 * 1024,
    backlog_bytes_max=64 << 20,
)


class WireServer:
    """A server of the wire protocol; everything of it is on a thread of its own.

    Attributes:
        lines: Log lines that clients could cause without end.
        store: The store; called by `ask`, on its thread.
        listener: The port.
    """

    store: LocalStore
    listener: Listener

    def __init__(
        self,
        directory: Path,
        *,
        limits: ConnectionLimits = LIMITS,
        wire: WireSettings | None = None,
        guard: Guard | None = None,
    ) -> None:
        self.lines: list[str] = []
        self._guard = guard or Guard(NOTHING)
        self._limits = limits
        self._wire = wire or WireSettings()
        self._listeners: list[Listener] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.on_loop(lambda: self._open(directory))

    def _open(self, directory: Path) -> None:
        loop = self._loop
        schedule = Schedule(loop)
        self.store = LocalStore.open(
            DirectoryFiles(directory),
            call_soon_threadsafe=loop.call_soon_threadsafe,
            call_soon=schedule.call_soon,
            durability=Durability.OS,
        )
        shared = Shared(
            loop=loop,
            schedule=schedule,
            receive_buffer=bytearray(1 << 20),
            scratch=bytearray(1 << 16),
            say=self._say,
        )
        self._shared = shared
        host = self._host()
        host.transients.begin()
        self.listener = self._serve(PravegaKind(host, self._limits))

    def _serve(self, kind: FrontKind) -> Listener:
        listener = Listener([bind("127.0.0.1", 0)], self._shared, kind, Sockets(1_000, self._say))
        self._listeners.append(listener)
        listener.start()
        return listener

    def _host(self) -> WireContext:
        return WireContext(
            store=self.store,
            say=self._say,
            clock_ms=lambda: time.time_ns() // 1_000_000,
            guard=self._guard,
            wire=self._wire,
        )

    def _say(
        self, _write: object, _address: str, line: str, *arguments: object, once: str = ""
    ) -> None:
        del once
        self.lines.append(line % arguments)

    def on_loop(self, action: Callable[[], T]) -> T:
        """Do something on the server's thread; return what it gives."""

        async def act() -> T:
            return action()

        return asyncio.run_coroutine_threadsafe(act(), self._loop).result(HANG_S)

    def ask(self, call: Callable[[Done[T]], object]) -> T | StoreError:
        """Call the store on its thread with a `done`; return the result."""

        async def asked() -> T | StoreError:
            result: asyncio.Future[T | StoreError] = self._loop.create_future()
            call(result.set_result)
            return await result

        return asyncio.run_coroutine_threadsafe(asked(), self._loop).result(HANG_S)

    def client(self) -> WireClient:
        """Connect."""
        return WireClient(*self.listener.address)

    def close(self) -> None:
        """End the connections, the store and the thread."""

        async def closed() -> None:
            for listener in self._listeners:
                listener.stop_accepting()
                for connection in list(listener.connections):
                    connection.abort()
            done = asyncio.Event()
            self.store.close(done=lambda _: done.set())
            await done.wait()
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(closed(), self._loop).result(HANG_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def serving(
    directory: Path,
    *,
    limits: ConnectionLimits = LIMITS,
    wire: WireSettings | None = None,
    guard: Guard | None = None,
) -> Iterator[WireServer]:
    """Serve while the block lasts."""
    server = WireServer(directory, limits=limits, wire=wire, guard=guard)
    try:
        yield server
    finally:
        server.close()

"""State that the ports of a process share: the loop, the sockets, all listeners and connections."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from gateway.server.connections.connection import Connection
from gateway.server.connections.shared import Shared
from gateway.server.listener import Listener
from gateway.server.sockets import Sockets

log = logging.getLogger(__name__)

_POLL_S: Final = 0.01


class Listeners:
    """The listeners of a process."""

    def __init__(self) -> None:
        self._all: list[Listener] = []

    def add(self, listener: Listener) -> None:
        """Note a listener, before it starts."""
        self._all.append(listener)

    def connections(self) -> list[Connection]:
        """Return those that are alive."""
        return [connection for listener in self._all for connection in listener.connections]

    def stop_reading(self) -> None:
        """Take nothing more from the clients."""
        for connection in self.connections():
            connection.stop_reading()

    async def end(self) -> None:
        """Say farewell to all clients, and wait until each is gone.

        Each has the `close_timeout_ms` of its protocol to read what is queued for it.
        """
        for connection in self.connections():
            connection.stop()
        while self.connections():  # noqa: ASYNC110 - they have no event
            await asyncio.sleep(_POLL_S)


_LOOKED_AT_IN_A_TURN: Final = 500


async def let_go_of_deleted(
    connections: Callable[[], Iterable[Connection]], timeout_s: float
) -> None:
    """Cut off, for ever, the clients that keep deleted files by not reading.

    A chunk on its way out of a file keeps the file, also a deleted one, and with a client that does
    not read that has no end.

    Args:
        connections: Returns those that are alive.
        timeout_s: A client that takes not one byte for so long, and at most twice that, is cut off.
    """
    while True:
        await asyncio.sleep(timeout_s)
        for number, connection in enumerate(list(connections()), start=1):
            if connection.edge.is_stuck_on_deleted():
                log.warning(
                    "client does not read a deleted chunk, cut off peer=%s", connection.peer
                )
                connection.abort()
            if number % _LOOKED_AT_IN_A_TURN == 0:
                await asyncio.sleep(0)


T = TypeVar("T")


class ServerContext:
    """The state.

    Attributes:
        shared: State that all connections share.
        sockets: The sockets of the process.
        listeners: Every listener, and so every connection.
        ports: The ports of the process, each of its own class.
    """

    def __init__(
        self, shared: Shared, sockets: Sockets, added: Callable[[Listener], object] | None = None
    ) -> None:
        """Begin without listeners; `added` is called with each of them."""
        self.shared = shared
        self.sockets = sockets
        self.listeners = Listeners()
        self.ports: list[object] = []
        self._added = added

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop."""
        return self.shared.loop

    def add(self, listener: Listener) -> None:
        """Note a listener before it starts, to be stopped with the others."""
        self.listeners.add(listener)
        if self._added is not None:
            self._added(listener)

    def port(self, kind: type[T]) -> T | None:
        """Return the port of a class, None if the settings ask for none."""
        return next((each for each in self.ports if isinstance(each, kind)), None)

"""All listeners of a process, whatever is spoken there, and the connections that came in."""

import asyncio
from typing import Final

from gateway.server.connections.connection import Connection
from gateway.server.listener import Listener

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

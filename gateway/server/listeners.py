"""All ports of a server, whatever is spoken there, and the connections that came in at them."""

import asyncio
from typing import Final

from gateway.server.connection import Connection
from gateway.server.listener import Listener

_POLL_S: Final = 0.01


class Listeners:
    """The listeners of a server."""

    def __init__(self) -> None:
        self._all: list[Listener] = []

    def add(self, listener: Listener) -> None:
        """Note a listener, before it starts."""
        self._all.append(listener)

    def connections(self) -> list[Connection]:
        """Return those that are alive."""
        return [connection for listener in self._all for connection in listener.connections]

    def stop_accepting(self) -> None:
        """Refuse new connections."""
        for listener in self._all:
            listener.stop_accepting()

    async def all_ended(self) -> None:
        """Wait until no connection is alive."""
        while self.connections():  # noqa: ASYNC110  # once, at the end of the process
            await asyncio.sleep(_POLL_S)

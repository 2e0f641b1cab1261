"""All ports of a server, whatever is spoken there, and the connections that came in at them."""

import asyncio
import time
from typing import Final

from gateway.network.listening import Address
from gateway.server.connection import Connection
from gateway.server.listener import Listener

_POLL_S: Final = 0.01
_STILL_S: Final = 1.0
"""Time without a byte taken after which the end of the process waits for a client no more."""


class Listeners:
    """The listeners of a server."""

    def __init__(self) -> None:
        self._all: list[Listener] = []

    def add(self, listener: Listener) -> None:
        """Note a listener, before it starts."""
        self._all.append(listener)

    def further_addresses(self) -> list[Address]:
        """Return the addresses of each listener behind its first."""
        return [address for listener in self._all for address in listener.addresses[1:]]

    def connections(self) -> list[Connection]:
        """Return those that are alive."""
        return [connection for listener in self._all for connection in listener.connections]

    def stop_accepting(self) -> None:
        """Refuse new connections."""
        for listener in self._all:
            listener.stop_accepting()

    def stop_reading(self) -> None:
        """Take nothing more from the clients."""
        for connection in self.connections():
            connection.stop_reading()

    async def end(self, within_s: float, still_s: float = _STILL_S) -> None:
        """Say farewell to all clients, and send them what is queued.

        Args:
            within_s: Time after which those that are left are cut off.
            still_s: Time after which one is cut off that took no byte of what is queued for it.
        """
        for connection in self.connections():
            connection.stop()
        # Of each connection: the bytes that its peer has taken, and since when it has no more.
        taken: dict[Connection, tuple[int, float]] = {}
        end_s = time.monotonic() + within_s
        while connections := self.connections():
            now_s = time.monotonic()
            for connection in connections:
                count = connection.edge.taken_bytes()
                before, since_s = taken.get(connection, (-1, now_s))
                if now_s >= end_s or (count == before and now_s - since_s >= still_s):
                    connection.cut_off()
                elif count != before:
                    taken[connection] = (count, now_s)
            await asyncio.sleep(_POLL_S)

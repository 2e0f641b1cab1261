"""State that the ports of a process share: the loop, the sockets, and the listeners."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from gateway.server.connections.shared import Shared
from gateway.server.listener import Listener
from gateway.server.listeners import Listeners
from gateway.server.sockets import Sockets

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

"""The listener of the API: uvicorn in the server's own loop, without its signals and its logs."""

import asyncio
import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.management.http.protocol import (
    CONNECTIONS_MAX,
    HEADER_BYTES_MAX,
    IDLE_S,
    PROTOCOL,
    BoundedProtocol,
    SmallReads,
)
from gateway.network.addresses import shown
from gateway.network.listening import address_of
from gateway.network.pre_login import PreLogin
from gateway.server.connections.first_look import Look
from gateway.server.connections.shared import Shared

log = logging.getLogger(__name__)

_BACKLOG: Final = 128
_STOP_S: Final = 1.0
_TICK_S: Final = 1.0


class _Uvicorn(uvicorn.Server):
    """uvicorn, which leaves signals to the process, and sleeps while nothing is asked."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._is_stopped = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def main_loop(self) -> None:
        """Set the date that answers carry once a second, until the end.

        uvicorn's own wakes an idle server ten times a second.
        """
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_S):
                    await self._is_stopped.wait()

    def stop(self) -> None:
        """End without waiting for clients."""
        self.should_exit = True
        self.force_exit = True
        self._is_stopped.set()


class HttpServer:
    """Serves an application on sockets that are bound.

    Attributes:
        application: Answers each request; it may become another one.
    """

    def __init__(
        self, listening: Sequence[socket.socket], shared: Shared, application: ASGIApp
    ) -> None:
        """Begin with sockets that listen, and the state that all connections share."""
        self.application = application
        self._sockets = list(listening)
        strangers: PreLogin[BoundedProtocol] = PreLogin(CONNECTIONS_MAX)
        look = Look(PROTOCOL, shared.open_ports, shared.say)

        def protocol(**given: Any) -> SmallReads:  # noqa: ANN401  # as uvicorn calls it
            return SmallReads(BoundedProtocol(strangers, shared, look, **given))

        config = uvicorn.Config(
            self._answer,
            http=protocol,  # type: ignore[arg-type]  # makes one, as a class would
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        )
        self._uvicorn = _Uvicorn(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Answer from now on."""
        self._task = asyncio.get_running_loop().create_task(
            self._uvicorn.serve(sockets=self._sockets)
        )
        for each in self._sockets:
            log.info("management ready address=%s", shown(*address_of(each)))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.application(scope, receive, send)

    def stop(self) -> None:
        """Take no more requests."""
        self._uvicorn.stop()

    async def stopped(self) -> None:
        """Wait for the answers that are under way, for a moment; `stop` comes before."""
        if self._task is not None:
            with suppress(TimeoutError, asyncio.CancelledError):
                async with asyncio.timeout(_STOP_S):
                    await self._task

"""The HTTP of the API on a port of its own, with an application that the test steers."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import uvicorn
from starlette.types import Receive, Scope, Send

from gateway.management.http.protocol import (
    CONNECTIONS_MAX,
    IDLE_S,
    LOGGED_IN,
    BoundedProtocol,
    SmallReads,
)
from gateway.network.pre_login import PreLogin
from gateway.server.connections.first_look import Look
from gateway.server.connections.shared import Shared
from gateway.server.loop.schedule import Schedule
from tests.waiting import HANG_S


@dataclass
class Server:
    """The HTTP of the API, with logins and answers that take as long as the test wants.

    Attributes:
        port: Where it listens.
        logs_in: Requests log in from then on.
        answers: They are answered from then on.
        asked: Paths of the requests that have logged in.
        read: Sizes of the bodies of those that were answered.
        said: Log lines that any client could cause.
    """

    port: int = 0
    logs_in: asyncio.Event = field(default_factory=asyncio.Event)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.answers.set()
        loop = asyncio.get_running_loop()
        self.shared = Shared(
            loop=loop,
            schedule=Schedule(loop),
            receive_buffer=bytearray(1 << 20),
            scratch=bytearray(1 << 16),
            say=self._say,
        )

    def _say(
        self, write: Callable[..., object], address: str, line: str, *arguments: object
    ) -> None:
        assert write.__name__ == "warning"
        assert address == "127.0.0.1"
        self.said.append(line % arguments)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.logs_in.wait()
        scope["state"][LOGGED_IN]()
        self.asked.append(scope["path"])
        size, is_more = 0, True
        while is_more:
            message = await receive()
            size += len(message.get("body", b""))
            is_more = message.get("more_body", False)
        await self.answers.wait()
        self.read.append(size)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


@asynccontextmanager
async def serving(connections_max: int = CONNECTIONS_MAX) -> AsyncIterator[Server]:
    """Serve on a port until the end of the block."""
    loop, made = asyncio.get_running_loop(), Server()
    config = uvicorn.Config(
        made.app,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        timeout_keep_alive=IDLE_S,
    )
    config.load()
    state = uvicorn.Server(config).server_state
    strangers: PreLogin[BoundedProtocol] = PreLogin(connections_max)
    look = Look("http", made.shared.open_ports, made.shared.say)

    def protocol() -> SmallReads:
        return SmallReads(
            BoundedProtocol(
                strangers, made.shared, look, config=config, server_state=state, app_state={}
            )
        )

    listening = await loop.create_server(protocol, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    made.logs_in.set()
    made.answers.set()
    listening.close()
    for connection in list(state.connections):
        connection.transport.abort()
    await asyncio.sleep(0)


def connected(server: Server) -> socket.socket:
    """Return a client's socket."""
    client = socket.create_connection(("127.0.0.1", server.port), HANG_S)
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature
    return client


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(HANG_S):
        while not is_so():  # noqa: ASYNC110  # no event tells it
            await asyncio.sleep(0.01)

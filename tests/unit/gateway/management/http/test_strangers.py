"""What a client without a login can make the API hold, and for how long."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from http import HTTPStatus

import pytest
import pytest_asyncio
import uvicorn
from starlette.types import Message, Receive, Scope, Send

from gateway.management.http import bodies
from gateway.management.http.answers import ApiRefusal
from gateway.management.http.protocol import CONNECTIONS_MAX, LOGGED_IN, BoundedProtocol, SmallReads
from gateway.network.pre_login import PreLogin
from gateway.server.connections.first_look import Look
from gateway.server.connections.shared import Shared
from gateway.server.connections.unfinished import STRANGER_BYTES_MAX, PreLoginInput
from gateway.server.loop.schedule import Schedule
from tests.waiting import HANG_S

BODY = bytes(1 << 20)
HEAD = b"POST /api/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(BODY)


@dataclass
class Server:
    """The HTTP of the API, with logins that take as long as the test wants."""

    shared: Shared
    port: int = 0
    logs_in: asyncio.Event = field(default_factory=asyncio.Event)
    read: list[int] = field(default_factory=list)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.logs_in.wait()
        scope["state"][LOGGED_IN]()
        size, is_more = 0, True
        while is_more:
            message = await receive()
            size += len(message.get("body", b""))
            is_more = message.get("more_body", False)
        self.read.append(size)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


def unheard(*_: object, **__: object) -> None:
    """Write no line."""


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    loop = asyncio.get_running_loop()
    shared = Shared(
        loop=loop,
        schedule=Schedule(loop),
        receive_buffer=bytearray(1 << 20),
        scratch=bytearray(1 << 16),
        say=unheard,
    )
    made = Server(shared)
    config = uvicorn.Config(made.app, ws="none", lifespan="off", interface="asgi3", log_config=None)
    config.load()
    state = uvicorn.Server(config).server_state
    strangers: PreLogin[BoundedProtocol] = PreLogin(CONNECTIONS_MAX)
    look = Look("http", shared.open_ports, unheard)

    def protocol() -> SmallReads:
        made = BoundedProtocol(
            strangers, shared, look, config=config, server_state=state, app_state={}
        )
        return SmallReads(made)

    listening = await loop.create_server(protocol, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    made.logs_in.set()
    listening.close()
    for connection in list(state.connections):
        connection.transport.abort()
    await asyncio.sleep(0)


def connected(server: Server) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), HANG_S)
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature
    return client


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not is_so():  # noqa: ASYNC110  # no event tells it
            await asyncio.sleep(0.01)


async def test_the_body_of_a_stranger_is_read_after_the_login(server: Server) -> None:
    loop, held = asyncio.get_running_loop(), server.shared.strangers_input
    client = connected(server)
    sending = asyncio.create_task(loop.sock_sendall(client, HEAD + BODY))
    await until(lambda: held.total >= STRANGER_BYTES_MAX // 2)
    await asyncio.sleep(0.2)
    assert held.total <= STRANGER_BYTES_MAX

    server.logs_in.set()

    await asyncio.wait_for(sending, HANG_S)
    answer = await asyncio.wait_for(loop.sock_recv(client, 4_096), HANG_S)
    assert answer.startswith(b"HTTP/1.1 204")
    assert server.read == [len(BODY)]
    assert held.total == 0
    client.close()


async def test_strangers_of_the_api_give_way_to_the_bound_of_all_ports(server: Server) -> None:
    loop, bytes_max = asyncio.get_running_loop(), 10_000
    held = PreLoginInput(server.shared.say, bytes_max)
    object.__setattr__(server.shared, "strangers_input", held)
    clients = [connected(server) for _ in range(3)]
    for client in clients:
        await loop.sock_sendall(client, HEAD + bytes(4_000))

    assert await asyncio.wait_for(loop.sock_recv(clients[0], 1), HANG_S) == b""
    assert 0 < held.total <= bytes_max
    for client in clients:
        client.close()
    await until(lambda: held.total == 0)


async def test_a_body_ends_within_the_time_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "CLIENT_S", 0.3)

    async def trickles() -> Message:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(ApiRefusal) as refused:
        async with asyncio.timeout(HANG_S):
            await bodies.read_body(trickles, {}, 1 << 20)
    assert refused.value.answer.status_code == HTTPStatus.REQUEST_TIMEOUT

"""What a client without a login can make the API hold, and for how long."""

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest
import pytest_asyncio
from starlette.types import Message

from gateway.management.http import bodies
from gateway.management.http.answers import ApiRefusal
from gateway.server.connections.unfinished import STRANGER_BYTES_MAX, PreLoginInput
from tests.unit.gateway.management.http.http_rig import Server, connected, serving, until
from tests.waiting import HANG_S

BODY = bytes(1 << 20)
HEAD = b"POST /api/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(BODY)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as made:
        yield made


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

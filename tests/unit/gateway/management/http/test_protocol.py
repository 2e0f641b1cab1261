"""One connection of the API: the first bytes, the time of a head, and the place it takes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from gateway.management.http import protocol
from tests.unit.gateway.management.http.http_rig import Server, connected, serving, until
from tests.waiting import HANG_S

PLACES = 4
ANSWER = b"HTTP/1.1 204"


@pytest_asyncio.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """A server with a few places, where any request logs in."""
    monkeypatch.setattr(protocol, "CONNECTIONS_MAX", PLACES)
    async with serving(PLACES) as made:
        made.logs_in.set()
        yield made


def get(path: str) -> bytes:
    return b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path.encode()


async def send(client: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(client, data)


async def received(client: socket.socket) -> bytes:
    """Return what comes next; empty where the connection was ended."""
    try:
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 4_096), HANG_S)
    except ConnectionResetError:
        return b""


async def answered(client: socket.socket, data: bytes) -> bool:
    await send(client, data)
    return (await received(client)).startswith(ANSWER)


async def idle(server: Server, count: int) -> list[socket.socket]:
    """Connect clients that have been answered and may ask again, one after the other."""
    clients = []
    for number in range(count):
        clients.append(connected(server))
        assert await answered(clients[-1], get(f"/{number}"))
    return clients


def close(*clients: socket.socket) -> None:
    for client in clients:
        client.close()


@pytest.mark.parametrize(
    "pieces",
    [[b"AMQP\0\0\x09\x01"], [b"A", b"MQ", b"P\0\0\x09\x01"]],
    ids=["at once", "in pieces"],
)
async def test_another_protocol_is_answered_in_its_own_words_and_logged(
    server: Server, pieces: list[bytes]
) -> None:
    client = connected(server)
    for piece in pieces:
        await send(client, piece)
        await asyncio.sleep(0.02)

    assert await received(client) == b"AMQP\0\0\0\0"
    assert await received(client) == b""
    (line,) = server.said
    assert f" peer=127.0.0.1:{client.getsockname()[1]} speaks=AMQP-0-9-1 port=http " in line
    close(client)


async def test_a_request_may_come_a_byte_at_a_time(server: Server) -> None:
    client = connected(server)
    for byte in get("/slow")[:-1]:
        await send(client, bytes((byte,)))
        await asyncio.sleep(0)

    assert await answered(client, b"\n")
    assert server.asked == ["/slow"]
    close(client)


async def test_an_end_of_line_between_requests_is_passed_over(server: Server) -> None:
    (client,) = await idle(server, 1)
    await send(client, b"\r\n")
    await asyncio.sleep(0.05)

    assert await answered(client, get("/next"))
    assert await answered(client, b"\r\n" + get("/last"))
    assert server.asked == ["/0", "/next", "/last"]
    close(client)


@pytest.mark.parametrize("sent", [b"", b"GET /half HTTP/1.1\r\nHost:"], ids=["nothing", "half"])
@pytest.mark.parametrize("before", [0, 1], ids=["first request", "second request"])
async def test_a_head_has_its_time(
    server: Server, monkeypatch: pytest.MonkeyPatch, before: int, sent: bytes
) -> None:
    clients = await idle(server, before)
    monkeypatch.setattr(protocol, "HEADERS_S", 0.2)
    client = clients[0] if clients else connected(server)
    if before and not sent:
        sent = b"\r\n"  # else no second request has begun
    with suppress(ConnectionError):  # it may be over already
        await send(client, sent)

    assert await received(client) == b""
    assert len(server.asked) == before
    close(client)


async def test_the_oldest_of_an_address_with_half_of_the_places_and_no_login_gives_way(
    server: Server,
) -> None:
    clients = [connected(server) for _ in range(PLACES // 2)]

    last = connected(server)

    assert await received(clients[0]) == b""
    assert server.said == ["http connection without a login gives way to another address=127.0.0.1"]
    assert await answered(clients[1], get("/second"))
    assert await answered(last, get("/last"))
    close(*clients, last)


async def test_if_all_places_are_taken_the_client_that_asks_nothing_for_longest_gives_way(
    server: Server,
) -> None:
    clients = await idle(server, PLACES)
    assert await answered(clients[0], get("/again"))

    last = connected(server)

    assert await received(clients[1]) == b""
    for client in (clients[0], *clients[2:], last):
        assert await answered(client, get("/still-here"))
    assert server.said == []
    close(*clients, last)


async def test_a_client_that_has_begun_to_ask_gives_way_after_one_that_has_not(
    server: Server,
) -> None:
    clients = await idle(server, PLACES)
    await asyncio.sleep(0.05)
    await send(clients[0], b"GET /half HTTP/1.1\r\n")
    await asyncio.sleep(0.05)

    last = connected(server)

    assert await received(clients[1]) == b""
    assert await answered(clients[0], b"Host: h\r\n\r\n")
    assert await answered(last, get("/last"))
    close(*clients, last)


async def test_if_all_are_being_answered_one_more_is_refused(server: Server) -> None:
    server.answers.clear()
    clients = []
    for number in range(PLACES):
        clients.append(connected(server))
        await send(clients[-1], get(f"/{number}"))
        await until(lambda: len(server.asked) == len(clients))

    last = connected(server)

    assert await received(last) == b""
    assert server.said == [f"http connection refused, all ask something connections={PLACES}"]
    server.answers.set()
    for client in clients:
        assert (await received(client)).startswith(ANSWER)
    close(*clients, last)

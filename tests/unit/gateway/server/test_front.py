"""Another protocol on the same server: lines of text on a plain port and on one over TLS."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from gateway.management.port import ManagementPort
from gateway.server.connections.connection import Connection
from gateway.server.endpoint import PortEndpoint, TlsEndpoint
from gateway.serving.backend import PORTS, Backend
from gateway.serving.process import Process
from store.api import Durability
from tests.echo_front import (
    BACKLOG_PAUSE_BYTES,
    LINE_BYTES_MAX,
    EchoPort,
    EchoSettings,
    WithEcho,
)
from tests.http_client import Api
from tests.unit.gateway.server.tls_rig import certificates, client_context
from tests.waiting import HANG_S


@dataclass
class Client:
    """A client, by its own stream of bytes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def says(self, data: bytes, *answers: bytes) -> None:
        """Send bytes; these lines come next."""
        self.writer.write(data)
        for answer in answers:
            assert await self.line() == answer

    async def line(self) -> bytes:
        return await asyncio.wait_for(self.reader.readline(), HANG_S)

    async def is_ended(self) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(1), HANG_S) == b""
        except ConnectionResetError:
            return True


@dataclass
class House:
    """A server with the stream protocol and this one."""

    server: Process[Backend]
    is_stopped: bool = False

    @property
    def endpoints(self) -> list[PortEndpoint]:
        """The plain one, and the one over TLS."""
        port = self.server.backend.context.port(EchoPort)
        assert port is not None
        return port.endpoints

    def connections(self) -> list[Connection]:
        """Return the connections of all protocols."""
        return self.server.backend.context.listeners.connections()

    async def stop(self) -> bool:
        """Stop it, unless a test has done so: a second stop would wait for what has ended."""
        if self.is_stopped:
            return True
        self.is_stopped = True
        return await self.server.stop()

    async def ask(self, method: str, path: str) -> Any:  # noqa: ANN401 - what JSON holds
        port = self.server.backend.context.port(ManagementPort)
        assert port is not None
        answer = await asyncio.to_thread(Api(*port.endpoints[0].address).ask, method, path)
        assert answer.status < 300, answer
        return answer.json


def settings_of(directory: Path) -> WithEcho:
    settings, made = WithEcho(echo=EchoSettings(port=0, tls_port=0)), certificates().server
    store = {"data_directory": directory, "durability": Durability.OS}
    tls = {"certificate": made.certificate, "key": made.key, "port": 0}
    changes = {
        "store": settings.store.model_copy(update=store),
        "stream": settings.stream.model_copy(update={"port": 0}),
        "management": settings.management.model_copy(update={"port": 0}),
        "tls": settings.tls.model_copy(update=tls),
    }
    return settings.model_copy(update=changes)


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    server = Process(settings_of(tmp_path), (*PORTS, EchoPort), Backend, asyncio.Event())
    await server.open()
    await server.start()
    house = House(server)
    yield house
    await house.stop()


Connect = Callable[[], Awaitable[Client]]
Opened = Callable[[], Awaitable[Client]]


async def connected(endpoint: PortEndpoint) -> Client:
    is_tls = isinstance(endpoint, TlsEndpoint)
    context: ssl.SSLContext | None = client_context() if is_tls else None
    opening = asyncio.open_connection(
        *endpoint.address, ssl=context, server_hostname="localhost" if is_tls else None
    )
    return Client(*await asyncio.wait_for(opening, HANG_S))


@pytest_asyncio.fixture(params=[0, 1], ids=["plain", "tls"])
async def connect(house: House, request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    """Connect to one port or the other."""
    clients: list[Client] = []

    async def connect() -> Client:
        clients.append(await connected(house.endpoints[request.param]))
        return clients[-1]

    yield connect
    for client in clients:
        client.writer.close()


@pytest.fixture
def opened(connect: Connect) -> Opened:
    """Connect and log in."""

    async def opened() -> Client:
        client = await connect()
        await client.says(b"guest guest\n", b"welcome\n")
        return client

    return opened


async def test_lines_are_echoed_in_order_however_they_are_split(opened: Opened) -> None:
    client = await opened()

    await client.says(b"one\ntwo\nthr", b"one\n", b"two\n")
    await client.says(b"ee\n", b"three\n")
    long = bytes(LINE_BYTES_MAX - 1) + b"\n"
    client.reader._limit = LINE_BYTES_MAX  # type: ignore[attr-defined]  # for readline
    await client.says(long, long)


async def test_lines_behind_the_login_wait_for_it(connect: Connect) -> None:
    client = await connect()

    await client.says(b"guest guest\nfirst\n", b"welcome\n", b"first\n")


async def test_a_source_is_asked_until_it_has_no_more(opened: Opened) -> None:
    client = await opened()

    await client.says(b"again 20 x\n", *[b"x\n"] * 20)


async def test_a_stranger_is_told_that_it_is_refused_and_ended(connect: Connect) -> None:
    client = await connect()

    await client.says(b"guest wrong\n", b"refused\n")

    assert await client.is_ended()


async def test_a_client_that_says_nothing_has_so_long_for_its_login(
    connect: Connect, opened: Opened
) -> None:
    client, silent = await opened(), await connect()

    assert await silent.is_ended()
    await client.says(b"still here\n", b"still here\n")


async def test_a_line_that_is_too_long_ends_the_connection(opened: Opened) -> None:
    client = await opened()

    await client.says(bytes(LINE_BYTES_MAX + 1), b"too long\n")

    assert await client.is_ended()


async def test_a_client_that_does_not_read_is_not_read(house: House, opened: Opened) -> None:
    client = await opened()
    (connection,) = house.connections()
    line = bytes(8190) + b"\n"
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is one for reading

    async with asyncio.timeout(HANG_S):
        while not connection.pause:
            client.writer.write(line)
            await asyncio.sleep(0)
    assert not connection.edge.is_reading
    assert connection._backlog_bytes < BACKLOG_PAUSE_BYTES + (2 << 20)
    client.writer.write(b"end\n")
    client.writer.transport.resume_reading()  # type: ignore[attr-defined]
    while await client.line() != b"end\n":
        pass


async def test_administrators_see_what_a_client_speaks_and_can_end_it(
    house: House, opened: Opened
) -> None:
    client = await opened()
    (seen,) = await house.ask("GET", "connections")

    ports = {endpoint.address[1]: endpoint for endpoint in house.endpoints}
    is_tls = isinstance(ports[seen["port"]], TlsEndpoint)
    assert (seen["protocol"], seen["ssl"]) == ("echo", is_tls)
    assert (seen["user"], seen["vhost"], seen["frame_max"]) == ("guest", "/", LINE_BYTES_MAX)
    assert seen["recv_oct"] >= len(b"guest guest\n")
    shown = (await house.ask("GET", "overview"))["listeners"]
    assert {"stream", "echo", "echo/ssl"} <= {each["protocol"] for each in shown}

    await house.ask("DELETE", f"connections/{quote(seen['name'], safe='')}")

    assert await client.is_ended()
    assert await house.ask("GET", "connections") == []


async def test_the_front_bounds_its_connections_on_both_ports_together(house: House) -> None:
    clients = [await connected(house.endpoints[each]) for each in (0, 1, 0)]
    for client in clients:
        await client.says(b"guest guest\n", b"welcome\n")

    late = await connected(house.endpoints[1])
    await late.says(b"guest guest\n", b"refused\n")

    assert await late.is_ended()
    for client in [*clients, late]:
        client.writer.close()


async def test_a_drain_keeps_out_those_that_come_and_leaves_those_that_are_in(
    house: House, opened: Opened
) -> None:
    client = await opened()

    house.server.backend.broker.service.drain()

    for endpoint in house.endpoints:
        with pytest.raises(ConnectionRefusedError):
            await connected(endpoint)
    await client.says(b"in\n", b"in\n")
    house.server.backend.broker.service.revive()
    late = await opened()
    await late.says(b"in\n", b"in\n")


@pytest.mark.parametrize("is_whole_server", [False, True])
async def test_a_stop_says_farewell(house: House, opened: Opened, *, is_whole_server: bool) -> None:
    client = await opened()

    if is_whole_server:
        assert await house.stop()
    else:
        assert house.server.backend.broker.service.stop() == 1

    assert await client.line() == b"bye\n"
    assert await client.is_ended()

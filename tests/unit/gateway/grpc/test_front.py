"""Calls, refusals and hostile frames over a socket, made by a real library of HTTP/2."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import ContinuationFrame, GoAwayFrame, HeadersFrame

from gateway.grpc.call import framed
from gateway.grpc.status import CallRefused, CallStatus
from gateway.pending import Pending
from gateway.server.listener import Listener
from tests.grpc_rig import listening
from tests.waiting import HANG_S

PATH = "/package.Service/echo"
REQUEST_BYTES_MAX = 100_000
WINDOW_BYTES = 65_535


class Echo:
    """A service that answers with what it was asked; callers are let in when it is told to."""

    def __init__(self) -> None:
        self.is_open: Pending[None] = Pending()
        self.is_asked = asyncio.Event()
        self.hosts: list[str] = []
        self.answered: list[bytes] = []

    def open(self) -> None:
        self.is_open.settle(None)

    def request_bytes_max(self, path: str) -> int:
        if path != PATH:
            raise CallRefused(CallStatus.UNIMPLEMENTED, f"there is no call {path}")
        return REQUEST_BYTES_MAX

    async def let_in(self, authorization: str, host: str) -> str:
        self.hosts.append(host)
        self.is_asked.set()
        await self.is_open
        if authorization == "wrong":
            raise CallRefused(CallStatus.UNAUTHENTICATED, "wrong password: 50 %, ü")
        return authorization or "nobody"

    async def answer(self, path: str, caller: Any, request: bytes) -> bytes:  # noqa: ANN401, ARG002
        if request == b"fault":
            raise RuntimeError("a fault of the service")
        self.answered.append(request)
        return request


class Client:
    """A connection, and what came on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.found: list[events.Event] = []
        self.is_ended = False
        self._reader, self._writer = reader, writer

    @classmethod
    async def connected(cls, listener: Listener) -> Client:
        client = cls(*await asyncio.open_connection(*listener.address))
        client.http.initiate_connection()
        client.send()
        return client

    def send(self, data: bytes = b"") -> None:
        self._writer.write(self.http.data_to_send() + data)

    def begin(self, path: str = PATH, **headers: str) -> int:
        number = self.http.get_next_available_stream_id()
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "a"}
        fields |= {"content-type": "application/grpc"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.http.send_headers(number, list(fields.items()))
        self.send()
        return number

    async def send_all(self, number: int, data: bytes) -> None:
        """Send a whole request as the server's windows allow, or until the call has ended."""
        while data and not self.of(events.StreamEnded, number):
            room = min(self.http.local_flow_control_window(number), 16_000)
            if not room:
                await self.until(lambda: self.http.local_flow_control_window(number) > 0)
                continue
            self.http.send_data(number, data[:room])
            self.send()
            data = data[room:]
            await self.until(lambda: True)
        if not data:
            self.http.end_stream(number)
            self.send()

    def call(self, data: bytes, **headers: str) -> int:
        number = self.begin(**headers)
        self.http.send_data(number, data, end_stream=True)
        self.send()
        return number

    async def until(self, is_enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_S):
            while not is_enough() and not self.is_ended:
                data = b""
                with suppress(ConnectionResetError):
                    data = await self._reader.read(65_536)
                self.is_ended = not data
                self.found += self.http.receive_data(data) if data else []
                for event in self.found:
                    if isinstance(event, events.DataReceived) and event.flow_controlled_length:
                        self.http.acknowledge_received_data(
                            event.flow_controlled_length, event.stream_id
                        )
                        event.flow_controlled_length = 0
                self.send()

    def of(self, kind: type[events.Event], number: int) -> list[Any]:
        return [e for e in self.found if type(e) is kind and getattr(e, "stream_id", 0) == number]

    async def ended(self, number: int) -> tuple[dict[str, str], bytes]:
        """Return the headers of an answer, those at its end too, and its data."""
        await self.until(lambda: bool(self.of(events.StreamEnded, number)))
        headers: dict[str, str] = {}
        for kind in (events.ResponseReceived, events.TrailersReceived):
            for event in self.of(kind, number):
                headers |= dict(event.headers)
        return headers, b"".join(e.data for e in self.of(events.DataReceived, number))

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


@pytest.fixture
def service() -> Echo:
    return Echo()


@pytest.fixture
async def listener(service: Echo) -> AsyncIterator[Listener]:
    listener = listening(service)
    yield listener
    listener.stop_accepting()
    for connection in list(listener.connections):
        connection.abort()


@pytest.fixture
async def client(listener: Listener) -> AsyncIterator[Client]:
    client = await Client.connected(listener)
    yield client
    await client.close()


async def test_calls_are_answered_each_by_its_own_answer(service: Echo, client: Client) -> None:
    service.open()
    numbers = {client.call(framed(b"%d" % n)): b"%d" % n for n in range(20)}
    for number, message in numbers.items():
        headers, data = await client.ended(number)
        assert (headers[":status"], headers["grpc-status"]) == ("200", "0")
        assert data == framed(message)
    assert set(service.hosts) == {"127.0.0.1"}


async def test_a_call_that_comes_byte_by_byte_is_answered(service: Echo, client: Client) -> None:
    service.open()
    number = client.begin()
    for byte in framed(b"slowly"):
        client.http.send_data(number, bytes((byte,)))
        client.send()
        await asyncio.sleep(0)
    client.http.end_stream(number)
    client.send()
    assert (await client.ended(number))[1] == framed(b"slowly")


async def test_an_answer_waits_for_the_room_that_its_client_gives(
    service: Echo, client: Client
) -> None:
    service.open()
    client.http.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 10})
    message = bytes(range(256)) * 300
    number = client.begin()
    data = framed(message)
    await client.send_all(number, data)
    await client.until(lambda: bool(client.of(events.DataReceived, number)))
    assert client.of(events.StreamEnded, number) == []
    assert (await client.ended(number))[1] == data


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        (framed(b"x"), {"path": "/package.Service/none"}, CallStatus.UNIMPLEMENTED),
        (framed(b"x"), {"authorization": "wrong"}, CallStatus.UNAUTHENTICATED),
        (b"\1" + framed(b"x")[1:], {}, CallStatus.UNIMPLEMENTED),
        (framed(b"x") + b"y", {}, CallStatus.INTERNAL),
        (framed(b"x")[:-1], {}, CallStatus.INTERNAL),
        (b"", {}, CallStatus.INTERNAL),
        (framed(b"fault"), {}, CallStatus.INTERNAL),
    ],
)
async def test_a_call_that_cannot_be_answered_ends_with_its_status_and_the_next_one_is(
    service: Echo, client: Client, data: bytes, headers: dict[str, str], status: CallStatus
) -> None:
    service.open()
    number = client.call(data, **headers)
    found, body = await client.ended(number)
    assert (found["grpc-status"], body) == (str(status.value), b"")
    if status is CallStatus.UNAUTHENTICATED:
        assert found["grpc-message"] == "wrong password: 50 %25, %C3%BC"

    assert (await client.ended(client.call(framed(b"next"))))[1] == framed(b"next")


async def test_a_request_above_its_limit_is_refused_before_it_is_whole(
    service: Echo, client: Client
) -> None:
    service.open()
    await client.ended(client.call(framed(b"let in")))
    number = client.begin()
    for _ in range(8):
        await client.until(lambda: client.http.local_flow_control_window(number) >= 15_000)
        if client.of(events.ResponseReceived, number):
            break
        client.http.send_data(number, bytes(15_000))
        client.send()
    headers, _ = await client.ended(number)
    assert headers["grpc-status"] == str(CallStatus.RESOURCE_EXHAUSTED.value)
    assert service.answered == [b"let in"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content_type": "text/html"}, "415"),
        ({":method": "GET"}, "405"),
    ],
)
async def test_what_is_no_call_is_told_so_by_http(
    client: Client, headers: dict[str, str], status: str
) -> None:
    number = client.begin(**headers)
    assert (await client.ended(number))[0][":status"] == status


async def test_before_its_caller_is_let_in_a_connection_brings_one_window_and_no_more(
    service: Echo, client: Client
) -> None:
    number = client.begin()
    await client.until(
        lambda: any(isinstance(e, events.SettingsAcknowledged) for e in client.found)
    )
    while room := min(client.http.local_flow_control_window(number), 16_000):
        client.http.send_data(number, bytes(room))
        client.send()
    client.http.ping(b"12345678")
    client.send()
    await client.until(lambda: any(isinstance(e, events.PingAckReceived) for e in client.found))
    assert not [e for e in client.found if isinstance(e, events.WindowUpdated)]

    service.open()
    await client.until(lambda: client.http.local_flow_control_window(number) > 0)
    assert not client.is_ended


async def test_a_connection_without_a_caller_is_ended_in_time(service: Echo) -> None:
    listener = listening(service, login_timeout_ms=50)
    client = await Client.connected(listener)
    client.begin()
    await client.until(lambda: False)
    assert client.is_ended
    await client.close()
    listener.stop_accepting()


async def test_calls_that_their_client_gives_up_at_once_cost_the_others_nothing(
    service: Echo, client: Client
) -> None:
    service.open()
    for _ in range(200):
        number = client.begin()
        client.http.send_data(number, framed(b"given up"), end_stream=True)
        client.http.reset_stream(number, ErrorCodes.CANCEL)
        client.send()
    assert (await client.ended(client.call(framed(b"kept"))))[1] == framed(b"kept")


async def test_a_client_that_says_farewell_while_a_call_is_answered_costs_the_others_nothing(
    service: Echo, listener: Listener, client: Client
) -> None:
    other = await Client.connected(listener)
    other.call(framed(b"not waited for"))
    other.send(GoAwayFrame(0).serialize())
    await other.until(lambda: False)
    assert other.is_ended

    service.open()
    assert (await client.ended(client.call(framed(b"kept"))))[1] == framed(b"kept")
    await other.close()


async def test_a_call_that_is_answered_after_the_server_s_farewell_costs_nothing(
    service: Echo, listener: Listener, client: Client
) -> None:
    client.call(framed(b"late"))
    await asyncio.wait_for(service.is_asked.wait(), HANG_S)
    for connection in list(listener.connections):
        connection.stop()
    service.open()
    await client.until(lambda: False)
    assert client.is_ended


def block_without_end() -> bytes:
    """Return headers that go on and on."""
    head = HeadersFrame(1, b"\x00\x01a\x01b")
    more = [ContinuationFrame(1, b"\x00\x01a\x01b" * 2_000) for _ in range(20)]
    return b"".join(frame.serialize() for frame in (head, *more))


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00" + bytes(60), bytes(100), None],
    ids=["http1", "tls", "zeros", "headers without end"],
)
async def test_what_is_not_http2_ends_its_connection_alone(
    service: Echo, listener: Listener, client: Client, said: bytes | None
) -> None:
    service.open()
    reader, writer = await asyncio.open_connection(*listener.address)
    if said is None:
        other = H2Connection(H2Configuration(client_side=True))
        other.initiate_connection()
        said = other.data_to_send() + block_without_end()
    writer.write(said)
    async with asyncio.timeout(HANG_S):
        with suppress(ConnectionResetError):
            while await reader.read(65_536):
                pass
    writer.close()

    assert (await client.ended(client.call(framed(b"kept"))))[1] == framed(b"kept")


async def test_a_connection_that_is_ended_by_the_server_is_told_so(
    service: Echo, listener: Listener, client: Client
) -> None:
    service.open()
    await client.ended(client.call(framed(b"before")))
    for connection in list(listener.connections):
        connection.stop()
    await client.until(lambda: False)
    assert any(isinstance(e, events.ConnectionTerminated) for e in client.found)

"""A TLS connection on this machine: the server's edge, and a client that seals by hand."""

import asyncio
import functools
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from compat.certificates import Certificates, make
from gateway.server.connections import edge as edge_module
from gateway.server.connections.edge import PlainEdge
from gateway.server.connections.first_look import Look
from gateway.server.loop.threads import Threads
from gateway.server.tls.tls_edge import TlsEdge
from gateway.server.tls.tls_files import TlsFiles
from gateway.server.tls.tls_greeting import Greeting
from tests.waiting import HANG_S

READ_BYTES = 1 << 18


@functools.cache
def certificates() -> Certificates:
    """Certificates for all tests of a run, since keys take a while."""
    folder = TemporaryDirectory(prefix="tls-rig-")
    made = make(Path(folder.name))
    _folders.append(folder)
    return made


_folders: list[TemporaryDirectory[str]] = []
"""Removed with the process."""


def server_context(*, asks_clients: bool = False) -> ssl.SSLContext:
    """The server's side."""
    made = certificates()
    pair = made.server
    return TlsFiles(pair.certificate, pair.key, made.ca if asks_clients else None).context()


def client_context() -> ssl.SSLContext:
    """The client's side."""
    return ssl.create_default_context(cafile=str(certificates().ca))


class Peer:
    """The client: what it sends is sealed when it is told to, and sent when it is told to."""

    def __init__(self, connected: socket.socket, version: ssl.TLSVersion | None = None) -> None:
        self.socket = connected
        context = client_context()
        if version is not None:
            context.maximum_version = version
        self._incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self.outgoing, server_hostname="localhost")
        self._loop = asyncio.get_running_loop()

    async def greet(self, first: bytes = b"") -> None:
        """Shake hands; what is sent first goes with the end of it."""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.send_sealed(self.outgoing.read())
                assert await self._receive()
            else:
                self.tls.write(first)
                await self.send_sealed(self.outgoing.read())
                return

    def seal(self, *frames: bytes) -> bytes:
        """Make a record of each."""
        for frame in frames:
            self.tls.write(frame)
        return self.outgoing.read()

    async def send(self, data: bytes) -> None:
        """Seal and send."""
        view = memoryview(data)
        while view:
            view = view[self.tls.write(view[:16384]) :]
            await self.send_sealed(self.outgoing.read())

    async def send_sealed(self, data: bytes) -> None:
        """Send what was sealed before, or was not."""
        await asyncio.wait_for(self._loop.sock_sendall(self.socket, data), HANG_S)

    async def _receive(self) -> bytes:
        received = await asyncio.wait_for(self._loop.sock_recv(self.socket, READ_BYTES), HANG_S)
        self._incoming.write(received)
        return received

    async def reads(self, size: int) -> bytes:
        """Receive so many bytes, or what comes before the end."""
        data = bytearray()
        while len(data) < size:
            try:
                piece = self.tls.read(size - len(data))
            except ssl.SSLWantReadError:
                if not await self._receive():
                    break
                continue
            if not piece:
                break
            data += piece
        return bytes(data)

    async def sees_the_end(self) -> bool:
        """Whether TLS is closed properly; False if the connection just breaks."""
        try:
            while True:
                try:
                    return self.tls.read(1) == b""
                except ssl.SSLWantReadError:
                    if not await self._receive():
                        return False
        except (ssl.SSLError, ConnectionError):
            return False


@dataclass(eq=False)
class Owner(edge_module.Owner):
    """What an edge reports to; may stop it from reading."""

    buffer: bytearray = field(default_factory=lambda: bytearray(100_000))
    data: bytearray = field(default_factory=bytearray)
    sizes: list[int] = field(default_factory=list)
    writable_count: int = 0
    lost_count: int = 0
    pause_at: int = 1 << 62
    """Reading is paused when so many bytes have come."""
    edge: PlainEdge | None = None

    def place(self) -> memoryview:
        return memoryview(self.buffer)

    def received(self, size: int) -> None:
        self.data += self.buffer[:size]
        self.sizes.append(size)
        if len(self.data) >= self.pause_at:
            assert self.edge is not None
            self.edge.pause_reading()

    def writable(self) -> None:
        self.writable_count += 1

    def lost(self) -> None:
        self.lost_count += 1

    async def until(self, size: int) -> bytes:
        """Wait for so many bytes in all."""
        async with asyncio.timeout(HANG_S):
            while len(self.data) < size:  # noqa: ASYNC110 - an event for each byte says no more
                await asyncio.sleep(0.001)
        return bytes(self.data)

    async def until_lost(self) -> None:
        """Wait for the end."""
        async with asyncio.timeout(HANG_S):
            while not self.lost_count:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.001)


@dataclass(eq=False)
class Outcome:
    """What becomes of a handshake."""

    edge: TlsEdge | None = None
    reason: str = ""
    free_count: int = 0
    farewell: PlainEdge | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def done(self, _: Greeting, edge: TlsEdge) -> None:
        self.edge = edge
        self.over.set()

    def failed(self, _: Greeting, reason: str, farewell: PlainEdge | None) -> None:
        self.reason, self.farewell = reason, farewell
        self.over.set()

    def freed(self, _: object) -> None:
        self.free_count += 1


def connected_pair(buffer_bytes: int = 16_384) -> tuple[socket.socket, socket.socket]:
    """The server's socket and the client's, with small buffers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        peer = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        peer.connect(listening.getsockname())
        peer.setblocking(False)  # noqa: FBT003 - the standard library's signature
        connected, _ = listening.accept()
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
    return connected, peer


def begun(
    connected: socket.socket, context: ssl.SSLContext, threads: Threads, within_s: float = HANG_S
) -> tuple[Greeting, Outcome]:
    """A handshake that waits for the client."""
    outcome = Outcome()
    loop = asyncio.get_running_loop()
    greeting = Greeting(
        loop,
        connected,
        context,
        threads,
        done=outcome.done,
        failed=outcome.failed,
        closed=outcome.freed,
        look=Look("stream/ssl", {}, lambda *_: None),
        peer="127.0.0.1:50000",
    )
    greeting.start(within_s)
    return greeting, outcome

"""One blocking connection of the generator: the handshake and the few requests it needs.

Publishing and reading chunks happen on the bare `socket` of a connection that is open.
"""

import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from compat.bench.errors import BenchError
from compat.bench.frames import (
    CLOSE,
    HEARTBEAT,
    RESPONSE_BIT,
    TUNE,
    frame,
    text,
    text_map,
)

DECLARE_PUBLISHER: Final = 0x01
SUBSCRIBE: Final = 0x07
CREATE: Final = 0x0D
DELETE: Final = 0x0E
PEER_PROPERTIES: Final = 0x11
SASL_HANDSHAKE: Final = 0x12
SASL_AUTHENTICATE: Final = 0x13
OPEN: Final = 0x15
STREAM_STATS: Final = 0x1C
CREATE_SUPER_STREAM: Final = 0x1D
DELETE_SUPER_STREAM: Final = 0x1E
RESOLVE_OFFSET_SPEC: Final = 0x1F

OK: Final = 1
STREAM_DOES_NOT_EXIST: Final = 2
OFFSET_FIRST: Final = 1
OFFSET_NEXT: Final = 3
OFFSET_ABSOLUTE: Final = 4
# Creating a stream beside a busy disk is the slowest request there is.
REQUEST_TIMEOUT_S: Final = 60.0


class Address(NamedTuple):
    """Address of a server for stream connections, and a user that may log in.

    Attributes:
        ca: The authority's certificate, a path; with it the connection is over TLS.
    """

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    ca: str = ""


class Connection:
    """A connection that is open; a context manager that closes it."""

    def __init__(self, address: Address, *, heartbeat_s: int = 0) -> None:
        """Connect and shake hands.

        Args:
            address: Where to.
            heartbeat_s: After how many seconds of silence either side is to say something; 0 for
                no heartbeats. Nothing here sends them by itself.

        Raises:
            BenchError: The server refused, or hung up.
            OSError: The connection was refused.
        """
        self._correlation = 0
        self.socket = socket.create_connection(
            (address.host, address.port), timeout=REQUEST_TIMEOUT_S
        )
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if address.ca:
                self.socket = over_tls(self.socket, address.ca)
            self.server_properties = self._shake_hands(address, heartbeat_s)
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; the rest of the server's output is dropped."""
        self.socket.close()

    def create(self, stream: str) -> None:
        """Create a stream with the server's default arguments."""
        self._ask(CREATE, text(stream) + text_map({}))

    def create_super_stream(self, name: str, partitions: Sequence[str]) -> None:
        """Create a super stream whose routing keys are the numbers of its partitions."""
        keys = [str(number) for number in range(len(partitions))]
        payload = text(name) + _texts(partitions) + _texts(keys) + text_map({})
        self._ask(CREATE_SUPER_STREAM, payload)

    def delete_super_stream(self, name: str) -> None:
        """Delete a super stream with its partitions, if it is there."""
        assert name, "RabbitMQ takes the empty name for all streams"
        code, _ = self._exchange(DELETE_SUPER_STREAM, text(name))
        if code not in {OK, STREAM_DOES_NOT_EXIST}:
            raise BenchError(f"deletion of {name} answered code {code}")

    def delete(self, stream: str) -> None:
        """Delete a stream."""
        self._ask(DELETE, text(stream))

    def delete_if_there(self, stream: str) -> None:
        """Delete a stream that may be left from a run that failed."""
        code, _ = self._exchange(DELETE, text(stream))
        if code not in {OK, STREAM_DOES_NOT_EXIST}:
            raise BenchError(f"delete of {stream} answered code {code}")

    def declare_publisher(self, publisher_id: int, stream: str) -> None:
        """Declare a publisher without a reference: no deduplication, ids mean nothing."""
        self._ask(DECLARE_PUBLISHER, struct.pack(">B", publisher_id) + text("") + text(stream))

    def subscribe(
        self,
        subscription_id: int,
        stream: str,
        *,
        offset_type: int,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Subscribe with no credit, so that nothing is sent before the first Credit."""
        payload = struct.pack(">B", subscription_id) + text(stream)
        payload += struct.pack(">HH", offset_type, 0)
        self._ask(SUBSCRIBE, payload + (text_map(properties) if properties else b""))

    def stream_stats(self, stream: str) -> dict[str, int]:
        """Return the statistics that the server keeps of a stream."""
        body = self._ask(STREAM_STATS, text(stream))
        (count,) = struct.unpack_from(">I", body)
        position = 4
        stats = {}
        for _ in range(count):
            (size,) = struct.unpack_from(">H", body, position)
            position += 2
            key = body[position : position + size].decode()
            position += size
            (stats[key],) = struct.unpack_from(">q", body, position)
            position += 8
        return stats

    def chunk_id_of(self, stream: str, offset: int) -> int:
        """Return the first offset of the stored chunk that holds an offset."""
        spec = struct.pack(">HQ", OFFSET_ABSOLUTE, offset)
        body = self._ask(RESOLVE_OFFSET_SPEC, text(stream) + spec + text_map({}))
        chunk_id: int = struct.unpack_from(">Q", body, 2)[0]
        return chunk_id

    def _shake_hands(self, address: Address, heartbeat_s: int) -> dict[str, str]:
        properties = self._ask(PEER_PROPERTIES, text_map({"product": "compat.bench"}))
        self._ask(SASL_HANDSHAKE, b"")
        secret = f"\0{address.user}\0{address.password}".encode()
        self._ask(SASL_AUTHENTICATE, text("PLAIN") + struct.pack(">i", len(secret)) + secret)
        key, body = self._read_frame()
        if key != TUNE:
            raise BenchError(f"expected the server's tune, got command {key:#06x}")
        (frame_bytes_max,) = struct.unpack_from(">I", body)
        self.socket.sendall(frame(TUNE, struct.pack(">II", frame_bytes_max, heartbeat_s)))
        self._ask(OPEN, text("/"))
        return _map_of(properties)

    def _ask(self, key: int, payload: bytes) -> bytes:
        code, body = self._exchange(key, payload)
        if code != OK:
            raise BenchError(f"command {key:#04x} was answered with code {code}")
        return body

    def _exchange(self, key: int, payload: bytes) -> tuple[int, bytes]:
        self._correlation += 1
        correlation = self._correlation
        self.socket.sendall(frame(key, struct.pack(">I", correlation) + payload))
        while True:
            got, body = self._read_frame()
            if got == key | RESPONSE_BIT:
                answered, code = struct.unpack_from(">IH", body)
                if answered == correlation:
                    return code, body[6:]
            elif got == CLOSE:
                raise BenchError(f"server closed the connection: {body[8:].decode()!r}")

    def _read_frame(self) -> tuple[int, bytes]:
        while True:
            (size,) = struct.unpack(">I", self._take(4))
            body = self._take(size)
            key, _version = struct.unpack_from(">HH", body)
            if key != HEARTBEAT:
                return key, body[4:]

    def _take(self, count: int) -> bytes:
        # Never reads past the answer, so what follows is left for the raw readers.
        taken = bytearray()
        while len(taken) < count:
            piece = self.socket.recv(count - len(taken))
            if not piece:
                raise BenchError("server hung up")
            taken += piece
        return bytes(taken)


def over_tls(plain: socket.socket, ca: str) -> ssl.SSLSocket:
    """Shake hands. Raises OSError."""
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context.wrap_socket(plain, server_hostname="localhost")


def _texts(values: Sequence[str]) -> bytes:
    return struct.pack(">I", len(values)) + b"".join(map(text, values))


def _map_of(body: bytes) -> dict[str, str]:
    (count,) = struct.unpack_from(">I", body)
    position = 4
    words = []
    for _ in range(2 * count):
        (size,) = struct.unpack_from(">H", body, position)
        words.append(body[position + 2 : position + 2 + size].decode())
        position += 2 + size
    return dict(zip(words[::2], words[1::2], strict=True))

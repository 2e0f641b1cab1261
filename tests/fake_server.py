"""A stream server by hand for tests of clients: it answers well, or as badly as a test tells it to.

    with FakeServer() as server:
        server.streams["orders"] = [chunk(0, [b"a", b"b"]), chunk(2, [b"c"])]
        server.handlers["stream_stats"] = lambda talk, asked: talk.send(b"nonsense")

Each connection has a thread. What a handler raises ends the connection, and fails the test.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from hutch.stream import messages as m
from hutch.stream.codec import Decoded, decode_request, encode_command, encode_reply
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import STANDARD
from hutch.stream.offsets import OffsetType
from tests.chunks import HEADER, MAGIC_AND_VERSION

OK = ResponseCode.OK
MISSING = ResponseCode.STREAM_DOES_NOT_EXIST


class FakeChunk(NamedTuple):
    """A chunk as it is delivered: first offset, behind the last, header and data.

    `value` is the filter value that all its records have.
    """

    first: int
    end: int
    data: bytes
    value: str | None = None


def chunk(
    first: int, bodies: Sequence[bytes], *, kind: int = 0, crc: int | None = None, size: int = -1
) -> FakeChunk:
    """Build a chunk; `crc` and `size` are for those that lie."""
    data = b"".join(len(body).to_bytes(4) + body for body in bodies)
    count = len(bodies)
    declared = len(data) if size < 0 else size
    checksum = zlib.crc32(data) if crc is None else crc
    header = HEADER.pack(
        MAGIC_AND_VERSION, kind, count, count, 1_000, 1, first, checksum, declared, 0, 0, bytes(3)
    )
    return FakeChunk(first, first + count, header + data)


def chunks(
    *counts: int, first: int = 0, body_bytes: int = 10, value: str | None = None
) -> list[FakeChunk]:
    """Build chunks of so many records each, one behind the other; a body is its offset."""
    found = []
    for count in counts:
        bodies = [str(n).encode().ljust(body_bytes) for n in range(first, first + count)]
        found.append(chunk(first, bodies)._replace(value=value))
        first += count
    return found


class _Reading:
    """A subscription."""

    def __init__(self, wanted: m.Subscribe) -> None:
        self.stream = wanted.stream
        self.position = wanted.offset.value
        self.credit = wanted.credit
        properties = wanted.properties
        self._values = {properties[key] for key in properties if key.startswith("filter.")}
        self._match_unfiltered = properties.get("match-unfiltered") == "true"

    def lets_through(self, one: FakeChunk) -> bool:
        """Tell whether a filter, if there is one, lets a chunk through."""
        if not self._values:
            return True
        return self._match_unfiltered if one.value is None else one.value in self._values


class Talk:
    """One connection of the server."""

    def __init__(self, server: FakeServer, connected: socket.socket) -> None:
        self.server = server
        self.socket = connected
        self.reads = 0
        self.heartbeats = 0
        self.names: list[str] = []
        self.properties: dict[str, str] = {}
        self.table = STANDARD
        self.readings: dict[int, _Reading] = {}

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def reply(self, asked: Decoded, message: m.Message) -> None:
        """Answer a request."""
        self.send(encode_reply(asked.command, asked.correlation_id, message))

    def push(self, name: str, message: m.Message) -> None:
        """Send a command of the server's own."""
        is_correlated = name == "close"
        self.send(encode_command(name, message, correlation_id=1 if is_correlated else None))

    def deliver(self, subscription_id: int, data: bytes) -> None:
        """Send a Deliver."""
        frame = b"\0\x08\0\x01" + subscription_id.to_bytes(1) + data
        self.send(len(frame).to_bytes(4) + frame)

    def run(self) -> None:
        buffer = bytearray()
        with contextlib.suppress(OSError), self.socket:
            while data := self.socket.recv(1 << 16):
                self.reads += 1
                buffer += data
                while len(buffer) >= 4 and len(buffer) >= 4 + int.from_bytes(buffer[:4]):
                    end = 4 + int.from_bytes(buffer[:4])
                    frame = bytes(buffer[4:end])
                    del buffer[:end]
                    self._take(decode_request(frame, self.table))

    def _take(self, asked: Decoded) -> None:
        name = asked.command.name
        self.names.append(name)
        self.server.handlers[name](self, asked)

    def feed(self) -> None:
        """Deliver what there is credit for."""
        for number, reading in self.readings.items():
            for one in self.server.streams.get(reading.stream, ()):
                if reading.credit <= 0:
                    break
                if one.end > reading.position:
                    reading.position = one.end
                    if reading.lets_through(one):
                        reading.credit -= 1
                        self.deliver(number, one.data)


Handler = Callable[[Talk, Decoded], object]


class FakeServer:
    """Listens on a port of its own.

    Attributes:
        streams: What each stream holds.
        ends: Where a stream ends, if not behind its last chunk.
        super_streams: Their partitions.
        handlers: What is done with each command; a test may put its own in.
        talks: All connections so far.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.streams: dict[str, list[FakeChunk]] = {}
        self.ends: dict[str, int] = {}
        self.super_streams: dict[str, tuple[str, ...]] = {}
        self.product = "fake"
        self.talks: list[Talk] = []
        self.errors: list[BaseException] = []
        self.is_away = False
        self.handlers: dict[str, Handler] = {
            "peer_properties": self._peer_properties,
            "sasl_handshake": lambda t, a: t.reply(a, m.SaslHandshakeReply(OK, ("PLAIN",))),
            "sasl_authenticate": self._sasl_authenticate,
            "tune": lambda _talk, _asked: None,
            "open": lambda t, a: t.reply(a, m.OpenReply(OK, {})),
            "close": self._close,
            "heartbeat": self._heartbeat,
            "metadata": self._metadata,
            "partitions": self._partitions,
            "stream_stats": self._stream_stats,
            "resolve_offset_spec": self._resolve,
            "subscribe": self._subscribe,
            "credit": self._credit,
            "unsubscribe": self._unsubscribe,
            "store_offset": lambda _talk, _asked: None,
        }
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.is_away = True
        self._listener.close()
        self.cut()
        if kind is None:
            assert not self.errors, self.errors

    def cut(self) -> None:
        """End all connections without a word."""
        for talk in self.talks:
            with contextlib.suppress(OSError):
                talk.socket.shutdown(socket.SHUT_RDWR)

    def go(self) -> None:
        """End all connections, and take no new ones from now on."""
        self.is_away = True
        self.cut()

    def count(self, name: str) -> int:
        """Return how often a command has come."""
        return sum(talk.names.count(name) for talk in self.talks)

    @property
    def reads(self) -> int:
        """Count of receives on all connections; there were no more round trips."""
        return sum(talk.reads for talk in self.talks)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connected, _ = self._listener.accept()
                if self.is_away:
                    connected.close()
                    continue
                threading.Thread(target=self._serve, args=(connected,), daemon=True).start()

    def _serve(self, connected: socket.socket) -> None:
        try:
            if self._tls is not None:
                connected = self._tls.wrap_socket(connected, server_side=True)
        except OSError:
            connected.close()
            return
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        talk = Talk(self, connected)
        self.talks.append(talk)
        try:
            talk.run()
        except BaseException as error:  # noqa: BLE001  # the test asks for it at its end
            self.errors.append(error)

    # ---- what a good server answers ------------------------------------------------------------

    def _peer_properties(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.PeerProperties)
        talk.properties = dict(asked.message.properties)
        talk.reply(asked, m.PeerPropertiesReply(OK, {"product": self.product}))

    @staticmethod
    def _sasl_authenticate(talk: Talk, asked: Decoded) -> None:
        talk.reply(asked, m.SaslAuthenticateReply(OK, b""))
        talk.push("tune", m.Tune(1 << 20, 60))

    @staticmethod
    def _close(talk: Talk, asked: Decoded) -> None:
        if not asked.is_response:
            talk.reply(asked, m.Status(OK))
        talk.socket.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _heartbeat(talk: Talk, _asked: Decoded) -> None:
        talk.heartbeats += 1

    def _metadata(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.Metadata)
        found = tuple(
            m.StreamMetadata(name, OK, 0, ())
            if name in self.streams
            else m.StreamMetadata(name, MISSING, 0xFFFF, ())
            for name in asked.message.streams
        )
        talk.reply(asked, m.MetadataReply((m.Broker(0, self.host, self.port),), found))

    def _partitions(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.Partitions)
        streams = self.super_streams.get(asked.message.super_stream)
        code = MISSING if streams is None else OK
        talk.reply(asked, m.StreamsReply(code, streams or ()))

    def bounds(self, stream: str) -> tuple[int, int]:
        """Return the first offset of a stream, and the one behind its last."""
        held = self.streams[stream]
        end = self.ends.get(stream, held[-1].end if held else 0)
        return (held[0].first if held else -1), end

    def _stream_stats(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.StreamStats)
        if asked.message.stream not in self.streams:
            talk.reply(asked, m.StreamStatsReply(MISSING, {}))
            return
        first, end = self.bounds(asked.message.stream)
        numbers = {"committed_offset": end - 1, "first_chunk_id": first}
        talk.reply(asked, m.StreamStatsReply(OK, numbers))

    def _resolve(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.ResolveOffsetSpec)
        stream, place = asked.message.stream, asked.message.offset
        if stream not in self.streams:
            talk.reply(asked, m.ResolvedOffset(MISSING, 0))
            return
        found = self.bounds(stream)[1]
        for one in self.streams[stream]:
            if place.type is OffsetType.OFFSET and one.end > place.value:
                found = one.first
                break
        talk.reply(asked, m.ResolvedOffset(OK, found))

    def _subscribe(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.Subscribe)
        wanted = asked.message
        code = OK if wanted.stream in self.streams else MISSING
        talk.reply(asked, m.Status(code))
        talk.readings[wanted.subscription_id] = _Reading(wanted)
        talk.feed()

    @staticmethod
    def _credit(talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.Credit)
        reading = talk.readings.get(asked.message.subscription_id)
        if reading is not None:
            reading.credit += asked.message.credit
            talk.feed()

    @staticmethod
    def _unsubscribe(talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.Unsubscribe)
        found = talk.readings.pop(asked.message.subscription_id, None)
        code = OK if found is not None else ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST
        talk.reply(asked, m.Status(code))

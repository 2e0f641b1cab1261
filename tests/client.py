"""A raw synchronous client for tests: one socket, whole frames, nothing hidden.

It speaks to Hutch and to a real RabbitMQ alike. Messages are those of the codec; what the kernel
reads in the server (Publish, Deliver) is built and taken apart in `tests/chunks.py`, on its own.

    with Client.opened("127.0.0.1", port) as client:
        client.request("create_stream", m.CreateStream("orders", {}))
        client.declare(1, "orders")
        client.publish(1, {10: b"hello"})
        assert client.confirmed() == (1, (10,))
        client.subscribe(1, "orders", FIRST)
        assert client.delivery().chunk.records() == [b"hello"]
"""

import socket
import ssl
import time
from collections import deque
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self, TypeVar

from gateway.stream.wire import messages as m
from gateway.stream.wire.codec import (
    Decoded,
    decode_reply,
    encode_reply,
    encode_request,
)
from gateway.stream.wire.codes import ResponseCode
from gateway.stream.wire.commands import BY_NAME
from gateway.stream.wire.offsets import NEXT, NONE, OffsetSpec
from tests.chunks import Delivery, Entry, delivery_of, filtered_body, publish_body

M = TypeVar("M", bound=m.Message)

TIMEOUT_S = 5.0
READ_BYTES = 1 << 18
CLIENT_PROPERTIES = {"product": "hutch tests", "connection_name": "tests"}


class PeerGone(Exception):
    """The server has closed the connection: FIN or RST, at or inside a frame."""


class ClosedByServer(Exception):
    """The server has sent a Close frame; it has been answered."""

    def __init__(self, close: m.Close) -> None:
        super().__init__(close.code, close.reason)
        self.code = close.code
        self.reason = close.reason


class Refused(Exception):
    """An answer whose code is not OK, where the caller took OK for granted."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(name, code)
        self.code = code


class Client:
    """One connection; all waiting is bounded by `timeout_s`, after which TimeoutError is raised."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float = TIMEOUT_S,
        receive_buffer_bytes: int | None = None,
        family: socket.AddressFamily = socket.AF_INET,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(timeout_s)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            plain_socket = self.socket
            try:
                self.socket = tls.wrap_socket(plain_socket, server_hostname="localhost")
            except BaseException:
                plain_socket.close()
                raise
        self.peer_properties: Mapping[str, str] = {}
        self.mechanisms: tuple[str, ...] = ()
        self.tune = m.Tune(0, 0)
        self.open_properties: Mapping[str, str] = {}
        self._buffer = bytearray()
        self._inbox: deque[Decoded] = deque()
        self._next_correlation_id = 1

    @classmethod
    def opened(
        cls,
        host: str,
        port: int,
        *,
        user: str = "guest",
        password: str = "guest",
        virtual_host: str = "/",
        timeout_s: float = TIMEOUT_S,
        tls: ssl.SSLContext | None = None,
    ) -> Self:
        """Connect and go through the whole handshake."""
        client = cls(host, port, timeout_s=timeout_s, tls=tls)
        try:
            client.handshake(user=user, password=password, virtual_host=virtual_host)
        except BaseException:
            client.disconnect()
            raise
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Drop the connection without a word."""
        self.socket.close()

    # ---- bytes and frames ------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send raw bytes as they are."""
        self.socket.sendall(data)

    def send_frame(self, frame: bytes) -> None:
        """Send a frame given without its size."""
        self.send(len(frame).to_bytes(4) + frame)

    def receive_frame(self, timeout_s: float | None = None) -> bytes:
        """Return the next frame, whatever it is, without its size."""
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            if len(self._buffer) >= 4:
                end = 4 + int.from_bytes(self._buffer[:4])
                if len(self._buffer) >= end:
                    frame = bytes(self._buffer[4:end])
                    del self._buffer[:end]
                    return frame
            self._fill(deadline)

    def _fill(self, deadline: float) -> None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("no frame in time")
        self.socket.settimeout(remaining)
        try:
            data = self.socket.recv(READ_BYTES)
        except ConnectionError as error:
            raise PeerGone from error
        finally:
            self.socket.settimeout(self.timeout_s)
        if not data:
            raise PeerGone
        self._buffer += data

    def wait_until_gone(self, timeout_s: float | None = None) -> None:
        """Throw away frames until the server has closed the connection."""
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            self._buffer.clear()
            try:
                self._fill(deadline)
            except PeerGone:
                return

    # ---- messages --------------------------------------------------------------------------

    def send_request(self, name: str, message: m.Message, *, version: int = 1) -> int:
        """Send a command; return its correlation id (0 if the command has none)."""
        if not BY_NAME[name].is_correlated:
            self.send(encode_request(name, message, version=version))
            return 0
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        self.send(encode_request(name, message, correlation_id=correlation_id, version=version))
        return correlation_id

    def request(
        self, name: str, message: m.Message, *, version: int = 1, timeout_s: float | None = None
    ) -> m.Message:
        """Send a command and return its answer; whatever else arrives is kept for `receive`."""
        return self.answer_to(self.send_request(name, message, version=version), timeout_s)

    def ask(self, kind: type[M], name: str, message: m.Message) -> M:
        """Do as `request` does; assert that the answer is of this class."""
        answer = self.request(name, message)
        assert isinstance(answer, kind), answer
        return answer

    def code_of(self, name: str, message: m.Message, *, timeout_s: float | None = None) -> int:
        """Do as `request` does; return the answer's code."""
        code = getattr(self.request(name, message, timeout_s=timeout_s), "code", None)
        assert isinstance(code, int), name
        return code

    def must(self, name: str, message: m.Message) -> None:
        """Do as `request` does; raise Refused unless the answer's code is OK."""
        code = self.code_of(name, message)
        if code != ResponseCode.OK:
            raise Refused(name, code)

    def answer_to(self, correlation_id: int, timeout_s: float | None = None) -> m.Message:
        """Return the answer to a request sent before; whatever else arrives is kept."""
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            decoded = self._decoded(deadline)
            if decoded.is_response and decoded.correlation_id == correlation_id:
                return decoded.message
            self._inbox.append(decoded)

    def receive(self, timeout_s: float | None = None) -> Decoded:
        """Return the next message that was kept, or the next that arrives; never a heartbeat."""
        if self._inbox:
            return self._inbox.popleft()
        return self._decoded(
            time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        )

    def next_of(self, name: str, timeout_s: float | None = None) -> Decoded:
        """Return the next message of one command; the others are kept, in their order."""
        for decoded in self._inbox:
            if decoded.command.name == name:
                self._inbox.remove(decoded)
                return decoded
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            decoded = self._decoded(deadline)
            if decoded.command.name == name:
                return decoded
            self._inbox.append(decoded)

    def is_silent(self, for_s: float) -> bool:
        """Whether nothing but heartbeats arrives for a while (what arrives is kept)."""
        if self._inbox:
            return False
        try:
            self._inbox.append(self._decoded(time.monotonic() + for_s))
        except TimeoutError:
            return True
        return False

    def _decoded(self, deadline: float) -> Decoded:
        while True:
            decoded = decode_reply(self.receive_frame(deadline - time.monotonic()))
            if decoded.command.name == "close" and isinstance(decoded.message, m.Close):
                self.send(encode_reply("close", decoded.correlation_id, m.OK))
                raise ClosedByServer(decoded.message)
            if decoded.command.name != "heartbeat":
                return decoded

    # ---- conversations ---------------------------------------------------------------------

    def handshake(
        self,
        *,
        user: str = "guest",
        password: str = "guest",
        virtual_host: str = "/",
        frame_bytes_max: int | None = None,
        heartbeat_s: int = 0,
    ) -> None:
        """Go from connected to open; the server's frame size is taken unless one is given."""
        self.authenticate(user=user, password=password)
        self.tune_and_open(
            virtual_host=virtual_host, frame_bytes_max=frame_bytes_max, heartbeat_s=heartbeat_s
        )

    def authenticate(self, *, user: str = "guest", password: str = "guest") -> None:
        """Exchange properties, authenticate with PLAIN, await the server's Tune."""
        properties = self.ask(
            m.PeerPropertiesReply, "peer_properties", m.PeerProperties(CLIENT_PROPERTIES)
        )
        self.peer_properties = properties.properties
        offer = self.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake())
        self.mechanisms = offer.mechanisms
        self.must("sasl_authenticate", plain(user, password))
        tune = self.next_of("tune").message
        assert isinstance(tune, m.Tune)
        self.tune = tune

    def tune_and_open(
        self, *, virtual_host: str = "/", frame_bytes_max: int | None = None, heartbeat_s: int = 0
    ) -> None:
        """Answer Tune and enter the virtual host."""
        size = self.tune.frame_bytes_max if frame_bytes_max is None else frame_bytes_max
        self.send_request("tune", m.Tune(size, heartbeat_s))
        opened = self.ask(m.OpenReply, "open", m.Open(virtual_host))
        if opened.code != ResponseCode.OK:
            raise Refused("open", opened.code)
        self.open_properties = opened.properties

    def close(self, code: int = ResponseCode.OK, reason: str = "done") -> None:
        """Close in order: Close, its answer, and the server's FIN."""
        self.must("close", m.Close(code, reason))
        self.wait_until_gone()
        self.disconnect()

    def speak_deliver_2(self) -> None:
        """Announce Deliver version 2; chunks then come with the committed chunk id."""
        key = BY_NAME["deliver"].key
        self.must(
            "exchange_command_versions",
            m.ExchangeCommandVersions((m.CommandVersions(key, 1, 2),)),
        )

    # ---- publishing ------------------------------------------------------------------------

    def create(self, stream: str, arguments: Mapping[str, str] | None = None) -> None:
        """Create a stream; raise Refused if that fails."""
        self.must("create_stream", m.CreateStream(stream, arguments or {}))

    def declare(self, publisher_id: int, stream: str, reference: str = "") -> None:
        """Declare a publisher; raise Refused if that fails."""
        self.must("declare_publisher", m.DeclarePublisher(publisher_id, reference, stream))

    def publish(
        self, publisher_id: int, entries: Mapping[int, Entry] | Iterable[tuple[int, Entry]]
    ) -> None:
        """Send one Publish v1 frame of (publishing id, body or `tests.chunks.SubBatch`)."""
        pairs = list(entries.items() if isinstance(entries, Mapping) else entries)
        self.send_request("publish", m.KernelBody(publish_body(publisher_id, pairs)))

    def publish_filtered(
        self, publisher_id: int, entries: Iterable[tuple[int, str | None, bytes]]
    ) -> None:
        """Send one Publish v2 frame of (publishing id, filter value or None, body)."""
        body = filtered_body(publisher_id, list(entries))
        self.send_request("publish", m.KernelBody(body), version=2)

    def confirmed(self, timeout_s: float | None = None) -> tuple[int, tuple[int, ...]]:
        """Return publisher id and publishing ids of the next PublishConfirm."""
        confirm = self.next_of("publish_confirm", timeout_s).message
        assert isinstance(confirm, m.PublishConfirm)
        return confirm.publisher_id, confirm.publishing_ids

    def confirmed_ids(self, count: int, timeout_s: float | None = None) -> list[int]:
        """Gather PublishConfirms until they hold `count` publishing ids or more; return these."""
        ids: list[int] = []
        while len(ids) < count:
            ids += self.confirmed(timeout_s)[1]
        return ids

    def publish_refused(self, timeout_s: float | None = None) -> m.PublishError:
        """Return the next PublishError."""
        error = self.next_of("publish_error", timeout_s).message
        assert isinstance(error, m.PublishError)
        return error

    # ---- reading ---------------------------------------------------------------------------

    def subscribe(
        self,
        subscription_id: int,
        stream: str,
        offset: OffsetSpec = NEXT,
        *,
        credit: int = 10,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Subscribe; raise Refused if that fails. Deliveries that overtake the answer are kept."""
        self.must(
            "subscribe", m.Subscribe(subscription_id, stream, offset, credit, properties or {})
        )

    def credit(self, subscription_id: int, credit: int) -> None:
        """Add chunks of credit; only a refusal is answered (`next_of("credit")`)."""
        self.send_request("credit", m.Credit(subscription_id, credit))

    def delivery(self, timeout_s: float | None = None) -> Delivery:
        """Return the next Deliver, taken apart and checked."""
        return delivery_of(self.next_of("deliver", timeout_s))

    def records(
        self, count: int, *, subscription_id: int, timeout_s: float | None = None
    ) -> list[tuple[int, bytes]]:
        """Gather (offset, body) until there are `count` or more, one credit back for each chunk."""
        found: list[tuple[int, bytes]] = []
        while len(found) < count:
            delivery = self.delivery(timeout_s)
            assert delivery.subscription_id == subscription_id
            self.credit(subscription_id, 1)
            chunk = delivery.chunk
            found += enumerate(chunk.records(), start=chunk.chunk_id)
        return found

    def answer_consumer_update(self, offset: OffsetSpec = NONE) -> m.ConsumerUpdate:
        """Await a ConsumerUpdate, answer it, return it."""
        decoded = self.next_of("consumer_update")
        assert isinstance(decoded.message, m.ConsumerUpdate)
        answer = m.ConsumerUpdateReply(ResponseCode.OK, offset)
        self.send(encode_reply("consumer_update", decoded.correlation_id, answer))
        return decoded.message


def plain(user: str, password: str) -> m.SaslAuthenticate:
    """Build the request that logs in with PLAIN."""
    return m.SaslAuthenticate("PLAIN", f"\0{user}\0{password}".encode())

"""The product's client with what only tests need: any bytes, commands by hand, frames as they are.

It sends no heartbeats, and speaks to Hutch and to a real RabbitMQ alike. What the kernel reads in
the server (Publish, Deliver) is built and taken apart in `tests/chunks.py`, on its own.

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
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from hutch.client.connection import Connection
from hutch.client.errors import ClosedByServer, ConnectionLost, Refused, ServerSilent
from hutch.client.login import Endpoint, Login
from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import BY_NAME
from hutch.stream.offsets import NONE, OffsetSpec
from tests.chunks import Delivery, Entry, delivery_of, filtered_body, publish_body
from tests.waiting import HANG_S

__all__ = ["CLIENT_PROPERTIES", "Client", "ClosedByServer", "PeerGone", "Refused", "plain"]

CLIENT_PROPERTIES = {"product": "hutch tests", "connection_name": "tests"}

PeerGone = ConnectionLost
"""The server has closed the connection without a Close: FIN or RST, at or inside a frame."""


class Client(Connection):
    """One connection; all waiting is bounded by `timeout_s`, after which TimeoutError is raised."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float = HANG_S,
        receive_buffer_bytes: int | None = None,
        family: socket.AddressFamily = socket.AF_INET,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Connect and say nothing yet; errors are those of the socket."""
        connected = socket.socket(family, socket.SOCK_STREAM)
        try:
            if receive_buffer_bytes is not None:  # only before the connection is made
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            connected.settimeout(timeout_s)
            connected.connect((host, port))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                connected = tls.wrap_socket(connected, server_hostname="localhost")
        except BaseException:
            connected.close()
            raise
        super().__init__(Endpoint(host, port), connected, timeout_s)

    @classmethod
    def opened(
        cls,
        host: str,
        port: int,
        *,
        user: str = "guest",
        password: str = "guest",
        virtual_host: str = "/",
        timeout_s: float = HANG_S,
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

    # ---- bytes and frames ------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send raw bytes as they are."""
        self.send_bytes(data)

    def send_frame(self, frame: bytes) -> None:
        """Send a frame given without its size."""
        self.send(len(frame).to_bytes(4) + frame)

    def receive_frame(self, timeout_s: float | None = None) -> bytes:
        """Return the next frame, whatever it is, without its size."""
        return bytes(self.any_frame(self._deadline(timeout_s)))

    def wait_until_gone(self, timeout_s: float | None = None) -> None:
        """Throw away frames until the server has closed the connection."""
        deadline = self._deadline(timeout_s)
        while True:
            try:
                self.any_frame(deadline)
            except PeerGone:
                return

    def beat(self) -> None:
        """Do nothing: a test sees what a client without heartbeats sees."""

    def _deadline(self, timeout_s: float | None) -> float:
        return time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)

    # ---- messages --------------------------------------------------------------------------

    def code_of(self, name: str, message: m.Message, *, timeout_s: float | None = None) -> int:
        """Do as `request` does; return the answer's code."""
        code = getattr(self.request(name, message, timeout_s=timeout_s), "code", None)
        assert isinstance(code, int), name
        return code

    def must(self, name: str, message: m.Message, about: str = "") -> None:
        """Do as `request` does; raise Refused unless the answer's code is OK."""
        code = self.code_of(name, message)
        if code != ResponseCode.OK:
            raise Refused(about or name, code)

    def answer_to(self, correlation_id: int, timeout_s: float | None = None) -> m.Message:
        """Return the answer to a command that was sent; what else arrives is kept for `receive`."""
        return self._answers([correlation_id], timeout_s)[correlation_id]

    def _answers(self, ids: Sequence[int], timeout_s: float | None = None) -> dict[int, m.Message]:
        """Await answers in any order; others are kept until they are asked for."""
        deadline = self._deadline(timeout_s)
        return {each: self._answer_to(each.to_bytes(4), deadline) for each in ids}

    def _answer_to(self, correlation_id: bytes, deadline: float) -> m.Message:
        def is_it(frame: bytes | memoryview) -> bool:
            return bool(frame[0] & 0x80) and frame[4:8] == correlation_id

        kept = self.inbox.take_first(is_it)
        while kept is None:
            frame = self.frame(deadline)
            if is_it(frame):
                kept = bytes(frame)
            else:
                self.keep(frame, "instead of an answer")
        return self.decode(kept).message

    def receive(self, timeout_s: float | None = None) -> Decoded:
        """Return the next message that was kept, or the next that arrives; never a heartbeat."""
        if self.inbox:
            return self.decode(self.inbox.take())
        return self.decode(self.frame(self._deadline(timeout_s)))

    def is_subscribed(self, deliver: memoryview | bytes) -> bool:
        """Let every Deliver come through, also one that ought not to be."""
        del deliver
        return True

    def is_silent(self, for_s: float) -> bool:
        """Whether nothing but heartbeats arrives for a while (what arrives is kept)."""
        if self.inbox:
            return False
        try:
            self.keep(self.frame(self._deadline(for_s)), "in silence")
        except ServerSilent:
            return True
        return False

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
        self.authenticate(Login(user, password, properties=CLIENT_PROPERTIES))
        self.tune_and_open(virtual_host, frame_bytes_max=frame_bytes_max, heartbeat_s=heartbeat_s)

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
        self.answer_update(decoded, offset)
        return decoded.message


def plain(user: str, password: str) -> m.SaslAuthenticate:
    """Build the request that logs in with PLAIN."""
    return m.SaslAuthenticate("PLAIN", Login(user, password).secret)

"""One connection: logging in, requests with their answers, and what the server pushes.

It knows what each command says and nothing of what a program does with it: publishers and
subscriptions have the ids that its user gives them.
"""

import platform
import socket
import ssl
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple, Self, TypeVar

from ..stream.wire import messages as m
from ..stream.wire.codec import Decoded, encode_reply, encode_request
from ..stream.wire.codes import ResponseCode
from ..stream.wire.commands import BY_NAME
from ..stream.wire.offsets import NEXT, NONE, OffsetSpec
from .channel import Channel
from .errors import BadAnswer, ClientError, Refused, in_words, refusal
from .login import Endpoint, Login, connect

PIPELINED_MAX: Final = 128
"""Requests under way at once. More would only fill buffers."""

IDS: Final = 256
"""Publishers, and subscriptions, that a connection may have: their ids have 8 bits."""

_DELIVER: Final = BY_NAME["deliver"].key.to_bytes(2, "big")
_CONFIRM: Final = BY_NAME["publish_confirm"].key.to_bytes(2, "big")
_BODY: Final = 4
"""Position of the first field in a frame without a correlation id."""

_CONFIRM_IDS: Final = _BODY + 5
"""Position of the first id of a PublishConfirm, behind publisher and count."""

_PUBLISH: Final = struct.Struct(">BI")
_ENTRY: Final = struct.Struct(">QI")

M = TypeVar("M", bound=m.Message)


class Delivery(NamedTuple):
    """A Deliver frame.

    Attributes:
        subscription_id: As given at Subscribe.
        chunk: Header and data of a chunk; valid until the connection is used again.
    """

    subscription_id: int
    chunk: memoryview


class Confirmed(NamedTuple):
    """A PublishConfirm frame: how many of a publisher's entries are stored now."""

    publisher_id: int
    entries: int


class Connection(Channel):
    """A connection to one server; `opened` makes one and logs in.

    Attributes:
        product: The name that the server gives itself.
        tuned: The limits that the server has proposed.
        subscribed: Ids of the subscriptions that are under way.
    """

    def __init__(self, endpoint: Endpoint, connected: socket.socket, timeout_s: float) -> None:
        super().__init__(endpoint, connected, timeout_s)
        self.product = ""
        self.tuned = m.Tune(0, 0)
        self.subscribed: Final[set[int]] = set()
        self._next_id = 1
        self._last_subscription_id = 0

    @classmethod
    def opened(
        cls,
        endpoint: Endpoint,
        login: Login,
        *,
        timeout_s: float,
        connect_timeout_s: float | None = None,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> Self:
        """Connect and log in.

        Args:
            endpoint: Where to.
            login: User and virtual host.
            timeout_s: The longest wait for an answer.
            connect_timeout_s: The longest wait for the connection, if not the same.
            tls: None for plain TCP.
            server_name: The name that the server's certificate is to have, if not the host's.

        Raises:
            ClientError: In one line, why not.
        """
        patience_s = timeout_s if connect_timeout_s is None else connect_timeout_s
        connected = connect(endpoint, patience_s, tls=tls, server_name=server_name)
        connection = cls(endpoint, connected, timeout_s)
        try:
            connection.log_in(login)
        except BaseException:
            connection.disconnect()
            raise
        return connection

    def close(self) -> None:
        """Say goodbye if that is still possible, and disconnect."""
        try:
            if not self.is_broken:
                self.request("close", m.Close(ResponseCode.OK, "done"))
        except ClientError:
            pass  # the other side may have gone first
        finally:
            self.disconnect()

    # ---- the handshake -------------------------------------------------------------------------

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame that the server takes, without its size; 0: any."""
        return self.tuned.frame_bytes_max

    def log_in(self, login: Login) -> None:
        """Go through all steps from a connected socket to an open virtual host.

        Raises:
            Refused: User, password or virtual host are wrong; the text says which.
        """
        said = self.ask(
            m.PeerPropertiesReply, "peer_properties", m.PeerProperties(_properties(login))
        )
        self.product = said.properties.get("product", "")
        offer = self.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake()).mechanisms
        if login.mechanism not in offer:
            raise BadAnswer(f"{self.endpoint} offers no {login.mechanism}, only {offer!r:.200}")
        proof = m.SaslAuthenticate(login.mechanism, login.secret)
        code = self.ask(m.SaslAuthenticateReply, "sasl_authenticate", proof).code
        if code != ResponseCode.OK:
            raise Refused(f"{self.endpoint} refused user {login.user!r}: {in_words(code)}", code)
        self._tune(login.heartbeat_s)
        code = self.ask(m.OpenReply, "open", m.Open(login.virtual_host)).code
        if code != ResponseCode.OK:
            host = f"virtual host {login.virtual_host!r}"
            raise Refused(f"{self.endpoint}: {host} {in_words(code)}", code)

    def _tune(self, heartbeat_s: int) -> None:
        """Take the server's limits, and the shorter one of two heartbeats."""
        proposed = self.next_of("tune").message
        assert isinstance(proposed, m.Tune)
        self.tuned = proposed
        wishes = [wish for wish in (heartbeat_s, proposed.heartbeat_s) if wish]
        self.heartbeat_s = min(wishes, default=0)
        self.send("tune", m.Tune(proposed.frame_bytes_max, self.heartbeat_s))

    # ---- requests ------------------------------------------------------------------------------

    def request(
        self, name: str, message: m.Message, *, version: int = 1, timeout_s: float | None = None
    ) -> m.Message:
        """Send a request and return its answer.

        Args:
            name: Of the command.
            message: Of the class that the command has in this version.
            version: Of the command.
            timeout_s: The longest wait, if not that of the connection.

        Raises:
            ClientError: The connection is of no further use then.
        """
        correlation_id = self.send_request(name, message, version=version)
        return self._answers([correlation_id], timeout_s)[correlation_id]

    def ask(self, kind: type[M], name: str, message: m.Message) -> M:
        """Send a request and return its answer, which is of this class; raises BadAnswer if not."""
        answer = self.request(name, message)
        if not isinstance(answer, kind):
            raise BadAnswer(f"{self.endpoint} answered {name} with {answer}")
        return answer

    def must(self, name: str, message: m.Message, about: str) -> None:
        """Send a request; raise Refused, telling `about` what, unless the answer is OK."""
        code = int(getattr(self.request(name, message), "code", 0))
        if code != ResponseCode.OK:
            raise refusal(f"{self.endpoint}: {about}", code)

    def send_request(self, name: str, message: m.Message, *, version: int = 1) -> int:
        """Send a command; return its correlation id (0 if the command has none)."""
        correlation_id = self._new_id() if BY_NAME[name].is_correlated else None
        self.send_bytes(
            encode_request(name, message, correlation_id=correlation_id, version=version)
        )
        return correlation_id or 0

    def requests(self, wanted: Sequence[tuple[str, m.Message]]) -> Iterator[m.Message]:
        """Send requests, many before the first answer, and yield the answers in their order.

        Raises:
            ClientError: The connection is of no further use then.
        """
        for first in range(0, len(wanted), PIPELINED_MAX):
            batch = [(self._new_id(), *one) for one in wanted[first : first + PIPELINED_MAX]]
            frames = (encode_request(name, asked, correlation_id=n) for n, name, asked in batch)
            self.send_bytes(b"".join(frames))
            answers = self._answers([n for n, _, _ in batch])
            for correlation_id, _, _ in batch:
                yield answers[correlation_id]

    def _new_id(self) -> int:
        found = self._next_id
        self._next_id = found % 0x7FFFFFFF + 1
        return found

    def _answers(self, ids: Sequence[int], timeout_s: float | None = None) -> dict[int, m.Message]:
        """Await the answers to requests that are under way."""
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        awaited = set(ids)
        answers: dict[int, m.Message] = {}
        while awaited:
            correlation_id, message = self._answer(deadline)
            if correlation_id not in awaited:
                self.is_broken = True
                raise BadAnswer(f"{self.endpoint} answered what was not asked: {message}")
            awaited.remove(correlation_id)
            answers[correlation_id] = message
        return answers

    def _answer(self, deadline: float) -> tuple[int, m.Message]:
        """Return the next answer and what it is to; what the server pushes meanwhile is kept."""
        while True:
            frame = self.frame(deadline)
            if frame[:2] != _DELIVER:
                decoded = self.decode(frame)
                if decoded.is_response and decoded.correlation_id is not None:
                    return decoded.correlation_id, decoded.message
            elif not self.is_subscribed(frame):
                continue
            self.keep(frame, "instead of an answer")

    # ---- what the server pushes ----------------------------------------------------------------

    def pushed(self, deadline: float) -> Delivery | Confirmed | m.Message:
        """Return the next chunk, or whatever else the server pushes.

        A member of a group that is made the active one starts where its subscription says.

        Args:
            deadline: A moment of `time.monotonic()`.

        Raises:
            ServerSilent: Nothing came until then; the connection may be used further.
            ClientError: The connection is of no further use.
        """
        while True:
            frame: memoryview | bytes = self.inbox.take() if self.inbox else self.frame(deadline)
            if frame[:2] == _CONFIRM and len(frame) >= _CONFIRM_IDS:
                return self._confirmed(frame)
            if frame[:2] != _DELIVER:
                decoded = self.decode(frame)
                if decoded.command.name == "consumer_update":
                    self.answer_consumer_update(decoded)
                return decoded.message
            if self.is_subscribed(frame):
                return Delivery(frame[_BODY], memoryview(frame)[_BODY + 1 :])

    def is_subscribed(self, deliver: memoryview | bytes) -> bool:
        """Tell whether a Deliver belongs to a subscription that is under way."""
        return len(deliver) > _BODY and deliver[_BODY] in self.subscribed

    def next_of(self, name: str, timeout_s: float | None = None) -> Decoded:
        """Return the next thing of one kind that the server pushes; the others are kept.

        Raises:
            ServerSilent: None came in time.
            ClientError: The connection is of no further use.
        """
        key = BY_NAME[name].key.to_bytes(2, "big")
        kept = self.inbox.take_of(key)
        if kept is not None:
            return self.decode(kept)
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            frame = self.frame(deadline)
            if frame[:2] == key:
                return self.decode(frame)
            self.keep(frame, f"instead of {name}")

    def _confirmed(self, frame: memoryview | bytes) -> Confirmed:
        entries = int.from_bytes(frame[_CONFIRM_IDS - 4 : _CONFIRM_IDS], "big")
        if len(frame) != _CONFIRM_IDS + 8 * entries:
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} sent a confirm of {entries} ids that has others")
        return Confirmed(frame[_BODY], entries)

    # ---- publishing and reading ----------------------------------------------------------------

    def declare(self, publisher_id: int, stream: str, reference: str = "") -> None:
        """Declare a publisher; raises Refused."""
        request = m.DeclarePublisher(publisher_id, reference, stream)
        self.must("declare_publisher", request, f"stream {stream!r}")

    def publish(self, publisher_id: int, entries: Iterable[tuple[int, bytes]]) -> None:
        """Send one Publish frame of publishing ids with their records."""
        count, parts = 0, [b""]
        for publishing_id, record in entries:
            count += 1
            parts += (_ENTRY.pack(publishing_id, len(record)), record)
        parts[0] = _PUBLISH.pack(publisher_id, count)
        self.send_much(encode_request("publish", m.KernelBody(b"".join(parts))))

    def subscribe(
        self,
        subscription_id: int,
        stream: str,
        offset: OffsetSpec = NEXT,
        *,
        credit: int = 10,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Subscribe with credit for so many chunks; raises Refused."""
        self.subscribed.add(subscription_id)
        request = m.Subscribe(subscription_id, stream, offset, credit, properties or {})
        try:
            self.must("subscribe", request, f"stream {stream!r}")
        except ClientError:
            self.subscribed.discard(subscription_id)
            raise

    def unsubscribe(self, subscription_id: int) -> None:
        """End a subscription; what comes late of it is dropped."""
        self.subscribed.discard(subscription_id)
        self.inbox.drop(lambda frame: frame[:2] == _DELIVER and not self.is_subscribed(frame))
        self.request("unsubscribe", m.Unsubscribe(subscription_id))

    def new_subscription_id(self) -> int:
        """Return an id that no subscription has, and that none had of late."""
        while True:
            self._last_subscription_id = (self._last_subscription_id + 1) % IDS
            if self._last_subscription_id not in self.subscribed:
                return self._last_subscription_id

    def credit(self, subscription_id: int, credit: int) -> None:
        """Add chunks of credit; only a refusal is answered."""
        self.send("credit", m.Credit(subscription_id, credit))

    def answer_consumer_update(self, asked: Decoded, offset: OffsetSpec = NONE) -> None:
        """Answer the news that a member of a group is active, or no longer, with its start."""
        answer = m.ConsumerUpdateReply(ResponseCode.OK, offset)
        self.send_bytes(encode_reply("consumer_update", asked.correlation_id, answer))


def _properties(login: Login) -> dict[str, str]:
    try:
        ours = version("hutch-streams")
    except PackageNotFoundError:  # from an archive of sources
        ours = "unknown"
    shown = {"product": "hutch client", "connection_name": "hutch client"}
    return (
        shown
        | dict(login.properties)
        | {"version": ours, "platform": f"Python {platform.python_version()}"}
    )

"""One connection: logging in, the commands, and the frames that the server pushes.

It keeps no state for a program: the caller chooses the ids of publishers and subscriptions.
"""

import socket
import ssl
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Self

from hutch.client.conversation import BODY, DELIVER, Conversation
from hutch.client.errors import BadAnswer, ClientError, Refused, ServerBusy, in_words
from hutch.client.login import Endpoint, Login, connect
from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream.codec import Decoded, encode_reply, encode_request
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import BY_NAME
from hutch.stream.offsets import NEXT, NONE, OffsetSpec

IDS: Final = 256
"""Publishers, and subscriptions, that a connection may have: their ids have 8 bits."""

_CONFIRM: Final = BY_NAME["publish_confirm"].key.to_bytes(2, "big")
_CONFIRM_IDS: Final = BODY + 5
"""Position of the first id of a PublishConfirm, behind publisher and count."""

_PUBLISH: Final = struct.Struct(">BI")
_ENTRY: Final = struct.Struct(">QI")


class DeliveredChunk(NamedTuple):
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


class Connection(Conversation):
    """A connection to one server; `to` makes one and logs in.

    Attributes:
        peer_properties: The server's description of itself.
        mechanisms: Its SASL mechanisms.
        tuned: The limits that it has proposed.
        open_properties: Where it can be reached.
        updated: Answers the news that a member of a group is the active one, or no longer; by
            default it starts where its subscription says.
    """

    updated: Callable[[Decoded], None] | None = None

    def __init__(self, endpoint: Endpoint, connected: socket.socket, timeout_s: float) -> None:
        super().__init__(endpoint, connected, timeout_s)
        self.peer_properties: Mapping[str, str] = {}
        self.mechanisms: tuple[str, ...] = ()
        self.open_properties: Mapping[str, str] = {}
        self.tuned = m.Tune(0, 0)
        self._last_subscription_id = 0

    @classmethod
    def to(
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
            connect_timeout_s: The longest wait for the connection, if not `timeout_s`.
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

    @property
    def has_pipeline(self) -> bool:
        """True if the login asked for the commands of pipelines, and the server serves them."""
        return self.table is pipeline.TABLE

    # ---- the handshake -------------------------------------------------------------------------

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame that the server takes, without its size; 0: any."""
        return self.tuned.frame_bytes_max

    def log_in(self, login: Login) -> None:
        """Go through all steps from a connected socket to an open virtual host.

        Raises:
            ServerBusy: The server did not compare the password; another try may help.
            Refused: User, password or virtual host are wrong; the text says which.
        """
        self.authenticate(login)
        heartbeat_s = min(login.heartbeat_s, self.tuned.heartbeat_s or login.heartbeat_s)
        self.tune_and_open(login.virtual_host, heartbeat_s=heartbeat_s)

    def authenticate(self, login: Login) -> None:
        """Exchange properties, authenticate the user, and await the server's limits."""
        asked = pipeline.PROPERTIES if login.asks_for_pipeline else {}
        shown = m.PeerProperties({**login.properties, **asked})
        said = self.ask(m.PeerPropertiesReply, "peer_properties", shown)
        self.peer_properties = said.properties
        if asked:
            self.table = pipeline.table_of(said.properties)
        offer = self.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake()).mechanisms
        if login.mechanism not in offer:
            raise BadAnswer(f"{self.endpoint} offers no {login.mechanism}, only {offer!r:.200}")
        self.mechanisms = offer
        proof = m.SaslAuthenticate(login.mechanism, login.secret)
        code = self.ask(m.SaslAuthenticateReply, "sasl_authenticate", proof).code
        if code == ResponseCode.STREAM_NOT_AVAILABLE:
            what = f"did not compare the password of user {login.user!r}"
            raise ServerBusy(f"{self.endpoint} is busy, and {what}")
        if code != ResponseCode.OK:
            raise Refused(f"{self.endpoint} refused user {login.user!r}: {in_words(code)}", code)
        proposed = self.next_of("tune").message
        assert isinstance(proposed, m.Tune)
        self.tuned = proposed

    def tune_and_open(
        self, virtual_host: str = "/", *, heartbeat_s: int = 0, frame_bytes_max: int | None = None
    ) -> None:
        """Agree on limits, by default on the server's frame size, and enter a virtual host."""
        size = self.tuned.frame_bytes_max if frame_bytes_max is None else frame_bytes_max
        self.heartbeat_s = heartbeat_s
        self.send_request("tune", m.Tune(size, heartbeat_s))
        reply = self.ask(m.OpenReply, "open", m.Open(virtual_host))
        if reply.code != ResponseCode.OK:
            refused = f"virtual host {virtual_host!r} {in_words(reply.code)}"
            raise Refused(f"{self.endpoint}: {refused}", reply.code)
        self.open_properties = reply.properties

    # ---- what the server pushes ----------------------------------------------------------------

    def pushed(self, deadline: float) -> DeliveredChunk | Confirmed | m.Message:
        """Return the next chunk, or whatever else the server pushes.

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
            if frame[:2] != DELIVER:
                decoded = self.decode(frame)
                if decoded.command.name == "consumer_update":
                    (self.updated or self.answer_update)(decoded)
                return decoded.message
            if self.is_subscribed(frame):
                return DeliveredChunk(frame[BODY], memoryview(frame)[BODY + 1 :])

    def _confirmed(self, frame: memoryview | bytes) -> Confirmed:
        entries = int.from_bytes(frame[_CONFIRM_IDS - 4 : _CONFIRM_IDS], "big")
        if len(frame) != _CONFIRM_IDS + 8 * entries:
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} sent a confirm of {entries} ids that has others")
        return Confirmed(frame[BODY], entries)

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
        """Subscribe with credit for a number of chunks; raises Refused."""
        self.subscribed.add(subscription_id)
        request = m.Subscribe(subscription_id, stream, offset, credit, properties or {})
        try:
            self.must("subscribe", request, f"stream {stream!r}")
        except ClientError:
            self.subscribed.discard(subscription_id)
            raise

    def unsubscribe(self, subscription_id: int) -> None:
        """End a subscription; its chunks that come late are dropped."""
        self.subscribed.discard(subscription_id)
        self.inbox.drop(lambda frame: frame[:2] == DELIVER and not self.is_subscribed(frame))
        self.request("unsubscribe", m.Unsubscribe(subscription_id))

    def new_subscription_id(self) -> int:
        """Return an id that no subscription has, and that none had of late.

        Raises ClientError: All are in use.
        """
        for _ in range(IDS):
            self._last_subscription_id = (self._last_subscription_id + 1) % IDS
            if self._last_subscription_id not in self.subscribed:
                return self._last_subscription_id
        raise ClientError(f"a connection has at most {IDS} subscriptions")

    def credit(self, subscription_id: int, credit: int) -> None:
        """Add chunks of credit; only a refusal is answered."""
        self.send_request("credit", m.Credit(subscription_id, credit))

    def answer_update(self, asked: Decoded, offset: OffsetSpec = NONE) -> None:
        """Answer the news that a member of a group is active, or no longer, with its start."""
        answer = m.ConsumerUpdateReply(ResponseCode.OK, offset)
        self.send_bytes(encode_reply("consumer_update", asked.correlation_id, answer))

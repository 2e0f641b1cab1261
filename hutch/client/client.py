"""A client for programs: streams, publishers, subscriptions and stored offsets by name."""

import ssl
from collections.abc import Iterable, Mapping
from typing import Final, Self

from hutch.client.connection import IDS, Confirmed, Connection, DeliveredChunk
from hutch.client.errors import BadAnswer, ClientError, require_ok
from hutch.client.login import PORT, Endpoint, Login, ServerUrl
from hutch.client.publisher import Publisher
from hutch.client.subscription import Subscription
from hutch.formats.sub_batches import Decompress
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import NEXT, OffsetSpec, OffsetType

TIMEOUT_S: Final = 10.0
CREDIT: Final = 10
"""Chunks under way: enough that the server never waits for the next credit."""


class Client:
    """One connection to one server, for one thread; every wait has the time limit `timeout_s`.

    Heartbeats are sent while something is awaited. A program that leaves the client alone for
    minutes calls `connection.beat()` now and then, or logs in with a heartbeat of 0.

    Attributes:
        connection: For commands that have no method here: `client.connection.request(...)`.
        codecs: Functions that open sub-batches, by number (2 snappy, 3 lz4, 4 zstd), beside gzip.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = PORT,
        *,
        login: Login | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Connect and log in.

        Args:
            host: Name or address of the server.
            port: Its port.
            login: User, password, virtual host; by default guest in `/`.
            tls: None for plain TCP.
            timeout_s: The longest wait for the connection, for an answer and for a pushed frame.

        Raises:
            ServerGone: The server is not there.
            Refused: User, password or virtual host are wrong; the text says which.
            ClientError: In one line, why not.
        """
        endpoint = Endpoint(host, port)
        self.connection: Final = Connection.to(
            endpoint, login or Login(), timeout_s=timeout_s, tls=tls
        )
        self.codecs: Final[dict[int, Decompress]] = {}
        self._publishers: dict[int, Publisher] = {}
        self._by_stream: dict[str, Publisher] = {}
        self._subscriptions: dict[int, Subscription] = {}

    @classmethod
    def connect(
        cls, url: str, *, tls: ssl.SSLContext | None = None, timeout_s: float = TIMEOUT_S
    ) -> Self:
        """Connect and log in as a URL says: `rabbitmq-stream://user:password@host:port/vhost`.

        Args:
            url: With `rabbitmq-stream+tls` in front it is TLS. Missing parts have their defaults.
            tls: The context of TLS; by default one that trusts the authorities of the machine.
            timeout_s: As above; and so are the errors.
        """
        address = ServerUrl.of(url)
        if address.is_tls and tls is None:
            tls = ssl.create_default_context()
        host, port = address.endpoint.host, address.endpoint.port
        return cls(host, port, login=address.login, tls=tls, timeout_s=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection in order; unconfirmed records may be stored or not."""
        self.connection.close()

    # ---- streams -------------------------------------------------------------------------------

    def create_stream(self, stream: str, arguments: Mapping[str, str] | None = None) -> None:
        """Create a stream, with arguments such as `max-age`; raises Refused."""
        self._must("create_stream", m.CreateStream(stream, arguments or {}), stream)

    def delete_stream(self, stream: str) -> None:
        """Delete a stream; raises Refused."""
        self._must("delete_stream", m.DeleteStream(stream), stream)

    def metadata(self, *streams: str) -> m.MetadataReply:
        """Ask where streams live; each has a code of its own."""
        return self.connection.ask(m.MetadataReply, "metadata", m.Metadata(streams))

    def statistics(self, stream: str) -> Mapping[str, int]:
        """Return a stream's numbers, such as `committed_offset`; raises Refused."""
        reply = self.connection.ask(m.StreamStatsReply, "stream_stats", m.StreamStats(stream))
        require_ok(f"stream {stream!r}", reply.code)
        return reply.statistics

    # ---- publishing ----------------------------------------------------------------------------

    def publish(self, stream: str, records: Iterable[bytes]) -> None:
        """Publish records to a stream, and return when all are stored.

        Raises:
            Refused: The stream does not exist, or a record is refused.
            ServerSilent: Nothing was confirmed in time.
        """
        self._settle()
        publisher = self._by_stream.get(stream)
        if publisher is None or not publisher.is_open:
            publisher = self._by_stream[stream] = self.publisher(stream)
        publisher.send(records)
        publisher.flush()

    def publisher(self, stream: str, reference: str = "") -> Publisher:
        """Declare a publisher.

        Args:
            stream: The target.
            reference: A name under which the server remembers the last publishing id, and leaves
                out records that it has; ids go on behind that one. Empty: no deduplication.

        Raises:
            Refused: The stream does not exist, or the user may not write to it.
        """
        self._settle()
        used = {number for number, one in self._publishers.items() if one.is_open}
        publisher_id = next((number for number in range(IDS) if number not in used), None)
        if publisher_id is None:
            raise ClientError(f"a connection has at most {IDS} publishers")
        self.connection.declare(publisher_id, stream, reference)
        following = self._last_id(stream, reference) + 1 if reference else 1
        publisher = Publisher(self.connection, self._take, publisher_id, stream, following)
        self._publishers[publisher_id] = publisher
        return publisher

    def _last_id(self, stream: str, reference: str) -> int:
        request = m.QueryPublisherSequence(reference, stream)
        reply = self.connection.ask(m.PublisherSequence, "query_publisher_sequence", request)
        require_ok(f"stream {stream!r}", reply.code)
        return reply.sequence

    # ---- reading -------------------------------------------------------------------------------

    def subscribe(
        self,
        stream: str,
        offset: OffsetSpec = NEXT,
        *,
        credit: int = CREDIT,
        properties: Mapping[str, str] | None = None,
    ) -> Subscription:
        """Subscribe to a stream.

        Args:
            stream: The stream.
            offset: The start: `FIRST`, `LAST`, `NEXT`, `at_offset(n)` or `at_timestamp(ms)`.
                LAST and a time begin with the chunk that has the place.
            credit: Chunks under way.
            properties: Of the subscription: `name`, `single-active-consumer`, filters.

        Raises:
            Refused: The stream does not exist, or the user may not read it.
        """
        self._settle()
        subscription = Subscription(
            self.connection,
            self._take,
            stream,
            first=offset.value if offset.type is OffsetType.OFFSET else 0,
            codecs=self.codecs,
        )
        number = subscription.subscription_id
        self._subscriptions[number] = subscription
        self.connection.subscribe(number, stream, offset, credit=credit, properties=properties)
        return subscription

    def store_offset(self, reference: str, stream: str, offset: int) -> None:
        """Store an offset under a name; the server does not answer."""
        self.connection.send_request("store_offset", m.StoreOffset(reference, stream, offset))

    def query_offset(self, reference: str, stream: str) -> int | None:
        """Return the offset stored under a name; None if there is none. Raises Refused."""
        request = m.QueryOffset(reference, stream)
        reply = self.connection.ask(m.StoredOffset, "query_offset", request)
        if reply.code == ResponseCode.NO_OFFSET:
            return None
        require_ok(f"stream {stream!r}", reply.code)
        return reply.offset

    # ---- what the server pushes ----------------------------------------------------------------

    def _settle(self) -> None:
        """Take in the kept frames, so news of a deleted stream cannot reach its successor."""
        while self.connection.inbox:
            self._take(0.0)

    def _take(self, deadline: float) -> None:
        """Take in the next thing that the server pushes; raises ServerSilent at the deadline."""
        pushed = self.connection.pushed(deadline)
        if isinstance(pushed, DeliveredChunk):
            self._subscriptions[pushed.subscription_id].deliver(bytes(pushed.chunk))
        elif isinstance(pushed, Confirmed):
            self._publisher(pushed.publisher_id).confirmed(pushed.entries)
        elif isinstance(pushed, m.PublishError):
            self._publisher(pushed.publisher_id).refused(pushed.errors)
        elif isinstance(pushed, m.CreditRefused) and pushed.subscription_id in self._subscriptions:
            self._subscriptions[pushed.subscription_id].end(pushed.code)
        elif isinstance(pushed, m.MetadataUpdate):
            self._end(pushed)

    def _publisher(self, publisher_id: int) -> Publisher:
        if publisher_id not in self._publishers:
            server = self.connection.endpoint
            raise BadAnswer(f"{server} confirmed records of a publisher that is not there")
        return self._publishers[publisher_id]

    def _end(self, update: m.MetadataUpdate) -> None:
        users: list[Publisher | Subscription] = [*self._publishers.values()]
        for user in (*users, *self._subscriptions.values()):
            if user.stream == update.stream:
                user.end(update.code)

    def _must(self, name: str, message: m.Message, stream: str) -> None:
        self.connection.must(name, message, f"stream {stream!r}")

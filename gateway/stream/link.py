"""One connection as its handlers see it: session, what it declared, and what it may ask for.

A link does no I/O: it hands whole frames to its ports and gets frames from them.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gateway.broker.errors import StreamDoesNotExist
from gateway.broker.streams import Stream, Streams
from gateway.broker.users import Users
from gateway.broker.virtual_host import VirtualHost
from gateway.pending import Pending
from gateway.stream.consuming import Subscription
from gateway.stream.publishing import Publisher
from gateway.stream.refusals import Refusal
from gateway.stream.session.session import Session
from gateway.stream.wire import codec
from gateway.stream.wire import messages as m
from gateway.stream.wire.codes import ResponseCode
from gateway.stream.wire.commands import Permission

IDS_MAX: Final = 256
"""Publishers and subscriptions of one connection: their ids are one byte."""


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """What handlers need to know of the settings; times in milliseconds, sizes in bytes."""

    frame_bytes_max: int
    refusal_delay_ms: int
    sub_batch_uncompressed_bytes_max: int
    advertised_host: str
    advertised_port: int


@dataclass(frozen=True, slots=True)
class Host:
    """What all links of a listener share."""

    users: Users
    virtual_hosts: Callable[[str], VirtualHost | None]
    settings: LinkSettings
    peer_properties: dict[str, str]
    has_room: Callable[[], bool]
    """Whether one more connection may be opened."""


class LinkPorts(Protocol):
    """What a link needs from its connection."""

    @property
    def peer(self) -> str:
        """Address of the client, for logs."""
        ...

    @property
    def peer_is_loopback(self) -> bool: ...

    @property
    def takes_regions(self) -> bool:
        """Whether a region of a file can be sent as it is (not over TLS)."""
        ...

    def send(self, frame: bytes) -> None:
        """Queue a whole frame."""
        ...

    def after_reply(self, action: Callable[[], object]) -> None:
        """Do something once the reply of the frame being handled is queued."""
        ...

    def replied(self) -> None:
        """Do what `after_reply` was given."""
        ...

    def wait(self, delay_ms: int) -> Pending[None]:
        """Return what is settled after a delay."""
        ...

    def tuned(self) -> None:
        """Start the heartbeats that were agreed on."""
        ...

    def wake_delivery(self, subscription: Subscription) -> None:
        """Serve a subscription that may have something to send."""
        ...

    def entries_settled(self, count: int) -> None:
        """Note that entries that were waiting for their confirm no longer are."""
        ...


class Link:
    """A connection's publishers, subscriptions and watched streams."""

    def __init__(self, host: Host, session: Session, ports: LinkPorts) -> None:
        self.host = host
        self.session = session
        self.ports = ports
        self.publishers: dict[int, Publisher] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self.references: set[tuple[str, str]] = set()
        self.is_closed = False
        self._watched: set[Stream] = set()
        self._virtual_host: VirtualHost | None = None

    @property
    def streams(self) -> Streams:
        """The streams of the virtual host that was opened."""
        return self.virtual_host.streams

    @property
    def virtual_host(self) -> VirtualHost:
        """The virtual host that was opened."""
        assert self._virtual_host is not None
        return self._virtual_host

    def enter(self, virtual_host: VirtualHost) -> None:
        """Bind the link to a virtual host."""
        self._virtual_host = virtual_host

    def require(self, permission: Permission, name: str) -> None:
        """Demand a permission on a stream. Every user may do everything for now: the seam."""
        del permission, name

    def send(self, command: str, message: m.Message) -> None:
        """Queue a command that the server starts and that carries no correlation id."""
        self.ports.send(codec.encode_command(command, message))

    # Streams that this link uses

    def watch(self, stream: Stream) -> None:
        """Be told when the stream is gone; to be called before anything is bound to it.

        Raises:
            StreamDoesNotExist: It was deleted meanwhile, though another of its name may exist.
            Refusal: The connection ended while the handler waited (nobody hears this).
        """
        if self.is_closed:
            raise Refusal(ResponseCode.INTERNAL_ERROR, "the connection is gone")
        if stream.is_deleted:
            raise StreamDoesNotExist(stream.name)
        self._watched.add(stream)
        stream.watchers.add(self)

    def unwatch_if_unused(self, stream: Stream) -> None:
        """Stop watching once no publisher and no subscription uses the stream."""
        if any(publisher.stream is stream for publisher in self.publishers.values()):
            return
        if any(subscription.stream is stream for subscription in self.subscriptions.values()):
            return
        self._watched.discard(stream)
        stream.watchers.discard(self)

    def stream_gone(self, stream: Stream) -> None:
        """Drop everything of a stream that was deleted or failed, then tell the client."""
        for publisher in [p for p in self.publishers.values() if p.stream is stream]:
            self.drop_publisher(publisher)
        for subscription in [s for s in self.subscriptions.values() if s.stream is stream]:
            self.drop_subscription(subscription)
        self._watched.discard(stream)
        self.send(
            "metadata_update", m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, stream.name)
        )

    def drop_publisher(self, publisher: Publisher) -> None:
        """Forget a publisher; its unconfirmed entries are never confirmed."""
        del self.publishers[publisher.publisher_id]
        self.references.discard((publisher.stream.name, publisher.reference))
        publisher.close()

    def drop_subscription(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        del self.subscriptions[subscription.subscription_id]
        subscription.close()

    def close(self) -> None:
        """Remove everything that the connection owned."""
        self.is_closed = True
        for publisher in list(self.publishers.values()):
            self.drop_publisher(publisher)
        for subscription in list(self.subscriptions.values()):
            self.drop_subscription(subscription)
        for stream in self._watched:
            stream.watchers.discard(self)
        self._watched.clear()


Handler = Callable[[Link, Any], Coroutine[Pending[Any], None, m.Message | None]]
"""Takes the link and a request of its command; returns the reply, None where there is none."""

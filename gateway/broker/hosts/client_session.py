"""A client in a virtual host, for any protocol: its rights, its streams, and its end.

A front derives its own session for each of its connections. The registry, the streams in use, and
administrators know the connection by its session.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.broker.access.access import Access, Demand, May, refused
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.model import Right
from gateway.broker.connections import (
    ConnectionDetails,
    Connections,
    ConsumerDetails,
    PublisherDetails,
)
from gateway.broker.errors import AccessRefused, InternalError, StreamDoesNotExist
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.service import ServiceState
from gateway.broker.streams.catalogue import Stream
from gateway.broker.streams.streams import Streams
from gateway.broker.yielding import Slice
from gateway.logs import NameInHost
from gateway.network.addresses import host_of
from gateway.network.transport import Transport
from gateway.pending import Pending

log = logging.getLogger(__name__)

_SENT_AWAY_S: Final = 1.0
"""Time limit for a client whose connection is ended to read the frames queued for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """Objects that the sessions of one front share.

    Attributes:
        virtual_hosts: Finds a virtual host by its name.
        has_room: Returns whether one more connection of this front may be opened.
    """

    access: Access
    authentication: Authentication
    connections: Connections
    virtual_hosts: Callable[[str], VirtualHost | None]
    service: ServiceState
    has_room: Callable[[], bool]


class SessionPorts(Protocol):
    """A connection, as its session sees it."""

    @property
    def peer(self) -> str:
        """The address of the client."""
        ...

    @property
    def local(self) -> str:
        """The address that the client connected to."""
        ...

    @property
    def transport(self) -> Transport:
        """Facts of the socket that administrators see."""
        ...

    def wait(self, delay_ms: int) -> Pending[None]:
        """Return a Pending that settles after a delay."""
        ...

    def hold(self) -> None:
        """Read nothing more from the client until `release`."""
        ...

    def release(self) -> None:
        """Read again."""
        ...

    def stop(self, within_s: float) -> None:
        """Send all queued frames, then end the connection; cut it off when the time is up."""
        ...

    def abort(self) -> None:
        """End the connection now; queued frames are dropped."""
        ...


class ClientSession(ABC):
    """A client and the streams that it uses.

    Attributes:
        protocol: RabbitMQ's name of its protocol, as `stream`.
        user: The user that logged in; empty before it entered a virtual host.
        is_closed: True if it is over.
    """

    def __init__(self, host: SessionContext, ports: SessionPorts, protocol: str) -> None:
        self.protocol = protocol
        self.user = ""
        self.is_closed = False
        self._host = host
        self._ports = ports
        self._virtual_host: VirtualHost | None = None
        self._watched: set[Stream] = set()

    # Details of a front's connections; a front that publishes or consumes gives more

    @abstractmethod
    def details(self) -> ConnectionDetails:
        """Return the details of the connection that administrators see."""

    @property
    def client_properties(self) -> Mapping[str, str]:
        """The properties that the client says of itself."""
        return {}

    def publisher_details(self) -> list[PublisherDetails]:
        """Return the details of its publishers that administrators see."""
        return []

    def consumer_details(self) -> list[ConsumerDetails]:
        """Return the details of its consumers that administrators see."""
        return []

    def written(self) -> set[Stream]:
        """Return the streams that it publishes to."""
        return set()

    def read(self) -> set[Stream]:
        """Return the streams that it consumes."""
        return set()

    def lose(self, stream: Stream) -> None:
        """Drop all use of a stream that cannot be used any more, and tell the client."""
        self.unwatch(stream)

    def drop_all(self) -> None:  # noqa: B027  # one that uses no streams has nothing to drop
        """Drop all use of every stream: the connection is over."""

    # Entering

    def reason_to_refuse(self, user: str, virtual_host: str) -> str:
        """Return the reason why a user cannot enter a virtual host now; empty if it can."""
        host = self._host
        if host.virtual_hosts(virtual_host) is None:
            return "there is none of that name"
        if not host.has_room():
            return f"{self.protocol}.connections_max is reached"
        if not host.access.may_enter(user, virtual_host):
            return "the user may not enter it"
        if not host.access.has_room(user, virtual_host):
            return "the limit of connections of the user or the virtual host is reached"
        return ""

    def begin(self, user: str, virtual_host: VirtualHost) -> None:
        """Enter a virtual host; from here on administrators see the connection."""
        self.user = user
        self._virtual_host = virtual_host
        self._host.connections.add(self)

    @property
    def virtual_host(self) -> VirtualHost:
        """The virtual host that was entered."""
        assert self._virtual_host is not None
        return self._virtual_host

    @property
    def virtual_host_name(self) -> str:
        """The name of the virtual host."""
        return self.virtual_host.name

    @property
    def streams(self) -> Streams:
        """The streams of the virtual host."""
        return self.virtual_host.streams

    # The connection

    @property
    def peer(self) -> str:
        """Address of the client."""
        return self._ports.peer

    @property
    def address(self) -> str:
        """Address of the client, without the port."""
        return host_of(self._ports.peer)

    @property
    def local(self) -> str:
        """Address that the client connected to."""
        return self._ports.local

    @property
    def transport(self) -> Transport:
        """Facts of its socket that administrators see."""
        return self._ports.transport

    def say(self, write: Callable[..., object], message: str, *args: object) -> None:
        """Log a line that any client could cause endlessly; rate-limited by `Refusals.say`."""
        self._host.authentication.refusals.say(write, self.address, message, *args)

    def shown(self, stream: Stream) -> str:
        """Return a stream as logs name it, with its virtual host."""
        return NameInHost(stream.name, self.virtual_host_name)

    # Rights

    def refused(self, demands: Iterable[Demand]) -> Demand | None:
        """Return the first demand that the user does not meet; None if it meets all."""
        return refused(self._host.access, self.user, self.virtual_host_name, demands)

    async def refused_slowly(self, demands: Iterable[Demand]) -> Demand | None:
        """Check a great many demands as `refused`, and let others have turns meanwhile."""
        time_slice = Slice()
        for demand in demands:
            if time_slice.is_over():
                await self._ports.wait(0)
                time_slice.begin()
            missing = self.refused((demand,))
            if missing is not None:
                return missing
        return None

    async def refused_streams(self) -> list[Stream]:
        """Return the streams in use for which the user lacks the right now; others have turns.

        A stream that is written without the right to write, or read without the right to read,
        loses both its publishers and its consumers, as in RabbitMQ.
        """
        written, read = self.written(), self.read()
        refused_streams: list[Stream] = []
        time_slice = Slice()
        for stream in written | read:
            if time_slice.is_over():
                await self._ports.wait(0)
                time_slice.begin()
            demands = [Demand((Right.WRITE,), stream.name)] if stream in written else []
            if stream in read:
                demands.append(Demand((Right.READ,), stream.name))
            if self.refused(demands) is not None:
                refused_streams.append(stream)
        return refused_streams

    # Streams that are used

    def watch(self, stream: Stream) -> None:
        """Watch a stream, to be told when it is gone; call this before anything uses it.

        Raises:
            StreamDoesNotExist: It was deleted meanwhile, though another of its name may exist.
            InternalError: The connection ended while the handler waited; no client sees this.
            AccessRefused: The user lost its access.
        """
        if self.is_closed:
            raise InternalError("the connection is gone")
        if stream.is_deleted:
            raise StreamDoesNotExist(stream.name)
        if not self._host.access.may_enter(self.user, self.virtual_host_name):
            raise AccessRefused("access was taken away meanwhile")
        self._watched.add(stream)
        stream.watchers.add(self)

    def unwatch(self, stream: Stream) -> None:
        """Stop watching."""
        self._watched.discard(stream)
        stream.watchers.discard(self)

    def unwatch_if_unused(self, stream: Stream) -> None:
        """Stop watching if nothing of the connection uses the stream."""
        if stream not in self.written() and stream not in self.read():
            self.unwatch(stream)

    def stream_gone(self, stream: Stream) -> None:
        """Drop all use of a stream that was deleted or has failed, then tell the client."""
        self.virtual_host.groups.dissolve(stream.entry.generation)
        self.lose(stream)

    def lose_each(self, streams: Iterable[Stream]) -> None:
        """Drop streams that are still used, and tell the client of each."""
        for stream in streams:
            if stream in self._watched:
                self.lose(stream)

    def lose_access(self) -> None:
        """Drop all use of streams: the user has no rights here any more."""
        for stream in self.written() | self.read():
            self.lose(stream)

    def rights_changed(self, may: May) -> None:  # noqa: B027  # as said below
        """Go on: open publishers and consumers are judged when the client renews its secret.

        A protocol without such a renewal judges it here.
        """

    # What the server and administrators do

    def hold_publishing(self) -> None:
        """Read nothing more from a client that publishes: there is no room for its messages."""
        if self.written():
            self._ports.hold()

    def release_publishing(self) -> None:
        """Read from the client again."""
        self._ports.release()

    def end(self, reason: str) -> None:
        """End the connection; the client gets only frames queued already."""
        log.info("connection ended peer=%s user=%r reason=%s", self.peer, self.user, reason)
        self.close()
        self._ports.stop(_SENT_AWAY_S)

    def cut_off(self, reason: str) -> None:
        """End the connection now; the client gets nothing, and queued frames are dropped."""
        log.info("connection cut off peer=%s user=%r reason=%s", self.peer, self.user, reason)
        self._ports.abort()

    def close(self) -> None:
        """Remove everything that the connection owned."""
        self.is_closed = True
        self._host.connections.remove(self)
        self.drop_all()
        for stream in self._watched:
            stream.watchers.discard(self)
        self._watched.clear()

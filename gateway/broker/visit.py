"""A client in a virtual host, whatever it speaks: its rights, its streams, and how it is ended.

A front derives its own visit for each of its connections. The registry, the streams it uses, and
administrators know the connection by it.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.broker.access.access import Access
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.authorisation import Demand, refused
from gateway.broker.access.model import Right
from gateway.broker.connections import (
    ConnectionDetails,
    Connections,
    ConsumerDetails,
    PublisherDetails,
)
from gateway.broker.errors import AccessRefused, InternalError, StreamDoesNotExist
from gateway.broker.service import Service
from gateway.broker.slices import Slice
from gateway.broker.stream import Stream
from gateway.broker.streams import Streams
from gateway.broker.virtual_host import VirtualHost
from gateway.logs import InHost
from gateway.network.transport import Transport
from gateway.pending import Pending

log = logging.getLogger(__name__)

_SENT_AWAY_S: Final = 1.0
"""How long a client whose connection is ended may take to read what was queued for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Objects that the visits of one front share.

    Attributes:
        virtual_hosts: Finds one by its name.
        has_room: Tells whether one more connection of this front may be opened.
    """

    access: Access
    authentication: Authentication
    connections: Connections
    virtual_hosts: Callable[[str], VirtualHost | None]
    service: Service
    has_room: Callable[[], bool]


class VisitPorts(Protocol):
    """A connection, as its visit sees it."""

    @property
    def peer(self) -> str:
        """Address of the client."""
        ...

    @property
    def local(self) -> str:
        """Address that the client connected to."""
        ...

    @property
    def transport(self) -> Transport:
        """Facts of the socket that administrators see."""
        ...

    def wait(self, delay_ms: int) -> Pending[None]:
        """Return what is settled after a delay."""
        ...

    def hold(self) -> None:
        """Read nothing more from the client, until released."""
        ...

    def release(self) -> None:
        """Read again."""
        ...

    def stop(self, within_s: float) -> None:
        """Send what is queued, then end the connection; cut it off when the time is up."""
        ...

    def abort(self) -> None:
        """End the connection now; what is queued is dropped."""
        ...


class Visit(ABC):
    """A client and the streams that it uses.

    Attributes:
        protocol: RabbitMQ's word for what it speaks, as `stream`.
        user: The name it logged in by; empty before it entered a virtual host.
        is_closed: Whether it is over.
    """

    def __init__(self, host: Host, ports: VisitPorts, protocol: str) -> None:
        self.protocol = protocol
        self.user = ""
        self.is_closed = False
        self._host = host
        self._ports = ports
        self._virtual_host: VirtualHost | None = None
        self._watched: set[Stream] = set()

    # What a front says of its connections; one that publishes or consumes says more

    @abstractmethod
    def details(self) -> ConnectionDetails:
        """Return what administrators are told of the connection."""

    @property
    def client_properties(self) -> Mapping[str, str]:
        """Properties that the client gave of itself."""
        return {}

    def publisher_details(self) -> list[PublisherDetails]:
        """Return what administrators are told of what publishes."""
        return []

    def consumer_details(self) -> list[ConsumerDetails]:
        """Return what administrators are told of what consumes."""
        return []

    def written(self) -> set[Stream]:
        """Return the streams that it publishes to."""
        return set()

    def read(self) -> set[Stream]:
        """Return the streams that it consumes."""
        return set()

    def lose(self, stream: Stream) -> None:
        """Drop everything of a stream that cannot be used any more, and tell the client."""
        self.unwatch(stream)

    def drop_all(self) -> None:  # noqa: B027  # one that uses no streams has nothing to drop
        """Drop everything of every stream: the connection is over."""

    # Entering

    def reason_to_refuse(self, user: str, virtual_host: str) -> str:
        """Return why a user cannot enter a virtual host now; empty if it can."""
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
        """Its name."""
        return self.virtual_host.name

    @property
    def streams(self) -> Streams:
        """Its streams."""
        return self.virtual_host.streams

    # The connection

    @property
    def peer(self) -> str:
        """Address of the client."""
        return self._ports.peer

    @property
    def address(self) -> str:
        """Address of the client, without the port."""
        return self._ports.peer.rpartition(":")[0]

    @property
    def local(self) -> str:
        """Address that the client connected to."""
        return self._ports.local

    def say(self, write: Callable[..., object], message: str, *args: object) -> None:
        """Log what a stranger could cause without end, as `Refusals.say`."""
        self._host.authentication.refusals.say(write, self.address, message, *args)

    def shown(self, stream: Stream) -> str:
        """Return a stream as logs name it, with its virtual host."""
        return InHost(stream.name, self.virtual_host_name)

    # Rights

    def refused(self, demands: Iterable[Demand]) -> Demand | None:
        """Return the first demand that the user does not meet, None if it may go on."""
        return refused(self._host.access, self.user, self.virtual_host_name, demands)

    async def refused_slowly(self, demands: Iterable[Demand]) -> Demand | None:
        """Do the same with a great many demands, with turns for others meanwhile."""
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
        """Return what the user may not use any more in the way it is used here, with turns.

        A stream that is written to without the right to write, or read without the right to
        read, loses its publishers and its consumers, as in RabbitMQ.
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
        """Be told when the stream is gone; to be called before anything is bound to it.

        Raises:
            StreamDoesNotExist: It was deleted meanwhile, though another of its name may exist.
            InternalError: The connection ended while the handler waited; no client hears this.
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
        """Stop watching once nothing of the connection uses the stream."""
        if stream not in self.written() and stream not in self.read():
            self.unwatch(stream)

    def stream_gone(self, stream: Stream) -> None:
        """Drop everything of a stream that was deleted or failed, then tell the client."""
        self.virtual_host.groups.dissolve(stream.entry.generation)
        self.lose(stream)

    def lose_each(self, streams: Iterable[Stream]) -> None:
        """Drop streams that are still used, and tell the client of each."""
        for stream in streams:
            if stream in self._watched:
                self.lose(stream)

    def lose_access(self) -> None:
        """Drop everything: the user may do nothing here any more."""
        for stream in self.written() | self.read():
            self.lose(stream)

    # What the server and administrators do

    def hold_publishing(self) -> None:
        """Read nothing more of a client that publishes: there is no room for what it sends."""
        if self.written():
            self._ports.hold()

    def release_publishing(self) -> None:
        """Read it again."""
        self._ports.release()

    def end(self, reason: str) -> None:
        """End the connection, without a word to the client but what is queued already."""
        log.info("connection ended peer=%s user=%r reason=%s", self.peer, self.user, reason)
        self.close()
        self._ports.stop(_SENT_AWAY_S)

    def cut_off(self, reason: str) -> None:
        """End the connection now, without a word to the client; what is queued is dropped."""
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

"""One connection as its handlers see it: session, what it declared, and what it may ask for.

A link does no I/O: it hands whole frames to its ports and gets frames from them.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from gateway.broker.access.authorisation import Demand, refused
from gateway.broker.access.model import Right
from gateway.broker.connections import (
    ConnectionDetails,
    ConsumerDetails,
    PublisherDetails,
)
from gateway.broker.errors import StreamDoesNotExist
from gateway.broker.groups import Order
from gateway.broker.streams import Stream, Streams
from gateway.broker.virtual_host import VirtualHost
from gateway.logs import InHost
from gateway.pending import Pending
from gateway.server.front import Ports
from gateway.stream.consuming import Subscription
from gateway.stream.host import Host
from gateway.stream.membership import Membership, Questions
from gateway.stream.publishing import Publisher
from gateway.stream.refusals import Refusal
from gateway.stream.session.session import Session
from gateway.stream.turns import Turns
from gateway.stream.wire import codec
from gateway.stream.wire import messages as m
from gateway.stream.wire.codes import ResponseCode
from gateway.stream.wire.commands import Permission

log = logging.getLogger(__name__)

IDS_MAX: Final = 256
"""Publishers and subscriptions of one connection: their ids are one byte."""

_SENT_AWAY_S: Final = 1.0
"""How long a client whose connection is ended may take to read what was queued for it."""

RIGHTS: Final = {
    Permission.CONFIGURE: (Right.CONFIGURE,),
    Permission.WRITE: (Right.WRITE,),
    Permission.READ: (Right.READ,),
    Permission.READ_OR_WRITE: (Right.READ, Right.WRITE),
}
"""Any of these will do."""


class Link:
    """A connection's publishers, subscriptions and watched streams."""

    def __init__(self, host: Host, session: Session, ports: Ports) -> None:
        self.host = host
        self.session = session
        self.ports = ports
        self.publishers: dict[int, Publisher] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self.references: set[tuple[str, str]] = set()
        self.memberships: dict[int, Membership] = {}
        """Of subscriptions in a group of which one reads, by their ids."""
        self.questions = Questions(self)
        self.is_closed = False
        self._after_reply: list[Callable[[], object]] = []
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
        self.host.connections.add(self)

    # What the user may do

    @property
    def peer(self) -> str:
        """Address of the client."""
        return self.ports.peer

    @property
    def address(self) -> str:
        """Address of the client, without the port."""
        return self.ports.peer.rpartition(":")[0]

    def say(self, write: Callable[..., object], message: str, *args: object) -> None:
        """Log what a stranger could cause without end, as `Refusals.say`."""
        self.host.authentication.refusals.say(write, self.address, message, *args)

    @property
    def local(self) -> str:
        """Address that the client connected to."""
        return self.ports.local

    @property
    def client_properties(self) -> Mapping[str, str]:
        """What the client says of itself."""
        return self.session.client_properties

    @property
    def user(self) -> str:
        """Who logged in."""
        return self.session.user

    @property
    def virtual_host_name(self) -> str:
        """The virtual host that was opened, by name."""
        return self.virtual_host.name

    def may(self, permission: Permission, name: str) -> bool:
        """Tell whether the user has a permission on a stream or super stream."""
        return self._refused([Demand(RIGHTS[permission], name)]) is None

    def _refused(self, demands: Iterable[Demand]) -> Demand | None:
        return refused(self.host.access, self.user, self.virtual_host_name, demands)

    def require(self, permission: Permission, name: str) -> None:
        """Demand a permission on a stream or super stream. Raises Refusal."""
        self._demand([Demand(RIGHTS[permission], name)])

    def _demand(self, demands: Iterable[Demand]) -> None:
        missing = self._refused(demands)
        if missing is not None:
            raise Refusal(ResponseCode.ACCESS_REFUSED, str(missing))

    async def require_each(self, demands: Iterable[Demand]) -> None:
        """Demand a great many things, with turns for others meanwhile. Raises Refusal."""
        turns = Turns()
        for demand in demands:
            if turns.is_over():
                await self.ports.wait(0)
                turns.begin()
            self._demand((demand,))

    async def refused_streams(self) -> list[Stream]:
        """Return what the user may not use any more in the way it is used here, with turns.

        A stream that is written to without the right to write, or read without the right to
        read, loses its publishers and its subscriptions, as in RabbitMQ.
        """
        written = {publisher.stream for publisher in self.publishers.values()}
        read = {subscription.stream for subscription in self.subscriptions.values()}
        refused_streams: list[Stream] = []
        turns = Turns()
        for stream in written | read:
            if turns.is_over():
                await self.ports.wait(0)
                turns.begin()
            may_stay = (stream not in written or self.may(Permission.WRITE, stream.name)) and (
                stream not in read or self.may(Permission.READ, stream.name)
            )
            if not may_stay:
                refused_streams.append(stream)
        return refused_streams

    def lose_each(self, streams: Iterable[Stream]) -> None:
        """Drop streams that are still used, with a MetadataUpdate for each."""
        for stream in streams:
            if stream in self._watched:
                self.lose(stream)

    def lose_access(self) -> None:
        """Drop every publisher and subscription: the user may do nothing here any more."""
        written = {publisher.stream for publisher in self.publishers.values()}
        for stream in written | {each.stream for each in self.subscriptions.values()}:
            self.lose(stream)

    def end(self, reason: str) -> None:
        """End the connection, without a word to the client but what is queued already."""
        log.info("connection ended peer=%s user=%r reason=%s", self.peer, self.user, reason)
        self.close()
        self.ports.stop(_SENT_AWAY_S)

    def hold_publishing(self) -> None:
        """Read nothing more of a client that has publishers: there is no room for what it sends."""
        if self.publishers:
            self.ports.hold()

    def release_publishing(self) -> None:
        """Read it again."""
        self.ports.release()

    def cut_off(self, reason: str) -> None:
        """End the connection now, without a word to the client; what is queued is dropped."""
        log.info("connection cut off peer=%s user=%r reason=%s", self.peer, self.user, reason)
        self.ports.abort()

    # What administrators are told

    def details(self) -> ConnectionDetails:
        """Return what administrators are told of the connection."""
        session = self.session
        return ConnectionDetails(
            session.mechanism,
            session.heartbeat_s,
            session.frame_bytes_max,
            self.ports.transport,
        )

    def publisher_details(self) -> list[PublisherDetails]:
        """Return the same of the publishers."""
        return [publisher.details() for publisher in self.publishers.values()]

    def consumer_details(self) -> list[ConsumerDetails]:
        """Return the same of the subscriptions."""
        return [subscription.details() for subscription in self.subscriptions.values()]

    def send(self, command: str, message: m.Message, correlation_id: int | None = None) -> None:
        """Queue a command that the server starts."""
        self.ports.send(codec.encode_command(command, message, correlation_id=correlation_id))

    def after_reply(self, action: Callable[[], object]) -> None:
        """Do something once the reply of the frame being handled is queued."""
        self._after_reply.append(action)

    def replied(self) -> None:
        """Do what `after_reply` was given: the reply is queued."""
        actions, self._after_reply = self._after_reply, []
        for action in actions:
            action()

    # Streams that this link uses

    def shown(self, stream: Stream) -> str:
        """Return a stream as logs name it, with its virtual host."""
        return InHost(stream.name, self.virtual_host_name)

    def watch(self, stream: Stream) -> None:
        """Be told when the stream is gone; to be called before anything is bound to it.

        Raises:
            StreamDoesNotExist: It was deleted meanwhile, though another of its name may exist.
            Refusal: The connection ended while the handler waited (nobody hears this), or the
                user lost its access.
        """
        if self.is_closed:
            raise Refusal(ResponseCode.INTERNAL_ERROR, "the connection is gone")
        if stream.is_deleted:
            raise StreamDoesNotExist(stream.name)
        if not self.host.access.may_enter(self.user, self.virtual_host_name):
            raise Refusal(ResponseCode.ACCESS_REFUSED, "access was taken away meanwhile")
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
        self.virtual_host.groups.dissolve(stream.entry.generation)
        self.lose(stream)

    def lose(self, stream: Stream) -> None:
        """Drop everything of a stream that this connection cannot use, then tell the client."""
        for publisher in [p for p in self.publishers.values() if p.stream is stream]:
            self.drop_publisher(publisher)
        orders = self.take_out([s for s in self.subscriptions.values() if s.stream is stream])
        self._watched.discard(stream)
        stream.watchers.discard(self)
        self.send(
            "metadata_update", m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, stream.name)
        )
        carry_out(orders)

    def lose_readers(self, stream: Stream) -> None:
        """Drop the subscriptions to a stream of which a part cannot be read; publishers stay.

        All of this connection, since what the client is told names the stream only.
        """
        orders = self.take_out([s for s in self.subscriptions.values() if s.stream is stream])
        self.unwatch_if_unused(stream)
        self.send(
            "metadata_update", m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, stream.name)
        )
        carry_out(orders)

    def drop_publisher(self, publisher: Publisher) -> None:
        """Forget a publisher; its unconfirmed entries are never confirmed."""
        del self.publishers[publisher.publisher_id]
        self.references.discard((publisher.stream.name, publisher.reference))
        publisher.close()

    def take_out(self, subscriptions: Iterable[Subscription]) -> list[Order]:
        """Forget subscriptions, all at once; return what their groups want, to be carried out."""
        left: dict[tuple[str, str], list[Membership]] = {}
        for subscription in subscriptions:
            del self.subscriptions[subscription.subscription_id]
            subscription.close()
            membership = self.memberships.pop(subscription.subscription_id, None)
            if membership is not None:
                self.questions.withdraw(membership)
                left.setdefault((subscription.stream.name, membership.name), []).append(membership)
        groups = self.virtual_host.groups
        orders: list[Order] = []
        for key in sorted(left, reverse=True):  # RabbitMQ's order
            members = left[key]
            order = groups.leave(members[0].generation, members[0].name, members)
            if order is not None:
                orders.append(order)
        return orders

    def close(self) -> None:
        """Remove everything that the connection owned."""
        self.is_closed = True
        self.host.connections.remove(self)
        for publisher in list(self.publishers.values()):
            self.drop_publisher(publisher)
        if self.subscriptions:
            carry_out(self.take_out(list(self.subscriptions.values())))
        for stream in self._watched:
            stream.watchers.discard(self)
        self._watched.clear()


def carry_out(orders: Iterable[Order]) -> None:
    """Tell members of groups what they are to do."""
    for order in orders:
        order.carry_out()


Handler = Callable[[Link, Any], Coroutine[Pending[Any], None, m.Message | None]]
"""Takes the link and a request of its command; returns the reply, None where there is none."""

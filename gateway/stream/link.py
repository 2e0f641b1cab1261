"""One connection as its handlers see it: session, publishers, subscriptions and rights.

A link does no I/O: it hands whole frames to its ports and gets frames from them.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from gateway.broker.access.access import Demand
from gateway.broker.access.model import Right
from gateway.broker.connections import (
    ConnectionDetails,
    ConsumerDetails,
    PublisherDetails,
)
from gateway.broker.groups import Order
from gateway.broker.hosts.client_session import ClientSession
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.streams.catalogue import Stream
from gateway.pending import Pending
from gateway.server.front import Ports
from gateway.stream.consuming import CreditSubscription
from gateway.stream.context import StreamContext
from gateway.stream.membership import Membership, Questions
from gateway.stream.publishing import Publisher
from gateway.stream.refusals import Refusal
from gateway.stream.session import Session
from hutch.stream import codec
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission

IDS_MAX: Final = 256
"""Most publishers, and most subscriptions, of one connection: an id is one byte."""

PROTOCOL: Final = "stream"
"""RabbitMQ's name of the protocol."""

RIGHTS: Final = {
    Permission.CONFIGURE: (Right.CONFIGURE,),
    Permission.WRITE: (Right.WRITE,),
    Permission.READ: (Right.READ,),
    Permission.READ_OR_WRITE: (Right.READ, Right.WRITE),
}
"""For each permission the rights of which any one is enough."""


class Link(ClientSession):
    """A connection's publishers and subscriptions."""

    def __init__(self, host: StreamContext, session: Session, ports: Ports) -> None:
        super().__init__(host, ports, PROTOCOL)
        self.host = host
        self.session = session
        self.ports = ports
        self.publishers: dict[int, Publisher] = {}
        self.subscriptions: dict[int, CreditSubscription] = {}
        self.references: set[tuple[str, str]] = set()
        self.memberships: dict[int, Membership] = {}
        """Memberships of subscriptions in groups with a single active consumer, by their ids."""
        self.questions = Questions()
        self._after_reply: list[Callable[[], object]] = []

    def enter(self, virtual_host: VirtualHost) -> None:
        """Enter a virtual host as the session's user."""
        self.begin(self.session.user, virtual_host)

    @property
    def client_properties(self) -> Mapping[str, str]:
        """The properties that the client says of itself."""
        return self.session.client_properties

    # What the user may do

    def may(self, permission: Permission, name: str) -> bool:
        """Return whether the user has a permission on a stream or super stream."""
        return self.refused([Demand(RIGHTS[permission], name)]) is None

    def require(self, permission: Permission, name: str) -> None:
        """Demand a permission on a stream or super stream. Raises Refusal."""
        _require(self.refused([Demand(RIGHTS[permission], name)]))

    async def require_each(self, demands: Iterable[Demand]) -> None:
        """Demand a great many rights, and let others have turns meanwhile. Raises Refusal."""
        _require(await self.refused_slowly(demands))

    # What administrators are told

    def details(self) -> ConnectionDetails:
        """Return the details of the connection that administrators see."""
        session = self.session
        return ConnectionDetails(
            session.mechanism,
            session.heartbeat_s,
            session.frame_bytes_max,
            self.transport,
        )

    def publisher_details(self) -> list[PublisherDetails]:
        """Return the rows of its publishers."""
        return [publisher.details() for publisher in self.publishers.values()]

    def consumer_details(self) -> list[ConsumerDetails]:
        """Return the rows of its subscriptions."""
        return [subscription.details() for subscription in self.subscriptions.values()]

    def send(self, command: str, message: m.Message, correlation_id: int | None = None) -> None:
        """Queue a command that the server starts."""
        self.ports.send(codec.encode_command(command, message, correlation_id=correlation_id))

    def after_reply(self, action: Callable[[], object]) -> None:
        """Call `action` once the reply to the frame being handled is queued."""
        self._after_reply.append(action)

    def replied(self) -> None:
        """Call the actions of `after_reply`, since the reply is queued."""
        actions, self._after_reply = self._after_reply, []
        for action in actions:
            action()

    # Streams that this link uses

    def reads_at(self, stream: Stream, offset: int) -> None:
        """Note that the user reads there: plans that hold the place go on holding it."""
        self.streams.logs.holds.renew(self.user, stream.entry.generation, offset)

    def written(self) -> set[Stream]:
        """Return the streams to which it has publishers."""
        return {publisher.stream for publisher in self.publishers.values()}

    def read(self) -> set[Stream]:
        """Return the streams to which it has subscriptions."""
        return {subscription.stream for subscription in self.subscriptions.values()}

    def lose(self, stream: Stream) -> None:
        """Drop everything of a stream that this connection cannot use, then tell the client."""
        for publisher in [p for p in self.publishers.values() if p.stream is stream]:
            self.drop_publisher(publisher)
        orders = self.take_out([s for s in self.subscriptions.values() if s.stream is stream])
        self.unwatch(stream)
        self.send(
            "metadata_update", m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, stream.name)
        )
        carry_out(orders)

    def lose_readers(self, stream: Stream) -> None:
        """Drop the subscriptions to a stream of which a part cannot be read; publishers stay.

        All of this connection's subscriptions go, since MetadataUpdate names only the stream.
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

    def take_out(self, subscriptions: Iterable[CreditSubscription]) -> list[Order]:
        """Forget subscriptions, all at once; return their groups' orders, to be carried out."""
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

    def drop_all(self) -> None:
        """Forget every publisher and subscription."""
        for publisher in list(self.publishers.values()):
            self.drop_publisher(publisher)
        if self.subscriptions:
            carry_out(self.take_out(list(self.subscriptions.values())))


def _require(missing: Demand | None) -> None:
    if missing is not None:
        raise Refusal(ResponseCode.ACCESS_REFUSED, str(missing))


def carry_out(orders: Iterable[Order]) -> None:
    """Carry out the orders of groups to their members."""
    for order in orders:
        order.carry_out()


Handler = Callable[[Link, Any], Coroutine[Pending[Any], None, m.Message | None]]
"""Takes the link and a request of its command; returns the reply, None if there is none."""

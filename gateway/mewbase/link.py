"""One connection as its handlers see it, and the state that all of them share."""

from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from gateway.broker.access.access import Demand, May
from gateway.broker.access.model import Right
from gateway.broker.connections import (
    ConnectionDetails,
    ConsumerDetails,
    PublisherDetails,
)
from gateway.broker.hosts.client_session import ClientSession, SessionContext
from gateway.broker.streams.catalogue import Stream
from gateway.mewbase.binders.binders import Binders
from gateway.mewbase.durable import Durables
from gateway.mewbase.publishing import ChannelPublisher
from gateway.mewbase.query import Query
from gateway.mewbase.refusals import RequestRefusal
from gateway.mewbase.session import LoginSession
from gateway.mewbase.sources import EventReading, SourcePorts
from gateway.mewbase.subscription import ChannelSubscription
from gateway.mewbase.transactions import Held, OpenTransactions
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.server.front import Ports
from gateway.settings.mewbase import MewbaseSettings

PROTOCOL: Final = "mewbase"
"""Name of the protocol, as administrators see it."""
PUBLISHERS_MAX: Final = 256
"""Channels with a publisher: above it one that waits for nothing is forgotten for each new one."""
_GONE: Final = "channel %r is gone, or may not be read any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class MewbaseContext(SessionContext):
    """State that all connections share.

    Attributes:
        binders: Documents that projections make of events.
        reading: State that the readers of events share.
        settings: The settings of the protocol.
        durables: Durable subscriptions that connections have.
        held: Events of transactions that are open.
    """

    binders: Binders
    reading: EventReading
    settings: MewbaseSettings = field(default_factory=MewbaseSettings)
    durables: Durables = field(default_factory=Durables)
    held: Held = field(default_factory=Held)


class ChannelLink(ClientSession):
    """A connection: its session, its rights, its publishers and subscriptions."""

    def __init__(self, host: MewbaseContext, session: LoginSession, ports: Ports) -> None:
        super().__init__(host, ports, PROTOCOL)
        self.host = host
        self.session = session
        self.ports = ports
        self.sources = SourcePorts(ports, host.reading)
        self.mechanism = ""
        self.event_bytes_max = host.settings.event_bytes_max
        self.publishers: dict[str, ChannelPublisher] = {}
        """By channel."""
        self.transactions = OpenTransactions(host.settings, host.held)
        self.subscriptions: dict[int, ChannelSubscription] = {}
        self.queries: dict[int, Query | None] = {}
        """Queries that are open; None for one that begins."""

    def require(self, right: Right, channel: str) -> None:
        """Demand a right on a channel. Raises RequestRefusal."""
        missing = self.refused([Demand((right,), channel)])
        if missing is not None:
            raise RequestRefusal(Code.NOT_AUTHORISED, str(missing))

    def require_disk(self) -> None:
        """Demand room on the disk. Raises RequestRefusal."""
        if not self.host.service.takes_publishers:
            raise RequestRefusal(Code.NOT_STORED, "the disk has no room: its alarm is set")

    def errors_as_text(self) -> bool:
        """Return whether the client wants the numbers of errors as strings."""
        return self.session.has_page_form

    def add_publisher(self, publisher: ChannelPublisher) -> None:
        """Add the publisher of one more channel; if there are many, forget the oldest idle ones."""
        idle = (each for each in self.publishers.values() if each.is_idle)
        for one in list(islice(idle, max(0, len(self.publishers) - PUBLISHERS_MAX + 1))):
            self._forget(one)
        self.publishers[publisher.stream.name] = publisher

    # What administrators are told

    def details(self) -> ConnectionDetails:
        """Return the details of the connection that administrators see."""
        limit = self.session.frame_limit
        return ConnectionDetails(self.mechanism, 0, limit, self.transport)

    def publisher_details(self) -> list[PublisherDetails]:
        """Return the rows of its publishers."""
        return [each.details(number) for number, each in enumerate(self.publishers.values())]

    def consumer_details(self) -> list[ConsumerDetails]:
        """Return the rows of its subscriptions."""
        return [each.details() for each in self.subscriptions.values()]

    # Streams that this connection uses

    def written(self) -> set[Stream]:
        """Return the streams to which it publishes."""
        return {publisher.stream for publisher in self.publishers.values()}

    def read(self) -> set[Stream]:
        """Return the streams to which it has subscriptions."""
        return {subscription.stream for subscription in self.subscriptions.values()}

    def lose(self, stream: Stream) -> None:
        """Drop all use of a channel; a client that reads it is cut off.

        The protocol has no word for a channel that is gone. A publisher learns it by its next
        request.
        """
        self.publishers.pop(stream.name, None)
        self.unwatch(stream)
        if stream in self.read():
            self.end(_GONE % stream.name)

    def lose_access(self) -> None:
        """Drop everything: the user may not use it any more."""
        self.rights_changed(lambda _right, _name: False)

    def rights_changed(self, may: May) -> None:
        """Drop all that the user may not use any more: a client cannot renew its login.

        So no right has to be looked at for each event. A publisher learns it by its next request,
        a query by its last result. A client that reads a channel is cut off.
        """
        for publisher in list(self.publishers.values()):
            if not may(Right.WRITE, publisher.stream.name):
                self._forget(publisher)
        for query in [each for each in self.queries.values() if each is not None]:
            if not may(Right.READ, query.binder.name):
                self._refuse(query)
        for stream in self.read():
            if not may(Right.READ, stream.name):
                self.end(_GONE % stream.name)
                return

    def _forget(self, publisher: ChannelPublisher) -> None:
        del self.publishers[publisher.stream.name]
        self.unwatch_if_unused(publisher.stream)

    def _refuse(self, query: Query) -> None:
        """End a query whose binder may not be read any more."""
        query.close()
        del self.queries[query.number]
        reason = str(Demand((Right.READ,), query.binder.name))
        as_text = self.errors_as_text()
        self.ports.send(
            writing.no_result(query.number, Code.NOT_AUTHORISED, reason, as_text=as_text)
        )

    def drop_all(self) -> None:
        """Forget every publisher, subscription, transaction and query."""
        self.publishers.clear()
        self.transactions.abort_all()
        for query in self.queries.values():
            if query is not None:
                query.close()
        self.queries.clear()
        for subscription in list(self.subscriptions.values()):
            self.drop(subscription)

    def drop(self, subscription: ChannelSubscription) -> None:
        """Forget a subscription; a durable one keeps its place."""
        del self.subscriptions[subscription.number]
        subscription.close()
        if subscription.durable is not None:
            self.host.durables.give_up(subscription.durable.key, subscription.close)

    def hold_publishing(self) -> None:
        """Go on: an event for which the disk has no room is refused."""

    def release_publishing(self) -> None:
        """Go on."""

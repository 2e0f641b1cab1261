"""Users of the store's own ports beside streams: their rights, and their connections in lists."""

from collections.abc import Callable

from gateway.broker.access.users_file import DEFAULT_VIRTUAL_HOST
from gateway.broker.connections import ConnectionDetails
from gateway.broker.hosts.broker import Broker
from gateway.broker.hosts.client_session import ClientSession, SessionContext
from gateway.log.names import is_of_a_stream, is_own
from gateway.management.scopes import Scopes
from gateway.pravega.access.guard import Ownership
from gateway.pravega.early.context import is_of_the_gateway
from gateway.pravega.segment_access import ListConnection, SegmentAccess, unlisted
from gateway.server.front import Ports
from gateway.serving.controller_callers import StreamUser, log_in_by


def access_beside_streams(broker: Broker, scopes: Scopes) -> SegmentAccess:
    """Return the access to a store that keeps streams; `scopes` shows the controller's lists."""

    def caller_of(user: str) -> StreamUser:
        standing = broker.access.standings.of(user)
        return StreamUser(user, broker.access, broker.virtual_hosts, standing)

    return SegmentAccess(
        store=broker.store,
        holds_streams=True,
        ownership=Ownership(owns=is_own, shows=is_of_a_stream),
        is_closed=is_of_the_gateway,
        standings=broker.access.standings,
        log_in=log_in_by(broker.authentication, caller_of),
        listing_of=_listing_of(broker),
        show=lambda lists: scopes.open(lists, caller_of),
    )


class TokenSession(ClientSession):
    """A client of segments: it has a token and no user, and is listed in the virtual host `/`."""

    def details(self) -> ConnectionDetails:
        """Return its row in the lists of administrators."""
        return ConnectionDetails("", 0, 0, self.transport)

    def hold_publishing(self) -> None:
        """Go on: the store itself refuses appends without room."""

    def release_publishing(self) -> None:
        """Go on."""


def _listing_of(broker: Broker) -> Callable[[str], ListConnection]:
    """Return the function that lists connections of a protocol for administrators."""
    context = SessionContext(
        access=broker.access,
        authentication=broker.authentication,
        connections=broker.connections,
        virtual_hosts=broker.virtual_hosts.find,
        service=broker.service,
        has_room=lambda: True,
    )

    def of(protocol: str) -> ListConnection:
        def list_connection(ports: Ports) -> Callable[[], object]:
            virtual_host = context.virtual_hosts(DEFAULT_VIRTUAL_HOST)
            if virtual_host is None:
                return unlisted(ports)
            session = TokenSession(context, ports, protocol)
            session.begin("", virtual_host)
            return session.close

        return list_connection

    return of

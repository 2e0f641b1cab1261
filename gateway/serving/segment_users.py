"""Users of the store's own ports beside streams: their rights, and their connections in lists."""

from collections.abc import Callable

from gateway.broker.access.users_file import DEFAULT_VIRTUAL_HOST
from gateway.broker.connections import ConnectionDetails
from gateway.broker.hosts.broker import Broker
from gateway.broker.hosts.client_session import ClientSession, SessionContext
from gateway.log.names import is_of_a_stream, is_own
from gateway.management.scopes import Scopes
from gateway.pravega.access.entering import Entered, unnoted
from gateway.pravega.access.guard import Ownership
from gateway.pravega.access.segment_access import SegmentAccess
from gateway.pravega.early.context import is_of_the_gateway
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
        entering=_entering(broker),
        show=lambda lists: scopes.open(lists, caller_of),
    )


class WireVisit(ClientSession):
    """A client of segments: it has a token and no user, and is listed in the virtual host `/`."""

    def details(self) -> ConnectionDetails:
        """Return what administrators are told of it."""
        return ConnectionDetails("", 0, 0, self._ports.transport)

    def hold_publishing(self) -> None:
        """Go on: the store itself refuses what there is no room for."""

    def release_publishing(self) -> None:
        """Go on."""


def _entering(broker: Broker) -> Callable[[str], Entered]:
    """Return what notes the connections of a protocol."""
    host = SessionContext(
        access=broker.access,
        authentication=broker.authentication,
        connections=broker.connections,
        virtual_hosts=broker.virtual_hosts.find,
        service=broker.service,
        has_room=lambda: True,
    )

    def of(protocol: str) -> Entered:
        def entered(ports: Ports) -> Callable[[], object]:
            virtual_host = host.virtual_hosts(DEFAULT_VIRTUAL_HOST)
            if virtual_host is None:
                return unnoted(ports)
            visit = WireVisit(host, ports, protocol)
            visit.begin("", virtual_host)
            return visit.close

        return entered

    return of

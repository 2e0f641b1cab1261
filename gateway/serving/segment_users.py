"""Connections to the store's own ports, as administrators of the streams see them."""

from collections.abc import Callable

from gateway.broker.access.users_file import DEFAULT_VIRTUAL_HOST
from gateway.broker.connections import ConnectionDetails
from gateway.broker.visit import Host, Visit
from gateway.pravega.entering import Entered, unnoted
from gateway.server.front import Ports


class WireVisit(Visit):
    """A client of segments: it has a token and no user, and is listed in the virtual host `/`."""

    def details(self) -> ConnectionDetails:
        """Return what administrators are told of it."""
        return ConnectionDetails("", 0, 0, self._ports.transport)

    def hold_publishing(self) -> None:
        """Go on: the store itself refuses what there is no room for."""

    def release_publishing(self) -> None:
        """Go on."""


def entering(host: Host) -> Callable[[str], Entered]:
    """Return what notes the connections of a protocol."""

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

"""A look at the first bytes of a client, before its port's protocol reads them as a length.

Costs nothing later: once a client is known to speak the port's protocol, or none that has a name,
its bytes go straight to its connection.
"""

import logging
from typing import Final

from gateway.network import first_bytes
from gateway.network.addresses import host_of
from gateway.network.first_bytes import LOOK_BYTES, Match, OpenPorts, Protocol
from gateway.server.connections.connection import Connection
from gateway.server.connections.edge import Owner
from gateway.server.connections.shared import Say

log = logging.getLogger(__name__)

_OVER_TLS: Final = "/ssl"


class Look:
    """The look of one port at its clients."""

    def __init__(self, port: str, open_ports: OpenPorts, say: Say) -> None:
        """Describe the port.

        Args:
            port: Word for the protocol there; ends with /ssl before a handshake of TLS.
            open_ports: The ports of the server; those that open later are seen too.
            say: Writes a log line that any client could cause without end.
        """
        self._port = port
        self._spoken = first_bytes.PORT_OF_TLS if port.endswith(_OVER_TLS) else port
        self._open_ports = open_ports
        self._say = say

    def foreign(self, first: bytes) -> Protocol | Match:
        """Return the protocol that is not this port's; see `first_bytes.foreign`."""
        return first_bytes.foreign(first, self._spoken)

    def tell(self, protocol: Protocol, peer: str) -> bytes:
        """Log the protocol of a client, and where it belongs; return the answer to it."""
        wanted = first_bytes.wanted(protocol, self._port, self._open_ports)
        line = "client speaks another protocol peer=%s speaks=%s port=%s wanted=%s"
        name = protocol.name
        self._say(log.warning, host_of(peer), line, peer, name, self._port, wanted)
        return first_bytes.answer(protocol, f"this port is for {self._port}; for {name}: {wanted}")


class FirstLook(Owner):
    """Owns an edge until its client's first bytes are judged, then gives it to the connection."""

    def __init__(self, connection: Connection, look: Look) -> None:
        self._connection = connection
        self._look = look
        self._first = b""

    def place(self) -> memoryview:
        """Return where the next bytes are read to: behind those that there are."""
        return self._connection.place()[len(self._first) :]

    def received(self, size: int) -> None:
        """Judge the first bytes; keep them while there are too few."""
        connection = self._connection
        place, size = connection.place(), size + len(self._first)
        place[: len(self._first)] = self._first
        self._first = bytes(place[: min(size, LOOK_BYTES)])
        found = self._look.foreign(self._first)
        if isinstance(found, Protocol):
            if answer := self._look.tell(found, connection.peer):
                connection.send(answer)
            connection.finish()
        elif found is Match.NO:
            connection.edge.start(connection)
            connection.received(size)

    def writable(self) -> None:
        """Go on: everything queued has been sent."""
        self._connection.writable()

    def lost(self) -> None:
        """Learn that the peer is gone."""
        self._connection.lost()

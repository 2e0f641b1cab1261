"""A port that is listened on: accepts connections and knows those that are alive."""

import errno
import logging
import socket
from collections.abc import Sequence
from typing import Final

from gateway.network.addresses import is_loopback
from gateway.network.listening import Address, address_of, bind, listen_at, restore_congestion
from gateway.server.connections.connection import Connection
from gateway.server.connections.edge import PlainEdge
from gateway.server.connections.first_look import FirstLook, Look
from gateway.server.connections.shared import Shared
from gateway.server.front import FrontKind
from gateway.server.sockets import SocketPlaces

log = logging.getLogger(__name__)

_BACKLOG: Final = 1024
_ACCEPTED_A_TURN: Final = 64
_NO_DESCRIPTORS: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_PAUSE_S: Final = 0.1
_CUT_S: Final = 1.0
"""Time that a client that is cut off has to read the frames queued for it."""


class Listener:
    """A port at which clients of one kind come in; knows the connections that are alive.

    Attributes:
        shared: What all connections have in common.
        sockets: Those of the process.
    """

    def __init__(
        self,
        listening: Sequence[socket.socket],
        shared: Shared,
        kind: FrontKind,
        sockets: SocketPlaces,
    ) -> None:
        """Prepare to listen.

        Args:
            listening: Its sockets, one an address: what `bind_all` gave.
            shared: What all connections have in common.
            kind: What is spoken here.
            sockets: Those of the process.
        """
        self._listening = list(listening)
        self.shared = shared
        self._kind = kind
        self.sockets = sockets
        self._connections: set[Connection] = set()
        self._is_accepting = False
        self._addresses = [address_of(each) for each in listening]
        self._look = Look(kind.name, shared.open_ports, shared.say)

    @property
    def connections(self) -> set[Connection]:
        """Those that are alive."""
        return self._connections

    @property
    def protocol(self) -> str:
        """Word for the protocol here, as administrators see it."""
        return self._kind.name

    @property
    def address(self) -> Address:
        """Host and port, the first of them."""
        return self._addresses[0]

    @property
    def addresses(self) -> Sequence[Address]:
        """Hosts and ports."""
        return self._addresses

    @property
    def is_shut(self) -> bool:
        """True if new connections are refused."""
        return all(each.fileno() < 0 for each in self._listening)

    def shut(self) -> None:
        """Refuse new connections from now on."""
        self.stop_accepting()

    def reopen(self) -> None:
        """Listen again at the addresses of before. Raises OSError: one is taken, and none is."""
        self._listening.clear()
        try:
            for address in self._addresses:
                self._listening.append(bind(*address))
            self.start()
        except OSError:
            self._close()
            raise

    def cut(self) -> int:
        """End every connection that came in here; return how many there were."""
        connections = list(self._connections)
        for connection in connections:
            connection.stop(_CUT_S)
        return len(connections)

    # From connections

    def logged_in(self, edge: PlainEdge) -> None:
        """Note that the client on a socket is no stranger any more."""
        self.sockets.logged_in(edge)

    def closed(self, connection: Connection) -> None:
        """Note that a connection is over."""
        self._connections.discard(connection)

    # Accepting

    def start(self) -> None:
        """Listen and accept from now on. Raises OSError: another process listens there by now."""
        listen_at(self._listening, _BACKLOG)
        self.shared.open_ports[self.protocol] = self.address
        self._watch()

    def _watch(self) -> None:
        self._is_accepting = True
        for each in self._listening:
            self.shared.loop.add_reader(each.fileno(), self._accept, each)

    def _watch_no_more(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            for each in self._listening:
                self.shared.loop.remove_reader(each.fileno())

    def stop_accepting(self) -> None:
        """Refuse new connections."""
        self.shared.open_ports.pop(self.protocol, None)
        self._watch_no_more()
        self._close()

    def _close(self) -> None:
        for each in self._listening:
            each.close()

    def is_busy(self) -> bool:
        """True if those that come next have to wait."""
        return False

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTED_A_TURN):
            if self.is_busy():
                self._rest()
                return
            try:
                connected, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _NO_DESCRIPTORS:
                    self._complain("", str(error))
                    self._rest()
                    return
                raise
            host, port = address[0], address[1]
            if not self.sockets.make_room(host):
                connected.close()
                self._complain(host, "every socket there may be is taken")
                continue
            if not is_loopback(host):
                restore_congestion(connected)
            self.welcome(connected, host, port)

    def welcome(self, connected: socket.socket, host: str, port: int) -> None:
        """Begin with a client that has just come."""
        edge = PlainEdge(self.shared.loop, connected, self.sockets.discard)
        self.sockets.add(edge, host)
        self.serve(edge, host, port)

    def serve(
        self, edge: PlainEdge, host: str, port: int, certificate_user: str | None = None
    ) -> None:
        """Speak the protocol with a client."""
        connection = Connection(
            self.shared,
            self._kind,
            edge,
            self,
            f"{host}:{port}",
            is_loopback=is_loopback(host),
            certificate_user=certificate_user,
        )
        self._connections.add(connection)
        connection.start(FirstLook(connection, self._look))

    def _rest(self) -> None:
        """Wait a moment when there is no room for another connection."""
        self._watch_no_more()
        self.shared.loop.call_later(_PAUSE_S, self._start_again)

    def _complain(self, host: str, reason: str) -> None:
        line = "cannot accept protocol=%s sockets=%d limit=%d reason=%s"
        count, limit = len(self.sockets), self.sockets.places
        self.shared.say(log.warning, host, line, self.protocol, count, limit, reason)

    def _start_again(self) -> None:
        if not self.is_shut:
            self._watch()

"""The listener for clients over TLS: they shake hands, then speak the protocol as all others."""

import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from gateway.network.pre_login import PreLogin
from gateway.server.connections.edge import PlainEdge
from gateway.server.connections.first_look import Look
from gateway.server.connections.shared import Shared
from gateway.server.front import FrontKind
from gateway.server.listener import Listener
from gateway.server.loop.threads import Threads
from gateway.server.sockets import SocketPlaces
from gateway.server.tls.tls_edge import TlsEdge
from gateway.server.tls.tls_files import TlsContexts
from gateway.server.tls.tls_greeting import Greeting, lower_priority

log = logging.getLogger(__name__)

_THREADS: Final = 2
_WAITING_MAX: Final = 128
"""Most handshakes that wait for a thread; beyond, no client is accepted for a moment: new ones wait
in the system's queue."""


UserOf: TypeAlias = Callable[[bytes], str]
"""From a client's certificate, DER, to the user that it names; empty if none. Raises ValueError."""


class TlsListener(Listener):
    """Accepts clients over TLS."""

    def __init__(  # noqa: PLR0913  # what a listener needs, and what TLS does
        self,
        listening: Sequence[socket.socket],
        shared: Shared,
        kind: FrontKind,
        sockets: SocketPlaces,
        *,
        contexts: TlsContexts,
        user_of: UserOf,
        handshakes_max: int,
        handshake_timeout_s: float,
    ) -> None:
        """Prepare to listen.

        Args:
            listening: As of `Listener`.
            shared: As of `Listener`.
            kind: As of `Listener`.
            sockets: As of `Listener`.
            contexts: The certificates.
            user_of: Finds the user that a client's certificate names.
            handshakes_max: How many handshakes may be under way.
            handshake_timeout_s: How long each may take.
        """
        super().__init__(listening, shared, kind, sockets)
        self._contexts = contexts
        self._user_named = user_of
        self._handshakes_max = handshakes_max
        self._handshake_timeout_s = handshake_timeout_s
        self._threads = Threads(self.shared.loop, _THREADS, name="tls", begin=lower_priority)
        self._look_before = Look(self.protocol, shared.open_ports, shared.say)
        self._greetings: dict[Greeting, tuple[str, int]] = {}
        self._shaking: PreLogin[Greeting] = PreLogin(handshakes_max)

    @property
    def protocol(self) -> str:
        """Word for the protocol here, as administrators see it."""
        return f"{super().protocol}/ssl"

    @property
    def handshakes(self) -> int:
        """Return how many are under way."""
        return len(self._greetings)

    def stop_accepting(self) -> None:
        """Refuse new connections, and those that have not shaken hands."""
        super().stop_accepting()
        for greeting in list(self._greetings):
            greeting.end("the server stops")

    def is_busy(self) -> bool:
        return self._threads.waiting_count > _WAITING_MAX

    def welcome(self, connected: socket.socket, host: str, port: int) -> None:
        greeting = Greeting(
            self.shared.loop,
            connected,
            self._contexts.current,
            self._threads,
            done=self._greeted,
            failed=self._failed,
            closed=self.sockets.discard,
            look=self._look_before,
            peer=f"{host}:{port}",
        )
        is_full = len(self._greetings) >= self._handshakes_max
        other = self._shaking.in_the_way(host, is_full=is_full)
        if other is not None:
            other.end("too many handshakes are under way")
        self.sockets.add(greeting, host)
        self._greetings[greeting] = host, port
        self._shaking.add(greeting, host)
        greeting.start(self._handshake_timeout_s)

    def _greeted(self, greeting: Greeting, edge: TlsEdge) -> None:
        host, port = self._leave(greeting)
        self.sockets.replace(greeting, edge)
        self.serve(edge, host, port, self._user_of(edge, host))

    def _user_of(self, edge: TlsEdge, host: str) -> str | None:
        """Return the user of the client's certificate; None if clients are not asked for one."""
        if not self._contexts.asks_for_certificates:
            return None
        certificate = edge.peer_certificate()
        try:
            if certificate is None or edge.certificate_has_run_out():
                return ""
            return self._user_named(certificate)
        except ValueError as error:
            line = "certificate names nobody peer=%s error=%s"
            self.shared.say(log.warning, host, line, host, repr(error))
            return ""

    def _failed(self, greeting: Greeting, reason: str, farewell: PlainEdge | None) -> None:
        host, port = self._leave(greeting)
        if farewell is not None:
            self.sockets.replace(greeting, farewell)
        if reason:
            line = "tls handshake failed peer=%s reason=%s"
            self.shared.say(log.warning, host, line, f"{host}:{port}", reason)

    def _leave(self, greeting: Greeting) -> tuple[str, int]:
        self._shaking.remove(greeting)
        return self._greetings.pop(greeting)

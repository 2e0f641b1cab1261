"""Callers of Pravega's controller: from the credentials of a call to a user with its rights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.broker.access.access import Access
from gateway.broker.access.authentication import UNREAD, Authentication, LoginRefused, Peer
from gateway.broker.access.credentials import basic_credentials
from gateway.broker.access.model import Right
from gateway.broker.access.users_file import DEFAULT_VIRTUAL_HOST
from gateway.broker.hosts.virtual_hosts import VirtualHosts
from gateway.log.names import is_named_after, is_own, scope_of
from gateway.network.addresses import is_loopback
from gateway.pravega.access.callers import Caller, LogIn
from gateway.pravega.controller.errors import Busy

PROTOCOL: Final = "controller"
"""The name by which attempts to log in are counted."""
_CLIENTS: Final = (
    "Basic credentials, which Pravega's clients take from pravega_client_auth_method, "
    "pravega_client_auth_username and pravega_client_auth_password in their environment"
)


def log_in_by(authentication: Authentication, caller_of: Callable[[str], Caller]) -> LogIn:
    """Return the function that logs callers in.

    Args:
        authentication: Knows users and passwords.
        caller_of: Returns a user's rights.
    """

    async def log_in(authorization: str, host: str) -> Caller | None:
        credentials = basic_credentials(authorization)
        peer = Peer(bool(host) and is_loopback(host), host, PROTOCOL)
        if credentials is None:
            authentication.refused(peer, "no name and password came", _CLIENTS)
            return None
        data = b"\x00".join((b"", *credentials))
        try:
            return caller_of(await authentication.log_in("PLAIN", data, peer))
        except LoginRefused as refused:
            if refused.reason.is_unread:
                raise Busy(UNREAD) from None
            return None

    return log_in


@dataclass(frozen=True, slots=True)
class StreamUser:
    """A user of the streams, as a caller.

    Its permissions count on the name `scope/stream` in the virtual host `/`; on the scope itself,
    `scope/`. What holds a stream may be read with the right to read that stream in its own virtual
    host; it cannot be changed here.

    Attributes:
        standing: What the user was when it logged in. It has no rights once that is another one,
            since its call may come in parts.
    """

    name: str
    access: Access
    virtual_hosts: VirtualHosts
    standing: bytes | None

    def may(self, right: Right, scope: str, stream: str) -> bool:
        """Return whether it has a right on a stream; on its scope if the stream is ''."""
        if self.standing != self.access.standings.of(self.name):
            return False
        virtual_host, name = DEFAULT_VIRTUAL_HOST, f"{scope}/{stream}"
        if is_own(scope, stream or "_"):
            held = _held_by(self.virtual_hosts, scope, stream)
            if held is None or right is not Right.READ:
                return False
            virtual_host, name = held
        return self.access.may(self.name, virtual_host, right, name)


def _held_by(virtual_hosts: VirtualHosts, scope: str, stream: str) -> tuple[str, str] | None:
    """Return virtual host and name of the stream whose chunks, index or filters a stream holds."""
    for name in virtual_hosts.names():
        host = virtual_hosts.find(name) if scope_of(name) == scope else None
        for each in () if host is None else host.streams:
            if is_named_after(stream, each.name, each.entry.generation):
                return name, each.name
    return None

"""Rights of the controller's callers."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from gateway.broker.access.model import Right
from gateway.pending import Pending
from gateway.pravega.controller.errors import NoRight
from gateway.pravega.tokens import Tokens, resource_of, words_of

TOKEN_LIFETIME_MS: Final = 10 * 60 * 1_000
"""Clients fetch a new token when theirs has expired."""


class Caller(Protocol):
    """A client that has made a call."""

    @property
    def name(self) -> str:
        """Name of its user; empty where there are no users."""
        ...

    def may(self, right: Right, scope: str, stream: str) -> bool:
        """Tell whether it has a right on a stream; on its scope if the stream is ''."""
        ...


LogIn = Callable[[str, str], Coroutine[Pending[Any], None, Caller | None]]
"""From an `authorization`, '' if none was sent, and the peer's host to the caller.

None: it is not let in. Raises Busy.
"""


class Anyone:
    """Every client where there are no users: it may do everything."""

    name = ""

    def may(self, right: Right, scope: str, stream: str) -> bool:  # noqa: ARG002
        """Allow everything."""
        return True


def minting(tokens: Tokens, clock_ms: Callable[[], int]) -> Callable[[Caller, str, str], str]:
    """Return what makes the token with which a caller reaches a stream's segments.

    It has the caller's rights to that stream. Without any the function raises NoRight.
    """

    def token(caller: Caller, scope: str, stream: str) -> str:
        # With a slash the resource would be another one; without a stream, a whole scope.
        if not stream or "/" in scope + stream:
            raise NoRight(f"{scope}/{stream} is no stream")
        rights = [right for right in Right if caller.may(right, scope, stream)]
        if not rights:
            raise NoRight(f"no right on {scope}/{stream}")
        claims = {resource_of(scope, stream): words_of(rights)}
        return tokens.mint(
            claims, now_ms=clock_ms(), lifetime_ms=TOKEN_LIFETIME_MS, user=caller.name
        )

    return token

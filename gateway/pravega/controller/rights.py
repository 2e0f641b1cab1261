"""Rights of the controller's callers."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from gateway.broker.access.model import Right
from gateway.pending import Pending
from gateway.pravega.access.tokens import Tokens, resource_of, words_of
from gateway.pravega.controller.errors import NoRight
from gateway.pravega.controller.tables.names import stream_of

TOKEN_LIFETIME_MS: Final = 10 * 60 * 1_000
"""Clients fetch a new token when theirs has expired."""


class Rights(Protocol):
    """Rights on streams."""

    def may(self, right: Right, scope: str, stream: str) -> bool:
        """Return whether there is a right on a stream; on its scope if the stream is ''."""
        ...


class Caller(Rights, Protocol):
    """A client that has made a call."""

    @property
    def name(self) -> str:
        """Name of its user; empty where there are no users."""
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


class Minting(Protocol):
    """Makes a token."""

    def __call__(
        self, caller: Caller, scope: str, stream: str, /, *, has_table: bool = False
    ) -> str:
        """Return the token with which a caller reaches a stream's segments.

        With `has_table` there is a table of that name, whose parts the token is for as well.
        """
        ...


def minting(tokens: Tokens, clock_ms: Callable[[], int]) -> Minting:
    """Return what makes the token with which a caller reaches a stream's segments.

    It has the caller's rights to that stream. Without any the function raises NoRight. Rights to a
    table are those of its name, and those of the name that it has where streams stand.
    """

    def token(caller: Caller, scope: str, stream: str, /, *, has_table: bool = False) -> str:
        # With a slash the resource would be another one; without a stream, a whole scope.
        if not stream or "/" in scope + stream:
            raise NoRight(f"{scope}/{stream} is no stream")
        given = {stream: _rights(caller, scope, stream)}
        if has_table:
            table = stream_of(stream)
            given[table] = given[stream] | _rights(caller, scope, table)
        claims = {
            resource_of(scope, name): words_of(rights) for name, rights in given.items() if rights
        }
        if not claims:
            raise NoRight(f"no right on {scope}/{stream}")
        return tokens.mint(
            claims, now_ms=clock_ms(), lifetime_ms=TOKEN_LIFETIME_MS, user=caller.name
        )

    return token


def _rights(caller: Caller, scope: str, stream: str) -> set[Right]:
    return {right for right in Right if caller.may(right, scope, stream)}

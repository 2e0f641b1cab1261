"""Rights of a caller: the tokens that it gets, and the things that it may see in lists."""

from collections.abc import Callable
from typing import Final, Protocol

from gateway.broker.access.model import Right
from gateway.pravega.access.callers import Caller, StreamRights
from gateway.pravega.access.tokens import Tokens, resource_of, words_of
from gateway.pravega.controller.errors import NoRight
from gateway.pravega.controller.records.directory import Directory, wanted
from gateway.pravega.controller.records.model import StreamRecord
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.names import GROUP, names_with_rights, stream_of

TOKEN_LIFETIME_MS: Final = 10 * 60 * 1_000
"""Clients fetch a new token when theirs has expired."""


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
    """Return the function that makes the token with which a caller reaches a stream's segments.

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


class Sight:
    """Scopes, streams, groups of readers and tables that a caller may see."""

    def __init__(self, registry: Registry, caller: StreamRights) -> None:
        """Look at the registry with the rights of a caller."""
        self._registry = registry
        self._caller = caller

    def has_right(self, scope: str, stream: str = "") -> bool:
        """Return whether it has any right on a stream; on the scope if the stream is ''."""
        return any(self._caller.may(right, scope, stream) for right in Right)

    def may_read(self, scope: str, stream: str) -> bool:
        """Return whether it may read a stream."""
        return self._caller.may(Right.READ, scope, stream)

    def may_read_table(self, scope: str, table: str) -> bool:
        """Return whether it may read a table."""
        return any(self.may_read(scope, each) for each in names_with_rights(table))

    def may_see_group(self, scope: str, group: str) -> bool:
        """Return whether it may see a group of readers: any right on the group's stream will do."""
        return self.has_right(scope, GROUP + group)

    def may_read_group(self, scope: str, group: str) -> bool:
        """Return whether it may read the state of a group of readers, as it may on the wire."""
        return any(
            self._caller.may(right, scope, GROUP + group) for right in (Right.READ, Right.WRITE)
        )

    async def streams(self, scope: str) -> Directory[StreamRecord] | None:
        """Return the streams of a scope of which it may see something; None for any other scope.

        It has a right on the scope, or may read a stream or a table in it.
        """
        streams = self._registry.scopes.get(scope)
        if streams is None or self.has_right(scope):
            return streams
        tables = self._registry.tables.of(scope)
        is_seen = await wanted(streams, lambda name: self.may_read(scope, name), most=1) or (
            await wanted(tables, lambda name: self.may_read_table(scope, name), most=1)
        )
        return streams if is_seen else None

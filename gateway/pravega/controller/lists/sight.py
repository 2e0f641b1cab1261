"""Rights of a caller on what is listed."""

from gateway.broker.access.model import Right
from gateway.pravega.controller.directory import Directory, wanted
from gateway.pravega.controller.model import Stream
from gateway.pravega.controller.names import GROUP
from gateway.pravega.controller.registry import Registry
from gateway.pravega.controller.rights import Rights
from gateway.pravega.controller.tables.names import names_with_rights


class Sight:
    """Scopes, streams, groups of readers and tables that a caller may see."""

    def __init__(self, registry: Registry, caller: Rights) -> None:
        """Look at what there is with the rights of a caller."""
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
        """Return whether it may read what the readers of a group agree, as it may on the wire."""
        return any(
            self._caller.may(right, scope, GROUP + group) for right in (Right.READ, Right.WRITE)
        )

    async def streams(self, scope: str) -> Directory[Stream] | None:
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

"""The tables that the controller knows, in memory and in its table."""

from gateway.pravega.controller.directory import Directory
from gateway.pravega.controller.errors import NoSuchTable
from gateway.pravega.controller.table import KEY_VALUE_TABLE, Table
from gateway.pravega.controller.tables.model import KeyValueTable


class KnownTables:
    """Tables by scope and name.

    Memory holds what the controller's table holds: it is changed when the store has answered. Its
    coroutines, on `gateway.pending`, raise StoreError.
    """

    def __init__(self, rows: Table) -> None:
        self._rows = rows
        self._scopes: dict[str, Directory[KeyValueTable]] = {}

    def load(self, key: bytes, row: bytes) -> None:
        """Take in a table's row. Raises ValueError or a like error if it is none."""
        table = KeyValueTable.from_bytes(row)
        if _key(table) != key or len(table.segment_names) != table.config.partitions:
            raise ValueError(f"the entry {_key(table)!r} stands there")
        self._keep(table)

    def of(self, scope: str) -> Directory[KeyValueTable]:
        """Return the tables of a scope, by name."""
        return self._scopes.get(scope) or Directory()

    def all(self) -> list[KeyValueTable]:
        """Return the tables of all scopes."""
        return [each for some in self._scopes.values() for each in some.values()]

    def table(self, scope: str, name: str) -> KeyValueTable:
        """Return a table. Raises NoSuchTable."""
        table = self.of(scope).get(name)
        if table is None:
            raise NoSuchTable(f"no such table: {scope}/{name}")
        return table

    async def save(self, table: KeyValueTable) -> KeyValueTable:
        """Write a table as it is now; return it."""
        await self._rows.write({_key(table): table.to_bytes()})
        self._keep(table)
        return table

    async def forget(self, table: KeyValueTable) -> None:
        """Remove a table."""
        await self._rows.remove([_key(table)])
        some = self._scopes[table.scope]
        del some[table.name]
        if not some:
            del self._scopes[table.scope]

    def _keep(self, table: KeyValueTable) -> None:
        self._scopes.setdefault(table.scope, Directory())[table.name] = table


def _key(table: KeyValueTable) -> bytes:
    return KEY_VALUE_TABLE + f"{table.scope}/{table.name}".encode()

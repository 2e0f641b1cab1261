"""Tables of keys and values: their records, and all of them, in memory and as rows of a table."""

import dataclasses
import enum
import json
from dataclasses import dataclass
from typing import Self

from gateway.pravega.controller.errors import NoSuchTable
from gateway.pravega.controller.records.directory import Directory
from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.records.history import evenly
from gateway.pravega.controller.records.table import KEY_VALUE_TABLE, RecordTable
from gateway.pravega.names import segment_name, stream_of


class TableState(enum.Enum):
    """State of a table; those that end in -ING have steps left to do."""

    CREATING = "creating"
    ACTIVE = "active"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """Configuration of a table, which never changes.

    Attributes:
        partitions: Number of its parts.
        primary: Bytes of a primary key.
        secondary: Bytes of a secondary key. Where both are 0, keys have any length.
        rollover_bytes: Size of a file of a part; 0 leaves it to the store.
    """

    partitions: int = 1
    primary: int = 0
    secondary: int = 0
    rollover_bytes: int = 0

    @property
    def key_length(self) -> int:
        """Bytes of a key as the store has it; 0: any."""
        return self.primary + self.secondary


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValueTable:
    """A table.

    Attributes:
        first: Number of its first part.
    """

    scope: str
    name: str
    config: TableConfig
    state: TableState
    first: int

    @property
    def segments(self) -> tuple[StreamSegment, ...]:
        """Its parts, whose primary keys have equal widths."""
        return evenly(self.config.partitions, self.first, 0).made

    @property
    def next_number(self) -> int:
        """The number behind those of its parts."""
        return self.first + self.config.partitions

    @property
    def segment_names(self) -> list[str]:
        """Names of its parts in the store."""
        stream = stream_of(self.name)
        return [segment_name(self.scope, stream, each.identity) for each in self.segments]

    def to_bytes(self) -> bytes:
        """Return the record's form in the controller's table."""
        fields = dataclasses.asdict(self) | {"state": self.state.value}
        return json.dumps(fields).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the bytes of `to_bytes`."""
        fields = json.loads(data)
        fields["config"] = TableConfig(**fields["config"])
        fields["state"] = TableState(fields["state"])
        return cls(**fields)


class KnownTables:
    """Tables by scope and name.

    Memory holds what the controller's table holds: it is changed when the store has answered. Its
    coroutines, on `gateway.pending`, raise StoreError.
    """

    def __init__(self, rows: RecordTable) -> None:
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

"""Changes of tables.

As with streams, a change is written first, as the table's state; then its parts are changed; then
the state is settled. Each step may be repeated.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

from gateway.pravega.controller.errors import (
    BadName,
    InvalidRequest,
    NoSuchTable,
    TableExists,
)
from gateway.pravega.controller.records.key_value_tables import (
    KeyValueTable,
    TableConfig,
    TableState,
)
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.segments import Segments
from gateway.pravega.names import is_table_name, stream_of
from store.api import KEY_BYTES_MAX

PARTITIONS_MAX: Final = 1_000
"""As many as a stream has open segments."""


class Tables:
    """Changes of tables, which the caller makes one after the other."""

    def __init__(self, registry: Registry, segments: Segments) -> None:
        self._registry = registry
        self._segments = segments

    async def create(self, scope: str, name: str, config: TableConfig) -> None:
        """Create a table and its parts.

        Raises BadName, NoSuchScope, TableExists, InvalidRequest.
        """
        _check(config)
        if not is_table_name(name):
            raise BadName(f"no table may be called {name!r}")
        self._registry.streams(scope)
        # Clients that know no tables of the controller make some of such names by themselves.
        if name in self._registry.tables.of(scope):
            with suppress(NoSuchTable):
                await self.settled(scope, name)
        if name in self._registry.tables.of(scope) or await self._segments.count(
            f"{scope}/{stream_of(name)}"
        ):
            raise TableExists(f"the table exists: {scope}/{name}")
        table = KeyValueTable(
            scope=scope,
            name=name,
            config=config,
            state=TableState.CREATING,
            first=self._registry.ended.first_number(scope, stream_of(name)),
        )
        await self.finish(await self._registry.tables.save(table))

    async def delete(self, scope: str, name: str) -> None:
        """Delete a table with all that it holds. Raises NoSuchTable."""
        table = self._registry.tables.table(scope, name)
        deleting = replace(table, state=TableState.DELETING)
        await self.finish(await self._registry.tables.save(deleting))

    async def settled(self, scope: str, name: str) -> KeyValueTable:
        """Return a table, after its last change is finished. Raises NoSuchTable."""
        table = self._registry.tables.table(scope, name)
        if table.state is not TableState.ACTIVE:
            await self.finish(table)
        return self._registry.tables.table(scope, name)

    async def finish(self, table: KeyValueTable) -> None:
        """Finish a table's change."""
        match table.state:
            case TableState.CREATING:
                await self._segments.create_tables(table.segment_names, table.config.key_length)
                await self._registry.tables.save(replace(table, state=TableState.ACTIVE))
            case TableState.DELETING:
                place = f"{table.scope}/{stream_of(table.name)}"
                await self._segments.delete(await self._segments.beneath(place))
                await self._registry.end_table(table)


def _check(config: TableConfig) -> None:
    """Raise InvalidRequest unless there may be a table of a configuration."""
    if not 1 <= config.partitions <= PARTITIONS_MAX:
        raise InvalidRequest(f"{config.partitions} partitions: 1 … {PARTITIONS_MAX} are possible")
    # Clients of before 0.10 say nothing of keys, which they give any length.
    has_lengths = config.primary > 0 and config.secondary >= 0
    if not has_lengths and (config.primary or config.secondary):
        text = f"keys of {config.primary} and {config.secondary} bytes"
        raise InvalidRequest(f"{text}: a primary key has one at least")
    if config.key_length > KEY_BYTES_MAX:
        raise InvalidRequest(f"keys of {config.key_length} bytes are above {KEY_BYTES_MAX}")
    if config.rollover_bytes < 0:
        raise InvalidRequest(f"files of {config.rollover_bytes} bytes are not possible")

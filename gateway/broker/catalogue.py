r"""The streams of one virtual host, kept in a table of the segment store.

    key      the stream's name, or \\0sha256\\0 and its hash where the name is too long for a key
    value    JSON: name, generation, arguments, born (see `gateway.broker.openings`), state

A stream is written down before its segment is made and taken out after its segments are gone, so
that nothing is ever left in the store that nobody knows of.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.log.tracking import create_table_if_missing
from gateway.pending import Pending
from store.api import KEY_BYTES_MAX, SegmentStore, TableEntry, TablePage

LIVE: Final = "live"
DELETING: Final = "deleting"


@dataclass(slots=True)
class StreamEntry:
    """A stream as the catalogue knows it.

    Attributes:
        name: As clients say it (bytes that are no UTF-8 are kept by surrogate escapes).
        generation: A number no other creation ever had.
        arguments: Of its creation, as `StreamArguments` packs them.
        born: How many unclean openings there had been when it was created.
        state: LIVE, or DELETING while its segments are being removed.
    """

    name: str
    generation: int
    arguments: Mapping[str, Any] = field(default_factory=dict)
    born: int = 0
    state: str = LIVE

    def pack(self) -> bytes:
        """Encode as the table's value."""
        fields = {
            "name": self.name,
            "generation": self.generation,
            "arguments": dict(self.arguments),
            "born": self.born,
            "state": self.state,
        }
        return json.dumps(fields).encode()


def key_of(name: str) -> bytes:
    """Key of a stream in the catalogue's table."""
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) <= KEY_BYTES_MAX:
        return raw
    return b"\x00sha256\x00" + hashlib.sha256(raw).digest()


async def read_whole_table(store: SegmentStore, table: str) -> list[TableEntry]:
    """Return every entry of a table."""
    entries: list[TableEntry] = []
    continuation: bytes | None = None
    while True:
        page: Pending[TablePage] = Pending()
        store.iterate_table(table, continuation=continuation, done=page.settle)
        result = await page
        entries.extend(result.entries)
        continuation = result.continuation
        if continuation is None:
            return entries


class Catalogue:
    """The table of a virtual host's streams."""

    def __init__(self, store: SegmentStore, table: str) -> None:
        self._store = store
        self._table = table

    async def load(self) -> list[StreamEntry]:
        """Create the table if it is missing; return what is in it."""
        await create_table_if_missing(self._store, self._table)
        return [
            StreamEntry(**json.loads(entry.value))
            for entry in await read_whole_table(self._store, self._table)
        ]

    async def put(self, entry: StreamEntry) -> None:
        """Write a stream down, or its new state. Raises StoreError."""
        written: Pending[Any] = Pending()
        self._store.update_table(
            self._table, [TableEntry(key_of(entry.name), entry.pack())], done=written.settle
        )
        await written

    async def remove(self, entry: StreamEntry) -> None:
        """Forget a stream. Raises StoreError."""
        removed: Pending[None] = Pending()
        self._store.remove_keys(
            self._table, [TableEntry(key_of(entry.name), b"")], done=removed.settle
        )
        await removed

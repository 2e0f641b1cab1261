r"""The streams of one virtual host, kept in a table of the segment store.

    key      the stream's name, or \\0sha256\\0 and its hash where the name is too long for a key
    value    JSON: name, generation, arguments, born (see `gateway.broker.streams.openings`), state

A stream is written down before its segment is made and taken out after its segments are gone, so
that no segment is ever left in the store without an entry.

No stream's name begins with `amq.`: such keys are those of exchanges and bindings
(`gateway.broker.topology.exchanges`), which lie here so that one write can change them with their
streams.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.broker.kept_table import read_whole_table
from gateway.broker.rules.arguments import StreamArguments
from gateway.log.derived.tracking import create_table_if_missing
from gateway.pending import Pending
from store.api import KEY_BYTES_MAX, SegmentStore, TableEntry
from store.errors import CorruptSegment

LIVE: Final = "live"
CREATING: Final = "creating"
DELETING: Final = "deleting"
_STATES: Final = (LIVE, CREATING, DELETING)

TOPOLOGY_PREFIX: Final = b"amq."


@dataclass(slots=True)
class StreamEntry:
    """A stream as the catalogue knows it.

    Attributes:
        name: As clients say it (bytes that are no UTF-8 are kept by surrogate escapes).
        generation: A number no other creation ever had.
        arguments: Of its creation, as `StreamArguments` packs them.
        born: How many unclean openings there had been when it was created.
        state: LIVE, CREATING while those it is to be born with have no segments yet, or DELETING
            while its segments are being removed.
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

    @classmethod
    def unpack(cls, row: TableEntry) -> "StreamEntry":
        """Undo `pack`. Raises CorruptSegment: what stands there was never written."""
        try:
            fields: dict[str, Any] = json.loads(row.value)
            entry = cls(**fields)
            StreamArguments.parse(entry.arguments)
            if (
                key_of(entry.name) == row.key
                and entry.state in _STATES
                and all(isinstance(fields[number], int) for number in ("generation", "born"))
            ):
                return entry
        except (ValueError, TypeError, AttributeError, KeyError):  # of JSON, of fields and types
            pass
        raise CorruptSegment(f"the catalogue's entry of the stream {row.key!r} is damaged")


def key_of(name: str) -> bytes:
    """Key of a stream in the catalogue's table."""
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) <= KEY_BYTES_MAX:
        return raw
    return b"\x00sha256\x00" + hashlib.sha256(raw).digest()


class Catalogue:
    """The table of a virtual host's streams.

    Attributes:
        topology: What `load` found of exchanges and bindings, to be taken over by them.
    """

    def __init__(self, store: SegmentStore, table: str) -> None:
        self._store = store
        self._table = table
        self.topology: list[TableEntry] = []

    async def load(self) -> list[StreamEntry]:
        """Create the table if it is missing; return what is in it.

        Raises:
            CorruptSegment: It is damaged.
            StoreError: It cannot be read.
        """
        await create_table_if_missing(self._store, self._table)
        streams: list[StreamEntry] = []
        for entry in await read_whole_table(self._store, self._table):
            if entry.key.startswith(TOPOLOGY_PREFIX):
                self.topology.append(entry)
            else:
                streams.append(StreamEntry.unpack(entry))
        return streams

    async def put(
        self,
        *entries: StreamEntry,
        topology: Sequence[TableEntry] = (),
        gives_space: bool = False,
    ) -> None:
        """Write streams or their new states down, and topology with them: all or nothing.

        Args:
            entries: The streams.
            topology: Other rows.
            gives_space: They will be deleted in consequence.

        Raises:
            StoreError: Nothing was written.
        """
        rows = [*(TableEntry(key_of(entry.name), entry.pack()) for entry in entries), *topology]
        if rows:
            written: Pending[Any] = Pending()
            store = self._store.for_removal if gives_space else self._store
            store.update_table(self._table, rows, done=written.settle)
            await written

    async def remove(self, *entries: StreamEntry, topology: Iterable[bytes] = ()) -> None:
        """Forget streams, and keys of the topology with them: all or nothing. Raises StoreError."""
        keys = [*(key_of(entry.name) for entry in entries), *topology]
        if keys:
            removed: Pending[None] = Pending()
            rows = [TableEntry(key, b"") for key in keys]
            self._store.remove_keys(self._table, rows, done=removed.settle)
            await removed

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
from typing import Any, Final, Protocol

from gateway.broker.kept_table import read_whole_table
from gateway.broker.rules.arguments import StreamArguments
from gateway.broker.rules.policies import Governed
from gateway.log.derived.tracking import create_table_if_missing
from gateway.log.log import StreamLog
from gateway.log.reading.extent import Extent
from gateway.log.reading.retention import RetentionLimits
from gateway.pending import Pending
from store.api import KEY_BYTES_MAX, SegmentStore, TableEntry
from store.errors import CorruptSegment, NoSuchSegment

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


class StreamCatalogue:
    """The table of a virtual host's streams.

    Attributes:
        topology: What `load` found of exchanges and bindings, to be taken over by them.
    """

    def __init__(self, store: SegmentStore, table: str) -> None:
        self._store = store
        self._table = table
        self.topology: list[TableEntry] = []

    async def load(self) -> list[StreamEntry]:
        """Create the table if it is missing; return its entries.

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


class Watcher(Protocol):
    """A connection, as the streams it uses see it."""

    def stream_gone(self, stream: "Stream") -> None:
        """Drop every publisher and subscription of the stream and tell the client."""
        ...


@dataclass(slots=True, eq=False)
class Stream:
    """A stream that exists.

    Attributes:
        bound_by: Keys, in the catalogue's table, of the bindings that lead to it: they go with it.
        governed: What policies say of it.
    """

    entry: StreamEntry
    arguments: StreamArguments
    log: StreamLog | None = None
    opening: Pending[StreamLog] | None = None
    watchers: set[Watcher] = field(default_factory=set)
    bound_by: set[bytes] = field(default_factory=set)
    is_deleted: bool = False
    limits: RetentionLimits | None = None
    """Its limits; None until they are needed (`StreamLogs.limits_of`)."""
    limits_as_of: tuple[object, object] = (None, None)
    """The state of `governed` that they take into account."""
    evaluation: Pending[None] | None = None
    """Under way while records that may go are looked for and removed."""
    is_to_be_evaluated: bool = False
    """True if it is to be checked again when that is through."""
    is_ahead_remarked: bool = False
    """True if the log says that its timestamps lie in the future."""
    removed_bytes: int = 0
    """Removed by retention since the log told of it."""
    removal_is_told_at_s: float = 0.0
    """Before then (`time.monotonic`) the log tells of no more."""
    index_garbage: int = 0
    """Entries of the stored index that went since it was truncated."""
    resting: Extent | None = None
    """Bounds that it has while its log is not open; None until they are looked up."""
    governed: Governed = field(init=False)

    def __post_init__(self) -> None:
        self.governed = Governed(self.entry.name)

    @property
    def name(self) -> str:
        """As clients say it."""
        return self.entry.name

    def be_gone(self) -> None:
        """Note that it is deleted; its policies are looked for no more."""
        self.is_deleted = True
        self.governed.end()

    def end_log(self) -> None:
        """End its log, since its data is deleted; the log drops its references to owners."""
        if self.log is not None:
            self.log.fail(NoSuchSegment(f"stream {self.name!r} is deleted"))

"""Streams and entries of tables, for the check of a store that no server has open."""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from gateway.broker.access import access_table
from gateway.broker.commits import rows as commit_rows
from gateway.broker.errors import UnusableValue
from gateway.broker.hosts import virtual_hosts
from gateway.broker.hosts.virtual_hosts import VirtualHostEntry
from gateway.broker.rules.arguments import StreamArguments
from gateway.broker.rules.policies import Policy
from gateway.broker.streams import openings
from gateway.broker.streams.catalogue import TOPOLOGY_PREFIX, StreamEntry
from gateway.broker.streams.stream_storage import names_of
from gateway.broker.topology import exchange_loading
from gateway.log.recovery.log_opening import LogNames
from store.api import TableEntry
from store.errors import CorruptSegment

_CATALOGUE: Final = "/_meta_kvtable/"
_WRONG: Final = (ValueError, TypeError, KeyError, AttributeError, RecursionError, CorruptSegment)


class StoredStream(NamedTuple):
    """A stream of the catalogue.

    Attributes:
        virtual_host: Where it is.
        entry: What the catalogue says of it.
    """

    virtual_host: str
    entry: StreamEntry

    @property
    def log_names(self) -> LogNames:
        """Its segments."""
        return names_of(self.virtual_host, self.entry)

    @property
    def first_offset(self) -> int:
        """Offset of the first record that it ever had."""
        return StreamArguments.parse(self.entry.arguments).initial_offset or 0


def is_catalogue(table: str) -> bool:
    """Return whether a table has the streams of a virtual host."""
    return _CATALOGUE in table


def streams_of(virtual_host: str, rows: Iterable[TableEntry]) -> list[StoredStream]:
    """Return the streams of a catalogue's table, without damaged entries."""
    found = []
    for row in rows:
        if not row.key.startswith(TOPOLOGY_PREFIX):
            try:
                found.append(StoredStream(virtual_host, StreamEntry.unpack(row)))
            except _WRONG:
                continue
    return found


def unescaped(text: str) -> str | None:
    """Undo `names.escape`; None where only a hash of the name is there.

    >>> unescaped("a.2fb"), unescaped("..sha256-00")
    ('a/b', None)
    """
    if text.startswith(".."):
        return None
    raw = _ESCAPED.sub(lambda found: bytes((int(found[1], 16),)), text.encode())
    return raw.decode("utf-8", "surrogateescape")


def host_of_segment(segment: str) -> str | None:
    """Return the virtual host of a segment or table; None for the server's own, or if unknown."""
    scope = segment.partition("/")[0]
    return unescaped(scope.removeprefix("rmq-")) if scope.startswith("rmq-") else None


def homeless(segment: str) -> StoredStream | None:
    """Return the stream that a segment of chunks tells of, without its arguments; None if none."""
    match, host = _DATA_SEGMENT.fullmatch(segment), host_of_segment(segment)
    name = None if match is None else unescaped(match[1])
    if match is None or name is None or host is None:
        return None
    return StoredStream(host, StreamEntry(name, int(match[2])))


def is_sound(table: str, row: TableEntry) -> bool:
    """Return whether an entry of a table is one that a server can use."""
    unpack = next((unpack for name, unpack in _UNPACK.items() if name in table), None)
    if unpack is None or not row.value:  # what is empty counts as removed
        return True
    try:
        unpack(row)
    except UnusableValue:  # another version found it good, and so the server starts
        return True
    except _WRONG:
        return False
    return True


def rows_after_loss(table: str) -> list[TableEntry]:
    """Return what has to be written into a table that has lost entries, for the next start's sake.

    Without it a server that has no users any more would make its first one anew, and one that does
    not know how often it was opened would give epochs again.
    """
    if table == access_table.TABLE:
        return [TableEntry(access_table.BEGUN, b"1")]
    return [TableEntry(openings.KEY, b"")] if table == openings.TABLE else []


_ESCAPED: Final = re.compile(rb"\.([0-9a-f]{2})")
_DATA_SEGMENT: Final = re.compile(r"rmq-[^/]*/_(.*)-([0-9]+)/0\.#epoch\.0")

_UNPACK: Final[dict[str, Callable[[TableEntry], object]]] = {
    access_table.TABLE: lambda row: access_table.unpack_row(row.key, row.value),
    virtual_hosts.TABLE: lambda row: row.key[:1] != b"h" or VirtualHostEntry.unpack(row.value),
    openings.TABLE: lambda row: openings.unpack(row.value),
    _CATALOGUE: lambda row: (
        exchange_loading.unpack_row(row)
        if row.key.startswith(TOPOLOGY_PREFIX)
        else StreamEntry.unpack(row)
    ),
    "policies_kvtable/": lambda row: Policy.unpack(row.value),
    "/_commits_kvtable/": lambda row: commit_rows.unpack(row.key, row.value),
}
"""By a part of the table's name what reads its entries; of other tables any entry is good."""

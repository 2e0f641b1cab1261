"""The controller's records, read row by row, so that a bad row does not hide the others."""

from collections.abc import Callable
from typing import Final, TypeVar

from gateway.pravega.controller.model import Ended, Stream, Transaction
from gateway.pravega.controller.policies.places import Place
from gateway.pravega.controller.readers.group import ReaderGroup
from gateway.pravega.controller.table import (
    ENDED,
    GROUP,
    KEY_VALUE_TABLE,
    PLACE,
    SCOPE,
    STREAM,
    TIMES,
    TRANSACTION,
    UNREADABLE,
)
from gateway.pravega.controller.tables.model import KeyValueTable
from gateway.pravega.controller.times.writers import Times

Name = tuple[str, str]
"""A scope, and the name of a thing in it."""


R = TypeVar("R", Stream, ReaderGroup, KeyValueTable)


class Records:
    """All that the controller knows, as far as its rows can be read.

    Attributes:
        scopes: Names of scopes.
        streams: Streams by scope and name.
        groups: Groups of readers.
        tables: Tables of keys and values.
        transactions: Transactions, also those that are over.
        places: Streams of which there are places of retention.
        times: Streams of which there are times.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.scopes: set[str] = set()
        self.streams: dict[Name, Stream] = {}
        self.groups: dict[Name, ReaderGroup] = {}
        self.tables: dict[Name, KeyValueTable] = {}
        self.transactions: list[Transaction] = []
        self.places: set[Name] = set()
        self.times: set[Name] = set()
        self._takes: Final[dict[bytes, Callable[[str, bytes], object]]] = {
            SCOPE: lambda name, _: self.scopes.add(name),
            STREAM: lambda name, row: _keep(self.streams, name, _whole(Stream.from_bytes(row))),
            ENDED: _check_ended,
            GROUP: lambda name, row: _keep(self.groups, name, ReaderGroup.from_bytes(row)),
            TIMES: self._take_times,
            PLACE: self._take_place,
            KEY_VALUE_TABLE: self._take_table,
            TRANSACTION: self._take_transaction,
        }

    def take(self, key: bytes, row: bytes) -> bool:
        """Take in a row; return whether a controller can use it."""
        kind, mark, name = key.partition(b"\0")
        try:
            self._takes[kind + mark](name.decode(), row)
        except UNREADABLE:
            return False
        return True

    def _take_times(self, name: str, row: bytes) -> None:
        times = Times.from_bytes(row)
        _check(name, f"{times.scope}/{times.stream}")
        self.times.add((times.scope, times.stream))

    def _take_place(self, name: str, row: bytes) -> None:
        scope, stream, at_ms = name.split("/")
        _check(at_ms, f"{Place.from_bytes(row).at_ms:016}")
        self.places.add((scope, stream))

    def _take_table(self, name: str, row: bytes) -> None:
        table = KeyValueTable.from_bytes(row)
        _check(f"{len(table.segment_names)}", f"{table.config.partitions}")
        _keep(self.tables, name, table)

    def _take_transaction(self, name: str, row: bytes) -> None:
        found = Transaction.from_bytes(row)
        _check(name, f"{found.scope}/{found.stream}/{found.identity:032x}")
        self.transactions.append(found)


def _keep(known: dict[Name, R], name: str, record: R) -> None:
    _check(name, f"{record.scope}/{record.name}")
    known[record.scope, record.name] = record


def _check(name: str, expected: str) -> None:
    """Raise ValueError unless a row stands under the key of its record."""
    if name != expected:
        raise ValueError(f"the row of {expected} stands at {name}")


def _check_ended(name: str, row: bytes) -> None:
    ended = Ended.from_bytes(row)
    _check(name, f"{ended.scope}/{ended.name}")


def _whole(stream: Stream) -> Stream:
    """Return a stream from which all follows that the controller asks for."""
    _ = stream.history.last, stream.history.open, stream.history.next_number, stream.given_up
    return stream

"""Everything that the controller knows, in memory and in its table."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from gateway.pravega.controller.errors import NoSuchScope, NoSuchStream
from gateway.pravega.controller.readers.group import ReaderGroup
from gateway.pravega.controller.records.directory import Directory
from gateway.pravega.controller.records.ended import EndedStreams
from gateway.pravega.controller.records.history import next_number
from gateway.pravega.controller.records.key_value_tables import KeyValueTable, KnownTables
from gateway.pravega.controller.records.model import Ended, StreamRecord, TransactionRecord
from gateway.pravega.controller.records.table import (
    ENDED,
    GROUP,
    KEY_VALUE_TABLE,
    PLACE,
    SCOPE,
    STREAM,
    TIMES,
    TRANSACTION,
    UNREADABLE,
    RecordTable,
)
from gateway.pravega.controller.rounds.places import StreamEnd
from gateway.pravega.controller.rounds.writers import Times
from gateway.pravega.names import stream_of
from store.errors import CorruptSegment

R = TypeVar("R")

GroupName = tuple[str, str]
"""Scope and name of a group of readers."""


class Registry:
    """Scopes, their streams and groups of readers, and the transactions of streams.

    Memory holds what the table holds: it is changed when the store has answered. Its methods are
    coroutines on `gateway.pending`; each is one update of the table, and raises StoreError.

    Attributes:
        scopes: The streams of each scope, by name.
        transactions: Those of each stream, by identity, oldest first.
        ended: What is known of deleted streams.
        groups: Groups of readers.
        times: Times that writers of streams have told, by scope and stream.
        places: Places that the retention of streams has noted, oldest first, by scope and stream.
        tables: Tables of keys and values.
    """

    def __init__(self, table: RecordTable) -> None:
        self._table = table
        self.scopes: Directory[Directory[StreamRecord]] = Directory()
        self.transactions: dict[tuple[str, str], dict[int, TransactionRecord]] = {}
        self.ended = EndedStreams()
        self.groups: dict[GroupName, ReaderGroup] = {}
        self.times: dict[tuple[str, str], Times] = {}
        self.places: dict[tuple[str, str], list[StreamEnd]] = {}
        self._subscribed: dict[str, set[GroupName]] = {}
        """Groups by the streams that wait for them, which are `scope/stream`."""
        self.tables = KnownTables(table)

    async def load(self) -> None:
        """Read the table. Raises CorruptSegment: an entry cannot be read."""
        rows = await self._table.load()
        ended: list[Ended] = []
        take: dict[bytes, Callable[[bytes, bytes], object]] = {
            SCOPE: lambda key, _: self.scopes.setdefault(_name_of(key), Directory()),
            STREAM: lambda key, row: self.keep_stream(
                _whole(_of(key, _key, StreamRecord.from_bytes(row)))
            ),
            ENDED: lambda key, row: ended.append(_of(key, _ended_key, Ended.from_bytes(row))),
            GROUP: lambda key, row: self._keep_group(
                _of(key, _group_key, ReaderGroup.from_bytes(row))
            ),
            TIMES: lambda key, row: self._keep_times(_of(key, _times_key, Times.from_bytes(row))),
            PLACE: self._load_place,
            KEY_VALUE_TABLE: self.tables.load,
            TRANSACTION: lambda key, row: self._keep_transaction(
                _of(key, _transaction_key, TransactionRecord.from_bytes(row))
            ),
        }
        for key in sorted(rows):
            kind, mark, _ = key.partition(b"\0")
            try:
                take[kind + mark](key, rows[key])
            except UNREADABLE as error:
                self.refuse(key, error)
        self.ended.load(ended)
        for stream, some in self.transactions.items():
            ordered = sorted(some.values(), key=lambda each: each.began_ms)
            self.transactions[stream] = {each.identity: each for each in ordered}

    # Asked

    def streams(self, scope: str) -> Directory[StreamRecord]:
        """Return the streams of a scope, by name. Raises NoSuchScope."""
        if scope not in self.scopes:
            raise NoSuchScope(f"no such scope: {scope}")
        return self.scopes[scope]

    def stream(self, scope: str, name: str) -> StreamRecord:
        """Return a stream. Raises NoSuchScope, NoSuchStream."""
        stream = self.streams(scope).get(name)
        if stream is None:
            raise NoSuchStream(f"no such stream: {scope}/{name}")
        return stream

    def transactions_of(self, stream: StreamRecord) -> list[TransactionRecord]:
        """Return the transactions of a stream, oldest first."""
        return list(self.transactions.get((stream.scope, stream.name), {}).values())

    def epochs_in_use(self, stream: StreamRecord) -> Iterator[int]:
        """Yield the epochs whose ranges the stream gets back after a commit."""
        for each in self.transactions_of(stream):
            if each.back_to is not None and not each.state.is_over:
                yield each.back_to

    def places_of(self, stream: StreamRecord) -> list[StreamEnd]:
        """Return the places that a stream's retention has noted, oldest first."""
        return list(self.places.get((stream.scope, stream.name), ()))

    def groups_of(self, scope: str) -> list[ReaderGroup]:
        """Return the groups of readers of a scope."""
        return [group for (each, _), group in self.groups.items() if each == scope]

    def subscribers(self, scope: str, stream: str) -> list[ReaderGroup]:
        """Return the groups that a stream waits for, in the order of their names."""
        names = sorted(self._subscribed.get(f"{scope}/{stream}", ()))
        return [self.groups[name] for name in names]

    # Changed

    async def add_scope(self, scope: str) -> None:
        """Add a scope without streams."""
        await self._table.write({SCOPE + scope.encode(): b""})
        self.scopes[scope] = Directory()

    async def remove_scope(self, scope: str) -> None:
        """Remove a scope without streams."""
        await self._table.remove([SCOPE + scope.encode()])
        del self.scopes[scope]

    async def save(self, stream: StreamRecord) -> StreamRecord:
        """Write a stream as it is now; return it."""
        await self._table.write({_key(stream): stream.to_bytes()})
        self.keep_stream(stream)
        return stream

    async def forget(self, stream: StreamRecord) -> None:
        """Remove a stream and its transactions; its numbers of segments are not given again."""
        ended = Ended(
            scope=stream.scope,
            name=stream.name,
            next_number=next_number(stream),
            last=stream.history.open,
        )
        gone = await self._end(ended)
        keys = [_transaction_key(each) for each in self.transactions_of(stream)]
        keys += [_place_key(stream.scope, stream.name, each) for each in self.places_of(stream)]
        if (times := self.times.get((stream.scope, stream.name))) is not None:
            keys.append(_times_key(times))
        await self._table.remove([_key(stream), *keys, *gone])
        del self.scopes[stream.scope][stream.name]
        self.transactions.pop((stream.scope, stream.name), None)
        self.places.pop((stream.scope, stream.name), None)
        self.times.pop((stream.scope, stream.name), None)

    async def end_table(self, table: KeyValueTable) -> None:
        """Remove a table; the numbers of its parts are not given again."""
        name = stream_of(table.name)
        gone = await self._end(Ended(scope=table.scope, name=name, next_number=table.next_number))
        if gone:
            await self._table.remove(gone)
        await self.tables.forget(table)

    async def _end(self, ended: Ended) -> list[bytes]:
        """Note the end of a stream or a table; return the keys of rows to forget for it."""
        kept, gone = self.ended.add(ended)
        await self._table.write({_ended_key(each): each.to_bytes() for each in kept})
        return list(map(_ended_key, gone))

    async def save_transaction(self, transaction: TransactionRecord) -> TransactionRecord:
        """Write a transaction as it is now; return it."""
        await self._table.write({_transaction_key(transaction): transaction.to_bytes()})
        self._keep_transaction(transaction)
        return transaction

    async def forget_transaction(self, transaction: TransactionRecord) -> None:
        """Remove a transaction."""
        await self._table.remove([_transaction_key(transaction)])
        del self.transactions[transaction.scope, transaction.stream][transaction.identity]

    async def save_times(self, times: Times) -> None:
        """Write the times of a stream as they are now."""
        await self._table.write({_times_key(times): times.to_bytes()})
        self._keep_times(times)

    async def save_place(self, stream: StreamRecord, place: StreamEnd) -> None:
        """Note a place of a stream, which is behind all others."""
        await self._table.write({_place_key(stream.scope, stream.name, place): place.to_bytes()})
        self.places.setdefault((stream.scope, stream.name), []).append(place)

    async def forget_places(self, stream: StreamRecord, places: Sequence[StreamEnd]) -> None:
        """Remove some places of a stream."""
        if not places:
            return
        await self._table.remove([_place_key(stream.scope, stream.name, each) for each in places])
        gone = {each.at_ms for each in places}
        left = [each for each in self.places_of(stream) if each.at_ms not in gone]
        if left:
            self.places[stream.scope, stream.name] = left
        else:
            del self.places[stream.scope, stream.name]

    async def save_group(self, group: ReaderGroup) -> ReaderGroup:
        """Write a group of readers as it is now; return it."""
        await self._table.write({_group_key(group): group.to_bytes()})
        self._keep_group(group)
        return group

    async def forget_group(self, group: ReaderGroup) -> None:
        """Remove a group of readers."""
        await self._table.remove([_group_key(group)])
        self._drop_group(group.scope, group.name)

    def refuse(self, key: bytes, error: Exception) -> None:
        """Raise CorruptSegment for a row that cannot be read; a check goes on instead."""
        text = f"the controller's entry {key!r} cannot be read ({error!r})"
        raise CorruptSegment(f"{text}: hutch store check --repair") from None

    def _load_place(self, key: bytes, row: bytes) -> None:
        scope, stream, _ = _name_of(key).split("/")
        place = _of(key, lambda each: _place_key(scope, stream, each), StreamEnd.from_bytes(row))
        self.places.setdefault((scope, stream), []).append(place)

    def _keep_times(self, times: Times) -> None:
        self.times[times.scope, times.stream] = times

    def _keep_group(self, group: ReaderGroup) -> None:
        self._drop_group(group.scope, group.name)
        self.groups[group.scope, group.name] = group
        for stream in group.subscribed:
            self._subscribed.setdefault(stream, set()).add((group.scope, group.name))

    def _drop_group(self, *name: str) -> None:
        group = self.groups.pop((name[0], name[1]), None)
        for stream in () if group is None else group.subscribed:
            some = self._subscribed[stream]
            some.discard((name[0], name[1]))
            if not some:
                del self._subscribed[stream]

    def keep_stream(self, stream: StreamRecord) -> None:
        """Keep a stream in its scope. Raises KeyError: the scope is not there."""
        self.scopes[stream.scope][stream.name] = stream

    def _keep_transaction(self, transaction: TransactionRecord) -> None:
        some = self.transactions.setdefault((transaction.scope, transaction.stream), {})
        some[transaction.identity] = transaction


def _name_of(key: bytes) -> str:
    return key.partition(b"\0")[2].decode()


def _of(key: bytes, key_of: Callable[[R], bytes], record: R) -> R:
    """Return a record that stands under its own key. Raises ValueError."""
    if key_of(record) != key:
        raise ValueError(f"the entry {key_of(record)!r} stands there")
    return record


def _whole(stream: StreamRecord) -> StreamRecord:
    """Return a stream from which all follows that it is asked for; else one of UNREADABLE."""
    _ = stream.history.last, stream.history.open, stream.history.next_number, stream.given_up
    return stream


def _key(stream: StreamRecord) -> bytes:
    return STREAM + f"{stream.scope}/{stream.name}".encode()


def _ended_key(ended: Ended) -> bytes:
    return ENDED + f"{ended.scope}/{ended.name}".encode()


def _place_key(scope: str, stream: str, place: StreamEnd) -> bytes:
    """Return a key that sorts by time."""
    return PLACE + f"{scope}/{stream}/{place.at_ms:016}".encode()


def _times_key(times: Times) -> bytes:
    return TIMES + f"{times.scope}/{times.stream}".encode()


def _group_key(group: ReaderGroup) -> bytes:
    return GROUP + f"{group.scope}/{group.name}".encode()


def _transaction_key(transaction: TransactionRecord) -> bytes:
    stream = f"{transaction.scope}/{transaction.stream}"
    return TRANSACTION + f"{stream}/{transaction.identity:032x}".encode()

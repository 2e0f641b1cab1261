"""Everything that the controller knows, in memory and in its table."""

from collections.abc import Iterator

from gateway.pravega.controller.directory import Directory
from gateway.pravega.controller.ended import EndedStreams
from gateway.pravega.controller.errors import NoSuchScope, NoSuchStream
from gateway.pravega.controller.history import next_number
from gateway.pravega.controller.model import Ended, Stream, Transaction
from gateway.pravega.controller.table import ENDED, SCOPE, STREAM, TRANSACTION, Table


class Registry:
    """Scopes, their streams, and the transactions of those.

    Memory holds what the table holds: it is changed when the store has answered. Its methods are
    coroutines on `gateway.pending`; each is one update of the table, and raises StoreError.

    Attributes:
        scopes: The streams of each scope, by name.
        transactions: Those of each stream, by identity, oldest first.
        ended: What is known of deleted streams.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self.scopes: Directory[Directory[Stream]] = Directory()
        self.transactions: dict[tuple[str, str], dict[int, Transaction]] = {}
        self.ended = EndedStreams()

    async def load(self) -> None:
        """Read the table."""
        rows = await self._table.load()
        ended: list[Ended] = []
        for key in sorted(rows):
            kind, _, name = key.partition(b"\0")
            if kind + b"\0" == SCOPE:
                self.scopes[name.decode()] = Directory()
            elif kind + b"\0" == STREAM:
                self._keep(Stream.from_bytes(rows[key]))
            elif kind + b"\0" == ENDED:
                ended.append(Ended.from_bytes(rows[key]))
            else:
                self._keep_transaction(Transaction.from_bytes(rows[key]))
        self.ended.load(ended)
        for stream, some in self.transactions.items():
            ordered = sorted(some.values(), key=lambda each: each.began_ms)
            self.transactions[stream] = {each.identity: each for each in ordered}

    # Asked

    def streams(self, scope: str) -> Directory[Stream]:
        """Return the streams of a scope, by name. Raises NoSuchScope."""
        if scope not in self.scopes:
            raise NoSuchScope(f"no such scope: {scope}")
        return self.scopes[scope]

    def stream(self, scope: str, name: str) -> Stream:
        """Return a stream. Raises NoSuchScope, NoSuchStream."""
        stream = self.streams(scope).get(name)
        if stream is None:
            raise NoSuchStream(f"no such stream: {scope}/{name}")
        return stream

    def transactions_of(self, stream: Stream) -> list[Transaction]:
        """Return the transactions of a stream, oldest first."""
        return list(self.transactions.get((stream.scope, stream.name), {}).values())

    def epochs_in_use(self, stream: Stream) -> Iterator[int]:
        """Yield the epochs whose ranges the stream gets back after a commit."""
        for each in self.transactions_of(stream):
            if each.back_to is not None and not each.state.is_over:
                yield each.back_to

    # Changed

    async def add_scope(self, scope: str) -> None:
        """Add a scope without streams."""
        await self._table.write({SCOPE + scope.encode(): b""})
        self.scopes[scope] = Directory()

    async def remove_scope(self, scope: str) -> None:
        """Remove a scope without streams."""
        await self._table.remove([SCOPE + scope.encode()])
        del self.scopes[scope]

    async def save(self, stream: Stream) -> Stream:
        """Write a stream as it is now; return it."""
        await self._table.write({_key(stream): stream.to_bytes()})
        self._keep(stream)
        return stream

    async def forget(self, stream: Stream) -> None:
        """Remove a stream and its transactions; its numbers of segments are not given again."""
        ended = Ended(
            scope=stream.scope,
            name=stream.name,
            next_number=next_number(stream),
            last=stream.history.open,
        )
        kept, gone = self.ended.add(ended)
        await self._table.write({_ended_key(each): each.to_bytes() for each in kept})
        keys = [_transaction_key(each) for each in self.transactions_of(stream)]
        await self._table.remove([_key(stream), *keys, *map(_ended_key, gone)])
        del self.scopes[stream.scope][stream.name]
        self.transactions.pop((stream.scope, stream.name), None)

    async def save_transaction(self, transaction: Transaction) -> Transaction:
        """Write a transaction as it is now; return it."""
        await self._table.write({_transaction_key(transaction): transaction.to_bytes()})
        self._keep_transaction(transaction)
        return transaction

    async def forget_transaction(self, transaction: Transaction) -> None:
        """Remove a transaction."""
        await self._table.remove([_transaction_key(transaction)])
        del self.transactions[transaction.scope, transaction.stream][transaction.identity]

    def _keep(self, stream: Stream) -> None:
        self.scopes[stream.scope][stream.name] = stream

    def _keep_transaction(self, transaction: Transaction) -> None:
        some = self.transactions.setdefault((transaction.scope, transaction.stream), {})
        some[transaction.identity] = transaction


def _key(stream: Stream) -> bytes:
    return STREAM + f"{stream.scope}/{stream.name}".encode()


def _ended_key(ended: Ended) -> bytes:
    return ENDED + f"{ended.scope}/{ended.name}".encode()


def _transaction_key(transaction: Transaction) -> bytes:
    stream = f"{transaction.scope}/{transaction.stream}"
    return TRANSACTION + f"{stream}/{transaction.identity:032x}".encode()

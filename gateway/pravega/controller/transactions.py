"""Transactions: their writes come into the stream as a whole, or not at all.

A transaction writes into segments beside the stream's. A commit merges each into the segment of
its keys. Where the stream was scaled meanwhile, it gets segments with the transaction's keys
first, and those that it had again afterwards, as Pravega does.
"""

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gateway.pravega.controller.errors import (
    InvalidRequest,
    NoSuchTransaction,
    StreamIsSealed,
)
from gateway.pravega.controller.records.epochs import Epoch, StreamSegment
from gateway.pravega.controller.records.model import (
    StreamRecord,
    StreamState,
    TransactionRecord,
    TransactionState,
)
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.segments import Segments
from gateway.pravega.controller.streams import KNOWN_MAX, OPEN_MAX, StreamChanges
from gateway.pravega.names import transaction_segment_name
from gateway.pravega.segments import COMMITTED_MAX, PARTS_MAX, USER_PARTS_MAX
from store.api import TRANSACTION_MARK

OVER_KEPT: Final = 1_000
"""Transactions of a stream that are over and still known."""


class TransactionChanges:
    """Transactions of all streams; changes are made one after the other by the caller."""

    def __init__(
        self,
        registry: Registry,
        streams: StreamChanges,
        segments: Segments,
        clock_ms: Callable[[], int],
    ) -> None:
        self._registry = registry
        self._streams = streams
        self._segments = segments
        self._clock_ms = clock_ms
        self._ends: dict[tuple[str, str, int], int] = {}
        self._parts: Counter[tuple[str, str, str]] = Counter()
        """Parts of transactions that are not over, by scope, stream and user."""

    def find(self, scope: str, stream: str, identity: int) -> TransactionRecord:
        """Return a transaction. Raises NoSuchTransaction."""
        found = self._registry.transactions.get((scope, stream), {}).get(identity)
        if found is None:
            raise NoSuchTransaction(f"no such transaction: {scope}/{stream} {identity:032x}")
        return found

    async def create(
        self, scope: str, name: str, lease_ms: int, user: str = ""
    ) -> tuple[TransactionRecord, tuple[StreamSegment, ...]]:
        """Begin a transaction on the segments of now.

        Raises NoSuchStream, StreamIsSealed, InvalidRequest: there would be too many parts.
        """
        stream = await self._streams.settled(scope, name)
        if stream.state is StreamState.SEALED:
            raise StreamIsSealed(f"the stream is sealed: {scope}/{name}")
        await self._check_parts(stream, user, len(stream.history.open))
        transaction = TransactionRecord(
            scope=scope,
            stream=name,
            identity=_identity_in(stream.history.last),
            state=TransactionState.OPEN,
            lease_ms=lease_ms,
            began_ms=self._clock_ms(),
            user=user,
            shape=stream.history.open,
        )
        await self._registry.save_transaction(transaction)
        self._count(transaction, 1)
        self.renew(transaction, lease_ms)
        names = dict.fromkeys(_parts(stream, transaction), stream.history.last.number)
        await self._segments.create(names, stream.policy, transaction.began_ms)
        return transaction, stream.history.open

    def shape(self, stream: StreamRecord, epoch: int) -> tuple[StreamSegment, ...]:
        """Return the segments of an epoch, if the stream or one of its transactions knows them."""
        if found := stream.history.at(epoch):
            return found
        theirs = self._registry.transactions_of(stream)
        return next((each.shape for each in theirs if each.epoch == epoch and each.shape), ())

    async def _check_parts(self, stream: StreamRecord, user: str, count: int) -> None:
        """Check that a user's transaction may have a number of parts. Raises InvalidRequest."""
        place = f"{stream.scope}/{stream.name}"
        theirs = self._parts[stream.scope, stream.name, user]
        if user and theirs + count > USER_PARTS_MAX:
            text = f"transactions of user {user!r} have {theirs} segments beside those of {place}"
            raise InvalidRequest(f"{text}, and may have {USER_PARTS_MAX}: not {count} more")
        there = await self._segments.count(place, TRANSACTION_MARK)
        if there + count > PARTS_MAX:
            text = f"transactions have {there} segments beside those of {place}, and may have"
            raise InvalidRequest(f"{text} {PARTS_MAX}: not {count} more")

    def _count(self, transaction: TransactionRecord, sign: int) -> None:
        """Count the parts of a transaction that begins, or with -1 of one that is over."""
        key = (transaction.scope, transaction.stream, transaction.user)
        self._parts[key] += sign * len(transaction.shape)
        if not self._parts[key]:
            del self._parts[key]

    def renew(self, transaction: TransactionRecord, lease_ms: int) -> None:
        """Let a lease begin anew."""
        key = (transaction.scope, transaction.stream, transaction.identity)
        self._ends[key] = self._clock_ms() + lease_ms

    async def commit(self, scope: str, name: str, identity: int) -> bool:
        """Take the writes of a transaction into its stream; False if it was aborted."""
        return await self._end(scope, name, identity, TransactionState.COMMITTING)

    async def abort(self, scope: str, name: str, identity: int) -> bool:
        """Throw away the writes of a transaction; False if it was committed."""
        return await self._end(scope, name, identity, TransactionState.ABORTING)

    async def _end(self, scope: str, name: str, identity: int, state: TransactionState) -> bool:
        transaction = self.find(scope, name, identity)
        if transaction.state is TransactionState.OPEN:
            if state is TransactionState.COMMITTING:
                self._check_room(self._registry.stream(scope, name), transaction)
            transaction = await self._registry.save_transaction(replace(transaction, state=state))
        await self.finish(transaction)
        return transaction.state in {state, TransactionState(state + 1)}

    def _check_room(self, stream: StreamRecord, transaction: TransactionRecord) -> None:
        """Check that a stream can get the segments that a commit opens. Raises InvalidRequest."""
        shape = {(each.low, each.high) for each in transaction.shape}
        there = {(each.low, each.high) for each in stream.history.open}
        count = len(shape ^ there)
        is_full = stream.held_by_commits + count > COMMITTED_MAX
        if count and (is_full or len(stream.history.segments) + count > KNOWN_MAX + 2 * OPEN_MAX):
            place = f"{stream.scope}/{stream.name}"
            text = f"a commit to what was scaled would open {count} more segments of {place}"
            raise InvalidRequest(f"{text}, which has too many: truncate and scale it first")

    async def abort_all(self, scope: str, name: str) -> None:
        """End the transactions of a stream, for its sealing; commits under way are finished."""
        for each in self._registry.transactions_of(self._registry.stream(scope, name)):
            if not each.state.is_over:
                await self.abort(scope, name, each.identity)

    async def finish(self, transaction: TransactionRecord) -> None:
        """Finish a commit or an abort."""
        if transaction.state is TransactionState.OPEN or transaction.state.is_over:
            return
        scope, name = transaction.scope, transaction.stream
        stream = await self._streams.settled(scope, name)
        if transaction.state is TransactionState.COMMITTING:
            transaction = await self._merge(stream, transaction)
        else:
            await self._segments.delete(_parts(stream, transaction))
        over = TransactionState(transaction.state + 1)
        ended = replace(transaction, state=over, shape=(), ended_ms=self._clock_ms())
        await self._registry.save_transaction(ended)
        self._count(transaction, -1)
        self._ends.pop((scope, name, transaction.identity), None)
        await self._forget_oldest(stream)

    async def _merge(
        self, stream: StreamRecord, transaction: TransactionRecord
    ) -> TransactionRecord:
        parts = await self._segments.existing(_parts(stream, transaction))
        shape = transaction.shape
        if parts:
            keys = {(each.low, each.high) for each in stream.history.open}
            is_scaled = any((each.low, each.high) not in keys for each in shape)
            if is_scaled and transaction.back_to is None:
                transaction = await self._registry.save_transaction(
                    replace(transaction, back_to=stream.history.last.number)
                )
            stream = await self._streams.reshape(stream, shape) if is_scaled else stream
            open_now = {(each.low, each.high): each.identity for each in stream.history.open}
            targets = {
                _part(stream, each.identity, transaction): stream.segment_name(
                    open_now[each.low, each.high]
                )
                for each in shape
            }
            await self._segments.merge({part: targets[part] for part in parts})
        if transaction.back_to is not None:
            await self._streams.reshape(stream, stream.history.at(transaction.back_to))
        return transaction

    async def _forget_oldest(self, stream: StreamRecord) -> None:
        over = [each for each in self._registry.transactions_of(stream) if each.state.is_over]
        for each in over[: max(0, len(over) - OVER_KEPT)]:
            await self._registry.forget_transaction(each)

    # Leases

    def all_began(self) -> list[TransactionRecord]:
        """Return the transactions that are not over, by streams; let their leases begin anew.

        It comes first, and once: their parts are counted.
        """
        found = [
            each
            for some in self._registry.transactions.values()
            for each in some.values()
            if not each.state.is_over
        ]
        for each in found:
            self.renew(each, each.lease_ms)
            self._count(each, 1)
        return found

    def expired(self) -> list[TransactionRecord]:
        """Return the transactions whose leases have run out."""
        now = self._clock_ms()
        ended = [key for key, end in self._ends.items() if end <= now]
        found = []
        for scope, stream, identity in ended:
            each = self._registry.transactions.get((scope, stream), {}).get(identity)
            if each is None or each.state.is_over:
                del self._ends[scope, stream, identity]
            else:
                found.append(each)
        return found


def _identity_in(epoch: Epoch) -> int:
    """Return a new identity, of 128 bits with the epoch in the upper 32.

    The lower half has no sign bit: PyPI's client takes one for that of the whole. Pravega counts
    there, and never comes so far.
    """
    return epoch.number << 96 | secrets.randbits(32) << 64 | secrets.randbits(63)


def _parts(stream: StreamRecord, transaction: TransactionRecord) -> list[str]:
    return [_part(stream, each.identity, transaction) for each in transaction.shape]


def _part(stream: StreamRecord, identity: int, transaction: TransactionRecord) -> str:
    return transaction_segment_name(stream.scope, stream.name, identity, transaction.identity)

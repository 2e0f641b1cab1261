"""Open transactions: events of a session that are kept in memory until it commits them; no I/O."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gateway.broker.commits.batch import CommitBatch
from gateway.broker.errors import PreconditionFailed
from gateway.broker.streams.catalogue import Stream
from gateway.mewbase.refusals import RequestRefusal
from gateway.mewbase.wire.errors import Code
from gateway.settings.mewbase import MewbaseSettings


@dataclass(slots=True)
class Held:
    """Bytes that the transactions of all connections have in memory."""

    size_bytes: int = 0


@dataclass(slots=True)
class OpenTransaction:
    """A transaction of one session.

    Attributes:
        batch: Its events.
        reason_to_abort: The reason why it can only be aborted; empty if it can be committed.
    """

    batch: CommitBatch = field(default_factory=CommitBatch)
    reason_to_abort: str = ""


class OpenTransactions:
    """The transactions of one connection, by their sessions."""

    def __init__(self, settings: MewbaseSettings, held: Held) -> None:
        """Begin with none; `held` counts the bytes of all connections."""
        self._settings = settings
        self._held = held
        self._size_bytes = 0
        self._open: dict[int, OpenTransaction] = {}

    def __contains__(self, session: int | None) -> bool:
        return session in self._open

    def begin(self, session: int) -> None:
        """Begin one. Raises RequestRefusal: the session has one, or the connection has too many."""
        if session in self._open:
            reason = f"a transaction is open in session {session}"
            raise RequestRefusal(Code.TRANSACTION_OPEN, reason)
        most = self._settings.transactions_max
        if len(self._open) >= most:
            reason = f"the connection has {most} transactions open (mewbase.transactions_max)"
            raise RequestRefusal(Code.BAD_REQUEST, reason)
        self._open[session] = OpenTransaction()

    def add(self, session: int, stream: Stream, record: bytes) -> None:
        """Keep an event for the commit.

        Raises:
            RequestRefusal: There is no room, or was none for an earlier event: it can only be
                aborted.
        """
        transaction = self._open[session]
        if not transaction.reason_to_abort:
            try:
                size = transaction.batch.bytes_with(stream, record)
                self._require_room(size - transaction.batch.size_bytes)
            except PreconditionFailed as error:
                transaction.reason_to_abort = str(error)
                self._count(-transaction.batch.size_bytes)
                transaction.batch = CommitBatch()
        _require_whole(transaction)
        before = transaction.batch.size_bytes
        transaction.batch.add(stream, record)
        self._count(transaction.batch.size_bytes - before)

    def _require_room(self, size: int) -> None:
        settings = self._settings
        if self._size_bytes + size > settings.transaction_bytes_max:
            raise PreconditionFailed(
                "the connection's transactions are above mewbase.transaction_bytes_max, "
                f"{settings.transaction_bytes_max} bytes"
            )
        if self._held.size_bytes + size > settings.transactions_bytes_max:
            raise PreconditionFailed(
                "the transactions of all connections are above mewbase.transactions_bytes_max, "
                f"{settings.transactions_bytes_max} bytes"
            )

    @contextmanager
    def ending(self, session: int) -> Iterator[CommitBatch]:
        """End a transaction; its events count as held while the caller commits them.

        Raises:
            RequestRefusal: The session has none, or one that can only be aborted, which stays open.
        """
        _require_whole(self._of(session))
        batch = self._open.pop(session).batch
        try:
            yield batch
        finally:
            self._count(-batch.size_bytes)

    def abort(self, session: int) -> None:
        """Drop a transaction. Raises RequestRefusal: The session has none."""
        self._count(-self._of(session).batch.size_bytes)
        del self._open[session]

    def abort_all(self) -> None:
        """Drop all of them."""
        for session in list(self._open):
            self.abort(session)

    def _of(self, session: int) -> OpenTransaction:
        if session not in self._open:
            raise RequestRefusal(
                Code.NO_TRANSACTION, f"no transaction is open in session {session}"
            )
        return self._open[session]

    def _count(self, size: int) -> None:
        self._size_bytes += size
        self._held.size_bytes += size


def _require_whole(transaction: OpenTransaction) -> None:
    if transaction.reason_to_abort:
        reason = f"the transaction can only be aborted: {transaction.reason_to_abort}"
        raise RequestRefusal(Code.NOT_STORED, reason)

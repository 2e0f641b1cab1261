"""Records of the controller, as far as its rows can be read: a bad one does not hide the others."""

from gateway.pravega.controller.records.model import StreamRecord, TransactionRecord
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.records.table import RecordTable

Name = tuple[str, str]
"""A scope, and the name of a thing in it."""


class Records(Registry):
    """All that a controller would load, without the rows that it refuses.

    Attributes:
        known_streams: Streams by scope and name, also those of a scope that is not there.
        refused: Keys of the rows that a controller cannot use.
    """

    def __init__(self, table: RecordTable) -> None:
        super().__init__(table)
        self.known_streams: dict[Name, StreamRecord] = {}
        self.refused: list[bytes] = []

    def all_transactions(self) -> list[TransactionRecord]:
        """Return the transactions of all streams, also those that are over."""
        return [some[each] for some in self.transactions.values() for each in sorted(some)]

    def keep_stream(self, stream: StreamRecord) -> None:
        """Keep a stream, also one whose scope is not there."""
        self.known_streams[stream.scope, stream.name] = stream

    def refuse(self, key: bytes, error: Exception) -> None:
        """Note the key of a row that cannot be read."""
        del error
        self.refused.append(key)

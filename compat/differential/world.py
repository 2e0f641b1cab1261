"""Model of a server's content during a sequence, to know how many answers to wait for.

It is no oracle: what comes is compared with what the other server sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

FULL_CREDIT = 10_000


@dataclass(slots=True)
class Reader:
    """A subscription; `index` is the entry of the stream that it gets next."""

    stream: str
    index: int
    credit: int


@dataclass(slots=True)
class Stream:
    """A stream's entries, each as (first offset, records), and the ids that it has seen."""

    entries: list[tuple[int, int]] = field(default_factory=list)
    sequences: dict[str, int] = field(default_factory=dict)

    @property
    def next_offset(self) -> int:
        """The offset that the next record gets, where nothing but records takes one."""
        return sum(self.entries[-1]) if self.entries else 0

    def records_from(self, index: int) -> int:
        """Count the records of the entries from one on."""
        return sum(count for _, count in self.entries[index:])

    def index_of(self, offset: int) -> int:
        """Return the entry that holds an offset, the next one to come if none does."""
        holding = (at for at, (first, count) in enumerate(self.entries) if offset < first + count)
        return next(holding, len(self.entries))


@dataclass(slots=True)
class Peer:
    """A connection's publishers, subscriptions, and the streams of whose end it will be told."""

    publishers: dict[int, tuple[str, str]] = field(default_factory=dict)
    readers: dict[int, Reader] = field(default_factory=dict)
    watched: set[str] = field(default_factory=set)

    def let_go(self, stream: str) -> None:
        """Stop watching a stream once nothing on the connection uses it."""
        used = {name for name, _ in self.publishers.values()}
        used |= {reader.stream for reader in self.readers.values()}
        if stream not in used:
            self.watched.discard(stream)

    def lose(self, stream: str) -> bool:
        """A stream is gone; return whether the connection is told so."""
        self.publishers = {at: one for at, one in self.publishers.items() if one[0] != stream}
        self.readers = {at: one for at, one in self.readers.items() if one.stream != stream}
        is_told = stream in self.watched
        self.watched.discard(stream)
        return is_told


class World:
    """Streams, super streams and connections."""

    def __init__(self, connections: Iterable[str]) -> None:
        self.streams: dict[str, Stream] = {}
        self.supers: dict[str, list[str]] = {}
        self.peers = {letter: Peer() for letter in connections}

    def create(self, name: str) -> None:
        """Create a stream unless there is one."""
        self.streams.setdefault(name, Stream())

    def delete(self, name: str) -> Counter[str]:
        """Delete a stream, if there is one; return how many updates each connection gets."""
        told: Counter[str] = Counter()
        if self.streams.pop(name, None) is not None:
            for bound in self.supers.values():
                bound[:] = [one for one in bound if one != name]
            told.update(letter for letter, peer in self.peers.items() if peer.lose(name))
        return told

    def create_super(self, name: str, partitions: list[str]) -> None:
        """Create a super stream unless something is in its way."""
        if name not in self.supers and not self.streams.keys() & set(partitions):
            self.supers[name] = list(partitions)
            for partition in partitions:
                self.create(partition)

    def delete_super(self, name: str) -> Counter[str]:
        """Delete a super stream with its partitions; return as `delete` does."""
        told: Counter[str] = Counter()
        for partition in list(self.supers.get(name, ())):
            told += self.delete(partition)
        self.supers.pop(name, None)
        return told

    def declare(self, letter: str, number: int, stream: str, reference: str) -> None:
        """Declare a publisher if that is possible."""
        peer = self.peers[letter]
        is_taken = reference and (stream, reference) in peer.publishers.values()
        if stream in self.streams and number not in peer.publishers and not is_taken:
            peer.publishers[number] = stream, reference
            peer.watched.add(stream)

    def delete_publisher(self, letter: str, number: int) -> None:
        """Delete a publisher, if there is one."""
        if (found := self.peers[letter].publishers.pop(number, None)) is not None:
            self.peers[letter].let_go(found[0])

    def subscribe(self, letter: str, number: int, stream: str, index: int, credit: int) -> None:
        """Subscribe if that is possible."""
        peer = self.peers[letter]
        if stream in self.streams and number not in peer.readers:
            peer.readers[number] = Reader(stream, index, credit)
            peer.watched.add(stream)

    def unsubscribe(self, letter: str, number: int) -> None:
        """End a subscription, if there is one."""
        if (found := self.peers[letter].readers.pop(number, None)) is not None:
            self.peers[letter].let_go(found.stream)

    def watch(self, letter: str, stream: str) -> None:
        """Note that a connection asked for an offset."""
        if stream in self.streams:
            self.peers[letter].watched.add(stream)

    def publish(self, letter: str, number: int, entries: Mapping[int, int]) -> bool:
        """Store entries (records by publishing id, ascending); False without such a publisher."""
        if (found := self.peers[letter].publishers.get(number)) is None:
            return False
        stream, reference = self.streams[found[0]], found[1]
        for publishing_id, count in entries.items():
            if not reference or publishing_id > stream.sequences.get(reference, -1):
                stream.entries.append((stream.next_offset, count))
                if reference:
                    stream.sequences[reference] = publishing_id
        return True

    def delivered(self) -> Counter[str]:
        """Move every subscription with credit to the end; return the records each peer gets."""
        found: Counter[str] = Counter()
        for letter, peer in self.peers.items():
            for reader in peer.readers.values():
                if reader.credit:
                    stream = self.streams[reader.stream]
                    found[letter] += stream.records_from(reader.index)
                    reader.index = len(stream.entries)
        return found

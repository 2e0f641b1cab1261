"""Threads that load a server until it dies, and remember what it had promised by then."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.chunks import Chunk
from tests.client import Client, ClosedByServer, PeerGone
from tests.integration.server import Endpoint
from tests.waiting import HANG_S

# Ids on their way and not confirmed. Enough that a kill always finds some of them sent,
# some stored, some confirmed and the confirm unread.
WINDOW: Final = 3_000
ENTRIES_MAX: Final = 120
GONE: Final = (PeerGone, ConnectionError, ClosedByServer)


def record_of(publishing_id: int, mark: str = "w") -> bytes:
    """The record published under an id; sizes differ, so that a shifted byte shows."""
    return f"{mark}:{publishing_id}:{'.' * (publishing_id * 13 % 160)}".encode()


class _Loader(threading.Thread, ABC):
    """Does something again and again until told to stop or cut off by the server."""

    def __init__(self, endpoint: Endpoint, stream: str) -> None:
        super().__init__(daemon=True)
        self.endpoint = endpoint
        self.stream = stream
        # What ended it, if not the server's death: a failure of the test.
        self.error: BaseException | None = None
        self.has_begun = threading.Event()
        self._is_stopping = threading.Event()

    def run(self) -> None:
        try:
            with Client.opened(*self.endpoint) as client:
                self.load(client)
        except GONE:
            pass
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.has_begun.set()

    @abstractmethod
    def load(self, client: Client) -> None:
        """Load the server until it is gone, or `finish` is called."""

    def finish(self) -> None:
        """Wait for the end; raise what went wrong."""
        self._is_stopping.set()
        self.join(HANG_S)
        assert not self.is_alive()
        if self.error is not None:
            raise AssertionError("the load failed before the server did") from self.error


class Publishing(_Loader):
    """Publishes ids in order, many under way at once, and keeps those that were confirmed.

    Args:
        endpoint: The server.
        stream: Exists already.
        reference: The publisher's name; empty for none.
        first_id: Ids go on from here.
        seed: Decides the sizes of frames.
        filler_bytes: Added to every record.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        stream: str,
        reference: str,
        *,
        first_id: int = 1,
        seed: int = 0,
        filler_bytes: int = 0,
    ) -> None:
        super().__init__(endpoint, stream)
        self.reference = reference
        self.next_id = first_id
        self.confirmed: set[int] = set()
        self._random = random.Random(seed)
        self._filler = bytes(filler_bytes)
        # Never more in a frame than the server takes.
        self._entries_max = min(ENTRIES_MAX, (1 << 19) // (filler_bytes + 200))

    def load(self, client: Client) -> None:
        client.declare(1, self.stream, self.reference)
        underway = 0
        while not self._is_stopping.is_set() or underway:
            while underway < WINDOW and not self._is_stopping.is_set():
                underway += self._publish(client)
            publisher_id, ids = client.confirmed()
            assert publisher_id == 1
            self.confirmed.update(ids)
            underway -= len(ids)
            self.has_begun.set()

    def _publish(self, client: Client) -> int:
        count = self._random.randint(1, self._entries_max)
        ids = range(self.next_id, self.next_id + count)
        # Taken before it is sent: what was perhaps sent counts as sent.
        self.next_id += count
        client.publish(1, [(i, record_of(i, self.reference) + self._filler) for i in ids])
        return count


class OffsetKeeping(_Loader):
    """Stores an ever higher offset, asks for it, and keeps the last answer."""

    def __init__(self, endpoint: Endpoint, stream: str, reference: str, *, first: int = 0) -> None:
        super().__init__(endpoint, stream)
        self.reference = reference
        self.next_offset = first
        self.answered = -1

    def load(self, client: Client) -> None:
        while not self._is_stopping.is_set():
            offset = self.next_offset
            self.next_offset += 1
            client.send_request("store_offset", m.StoreOffset(self.reference, self.stream, offset))
            answer = stored_offset(client, self.stream, self.reference)
            assert answer == offset, "a query must see the store before it"
            self.answered = answer
            self.has_begun.set()


class SequenceAsking(_Loader):
    """Asks for the last id of a publisher that is at work, and keeps the last answer."""

    def __init__(self, endpoint: Endpoint, stream: str, reference: str) -> None:
        super().__init__(endpoint, stream)
        self.reference = reference
        self.answered = 0

    def load(self, client: Client) -> None:
        while not self._is_stopping.is_set():
            answer = last_id(client, self.stream, self.reference)
            assert answer >= self.answered
            self.answered = answer
            self.has_begun.set()


class Creating(_Loader):
    """Creates streams and deletes every second one; keeps what was acknowledged of each."""

    def __init__(self, endpoint: Endpoint, stream: str, *, first: int = 0) -> None:
        super().__init__(endpoint, stream)
        self.next_number = first
        self.alive: set[str] = set()
        self.deleted: set[str] = set()
        # Under way when the server died: either outcome is right.
        self.unsure = ""

    def load(self, client: Client) -> None:
        while not self._is_stopping.is_set():
            self.unsure = f"{self.stream}-{self.next_number}"
            self.next_number += 1
            client.create(self.unsure)
            self.alive.add(self.unsure)
            if self.next_number % 2:
                self.alive.remove(self.unsure)
                client.must("delete_stream", m.DeleteStream(self.unsure))
                self.deleted.add(self.unsure)
            self.unsure = ""
            self.has_begun.set()


def stored_offset(client: Client, stream: str, reference: str) -> int:
    """The offset stored under the reference; -1 if there is none."""
    answer = client.ask(m.StoredOffset, "query_offset", m.QueryOffset(reference, stream))
    if answer.code == ResponseCode.NO_OFFSET:
        return -1
    assert answer.code == ResponseCode.OK, answer
    return answer.offset


def last_id(client: Client, stream: str, reference: str) -> int:
    """The last publishing id that the server has under the reference."""
    request = m.QueryPublisherSequence(reference, stream)
    answer = client.ask(m.PublisherSequence, "query_publisher_sequence", request)
    assert answer.code == ResponseCode.OK, answer
    return answer.sequence


def code_of_stream(client: Client, stream: str) -> int:
    """What Metadata says of one stream."""
    answer = client.ask(m.MetadataReply, "metadata", m.Metadata((stream,)))
    return answer.streams[0].code


def committed_offset(client: Client, stream: str) -> int:
    """The offset of the last record; -1 for an empty stream."""
    answer = client.ask(m.StreamStatsReply, "stream_stats", m.StreamStats(stream))
    assert answer.code == ResponseCode.OK, answer
    return answer.statistics["committed_offset"]


def chunks_of(client: Client, stream: str) -> Iterator[Chunk]:
    """Read every chunk that the stream has now, in order, checking that offsets are dense."""
    next_offset = committed_offset(client, stream) + 1
    expected = 0
    client.subscribe(200, stream, FIRST, credit=20)
    while expected < next_offset:
        chunk = client.delivery().chunk
        client.credit(200, 1)
        assert chunk.chunk_id == expected, "offsets are dense"
        expected += chunk.record_count
        yield chunk
    client.must("unsubscribe", m.Unsubscribe(200))
    assert expected == next_offset, "no more is delivered than is committed"


def records_of(client: Client, stream: str) -> list[bytes]:
    """Every record that the stream has now, in order."""
    return [record for chunk in chunks_of(client, stream) for record in chunk.records()]

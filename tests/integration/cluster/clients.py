"""Clients that go on through takeovers: each remembers what it was promised, on whatever member."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from hutch.client.errors import ClientError
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import OffsetSpec, OffsetType
from tests.client import Client, ClosedByServer, PeerGone, Refused
from tests.integration.load import record_of
from tests.integration.server import Endpoint
from tests.waiting import HANG_S

SILENCE_S: Final = 3.0
"""Longest time without a frame, after which a client goes to the next address."""
WINDOW: Final = 500
BATCH: Final = 20
RATE_S: Final = 0.005
"""Pause between two frames of a publisher: other processes share the machine."""
_GONE: Final = (PeerGone, ConnectionError, ClosedByServer, TimeoutError, Refused, ClientError)


def _last_id(client: Client, stream: str, reference: str) -> int:
    request = m.QueryPublisherSequence(reference, stream)
    answer = client.ask(m.PublisherSequence, "query_publisher_sequence", request)
    _need(answer.code)
    return answer.sequence


def _stored_offset(client: Client, stream: str, reference: str) -> int:
    answer = client.ask(m.StoredOffset, "query_offset", m.QueryOffset(reference, stream))
    if answer.code == ResponseCode.NO_OFFSET:
        return -1
    _need(answer.code)
    return answer.offset


def _need(code: int) -> None:
    """Go to the next address where a member has lost its store. Raises ConnectionError."""
    if code == ResponseCode.STREAM_NOT_AVAILABLE:
        raise ConnectionError("another member has taken over")
    assert code == ResponseCode.OK, code


class Going(threading.Thread, ABC):
    """Does its work at one address after the other, until it is told to stop."""

    def __init__(self, endpoints: Sequence[Endpoint], stream: str) -> None:
        super().__init__(daemon=True)
        self.stream = stream
        self.error: BaseException | None = None
        self.connections = 0
        self._endpoints = endpoints
        self._is_over = threading.Event()

    def run(self) -> None:
        try:
            number = 0
            while not self._is_over.is_set():
                try:
                    with Client.opened(*self._endpoints[number % len(self._endpoints)]) as client:
                        self.connections += 1
                        self.work(client)
                except _GONE:
                    number += 1
                    time.sleep(0.05)
        except BaseException as error:
            self.error = error
            raise

    @abstractmethod
    def work(self, client: Client) -> None:
        """Work on one connection, until it ends or `is_over`."""

    @property
    def is_over(self) -> bool:
        """True if it is to end."""
        return self._is_over.is_set()

    def finish(self) -> None:
        """End it; raise what went wrong."""
        self._is_over.set()
        self.join(HANG_S)
        assert not self.is_alive()
        if self.error is not None:
            raise AssertionError(f"{type(self).__name__} has failed") from self.error


class Publishing(Going):
    """Publishes numbers in order, and after each new connection those that were not confirmed.

    Attributes:
        confirmed: Numbers that were.
        doubtful: Numbers that were sent when a connection ended, and not confirmed.
    """

    def __init__(self, endpoints: Sequence[Endpoint], stream: str, reference: str) -> None:
        super().__init__(endpoints, stream)
        self.reference = reference
        self.confirmed: set[int] = set()
        self.doubtful: set[int] = set()
        self._next = 1

    def work(self, client: Client) -> None:
        client.declare(1, self.stream, self.reference)
        waiting = set(range(1, self._next)) - self.confirmed
        self.doubtful |= waiting
        if self.reference:  # what the server has of them is not sent again
            last = _last_id(client, self.stream, self.reference)
            self.confirmed |= {number for number in waiting if number <= last}
            waiting = {number for number in waiting if number > last}
        self._send(client, sorted(waiting))
        while not self.is_over or waiting:
            while len(waiting) < WINDOW and not self.is_over:
                numbers = range(self._next, self._next + BATCH)
                self._next += BATCH
                waiting.update(numbers)
                self._send(client, numbers)
                time.sleep(RATE_S)
            _, ids = client.confirmed(SILENCE_S)
            self.confirmed.update(ids)
            waiting.difference_update(ids)

    def _send(self, client: Client, numbers: Sequence[int]) -> None:
        for begin in range(0, len(numbers), BATCH):
            some = numbers[begin : begin + BATCH]
            client.publish(1, [(each, record_of(each, self.reference)) for each in some])

    def check(self, records: Sequence[bytes]) -> int:
        """Demand of a stream's records all that was promised; return how many are there twice."""
        numbers = [int(record.split(b":")[1]) for record in records]
        assert [record_of(each, self.reference) for each in numbers] == list(records)
        assert self.confirmed <= set(numbers)
        assert max(numbers) < self._next
        firsts = list(dict.fromkeys(numbers))
        twice = {each for each in firsts if numbers.count(each) > 1} if self.reference else set()
        assert not twice, "of a named publisher each comes once"
        if self.reference:
            assert numbers == list(range(1, len(numbers) + 1))
            return 0
        seen: set[int] = set()
        again = {each for each in numbers if each in seen or seen.add(each)}  # type: ignore[func-returns-value]  # None
        assert again <= self.doubtful
        return len(numbers) - len(firsts)


class Reading(Going):
    """Reads on where it was, and stores how far it is; at each offset there is one record for ever.

    Attributes:
        seen: The record that it was given at each offset.
    """

    def __init__(self, endpoints: Sequence[Endpoint], stream: str, reference: str) -> None:
        super().__init__(endpoints, stream)
        self.reference = reference
        self.seen: dict[int, bytes] = {}
        self._stored = -1

    def work(self, client: Client) -> None:
        found = _stored_offset(client, self.stream, self.reference)
        assert found >= self._stored, "a stored offset goes back"
        begin = max(0, len(self.seen) - WINDOW)  # some of it once more
        client.subscribe(1, self.stream, OffsetSpec(OffsetType.OFFSET, begin), credit=10)
        while not self.is_over:
            chunk = client.delivery(SILENCE_S).chunk
            client.credit(1, 1)
            for offset, record in enumerate(chunk.records(), start=chunk.chunk_id):
                assert self.seen.setdefault(offset, record) == record, "another record"
            self._store(client, chunk.chunk_id)

    def _store(self, client: Client, offset: int) -> None:
        request = m.StoreOffset(self.reference, self.stream, offset)
        client.send_request("store_offset", request)
        answer = _stored_offset(client, self.stream, self.reference)
        assert answer >= offset or answer >= self._stored
        self._stored = max(self._stored, answer)

    def check(self, records: Sequence[bytes]) -> None:
        """Demand that each record is where it was seen."""
        assert self.seen
        assert self.seen.items() <= dict(enumerate(records)).items()

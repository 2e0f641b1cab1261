"""Counting the rows of a target by `rbfly`, a client that is not ours (GPL-3: for tests only)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import rbfly.streams as rbs

from tests.integration.clients.loop import run
from tests.integration.server import Endpoint

# Its type says that this is of instances; it is of the class.
FIRST: Final[rbs.Offset] = vars(rbs.Offset)["FIRST"]
DIGITS: Final = 10
QUIET_S: Final = 1.0
"""How long nothing may come behind the last row before it counts as the last one."""
SILENCE_S: Final = 20.0
"""How long nothing may come while rows are missing before they count as lost."""
WITHIN_S: Final = 1_200.0


def body_of(number: int, size: int) -> bytes:
    """Return the body of a row, which tells its number."""
    return (b"%0*d " % (DIGITS, number)).ljust(size, b".")


@dataclass(frozen=True, slots=True)
class Found:
    """What a target holds.

    Attributes:
        rows: All of them.
        lost: Numbers that no row has.
        doubled: Rows beyond the first one of their number.
        wrong: Rows with a body that was never written.
    """

    rows: int
    lost: int
    doubled: int
    wrong: int


class Count:
    """Counts rows by their numbers."""

    def __init__(self, rows: int, size: int) -> None:
        self.total = 0
        self.wrong = 0
        self._size = size
        self._seen = bytearray(rows)

    def add(self, body: object) -> None:
        """Count a row."""
        self.total += 1
        digits = body[:DIGITS] if isinstance(body, bytes) else b""
        number = int(digits) if digits.isdigit() else -1
        if 0 <= number < len(self._seen) and body == body_of(number, self._size):
            self._seen[number] = 1
        else:
            self.wrong += 1

    def found(self) -> Found:
        """Return what was counted."""
        distinct = sum(self._seen)
        lost, doubled = len(self._seen) - distinct, self.total - self.wrong - distinct
        return Found(self.total, lost, doubled, self.wrong)


def read_back(endpoint: Endpoint, streams: Sequence[str], rows: int, size: int) -> Found:
    """Read streams from their first row on, until nothing comes any more."""
    count = Count(rows, size)

    async def collect(client: rbs.StreamsClient, stream: str) -> None:
        async for body in client.subscribe(stream, offset=FIRST):
            count.add(body)

    async def read() -> None:
        address = f"rabbitmq-stream://guest:guest@{endpoint.host}:{endpoint.port}"
        client = rbs.streams_client(address)
        tasks = [asyncio.create_task(collect(client, stream)) for stream in streams]
        try:
            await _silence(count, rows, tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await client.disconnect()

    run(read(), WITHIN_S)
    return count.found()


async def _silence(count: Count, rows: int, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait until no row comes any more; raise the error of a reader that ends."""
    total, since = -1, time.monotonic()
    while True:
        for task in tasks:
            if task.done():
                task.result()
        if count.total != total:
            total, since = count.total, time.monotonic()
        if time.monotonic() - since > (QUIET_S if total >= rows else SILENCE_S):
            return
        await asyncio.sleep(0.05)

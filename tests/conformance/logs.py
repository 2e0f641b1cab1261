"""Implementations of DurableLog, each of which is opened as often as there are members."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from store.replica.jetstream import JetStreamLog, LogAddress
from store.replica.log import DurableLog, Entry, LogAway, Outcome
from tests.conformance.memory_log import MemoryLog
from tests.nats_servers import NatsServers
from tests.waiting import wait_until

_NAMES: Final = count(1)


@dataclass
class Logs:
    """One log, and the members that have it open."""

    make: Callable[[], DurableLog]
    opened: list[DurableLog] = field(default_factory=list)

    def open(self) -> DurableLog:
        """Open the log for one more member."""
        one = self.make()
        self.opened.append(one)
        return one

    def close(self) -> None:
        """Close all."""
        for each in self.opened:
            each.close()


@contextmanager
def in_memory() -> Iterator[Logs]:
    """Have a log in memory, which all members share."""
    one = MemoryLog()
    yield Logs(lambda: one)


def address_on(servers: NatsServers) -> LogAddress:
    """Return the address of a log that is not there yet, in as many replicas as there are."""
    return LogAddress(servers.urls, servers.count, f"log-{next(_NAMES)}")


@contextmanager
def on_jetstream(servers: NatsServers) -> Iterator[Logs]:
    """Have a new log on servers."""
    address = address_on(servers)
    logs = Logs(lambda: JetStreamLog.open(address))
    yield logs
    logs.close()


def appended(log: DurableLog, *messages: bytes) -> list[int]:
    """Append messages behind the last one, one after the other; return where they are."""
    last = log.last()
    positions = [0 if last is None else last.position]
    for message in messages:
        positions.append(stored(log.append(message, positions[-1]).wait()))
    return positions[1:]


def stored(outcome: Outcome) -> int:
    """Return the position of an append, which must have one."""
    assert isinstance(outcome, int), outcome
    return outcome


def read_all(log: DurableLog, position: int, total: int, piece: int = 64) -> list[Entry]:
    """Read until there are so many messages; what it reads from may lag behind."""
    found: list[Entry] = []

    def is_read() -> bool:
        with suppress(LogAway):
            entries = log.read(found[-1].position + 1 if found else position, piece)
            assert len(entries) <= piece
            found.extend(entries)
        return len(found) >= total

    wait_until(is_read)
    return found

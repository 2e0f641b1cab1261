"""The connections, as far as administrators and limits are concerned.

A connection is known from the moment it has entered a virtual host until it ends.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.broker.access.access import RightsHolder
from gateway.broker.streams.catalogue import Stream
from gateway.network.transport import Transport


@dataclass(frozen=True, slots=True)
class ConnectionDetails:
    """A connection as administrators see it; gathered when they ask, and not before.

    Attributes:
        mechanism: Of SASL, by which the user logged in.
        heartbeat_s: As agreed on, 0 for none.
        frame_bytes_max: As agreed on, 0 for no limit.
        transport: What its socket knows.
    """

    mechanism: str
    heartbeat_s: int
    frame_bytes_max: int
    transport: Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherDetails:
    """A publisher as administrators see it; entries are counted, a sub-batch as one.

    Attributes:
        number: Its number among those of its connection.
    """

    number: int
    reference: str
    stream: Stream
    published: int
    confirmed: int
    errored: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerDetails:
    """A subscription as administrators see it.

    Attributes:
        number: Its number among those of its connection.
        window: How much more its client takes at present, in the unit of its protocol.
        consumed: Records sent.
        offset: Of the last record sent, -1 if none was.
        offset_lag: How many records behind it are committed; 0 for one that waits to be active.
        is_active: Whether it reads; of a group of single active consumers one does.
    """

    number: int
    stream: Stream
    properties: Mapping[str, str]
    window: int
    consumed: int
    offset: int
    offset_lag: int
    is_active: bool
    is_single: bool

    @property
    def activity(self) -> str:
        """RabbitMQ's word for whether it reads."""
        if not self.is_single:
            return "up"
        return "single_active" if self.is_active else "waiting"


class OpenConnection(RightsHolder, Protocol):
    """A client in a virtual host."""

    @property
    def protocol(self) -> str:
        """RabbitMQ's word for its protocol, as `stream`."""
        ...

    @property
    def peer(self) -> str:
        """Address of the client, as `127.0.0.1:50000`."""
        ...

    @property
    def user(self) -> str:
        """The user that logged in."""
        ...

    def details(self) -> ConnectionDetails:
        """Return its details for administrators."""
        ...

    def publisher_details(self) -> list[PublisherDetails]:
        """Return the details of its publishers."""
        ...

    def consumer_details(self) -> list[ConsumerDetails]:
        """Return the details of its subscriptions."""
        ...

    def cut_off(self, reason: str) -> None:
        """End the connection now, without a word to the client; queued frames are dropped."""
        ...

    def lose_each(self, streams: Iterable[Stream]) -> None:
        """Drop the publishers and subscriptions of streams, and tell the client of each."""
        ...

    @property
    def local(self) -> str:
        """Address of the server that the client connected to, as `127.0.0.1:5552`."""
        ...

    @property
    def client_properties(self) -> Mapping[str, str]:
        """Properties that the client gives of itself, as `connection_name`."""
        ...

    def hold_publishing(self) -> None:
        """Read nothing more of a client that has publishers."""
        ...

    def release_publishing(self) -> None:
        """Read again from a client that `hold_publishing` has stopped."""
        ...


class Connections:
    """All connections that have entered a virtual host."""

    def __init__(self) -> None:
        # In the order in which they came, each with its number and when that was.
        self._all: dict[OpenConnection, tuple[int, int]] = {}
        self._count = 0
        self._by_user: dict[str, dict[OpenConnection, None]] = {}
        self._by_virtual_host: Counter[str] = Counter()
        self._by_protocol: Counter[str] = Counter()

    def __iter__(self) -> Iterator[OpenConnection]:
        return iter(tuple(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: OpenConnection) -> None:
        """Note that a client has entered its virtual host."""
        self._count += 1
        self._all[connection] = self._count, time.time_ns() // 1_000_000
        self._by_user.setdefault(connection.user, {})[connection] = None
        self._by_virtual_host[connection.virtual_host_name] += 1
        self._by_protocol[connection.protocol] += 1

    def number_of(self, connection: OpenConnection) -> int:
        """Return a number that no other connection has had since the server began; 0 if gone."""
        return self._all.get(connection, (0, 0))[0]

    def remove(self, connection: OpenConnection) -> None:
        """Note that it is gone; fine if it never was there."""
        if connection in self._all:
            del self._all[connection]
            theirs = self._by_user[connection.user]
            del theirs[connection]
            if not theirs:
                del self._by_user[connection.user]
            _count_down(self._by_virtual_host, connection.virtual_host_name)
            _count_down(self._by_protocol, connection.protocol)

    def since_ms(self, connection: OpenConnection) -> int:
        """Return when a connection was added, in milliseconds since 1970; 0 if it is gone."""
        return self._all.get(connection, (0, 0))[1]

    def count_of_user(self, name: str) -> int:
        """Return how many a user has, in all virtual hosts."""
        return len(self._by_user.get(name, ()))

    def count_of_virtual_host(self, name: str) -> int:
        """Return how many are in a virtual host."""
        return self._by_virtual_host[name]

    def count_of_protocol(self, name: str) -> int:
        """Return how many speak a protocol."""
        return self._by_protocol[name]

    def of(
        self, *, user: str | None = None, virtual_host: str | None = None
    ) -> list[OpenConnection]:
        """Return those of a user, of a virtual host, or of both, in the order they came in."""
        found = self._all if user is None else self._by_user.get(user, ())
        return [each for each in found if virtual_host in (None, each.virtual_host_name)]


def _count_down(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]

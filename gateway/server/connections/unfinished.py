"""Bounds of requests begun and not ended: their time, and their bytes before the login.

A frame, a message or a call that is begun ends within a time, or its connection does. Connections
that have not logged in hold a little each, and all of them together so much that a flood of them
leaves the memory to the clients.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from gateway.network.addresses import host_of, source_of

log = logging.getLogger(__name__)

STRANGER_S: Final = 10.0
CLIENT_S: Final = 60.0
STRANGER_BYTES_MAX: Final = 64 * 1024
STRANGERS_BYTES_MAX: Final = 64 * 1024 * 1024
_LOOK_S: Final = 1.0

Marks: TypeAlias = tuple[int, int]
"""A number of the frame that is begun, and one of what the front tells: 0 if nothing is.

Each changes when that thing ends.
"""
NOTHING: Final[Marks] = (0, 0)
_Since: TypeAlias = tuple[tuple[int, float], tuple[int, float]]


class PreLoginConnection(Protocol):
    """Connection without a login, of any protocol."""

    peer: str

    def __hash__(self) -> int: ...

    def abort(self) -> None:
        """End the connection now."""
        ...


class Begun(Protocol):
    """Connection, as this module sees it."""

    is_stranger: bool

    def __hash__(self) -> int: ...

    def begun_marks(self) -> Marks:
        """Return the marks of the request that is begun; `NOTHING` too while the server waits."""
        ...

    def time_is_up(self, step: str) -> None:
        """End a client that took too long."""
        ...


class UnfinishedRequests:
    """The connections whose clients have begun something."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._since: dict[Begun, _Since] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, connection: Begun) -> None:
        """Look at a connection now and then, until nothing is begun there."""
        if connection in self._since:
            return
        now = self._loop.time()
        first, second = connection.begun_marks()
        self._since[connection] = ((first, now), (second, now))
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_S, self._look)

    def forget(self, connection: Begun) -> None:
        """Look at a connection no more; fine if it is not watched."""
        self._since.pop(connection, None)
        if not self._since and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        for connection, since in list(self._since.items()):
            self._look_at(connection, since, now)
        if self._since and self._timer is None:
            self._timer = self._loop.call_later(_LOOK_S, self._look)

    def _look_at(self, connection: Begun, before: _Since, now: float) -> None:
        marks = connection.begun_marks()
        first, second = (
            then if then[0] == mark else (mark, now)
            for then, mark in zip(before, marks, strict=True)
        )
        limit_s = STRANGER_S if connection.is_stranger else CLIENT_S
        if any(mark and now - begun >= limit_s for mark, begun in (first, second)):
            self._since.pop(connection, None)
            connection.time_is_up("unfinished request")
        elif marks == NOTHING:
            self._since.pop(connection, None)
        else:
            self._since[connection] = (first, second)


class PreLoginInput:
    """Bytes that connections hold of clients that have not logged in, by address.

    If they are too many, the connection that holds most goes, of the address that holds most: what
    one of a flood sends takes no place from the others, at whichever port either of them is.
    """

    def __init__(self, say: Callable[..., object], bytes_max: int = STRANGERS_BYTES_MAX) -> None:
        """Begin with none; `say` writes a log line that any client could cause without end."""
        self._say = say
        self._bytes_max = bytes_max
        self._held: dict[PreLoginConnection, tuple[str, int]] = {}
        self._by_source: Counter[str] = Counter()
        self._total = 0

    @property
    def total(self) -> int:
        """All bytes that are held."""
        return self._total

    def bound(self, connection: PreLoginConnection, held: int) -> None:
        """Note the bytes of a connection without a login; end it, or others, if too many."""
        if held > STRANGER_BYTES_MAX:
            line = "too much before the login peer=%s bytes=%d limit=%d"
            peer = connection.peer
            self._say(log.warning, host_of(peer), line, peer, held, STRANGER_BYTES_MAX)
            connection.abort()
            return
        self.forget(connection)
        if held:
            source = source_of(host_of(connection.peer))
            self._held[connection] = source, held
            self._by_source[source] += held
            self._total += held
        while self._total > self._bytes_max:
            self._end_the_largest()

    def forget(self, connection: PreLoginConnection) -> None:
        """Note that a connection has ended, or logged in."""
        if connection not in self._held:
            return
        source, held = self._held.pop(connection)
        self._total -= held
        self._by_source[source] -= held
        if not self._by_source[source]:
            del self._by_source[source]

    def _end_the_largest(self) -> None:
        source, _ = self._by_source.most_common(1)[0]
        of_source = {one: held for one, (other, held) in self._held.items() if other == source}
        largest = max(of_source, key=of_source.__getitem__)
        line = "connection without a login ends, all of them hold too much address=%s bytes=%d"
        self._say(log.warning, source, line, source, of_source[largest])
        self.forget(largest)
        largest.abort()

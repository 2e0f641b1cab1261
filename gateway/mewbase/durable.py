"""Durable subscriptions: the place of each, which outlives its connection.

The place is a stored offset of the stream, as consumers of streams have it: the reference is the
subscription's name, the offset that of the last event that it is done with. Where it began, and the
user that began it, are kept beside it, so one that never acknowledged anything is known too.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from gateway.broker.locks import Locks
from gateway.broker.streams.catalogue import Stream
from gateway.broker.streams.stream_logs import StreamLogs
from gateway.mewbase.refusals import RequestRefusal
from gateway.mewbase.wire.errors import Code

log = logging.getLogger(__name__)

NAME_BYTES_MAX: Final = 255
"""As for references of consumers."""

Key = tuple[int, bytes]
"""The stream's generation and the name of a durable subscription."""


def key_of(stream: Stream, name: bytes) -> Key:
    """Return the key of a durable subscription, which no other one has."""
    return stream.entry.generation, name


class Durable:
    """The place of one durable subscription, while a connection has it.

    Attributes:
        name: Its name, as bytes.
        place: Position of the first event that it is not done with.
    """

    def __init__(self, logs: StreamLogs, stream: Stream, name: bytes, place: int) -> None:
        """Begin; until `close` it is not forgotten for other names."""
        self.name = name
        self.place = place
        self._logs = logs
        self._stream = stream
        self._has_said_slow = False
        logs.tracking.use_reader(*self.key)

    def close(self) -> None:
        """Note that the connection does not have it any more."""
        self._logs.tracking.leave_reader(*self.key)

    def say_slow(self) -> None:
        """Say once that the client has acknowledged little of the events that it has."""
        if not self._has_said_slow:
            self._has_said_slow = True
            line = "acknowledgements without pos are of one event each channel=%s subscription=%r"
            log.warning(line, self._stream.name, self.name.decode())

    @property
    def key(self) -> Key:
        """The stream's generation and the name: no other one has both."""
        return key_of(self._stream, self.name)

    def move(self, place: int) -> None:
        """Note that it is done with all events before a position; the place never goes back."""
        if place > self.place and not self._stream.is_deleted:
            self.place = place
            self._logs.store_offset(self._stream, self.name, place - 1)


class Durables:
    """The durable subscriptions that connections have now."""

    def __init__(self) -> None:
        self._close_of: dict[Key, Callable[[], object]] = {}
        self._locks = Locks()

    def __contains__(self, key: Key) -> bool:
        return key in self._close_of

    def changing(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Wait until no other request changes a durable subscription, and keep others from it."""
        generation, name = key
        return self._locks.hold(f"{generation} {name!r}")

    def take_over(self, key: Key) -> None:
        """Have the connection that has one deliver nothing more for it."""
        close = self._close_of.pop(key, None)
        if close is not None:
            close()

    def take(self, key: Key, close: Callable[[], object]) -> None:
        """Note the subscription that has one from now on; `close` ends it for another one."""
        self.take_over(key)
        self._close_of[key] = close

    def give_up(self, key: Key, close: Callable[[], object]) -> None:
        """Note that a subscription has ended, unless another one has taken it over."""
        if self._close_of.get(key) == close:
            del self._close_of[key]


async def begin(logs: StreamLogs, stream: Stream, name: bytes, place: int, user: str) -> None:
    """Make a durable subscription of a user; it is stored when this returns.

    Raises:
        RequestRefusal: It could not be stored; the log says why.
        StoreError: The table cannot be read.
    """
    key = key_of(stream, name)
    logs.tracking.begin_reader(*key, place, user.encode())
    if await logs.tracking.reader_of(*key) is None:
        reason = (
            "the durable subscription could not be stored: the server's log says why; perhaps all "
            "that the channel may have are in use (streams.offset_references_max)"
        )
        raise RequestRefusal(Code.SERVER, reason)


async def forget(logs: StreamLogs, stream: Stream, name: bytes) -> None:
    """Remove a durable subscription with its place, behind all that was stored before."""
    logs.tracking.forget_reader(*key_of(stream, name))
    await logs.tracking.settled()

"""Durable subscriptions: the place of each, which outlives its connection.

The place is a stored offset of the stream, as consumers of streams have it: the reference is the
subscription's name, the offset that of the last event that it is done with. Where it began is kept
beside it, so one that never acknowledged anything is known too.
"""

from collections.abc import Callable
from typing import Final

from gateway.broker.stream import Stream
from gateway.broker.stream_logs import StreamLogs
from gateway.mewbase.refusals import Refusal
from gateway.mewbase.wire.errors import Code

NAME_BYTES_MAX: Final = 255
"""As for references of consumers."""


class Durable:
    """The place of one durable subscription, while a connection has it.

    Attributes:
        name: Its name, as bytes.
        place: Position of the first event that it is not done with.
    """

    def __init__(self, logs: StreamLogs, stream: Stream, name: bytes, place: int) -> None:
        self.name = name
        self.place = place
        self._logs = logs
        self._stream = stream

    @property
    def key(self) -> tuple[int, bytes]:
        """The stream's generation and the name: no other one has both."""
        return self._stream.entry.generation, self.name

    def move(self, place: int) -> None:
        """Note that it is done with all events before a position; the place never goes back."""
        if place > self.place and not self._stream.is_deleted:
            self.place = place
            self._logs.store_offset(self._stream, self.name, place - 1)


class Durables:
    """The durable subscriptions that connections have now."""

    def __init__(self) -> None:
        self._close_of: dict[tuple[int, bytes], Callable[[], object]] = {}

    def take_over(self, key: tuple[int, bytes]) -> None:
        """Have the connection that has one deliver nothing more for it."""
        close = self._close_of.pop(key, None)
        if close is not None:
            close()

    def take(self, key: tuple[int, bytes], close: Callable[[], object]) -> None:
        """Note the subscription that has one from now on; `close` ends it for another one."""
        self.take_over(key)
        self._close_of[key] = close

    def give_up(self, key: tuple[int, bytes], close: Callable[[], object]) -> None:
        """Note that a subscription has ended, unless another one has taken it over."""
        if self._close_of.get(key) == close:
            del self._close_of[key]


async def known_place(logs: StreamLogs, stream: Stream, name: bytes) -> int | None:
    """Return where a durable subscription goes on; None if there is none of the name.

    Raises StoreError.
    """
    return await logs.tracking.place_of(stream.entry.generation, name)


async def begin(logs: StreamLogs, stream: Stream, name: bytes, place: int) -> None:
    """Make a durable subscription; it is stored when this returns.

    Raises:
        Refusal: It could not be stored; the log says why.
        StoreError: The table cannot be read.
    """
    logs.tracking.begin_reader(stream.entry.generation, name, place)
    if await known_place(logs, stream, name) is None:
        raise Refusal(Code.SERVER, "the durable subscription could not be stored")


async def forget(logs: StreamLogs, stream: Stream, name: bytes) -> None:
    """Remove a durable subscription with its place, behind all that was stored before."""
    logs.tracking.forget_reader(stream.entry.generation, name)
    await logs.tracking.settled()

"""Sub-batches that are opened on a thread: one at a time for each client, and not too many bytes.

A few kilobytes may hold 64 MiB. To open them takes the processor for a tenth of a second and more,
and the memory until the last record is taken. So a reader waits here for its turn. The records are
made on a thread for which nothing waits but that reader.

A reader may be slow, for whatever reason: what its client takes, or what a function makes of its
records. While others wait, it has a large sub-batch for about a second, and then it opens it again
in its turn.
"""

from collections.abc import Callable
from functools import partial
from mmap import mmap
from typing import Any, Final, TypeAlias

from gateway.pending import Pending

Make: TypeAlias = Callable[[], mmap]
"""Makes the records of a sub-batch; runs on a thread."""
_Outcome: TypeAlias = tuple[mmap | BaseException]
InThread: TypeAlias = Callable[[Callable[[], Any]], Pending[Any]]
"""Runs a function on a thread."""
Wait: TypeAlias = Callable[[int], Pending[None]]
"""Returns a Pending that settles after a number of milliseconds."""

_HELD_MS: Final = 1_000
"""Time after which a sub-batch is closed if others wait for the memory."""


class SubBatchOpening:
    """A sub-batch that is open, or waits for that.

    Attributes:
        size: Bytes that it takes when it is open.
        has_turn: Whether it may be opened now, or is.
        outcome: The records behind one another, or why there are none. None until it is known.
        is_closed: Whether its memory is given back, or will be.
        wake: Called when it gets its turn, and when its outcome is there.
        give_back: Called when it has to be closed, since others have waited for long.
    """

    def __init__(self, opener: "Opener", size: int, give_back: Callable[[], object]) -> None:
        self.size = size
        self.has_turn = False
        self.outcome: mmap | BaseException | None = None
        self.is_closed = False
        self.wake: Callable[[], object] = lambda: None
        self.give_back = give_back
        self._opener = opener
        self._is_begun = False
        self._held: Pending[None] | None = None

    @property
    def is_ready(self) -> bool:
        """True if it may be opened, and no one has begun with that."""
        return self.has_turn and not self._is_begun

    @property
    def is_being_opened(self) -> bool:
        """True while the thread makes the records."""
        return self._is_begun and self.outcome is None

    @property
    def is_awaited(self) -> bool:
        """True if others wait until it is closed."""
        return self._opener.is_awaited

    def close(self) -> None:
        """Release the memory, or leave the line; `wake` is not called any more."""
        if not self.is_closed:
            self.is_closed = True
            if self.outcome is not None or not self._is_begun:
                self._let_go()

    def take_turn(self) -> None:
        """Note that it may be opened."""
        self.has_turn = True
        self._hold()
        self.wake()

    def begin(self, make: Make) -> None:
        """Have the records made."""
        self._is_begun = True
        self._held = None  # the time that the thread takes is not its reader's
        made = self._opener.in_thread(partial(_outcome_of, make))
        made.when_settled(lambda: self._opened(*made.result()))

    def _opened(self, outcome: mmap | BaseException) -> None:
        self.outcome = outcome
        if self.is_closed:
            self._let_go()
        else:
            self._hold()
            self.wake()

    def _hold(self) -> None:
        """Keep the memory for a while at least."""
        self._held = held = self._opener.wait(_HELD_MS)
        held.when_settled(partial(self._make_way, held))

    def _make_way(self, held: Pending[None]) -> None:
        if self.is_closed or held is not self._held:
            return
        if self.is_awaited:
            self.give_back()
        else:
            self._hold()

    def _let_go(self) -> None:
        """Release the memory on the thread, since the system takes some ten milliseconds for it."""
        if isinstance(self.outcome, mmap):
            closed = self._opener.in_thread(self.outcome.close)
            closed.when_settled(partial(self._opener.closed, self))
        else:
            self._opener.closed(self)


def _outcome_of(make: Make) -> _Outcome:
    """Return the result, or why there is none; in a tuple, as no error of the thread's."""
    try:
        return (make(),)
    except BaseException as error:  # noqa: BLE001  # the reader's to tell; the thread goes on
        return (error.with_traceback(None),)  # its frames hold the bytes


class OpeningRoom:
    """Bytes that the open sub-batches of all clients have together.

    Attributes:
        in_thread: Runs a function that opens a sub-batch, on a thread.
        wait: Returns a Pending that settles after a number of milliseconds.
    """

    def __init__(self, bytes_max: int, in_thread: InThread, wait: Wait) -> None:
        """Begin empty; `bytes_max` is no less than the largest sub-batch."""
        self.in_thread = in_thread
        self.wait = wait
        self._left = bytes_max
        self._line: dict[SubBatchOpening, None] = {}

    @property
    def is_awaited(self) -> bool:
        """True if a client waits for some of it."""
        return bool(self._line)

    def enter(self, opening: SubBatchOpening) -> None:
        """Put a sub-batch in line: the first one has its turn when there is room for it."""
        self._line[opening] = None
        self._go_on()

    def leave(self, opening: SubBatchOpening) -> None:
        """Note that one is closed, or waits no more."""
        if opening.has_turn:
            self._left += opening.size
        else:
            del self._line[opening]
        self._go_on()

    def _go_on(self) -> None:
        while self._line:
            first = next(iter(self._line))
            if first.size > self._left:
                return
            del self._line[first]
            self._left -= first.size
            first.take_turn()


class Opener:
    """Opens the sub-batches of one client, one at a time."""

    def __init__(self, room: OpeningRoom) -> None:
        self._room = room
        self._current: SubBatchOpening | None = None
        self._line: dict[SubBatchOpening, None] = {}

    @property
    def in_thread(self) -> InThread:
        """Runs a function that opens a sub-batch, on a thread."""
        return self._room.in_thread

    @property
    def wait(self) -> Wait:
        """Returns a Pending that settles after a number of milliseconds."""
        return self._room.wait

    @property
    def is_awaited(self) -> bool:
        """True if another reader of this client, or another client, waits."""
        return bool(self._line) or self._room.is_awaited

    def open(
        self, size: int, wake: Callable[[], object], give_back: Callable[[], object]
    ) -> SubBatchOpening:
        """Wait in line with a sub-batch; close the returned one when its records are taken.

        Args:
            size: Bytes of the records.
            wake: Called when it gets its turn, unless it has that at once, and when its outcome is
                there.
            give_back: Called when it has to be closed before that, since others wait.
        """
        opening = SubBatchOpening(self, size, give_back)
        self._line[opening] = None
        self._go_on()
        opening.wake = wake
        return opening

    def closed(self, opening: SubBatchOpening) -> None:
        """Note that one is closed, or waits no more."""
        if opening is self._current:
            self._current = None
            self._room.leave(opening)
        else:
            del self._line[opening]
        self._go_on()

    def _go_on(self) -> None:
        if self._current is None and self._line:
            self._current = next(iter(self._line))
            del self._line[self._current]
            self._room.enter(self._current)

"""The way of operations into messages, of messages into the log, and from there into the copy.

    add ─→ gathered ─→ messages on their way ─→ stored ─→ applied to the member's own copy
           in memory   several at once, 4 MiB

A message is applied when the log has it, and not before: no other member has it until then.
An outcome that is not known is a pause. The log is asked for its last message until it answers:
that is one of ours, and the rest is sent again, or it is the fence of another member.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from store.errors import SegmentFailed, StoreError
from store.files import PASSING
from store.replica.local_copy import LocalCopy, Place
from store.replica.log import (
    Answer,
    DurableLog,
    Entry,
    LogAway,
    LogError,
    Outcome,
    Unstored,
)
from store.replica.message import Link, Message, MessageKind
from store.replica.operations import Operation
from store.replica.outbox import Outbox

log = logging.getLogger(__name__)
T = TypeVar("T")

MESSAGE_BYTES_MAX: Final = 1024 * 1024
WINDOW_BYTES: Final = 4 * 1024 * 1024
"""Bytes of messages on their way at once."""
SAY_AGAIN_S: Final = 60.0
LOST_ANSWERS_MAX: Final = 300
"""Answers in a row by which the log has lost messages, before that is believed."""


class Fenced(SegmentFailed):
    """Another member has taken over: nothing of this one is stored any more."""


@dataclass(frozen=True, slots=True)
class _Sent:
    data: bytes
    link: Link
    operations: list[Operation]
    answer: Answer[Outcome]


class Pauses:
    """Lines on the times in which the log does not answer: at the begin, each minute, at the end.

    Attributes:
        count: How many there were.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s: float | None = None
        self._say_s = 0.0
        self.count = 0

    @property
    def is_on(self) -> bool:
        """True while the log does not answer."""
        return self._began_s is not None

    def goes_on(self, reason: str) -> None:
        """Say that it does not answer, if that is due."""
        now = self._clock()
        if self._began_s is None:
            self._began_s = now
            self.count += 1
        elif now < self._say_s:
            return
        self._say_s = now + SAY_AGAIN_S
        waited = now - self._began_s
        log.warning("the log does not answer, waiting seconds=%.0f reason=%s", waited, reason)

    def ends(self) -> None:
        """Say that it answers again."""
        if self._began_s is not None:
            log.warning("the log answers again seconds=%.0f", self._clock() - self._began_s)
            self._began_s = None


class Shipping:
    """The way of a member's operations through the log. Any thread may call all of it.

    Attributes:
        failure: Why nothing is stored any more.
        sent_bytes: Bytes of all messages.
        pauses: Times in which the log did not answer.
    """

    def __init__(
        self,
        shared_log: DurableLog,
        copy: LocalCopy,
        position: int,
        *,
        now_ms: Callable[[], int],
        pause: Callable[[], object],
        applied: Callable[[Operation], object],
    ) -> None:
        """Begin behind the fence of this member.

        Args:
            shared_log: The log.
            copy: The member's copy, which has everything up to the fence.
            position: The fence's.
            now_ms: The time.
            pause: Waits a little, between two questions to a log that does not answer.
            applied: Is told of each operation that was applied.
        """
        self._log = shared_log
        self._copy = copy
        self._pause = pause
        self._told = applied
        bytes_max = min(shared_log.bytes_max, MESSAGE_BYTES_MAX)
        self._outbox = Outbox(copy.place.cluster, copy.place.link, bytes_max, now_ms)
        # Of the outbox, and of what is sent and counted; `_settling` is taken first.
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._added = self._applied = 0
        self._under_way: deque[_Sent] = deque()
        self._under_way_bytes = 0
        # The place of the last message that was sent, or the answer that will say it.
        self._after: int | Answer[Outcome] = position
        self._stored_position = position
        self._is_held_up = False
        self._lost_count = 0
        self.failure: StoreError | None = None
        self.sent_bytes = 0
        self.pauses = Pauses()

    @property
    def data_bytes_max(self) -> int:
        """Size of the largest data of one operation."""
        return self._outbox.data_bytes_max

    def add(self, operation: Operation) -> None:
        """Take an operation, behind all others; whole messages are sent, as long as few are."""
        with self._lock:
            self._outbox.add(operation)
            self._added += 1
            if self.failure is None:
                while self._outbox.has_whole and self._under_way_bytes < WINDOW_BYTES:
                    self._send(*self._outbox.take())

    def settle(self) -> None:
        """Have all that was added so far in the log, and in the copy; waits.

        Raises:
            Fenced: Another member has taken over.
            StoreError: The log or the copy has failed.
        """
        with self._lock:
            mark = self._added
        with self._settling:
            while self._applied < mark:
                self._go_on()

    def _go_on(self) -> None:
        """Send what may be sent, and wait for the oldest message that is on its way."""
        if self.failure is not None:
            raise self.failure
        try:
            with self._lock:
                while self._outbox and self._under_way_bytes < WINDOW_BYTES:
                    self._send(*self._outbox.take())
            self._take_oldest()
            self._is_held_up = False
        except PASSING as error:
            self._hold_up(error)
        except StoreError as error:
            self.failure = error
            raise

    def _hold_up(self, error: StoreError) -> None:
        """Wait: the log has what the member's own disk cannot take now."""
        if not self._is_held_up:
            self._is_held_up = True
            log.error("the data directory takes nothing, waiting error=%s", error)
        self._pause()

    @property
    def is_fenced(self) -> bool:
        """True if another member has taken over."""
        return isinstance(self.failure, Fenced)

    def look(self) -> None:
        """Ask the log, while nothing is on its way, whether another member has taken over.

        Raises:
            LogAway: It does not answer.
            StoreError: As `settle`.
        """
        with self._settling:
            if self.failure is not None:
                raise self.failure
            with self._lock:
                if self._under_way or self._outbox:
                    return
            last = self._log.last()
            try:
                if last is not None and last.position > self._stored_position:
                    self._not_ours(last)
            except StoreError as error:
                self.failure = error
                raise

    def hand_over(self) -> None:
        """Say that this member ends, behind all that it has stored; waits. Raises as `settle`."""
        with self._settling:
            while self._under_way or self._outbox:
                self._go_on()
            if self.failure is not None:
                raise self.failure
            with self._lock:
                self._send(self._outbox.message(MessageKind.HAND_OVER, b""), [])
            while self._under_way:
                self._go_on()
            self.failure = SegmentFailed("this member has handed over")

    def at_rest(self, call: Callable[[Place], T]) -> T:
        """Return the result of a call that gets the copy's place; nothing is applied meanwhile."""
        with self._settling:
            return call(self._copy.place)

    def sync_copy(self) -> None:
        """Have the copy on the disk, as it is now; what is applied meanwhile does not wait for it.

        Raises:
            StoreError: It failed.
        """
        with suppress(*PASSING):  # it is tried again with the next one
            with self._settling:
                part = self._copy.unsynced()
            self._copy.sync_part(part)
            with self._settling:
                self._copy.note(part)

    def _send(self, data: bytes, operations: list[Operation]) -> None:
        """Send the message that was made last; the lock is held."""
        self._after = answer = self._log.append(data, self._after)
        self._under_way.append(_Sent(data, self._outbox.link, operations, answer))
        self._under_way_bytes += len(data)
        self.sent_bytes += len(data)

    def _take_oldest(self) -> None:
        """Wait for the oldest message, and apply it."""
        outcome = self._under_way[0].answer.wait()
        if isinstance(outcome, int):
            self._store(outcome)
        else:
            self._go_on_behind_last()

    def _store(self, position: int) -> None:
        """Apply the oldest message: the log has it."""
        sent = self._under_way[0]
        self._copy.apply(sent.link, position + 1, sent.operations, self._told)
        self._stored_position = position
        self._lost_count = 0
        self.pauses.ends()
        with self._lock:
            self._under_way.popleft()
            self._under_way_bytes -= len(sent.data)
            self._applied += len(sent.operations)

    def _go_on_behind_last(self) -> None:
        """Find out which messages are stored, apply those, and send the others again."""
        with self._lock:
            under_way = list(self._under_way)
        if Unstored.UNKNOWN in [sent.answer.wait() for sent in under_way]:
            self.pauses.goes_on(self._log.trouble)
            self._pause()
        last = self._last()
        data = None if last is None else last.data
        stored = [count for count, sent in enumerate(under_way, 1) if sent.data == data]
        if last is None or (not stored and last.position != self._stored_position):
            self._not_ours(last)
            return
        self.pauses.ends()
        for left in reversed(range(stored[0] if stored else 0)):
            # Where the others are is not known: somewhere behind what was stored before.
            self._store(self._stored_position if left else last.position)
        with self._lock:
            self._send_again(last.position)

    def _send_again(self, position: int) -> None:
        """Send what is under way behind a position; the lock is held."""
        again = list(self._under_way)
        self._under_way.clear()
        self._after = position
        for sent in again:
            self._after = answer = self._log.append(sent.data, self._after)
            self._under_way.append(_Sent(sent.data, sent.link, sent.operations, answer))

    def _last(self) -> Entry | None:
        while True:
            try:
                last = self._log.last()
            except LogAway as error:
                self.pauses.goes_on(str(error))
                self._pause()
            else:
                return last

    def _not_ours(self, last: Entry | None) -> None:
        """Look at a last message that this member did not expect.

        Raises:
            Fenced: It is another member's.
            LogError: What was stored is not in the log any more.
        """
        message = None if last is None else Message.unpack(last.data)
        if message is not None and message.term > self._copy.place.link.term:
            raise Fenced(f"another member has taken over, in term {message.term}")
        self._lost_count += 1
        end = "it is empty" if message is None else f"it ends with message {message.number}"
        known = self._copy.place.link.number
        reason = f"the log has lost what was stored: {end}, and {known} is known here"
        if self._lost_count >= LOST_ANSWERS_MAX:
            raise LogError(f"{reason}; it was purged, or it is another one")
        self.pauses.goes_on(reason)  # a server that lags behind may have answered
        self._pause()

"""Follower: applies the messages of the log to the member's copy, and begins a term of its own."""

from typing import Final

from store.replica.local_copy import LocalCopy
from store.replica.log import NOTHING, DurableLog, Entry, LogError, LogGap
from store.replica.message import (
    Fence,
    Link,
    Message,
    MessageKind,
    UnreadableMessage,
    hash_of,
)
from store.replica.operations import unpack

READ_MAX: Final = 64
"""Messages that are asked for at once, each of which has at most a MiB."""


class NeedsBase(LogError):
    """The log does not have all files, and the member has none of them."""


class Follower:
    """A member that follows. One thread at a time calls it.

    Attributes:
        copy: The member's copy.
        active: Name of the member that began the last term; "" if it has handed over, None if that
            is not known.
        began_ms: Time of the term that this member began.
    """

    def __init__(self, shared_log: DurableLog, copy: LocalCopy, *, has_base: bool = False) -> None:
        """Begin.

        Args:
            shared_log: The log.
            copy: The member's copy.
            has_base: Whether it has files, and no message: the log can only begin with them.
        """
        self._log = shared_log
        self.copy = copy
        self._has_base = has_base
        self.began_ms = 0
        self.active: str | None = None

    def step(self) -> int:
        """Apply messages that are there; return how many.

        Raises:
            LogGap: One is not there, or damaged: the copy cannot be brought up from this log.
            LogAway: The log does not answer.
            UnreadableMessage: One is of another cluster, or of a newer version.
            StoreError: The copy has failed.
        """
        place = self.copy.place
        entries = self._log.read(max(place.position, 1), READ_MAX)
        count = 0
        for entry in entries:
            count += self._take(entry)
        return count

    def catch_up(self) -> Entry | None:
        """Apply all that is stored; return the last message. Raises what `step` raises."""
        while True:
            last = self._log.last()
            if last is None:
                if self.copy.place.link.number:
                    raise LogError("the log is empty, and this directory has messages of it")
                return None
            message = self._known(last)
            number = message.number
            while self.copy.place.link.number < number:
                if not self.step():
                    break  # what it reads from lags behind
            else:
                link = self.copy.place.link
                if link.number != number:
                    raise LogError(
                        f"the log ends with message {number}, and this directory has {link.number}"
                    )
                if link.hash != hash_of(last.data):
                    raise UnreadableMessage(f"message {number} is another than is known here")
                return last

    def take_over(self, member: str, at_ms: int) -> int | None:
        """Begin a term: append a fence, when all before it has been applied.

        Args:
            member: Its name.
            at_ms: The time; it does not fall behind that of the last message.

        Returns:
            The fence's position; None if another message was stored meanwhile.

        Raises:
            LogError: As `step`.
        """
        last = self.catch_up()
        link, position = self.copy.place.link, NOTHING if last is None else last.position
        number = link.number + 1
        self.began_ms = max(at_ms, 0 if last is None else Message.unpack(last.data).at_ms)
        body = Fence(member, has_base=self._has_base and number == 1).pack()
        numbers = (number, number, self.began_ms, link.hash)
        fence = Message(MessageKind.FENCE, self.copy.place.cluster, *numbers, body).pack()
        self.copy.begin()
        outcome = self._log.append(fence, position).wait()
        if not isinstance(outcome, int):
            found = self._log.last()
            if found is None or found.data != fence:
                return None
            outcome = found.position
        self.copy.apply(Link(number, number, hash_of(fence)), outcome + 1, ())
        self.active = member
        return outcome

    def _known(self, entry: Entry) -> Message:
        """Return a message of the log. Raises UnreadableMessage: it is of another cluster."""
        message = Message.unpack(entry.data)
        place = self.copy.place
        if message.cluster != place.cluster:
            if place.link.number or self._has_base:
                raise UnreadableMessage(f"message {message.number} is of another cluster")
            self.copy.adopt(message.cluster)  # another member was quicker to begin
        return message

    def _take(self, entry: Entry) -> int:
        message = self._known(entry)
        place = self.copy.place
        if message.number <= place.link.number:
            return 0
        if message.number > place.link.number + 1:
            raise LogGap(f"message {place.link.number + 1} is not in the log", entry.position)
        link, message = place.link.after(entry.data, place.cluster)
        is_work = message.kind is MessageKind.OPERATIONS
        if message.kind is MessageKind.FENCE:
            self._begin_term(Fence.unpack(message.body))
        elif message.kind is MessageKind.HAND_OVER:
            self.active = ""
        operations = unpack(memoryview(message.body)) if is_work else ()
        self.copy.apply(link, entry.position + 1, operations)
        return 1

    def _begin_term(self, fence: Fence) -> None:
        if fence.has_base and not self._has_base:
            raise NeedsBase(
                f"the log begins with the files of member {fence.member}, which are not in it: this"
                f" directory has to be a copy of that member's"
            )
        self.active = fence.member

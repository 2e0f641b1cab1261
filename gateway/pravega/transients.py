"""Segments that live as long as their connection, and are deleted at the next start at the latest.

Their names are kept in a table of the store: a server that is killed deletes nothing.
"""

import hashlib
import logging
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from gateway.pravega.segments import TRANSIENTS_MAX, USER_TRANSIENTS_MAX
from store.api import TRANSIENT_MARK, Operations, TableEntry, TablePage
from store.errors import (
    InvalidArgument,
    NoSuchSegment,
    SegmentExists,
    StoreClosed,
    StoreError,
)

log = logging.getLogger(__name__)

TABLE: Final = "hutch/_transients_kvtable/0.#epoch.0"
OWN_MAX: Final = 100
"""Transient segments of one connection."""
_PAGE: Final = 100
_AT_ONCE: Final = 10
"""Segments that are deleted at a time; others have their turn then."""

Done = Callable[[str | StoreError], None]


class Transients:
    """The transient segments of a store."""

    def __init__(self, store: Operations) -> None:
        self._store = store
        # Those of this run that are there or coming or going, and their users; "" for none.
        self._users: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._going: deque[str] = deque()
        self._under_way = 0

    def begin(self) -> None:
        """Make the table, and delete the transient segments of the last run."""

        def made(outcome: StoreError | None) -> None:
            if isinstance(outcome, SegmentExists):
                self._delete_left(None)
            elif outcome is not None:
                log.error("transient segments cannot be kept error=%s", outcome)

        self._store.create_table(TABLE, done=made)

    def _delete_left(self, continuation: bytes | None) -> None:
        def found(outcome: TablePage | StoreError) -> None:
            if isinstance(outcome, StoreError):
                log.error("transient segments cannot be listed error=%s", outcome)
                return
            names = (entry.value.decode("utf-8", "surrogatepass") for entry in outcome.entries)
            # A client may be there already.
            self.delete(name for name in names if name not in self._users)
            if outcome.continuation is not None:
                self._delete_left(outcome.continuation)

        self._store.iterate_table(TABLE, continuation=continuation, count=_PAGE, done=found)

    def create(self, parent: str, writer_id: uuid.UUID, user: str = "", *, done: Done) -> None:
        """Create a segment beside a parent, unless there are too many: InvalidArgument.

        Args:
            parent: The segment that it will be merged into.
            writer_id: The writer that asks for it.
            user: Its user; '' if it names none.
            done: Gets the new segment's name.
        """
        if full := self._full(user):
            done(InvalidArgument(full))
            return
        name = f"{parent}{TRANSIENT_MARK}{writer_id.hex}{uuid.uuid4().hex}"
        self._users[name] = user
        self._counts[user] += 1

        def noted(outcome: Sequence[int] | StoreError) -> None:
            if isinstance(outcome, StoreError):
                refuse(outcome)
            else:
                self._store.create_segment(name, done=created)

        def created(outcome: StoreError | None) -> None:
            if outcome is None:
                done(name)
            else:
                refuse(outcome)

        def refuse(error: StoreError) -> None:
            self.forget(name)
            done(error)

        self._store.update_table(TABLE, [TableEntry(_key(name), _value(name))], done=noted)

    def _full(self, user: str) -> str:
        """Return why a user may have no more; '' if it may."""
        if user and self._counts[user] >= USER_TRANSIENTS_MAX:
            return f"user {user!r} has {USER_TRANSIENTS_MAX} transient segments, the most of a user"
        if len(self._users) >= TRANSIENTS_MAX:
            return f"there are {TRANSIENTS_MAX} transient segments, the most that there may be"
        return ""

    def delete(self, names: Iterable[str]) -> None:
        """Delete those that are still there."""
        self._going.extend(names)
        self._go_on()

    def _go_on(self) -> None:
        while self._going and self._under_way < _AT_ONCE:
            self._under_way += 1
            self._delete(self._going.popleft())

    def _delete(self, name: str) -> None:
        def deleted(outcome: StoreError | None) -> None:
            if outcome is None or isinstance(outcome, NoSuchSegment):
                self.forget(name)
            elif not isinstance(outcome, StoreClosed):  # the next start deletes it
                log.error("transient segment is not deleted segment=%s error=%s", name, outcome)
            self._under_way -= 1
            self._go_on()

        self._store.delete_segment(name, done=deleted)

    def forget(self, name: str) -> None:
        """Strike a segment that is gone off the table."""

        def done(outcome: StoreError | None) -> None:
            user = self._users.pop(name, None)
            if user is not None:
                self._counts[user] -= 1
                if not self._counts[user]:
                    del self._counts[user]
            if outcome is not None and not isinstance(outcome, StoreClosed):
                log.error("transient segment is not forgotten segment=%s error=%s", name, outcome)

        self._store.remove_keys(TABLE, [TableEntry(_key(name), b"")], done=done)


class OwnTransients:
    """The transient segments of one connection."""

    def __init__(self, transients: Transients) -> None:
        self._transients = transients
        self._names: set[str] = set()
        self._coming = 0
        self._is_over = False

    def create(self, parent: str, writer_id: uuid.UUID, user: str = "", *, done: Done) -> None:
        """Create one, as `Transients.create`, unless there are too many: InvalidArgument."""
        count = len(self._names) + self._coming
        if count >= OWN_MAX:
            text = f"the connection has {count} transient segments, and may have no more"
            done(InvalidArgument(text))
            return

        def created(outcome: str | StoreError) -> None:
            self._coming -= 1
            if isinstance(outcome, str):
                self._names.add(outcome)
                if self._is_over:
                    self.over()
            done(outcome)

        self._coming += 1
        self._transients.create(parent, writer_id, user, done=created)

    def forget(self, name: str) -> None:
        """Forget one that is merged or deleted, if it is one of them."""
        if name in self._names:
            self._names.remove(name)
            self._transients.forget(name)

    def over(self) -> None:
        """Delete them: the connection has ended."""
        self._is_over = True
        names, self._names = self._names, set()
        self._transients.delete(names)


def _key(name: str) -> bytes:
    """Return a key that is short however long the name is."""
    return hashlib.blake2b(_value(name), digest_size=16).digest()


def _value(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")

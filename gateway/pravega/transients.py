"""Segments that live as long as their connection, and are deleted at the next start at the latest.

Their names are kept in a table of the store: a server that is killed deletes nothing.
"""

import hashlib
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from store.api import Operations, TableEntry, TablePage
from store.errors import NoSuchSegment, SegmentExists, StoreClosed, StoreError

log = logging.getLogger(__name__)

TABLE: Final = "hutch/_transients_kvtable/0.#epoch.0"
_PAGE: Final = 100

Done = Callable[[str | StoreError], None]


class Transients:
    """The transient segments of a store."""

    def __init__(self, store: Operations) -> None:
        self._store = store
        self._of_this_run: set[str] = set()

    def begin(self) -> None:
        """Make the table, and delete what is left of the last run."""

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
            for entry in outcome.entries:
                name = entry.value.decode("utf-8", "surrogatepass")
                if name not in self._of_this_run:  # a client may be there already
                    self.delete(name)
            if outcome.continuation is not None:
                self._delete_left(outcome.continuation)

        self._store.iterate_table(TABLE, continuation=continuation, count=_PAGE, done=found)

    def create(self, parent: str, writer_id: uuid.UUID, *, done: Done) -> None:
        """Create a segment beside a parent.

        Args:
            parent: The segment that it will be merged into.
            writer_id: The writer that asks for it.
            done: Gets the new segment's name.
        """
        name = f"{parent}#transient.{writer_id.hex}{uuid.uuid4().hex}"

        self._of_this_run.add(name)

        def noted(outcome: Sequence[int] | StoreError) -> None:
            if isinstance(outcome, StoreError):
                self._of_this_run.discard(name)
                done(outcome)
            else:
                self._store.create_segment(name, done=created)

        def created(outcome: StoreError | None) -> None:
            if outcome is not None:
                self.forget(name)
            done(name if outcome is None else outcome)

        self._store.update_table(TABLE, [TableEntry(_key(name), _value(name))], done=noted)

    def delete(self, name: str) -> None:
        """Delete one, if it is still there."""

        def deleted(outcome: StoreError | None) -> None:
            if outcome is None or isinstance(outcome, NoSuchSegment):
                self.forget(name)
            elif not isinstance(outcome, StoreClosed):  # the next start deletes it
                log.error("transient segment %s is not deleted error=%s", name, outcome)

        self._store.delete_segment(name, done=deleted)

    def forget(self, name: str) -> None:
        """Strike a segment that is gone off the table."""

        def done(outcome: StoreError | None) -> None:
            self._of_this_run.discard(name)
            if outcome is not None and not isinstance(outcome, StoreClosed):
                log.error("transient segment %s is not forgotten error=%s", name, outcome)

        self._store.remove_keys(TABLE, [TableEntry(_key(name), b"")], done=done)


def _key(name: str) -> bytes:
    """Return a key that is short however long the name is."""
    return hashlib.blake2b(_value(name), digest_size=16).digest()


def _value(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")

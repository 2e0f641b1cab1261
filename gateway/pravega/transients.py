"""Segments that live as long as their connection, and are deleted at the next start at the latest.

Their names are kept in a table of the store: a server that is killed deletes nothing.
"""

import hashlib
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from store.api import Operations, TableEntry, TablePage
from store.errors import NoSuchSegment, SegmentExists, StoreError

log = logging.getLogger(__name__)

TABLE: Final = "hutch/_transients_kvtable/0.#epoch.0"
_PAGE: Final = 100

Done = Callable[[str | StoreError], None]


class Transients:
    """The transient segments of a store."""

    def __init__(self, store: Operations) -> None:
        self._store = store

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
                self.delete(entry.value.decode("utf-8", "surrogatepass"))
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

        def noted(outcome: Sequence[int] | StoreError) -> None:
            if isinstance(outcome, StoreError):
                done(outcome)
            else:
                self._store.create_segment(name, done=created)

        def created(outcome: StoreError | None) -> None:
            if outcome is not None:
                self._forget(name)
            done(name if outcome is None else outcome)

        self._store.update_table(TABLE, [TableEntry(_key(name), _value(name))], done=noted)

    def delete(self, name: str) -> None:
        """Delete one, if it is still there."""

        def deleted(outcome: StoreError | None) -> None:
            if outcome is None or isinstance(outcome, NoSuchSegment):
                self._forget(name)
            else:
                log.error("transient segment %s is not deleted error=%s", name, outcome)

        self._store.delete_segment(name, done=deleted)

    def _forget(self, name: str) -> None:
        def done(outcome: StoreError | None) -> None:
            if outcome is not None:
                log.error("transient segment %s is not forgotten error=%s", name, outcome)

        self._store.remove_keys(TABLE, [TableEntry(_key(name), b"")], done=done)


def _key(name: str) -> bytes:
    """Return a key that is short however long the name is."""
    return hashlib.blake2b(_value(name), digest_size=16).digest()


def _value(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")

"""Merges of segments and of tables, into others."""

import hashlib
from collections.abc import Callable
from typing import Final
from uuid import UUID

from gateway.pravega.desk import Desk
from gateway.pravega.handlers.tables_merged import merged
from store.api import ABSENT, AttributeUpdate, SegmentInfo
from store.errors import AttributeMismatch, NoSuchSegment, StoreError
from store.wire import messages as m
from store.wire import table_messages as t
from store.wire.layout import Message

NONE: Final = 0
REPLACE: Final = 1
IF_GREATER: Final = 2
ACCUMULATE: Final = 3
IF_EQUAL: Final = 4
"""Types of an attribute's update."""
_TRIES: Final = 8
"""Number of times that an update is composed, since another client may change the attribute."""
_LONG: Final = 1 << 64

_MERGED: Final = int.from_bytes(b"hutch-merged\0\0\0\0")
_MERGED_COUNT: Final = 256
"""Attributes of a target that tell which sources it has: a later source may take the place."""


def merge_segments(desk: Desk, request: m.MergeSegments) -> None:
    """Append a segment to another one, update attributes, and delete it: all or nothing.

    A merge that comes again, since its reply was lost, is answered as the first one was.
    """
    if any(update.update_type not in range(IF_EQUAL + 1) for update in request.attribute_updates):
        desk.close("an update of an attribute has an unknown type")
        return
    _Merge(desk, request).begin()


class _Merge:
    """One merge, from its request to its reply."""

    def __init__(self, desk: Desk, request: m.MergeSegments) -> None:
        self._desk = desk
        self._request = request
        self._tries = 0
        self._updates: list[AttributeUpdate] = []

    def begin(self) -> None:
        """Compose the updates, one after the other, then merge."""
        self._tries += 1
        self._updates = [_mark_of(self._request.source)]
        self._compose(0)

    def _compose(self, index: int) -> None:
        wanted = self._request.attribute_updates[index : index + 1]
        if not wanted:
            target, source = self._request.target, self._request.source
            store = self._desk.store
            store.merge_segments(target, source, attributes=self._updates, done=self._done)
            return
        (update,) = wanted

        def found(value: int | StoreError) -> None:
            if isinstance(value, StoreError):
                self._done(value)
                return
            now = self._value_after_updates(update.attribute_id, value)
            if update.update_type == IF_GREATER and now != ABSENT and update.new_value <= now:
                self._failed()
            else:
                self._updates.append(_composed(update, now))
                self._compose(index + 1)

        self._desk.store.get_attribute(self._request.target, update.attribute_id, done=found)

    def _value_after_updates(self, attribute: UUID, stored: int) -> int:
        """Return what an attribute has when the updates composed so far are made."""
        made = [each.value for each in self._updates if each.attribute == attribute]
        return made[-1] if made else stored

    def _done(self, outcome: int | StoreError) -> None:
        request = self._request
        if isinstance(outcome, AttributeMismatch):
            if self._tries < _TRIES:
                self.begin()
            else:
                self._failed()
        elif isinstance(outcome, NoSuchSegment):
            _whether_merged(self._desk, request, outcome)
        elif isinstance(outcome, StoreError):
            self._desk.refuse(request.request_id, request.source, outcome)
        else:
            _forget(self._desk, request.source)
            self._desk.reply(_merged(request, outcome))

    def _failed(self) -> None:
        """Tell that a condition failed, unless the source is gone: its merge changed the value."""

        def found(outcome: SegmentInfo | StoreError) -> None:
            if isinstance(outcome, NoSuchSegment):
                self._done(outcome)
            else:
                request_id = self._request.request_id
                self._desk.reply(m.SegmentAttributeUpdated(request_id, success=False))

        self._desk.store.info(self._request.source, done=found)


def _forget(desk: Desk, source: str) -> None:
    """Forget a source that is merged, if it was to go with this connection."""
    if desk.forget(source):
        desk.host.transients.forget(source)


def _composed(update: m.AttributeUpdate, value: int) -> AttributeUpdate:
    """Return what the store is to do, if the attribute has a value now."""
    new, expected = update.new_value, value
    if update.update_type == NONE:
        expected = ABSENT
    elif update.update_type == IF_EQUAL:
        expected = update.old_value
    elif update.update_type == ACCUMULATE and value != ABSENT:
        new = (value + new + _LONG // 2) % _LONG - _LONG // 2
    return AttributeUpdate(
        update.attribute_id, new, None if update.update_type == REPLACE else expected
    )


def _mark_of(source: str) -> AttributeUpdate:
    """Return the attribute by which a target tells that it has a source."""
    digest = hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest) >> 1
    return AttributeUpdate(UUID(int=_MERGED + number % _MERGED_COUNT), number)


def _merged(request: m.MergeSegments, length: int) -> Message:
    return m.SegmentsMerged(request.request_id, request.target, request.source, length)


def _whether_merged(desk: Desk, request: m.MergeSegments, error: NoSuchSegment) -> None:
    """Answer a merge whose source is gone: it may be in the target already."""
    mark = _mark_of(request.source)

    def marked(value: int | StoreError) -> None:
        if value != mark.value:
            desk.refuse(request.request_id, request.source, error)
            return

        def reply(info: SegmentInfo) -> Message:
            return _merged(request, info.length)

        done = desk.answering(request.request_id, request.source, reply)
        desk.store.info(request.target, done=done)

    desk.store.get_attribute(request.target, mark.attribute, done=marked)


def merge_in_batch(desk: Desk, request: m.MergeSegmentsBatch) -> None:
    """Append segments to another one, in order, each by itself; those that are gone count too."""
    found: list[m.MergedSource] = []

    def merge(index: int) -> None:
        if index == len(request.sources):
            sources = tuple(found)
            desk.reply(m.SegmentsBatchMerged(request.request_id, request.target, sources))
            return
        source = request.sources[index]

        def done(outcome: int | StoreError) -> None:
            if isinstance(outcome, NoSuchSegment):
                _length_of(desk, request.target, done_or_refused)
            else:
                done_or_refused(outcome)

        def done_or_refused(outcome: int | StoreError) -> None:
            if isinstance(outcome, StoreError):
                desk.refuse(request.request_id, request.target, outcome)
                return
            _forget(desk, source)
            found.append(m.MergedSource(source, outcome))
            merge(index + 1)

        desk.store.merge_segments(request.target, source, done=done)

    merge(0)


def _length_of(desk: Desk, segment: str, done: Callable[[int | StoreError], None]) -> None:
    def told(outcome: SegmentInfo | StoreError) -> None:
        done(outcome if isinstance(outcome, StoreError) else outcome.length)

    desk.store.info(segment, done=told)


def merge_tables(desk: Desk, request: t.MergeTableSegments) -> None:
    """Move a table's entries into another one as one update; the source's win. Delete the source.

    The source is sealed first. A merge that comes again after a crash in between completes it. A
    table is in memory meanwhile: one is merged at a time, and the next frame waits.
    """
    target, source = request.target, request.source

    async def length() -> int:
        async with desk.host.table_merges.hold(""):
            if desk.is_over:  # while it was in line
                return 0
            return await merged(desk.store, target, source)

    def reply(length: int) -> Message:
        return m.SegmentsMerged(request.request_id, target, source, length)

    desk.hold_for(length(), desk.answering(request.request_id, source, reply))

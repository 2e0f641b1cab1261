"""Merges of segments and of tables, into others. The next frame waits for each of them."""

import hashlib
from typing import Final
from uuid import UUID

from gateway.pending import Pending, asked
from gateway.pravega.connection import SegmentConnection
from gateway.pravega.handlers.tables_merged import merged
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.layout import WireMessage
from store.api import ABSENT, AttributeUpdate, Operations, SegmentInfo
from store.errors import AttributeMismatch, NoSuchSegment

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


def merge_segments(connection: SegmentConnection, request: m.MergeSegments) -> None:
    """Append a segment to another one, update attributes, and delete it: all or nothing.

    A merge that comes again, since its reply was lost, is answered as the first one was.
    """
    if any(update.update_type not in range(IF_EQUAL + 1) for update in request.attribute_updates):
        connection.close("an update of an attribute has an unknown type")
        return
    done = connection.answering(request.request_id, request.source, _itself)
    connection.hold_for(_answer(connection, request), done)


def _itself(reply: WireMessage) -> WireMessage:
    return reply


async def _answer(connection: SegmentConnection, request: m.MergeSegments) -> WireMessage:
    """Merge; return the reply. Raises StoreError."""
    store, source = connection.store, request.source
    try:
        length = await _merged_with_updates(store, request)
    except NoSuchSegment:
        return await _reply_to_repeated(store, request)
    except AttributeMismatch:  # unless the source is gone: then its merge changed the value
        try:
            await _info(store, source)
        except NoSuchSegment:
            return await _reply_to_repeated(store, request)
        return m.SegmentAttributeUpdated(request.request_id, success=False)
    connection.transients.forget(source)
    return _reply(request, length)


async def _merged_with_updates(store: Operations, request: m.MergeSegments) -> int:
    """Merge; return the target's length. Raises StoreError, AttributeMismatch if none will do."""
    for _ in range(_TRIES - 1):
        updates = await _composed(store, request)
        try:
            return await _merge(store, request.target, request.source, updates)
        except AttributeMismatch:
            pass
    return await _merge(store, request.target, request.source, await _composed(store, request))


async def _composed(store: Operations, request: m.MergeSegments) -> list[AttributeUpdate]:
    """Return the updates of attributes for the store. Raises AttributeMismatch, StoreError."""
    mark = _mark_of(request.source)
    updates, made = [mark], {mark.attribute: mark.value}
    found = [
        (update, _attribute(store, request.target, update.attribute_id))
        for update in request.attribute_updates
    ]
    for update, stored in found:
        before = await stored
        value = made.get(update.attribute_id, before)
        if update.update_type == IF_GREATER and value != ABSENT and update.new_value <= value:
            raise AttributeMismatch(f"attribute {update.attribute_id} is {value}")
        updates.append(_update_of(update, value))
        made[update.attribute_id] = updates[-1].value
    return updates


def _update_of(update: m.AttributeUpdate, value: int) -> AttributeUpdate:
    """Return the update for the store, if the attribute has a value now."""
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


async def _reply_to_repeated(store: Operations, request: m.MergeSegments) -> WireMessage:
    """Return the reply to a merge whose source is gone: it may be in the target already."""
    mark = _mark_of(request.source)
    if await _attribute(store, request.target, mark.attribute) != mark.value:
        raise NoSuchSegment(f"no segment {request.source!r}")
    return _reply(request, (await _info(store, request.target)).length)


def _reply(request: m.MergeSegments, length: int) -> WireMessage:
    return m.SegmentsMerged(request.request_id, request.target, request.source, length)


def merge_in_batch(connection: SegmentConnection, request: m.MergeSegmentsBatch) -> None:
    """Append segments to another one, in order, each by itself; those that are gone count too."""
    store, target = connection.store, request.target

    async def answer() -> WireMessage:
        found: list[m.MergedSource] = []
        for source in request.sources:
            try:
                length = await _merge(store, target, source, [])
            except NoSuchSegment:
                length = (await _info(store, target)).length
            connection.transients.forget(source)
            found.append(m.MergedSource(source, length))
        return m.SegmentsBatchMerged(request.request_id, target, tuple(found))

    connection.hold_for(answer(), connection.answering(request.request_id, target, _itself))


def merge_tables(connection: SegmentConnection, request: t.MergeTableSegments) -> None:
    """Move a table's entries into another one as one update; the source's win. Delete the source.

    The source is sealed first. A merge that comes again after a crash in between completes it. A
    table is in memory meanwhile: one is merged at a time.
    """
    target, source = request.target, request.source

    async def length() -> int:
        async with connection.context.table_merges.hold(""):
            if connection.is_over:  # while it was in line
                return 0
            return await merged(connection.store, target, source)

    def reply(length: int) -> WireMessage:
        return m.SegmentsMerged(request.request_id, target, source, length)

    connection.hold_for(length(), connection.answering(request.request_id, source, reply))


# The store


def _merge(
    store: Operations, target: str, source: str, updates: list[AttributeUpdate]
) -> Pending[int]:
    return asked(lambda done: store.merge_segments(target, source, attributes=updates, done=done))


def _attribute(store: Operations, segment: str, attribute: UUID) -> Pending[int]:
    return asked(lambda done: store.get_attribute(segment, attribute, done=done))


def _info(store: Operations, segment: str) -> Pending[SegmentInfo]:
    return asked(lambda done: store.info(segment, done=done))

"""Requests about tables and their entries."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

from gateway.pending import Pending, asked
from gateway.pravega.desk import Desk
from gateway.pravega.handlers.table_pages import STEP, DeltaPage, Page
from gateway.pravega.room import check_room
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.codec import PAYLOAD_BYTES_MAX
from hutch.pravega.layout import Message
from hutch.pravega.wire_types import NO_KEY, TableKey
from hutch.pravega.wire_types import TableEntry as WireEntry
from store.api import SegmentInfo, TableDelta, TableEntry, TablePage
from store.errors import InvalidArgument, StoreError

T = TypeVar("T")

_FEW: Final = 100
_FEW_BYTES: Final = 64 * 1024
"""A change of more entries, or bytes of values, is large."""
_NO_OFFSETS: Final = frozenset((m.UNKNOWN, -(1 << 63)))
"""Offsets that demand nothing of a table's length; the second is that of clients of before 0.10."""
_GO_ON: Final = b"\x01"
_END: Final = b"\x00"
"""Continuations: the store's follows the first; after the second there is an empty page."""


def create_table(desk: Desk, request: t.CreateTableSegment) -> None:
    """Create a table."""

    def reply(_: None) -> Message:
        return m.SegmentCreated(request.request_id, request.segment)

    store, table = desk.store, request.segment
    done = desk.answering(request.request_id, table, reply)

    async def create() -> None:
        await check_room(store, table)
        if not desk.is_over:
            key_length = request.key_length
            made: Pending[None] = asked(
                lambda done: store.create_table(table, key_length=key_length, done=done)
            )
            await made

    # What follows on the connection may be about the table.
    desk.hold_for(create(), done)


def delete_table(desk: Desk, request: t.DeleteTableSegment) -> None:
    """Delete a table."""

    def reply(_: None) -> Message:
        return m.SegmentDeleted(request.request_id, request.segment)

    done = desk.answering(request.request_id, request.segment, reply)
    must_be_empty = request.must_be_empty
    desk.store.delete_table(request.segment, must_be_empty=must_be_empty, done=done)


def get_table_info(desk: Desk, request: t.GetTableSegmentInfo) -> None:
    """Answer with length and number of entries."""

    def reply(found: tuple[SegmentInfo, int]) -> Message:
        info, count = found
        return t.TableSegmentInfo(
            request.request_id, request.segment, info.start, info.length, count, info.key_length
        )

    desk.store.table_info(
        request.segment, done=desk.answering(request.request_id, request.segment, reply)
    )


def seal_table(desk: Desk, request: t.SealTableSegment) -> None:
    """Let a table take no more updates."""

    def reply(_: int) -> Message:
        return m.SegmentSealed(request.request_id, request.segment)

    def found(outcome: tuple[SegmentInfo, int] | StoreError) -> None:
        done = desk.answering(request.request_id, request.segment, reply)
        if isinstance(outcome, StoreError):  # it is no table, for example
            done(outcome)
        else:
            desk.store.seal_segment(request.segment, done=done)

    desk.store.table_info(request.segment, done=found)


# Entries


def update_entries(desk: Desk, request: t.UpdateTableEntries) -> None:
    """Set entries, all or none."""
    request_id = request.request_id

    def reply(versions: Iterable[int]) -> Message:
        return t.TableEntriesUpdated(request_id, tuple(versions))

    entries = [TableEntry(each.key.key, each.value, each.key.version) for each in request.entries]
    _change(desk, request, entries, reply, desk.store.update_table)


def remove_keys(desk: Desk, request: t.RemoveTableKeys) -> None:
    """Remove keys, all or none."""
    request_id, segment = request.request_id, request.segment

    def reply(_: None) -> Message:
        return t.TableKeysRemoved(request_id, segment)

    keys = [TableEntry(key, b"", version) for key, version in request.keys]
    _change(desk, request, keys, reply, desk.store.remove_keys)


def _change(
    desk: Desk,
    request: t.UpdateTableEntries | t.RemoveTableKeys,
    entries: Sequence[TableEntry],
    reply: Callable[[T], Message],
    change: Callable[..., None],
) -> None:
    """Change a table; a large change is made in the next turn, and the next frame waits for it.

    The request itself, which may be large, is not kept until then.
    """
    segment, offset = request.segment, request.table_segment_offset
    answer = desk.answering(request.request_id, segment, reply, offset=offset)
    expected_length = None if offset in _NO_OFFSETS else offset
    large = len(entries) > _FEW or sum(len(each.value) for each in entries) > _FEW_BYTES

    def begin() -> None:
        change(segment, entries, expected_length=expected_length, done=done)

    def done(outcome: T | StoreError) -> None:
        answer(outcome)
        if large:
            desk.release()

    if large:
        desk.hold()
        desk.in_next_turn(begin)
    else:
        begin()


def read_table(desk: Desk, request: t.ReadTable) -> None:
    """Look up keys. The next frame waits: an answer may be as large as a frame."""
    keys = [key.key for key in request.keys]
    found: list[WireEntry] = []
    size = 0

    def read() -> None:
        part = keys[len(found) : len(found) + STEP]
        desk.store.read_table(request.segment, part, done=done)

    def done(outcome: Sequence[TableEntry | None] | StoreError) -> None:
        nonlocal size
        if not isinstance(outcome, StoreError):
            for entry in outcome:
                key = keys[len(found)]
                missing = WireEntry(TableKey(key, NO_KEY), b"")
                found.append(missing if entry is None else _on_wire(entry))
                size += len(key) + len(found[-1].value)
            if len(found) < len(keys) and size < PAYLOAD_BYTES_MAX:
                read()
                return
        answer(outcome)
        desk.release()

    def reply(_: object) -> Message:
        if len(found) < len(keys):
            raise ValueError(f"a frame cannot hold the entries of {len(keys)} keys; ask for fewer")
        return t.TableRead(request.request_id, request.segment, tuple(found))

    answer = desk.answering(request.request_id, request.segment, reply)
    desk.hold()
    read()


def _on_wire(entry: TableEntry) -> WireEntry:
    return WireEntry(TableKey(entry.key, entry.version), entry.value)


# Pages


def read_keys(desk: Desk, request: t.ReadTableKeys) -> None:
    """Answer with the next keys."""

    def reply(entries: Iterable[TableEntry], continuation: bytes) -> Message:
        keys = tuple(TableKey(entry.key, entry.version) for entry in entries)
        return t.TableKeysRead(request.request_id, request.segment, keys, continuation)

    _iterate(desk, request, reply)


def read_entries(desk: Desk, request: t.ReadTableEntries) -> None:
    """Answer with the next entries."""

    def reply(entries: Iterable[TableEntry], continuation: bytes) -> Message:
        found = tuple(map(_on_wire, entries))
        return t.TableEntriesRead(request.request_id, request.segment, found, continuation)

    _iterate(desk, request, reply)


def _iterate(
    desk: Desk,
    request: t.TableIteration,
    reply: Callable[[Iterable[TableEntry], bytes], Message],
) -> None:
    """Gather the next part of a table, no larger than a frame. The next frame waits for it."""
    kind, place = request.continuation[:1], request.continuation[1:]
    if kind == _END:
        desk.reply(reply((), b""))
        return
    if kind not in {b"", _GO_ON}:
        desk.close("a continuation that was never given")
        return
    # Clients of before 0.10 ask so for the keys of a family.
    page = Page(request.suggested_count, request.prefix_deprecated)

    def read(continuation: bytes | None) -> None:
        desk.store.iterate_table(
            request.segment,
            continuation=continuation,
            count=page.step,
            first=request.from_key or None,
            last=request.to_key or None,
            done=done,
        )

    def done(outcome: TablePage | StoreError) -> None:
        found = _within_bounds(request, outcome)
        if isinstance(found, StoreError):
            desk.refuse(request.request_id, request.segment, found)
            desk.release()
            return
        page.add(found.entries)
        if found.continuation is not None and not (page.is_full or desk.is_over):
            _go_on(desk, request, partial(read, found.continuation))
            return
        desk.reply(reply(page.entries, _continuation(found, page)))
        desk.release()

    desk.hold()
    read(place or None)


def _within_bounds(
    request: t.TableIteration, outcome: TablePage | StoreError
) -> TablePage | StoreError:
    """Return what the store has found; it finds nothing in bounds that lie the wrong way round."""
    if isinstance(outcome, TablePage) and request.from_key > request.to_key > b"":
        return InvalidArgument("the first key lies behind the last")
    return outcome


def _go_on(desk: Desk, request: t.TableIteration, step: Callable[[], None]) -> None:
    """Take the next step; others have their turn while there may be no key with a prefix."""
    if request.prefix_deprecated:
        desk.in_next_turn(step)
    else:
        step()


def _continuation(last: TablePage, page: Page) -> bytes:
    if last.continuation is not None:
        return _GO_ON + last.continuation
    return _END if page.entries else b""


def read_delta(desk: Desk, request: t.ReadTableEntriesDelta) -> None:
    """Answer with changes from a position on, at most a frame of them. The next frame waits."""
    page = DeltaPage(request.suggested_count)

    def read(position: int) -> None:
        desk.store.read_table_delta(request.segment, position, count=page.step, done=done)

    def done(outcome: TableDelta | StoreError) -> None:
        if isinstance(outcome, StoreError):
            desk.refuse(request.request_id, request.segment, outcome)
            desk.release()
            return
        page.add(outcome.entries, should_clear=outcome.should_clear)
        if not (outcome.reached_end or page.is_full):
            read(outcome.position)
            return
        desk.reply(
            t.TableEntriesDeltaRead(
                request.request_id,
                request.segment,
                tuple(map(_on_wire, page.entries)),
                should_clear=page.should_clear,
                reached_end=outcome.reached_end,
                last_position=outcome.position,
            )
        )
        desk.release()

    desk.hold()
    read(request.from_position)

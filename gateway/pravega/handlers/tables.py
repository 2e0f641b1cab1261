"""Requests about tables and their entries."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

from gateway.pending import Pending, asked
from gateway.pravega.connection import SegmentConnection
from gateway.pravega.handlers.table_pages import STEP, DeltaPage, EntryPage
from gateway.pravega.segments import check_room
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.codec import PAYLOAD_BYTES_MAX
from hutch.pravega.layout import WireMessage
from hutch.pravega.wire_types import NO_KEY, TableKey
from hutch.pravega.wire_types import KeyAndValue as WireEntry
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


def create_table(connection: SegmentConnection, request: t.CreateTableSegment) -> None:
    """Create a table."""

    def reply(_: None) -> WireMessage:
        return m.SegmentCreated(request.request_id, request.segment)

    store, table = connection.store, request.segment
    done = connection.answering(request.request_id, table, reply)

    async def create() -> None:
        await check_room(store, table)
        if not connection.is_over:
            key_length = request.key_length
            made: Pending[None] = asked(
                lambda done: store.create_table(table, key_length=key_length, done=done)
            )
            await made

    # What follows on the connection may be about the table.
    connection.hold_for(create(), done)


def delete_table(connection: SegmentConnection, request: t.DeleteTableSegment) -> None:
    """Delete a table."""

    def reply(_: None) -> WireMessage:
        return m.SegmentDeleted(request.request_id, request.segment)

    done = connection.answering(request.request_id, request.segment, reply)
    must_be_empty = request.must_be_empty
    connection.store.delete_table(request.segment, must_be_empty=must_be_empty, done=done)


def get_table_info(connection: SegmentConnection, request: t.GetTableSegmentInfo) -> None:
    """Answer with length and number of entries."""

    def reply(found: tuple[SegmentInfo, int]) -> WireMessage:
        info, count = found
        return t.TableSegmentInfo(
            request.request_id, request.segment, info.start, info.length, count, info.key_length
        )

    connection.store.table_info(
        request.segment, done=connection.answering(request.request_id, request.segment, reply)
    )


def seal_table(connection: SegmentConnection, request: t.SealTableSegment) -> None:
    """Let a table take no more updates."""

    def reply(_: int) -> WireMessage:
        return m.SegmentSealed(request.request_id, request.segment)

    def found(outcome: tuple[SegmentInfo, int] | StoreError) -> None:
        done = connection.answering(request.request_id, request.segment, reply)
        if isinstance(outcome, StoreError):  # it is no table, for example
            done(outcome)
        else:
            connection.store.seal_segment(request.segment, done=done)

    connection.store.table_info(request.segment, done=found)


# Entries


def update_entries(connection: SegmentConnection, request: t.UpdateTableEntries) -> None:
    """Set entries, all or none."""
    request_id = request.request_id

    def reply(versions: Iterable[int]) -> WireMessage:
        return t.TableEntriesUpdated(request_id, tuple(versions))

    entries = [TableEntry(each.key.key, each.value, each.key.version) for each in request.entries]
    _change(connection, request, entries, reply, connection.store.update_table)


def remove_keys(connection: SegmentConnection, request: t.RemoveTableKeys) -> None:
    """Remove keys, all or none."""
    request_id, segment = request.request_id, request.segment

    def reply(_: None) -> WireMessage:
        return t.TableKeysRemoved(request_id, segment)

    keys = [TableEntry(key, b"", version) for key, version in request.keys]
    _change(connection, request, keys, reply, connection.store.remove_keys)


def _change(
    connection: SegmentConnection,
    request: t.UpdateTableEntries | t.RemoveTableKeys,
    entries: Sequence[TableEntry],
    reply: Callable[[T], WireMessage],
    change: Callable[..., None],
) -> None:
    """Change a table; a large change is made in the next turn, and the next frame waits for it.

    The request itself, which may be large, is not kept until then.
    """
    segment, offset = request.segment, request.table_segment_offset
    answer = connection.answering(request.request_id, segment, reply, offset=offset)
    expected_length = None if offset in _NO_OFFSETS else offset
    large = len(entries) > _FEW or sum(len(each.value) for each in entries) > _FEW_BYTES

    def begin() -> None:
        change(segment, entries, expected_length=expected_length, done=done)

    def done(outcome: T | StoreError) -> None:
        answer(outcome)
        if large:
            connection.release()

    if large:
        connection.hold()
        connection.in_next_turn(begin)
    else:
        begin()


def read_table(connection: SegmentConnection, request: t.ReadTable) -> None:
    """Look up keys. The next frame waits: an answer may be as large as a frame."""
    keys = [key.key for key in request.keys]
    found: list[WireEntry] = []
    size = 0

    def read() -> None:
        part = keys[len(found) : len(found) + STEP]
        connection.store.read_table(request.segment, part, done=done)

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
        connection.release()

    def reply(_: object) -> WireMessage:
        if len(found) < len(keys):
            raise ValueError(f"a frame cannot hold the entries of {len(keys)} keys; ask for fewer")
        return t.TableRead(request.request_id, request.segment, tuple(found))

    answer = connection.answering(request.request_id, request.segment, reply)
    connection.hold()
    read()


def _on_wire(entry: TableEntry) -> WireEntry:
    return WireEntry(TableKey(entry.key, entry.version), entry.value)


# Pages


def read_keys(connection: SegmentConnection, request: t.ReadTableKeys) -> None:
    """Answer with the next keys."""

    def reply(entries: Iterable[TableEntry], continuation: bytes) -> WireMessage:
        keys = tuple(TableKey(entry.key, entry.version) for entry in entries)
        return t.TableKeysRead(request.request_id, request.segment, keys, continuation)

    _iterate(connection, request, reply)


def read_entries(connection: SegmentConnection, request: t.ReadTableEntries) -> None:
    """Answer with the next entries."""

    def reply(entries: Iterable[TableEntry], continuation: bytes) -> WireMessage:
        found = tuple(map(_on_wire, entries))
        return t.TableEntriesRead(request.request_id, request.segment, found, continuation)

    _iterate(connection, request, reply)


def _iterate(
    connection: SegmentConnection,
    request: t.TableIteration,
    reply: Callable[[Iterable[TableEntry], bytes], WireMessage],
) -> None:
    """Gather the next part of a table, no larger than a frame. The next frame waits for it."""
    kind, place = request.continuation[:1], request.continuation[1:]
    if kind == _END:
        connection.reply(reply((), b""))
        return
    if kind not in {b"", _GO_ON}:
        connection.close("a continuation that was never given")
        return
    # Clients of before 0.10 ask so for the keys of a family.
    page = EntryPage(request.suggested_count, request.prefix_deprecated)

    def read(continuation: bytes | None) -> None:
        connection.store.iterate_table(
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
            connection.refuse(request.request_id, request.segment, found)
            connection.release()
            return
        page.add(found.entries)
        if found.continuation is not None and not (page.is_full or connection.is_over):
            _go_on(connection, request, partial(read, found.continuation))
            return
        connection.reply(reply(page.entries, _continuation(found, page)))
        connection.release()

    connection.hold()
    read(place or None)


def _within_bounds(
    request: t.TableIteration, outcome: TablePage | StoreError
) -> TablePage | StoreError:
    """Return the entries that the store has found; none in bounds that lie the wrong way round."""
    if isinstance(outcome, TablePage) and request.from_key > request.to_key > b"":
        return InvalidArgument("the first key lies behind the last")
    return outcome


def _go_on(
    connection: SegmentConnection, request: t.TableIteration, step: Callable[[], None]
) -> None:
    """Take the next step; others have their turn while there may be no key with a prefix."""
    if request.prefix_deprecated:
        connection.in_next_turn(step)
    else:
        step()


def _continuation(last: TablePage, page: EntryPage) -> bytes:
    if last.continuation is not None:
        return _GO_ON + last.continuation
    return _END if page.entries else b""


def read_delta(connection: SegmentConnection, request: t.ReadTableEntriesDelta) -> None:
    """Answer with changes from a position on, at most a frame of them. The next frame waits."""
    page = DeltaPage(request.suggested_count)

    def read(position: int) -> None:
        connection.store.read_table_delta(request.segment, position, count=page.step, done=done)

    def done(outcome: TableDelta | StoreError) -> None:
        if isinstance(outcome, StoreError):
            connection.refuse(request.request_id, request.segment, outcome)
            connection.release()
            return
        page.add(outcome.entries, should_clear=outcome.should_clear)
        if not (outcome.reached_end or page.is_full):
            read(outcome.position)
            return
        connection.reply(
            t.TableEntriesDeltaRead(
                request.request_id,
                request.segment,
                tuple(map(_on_wire, page.entries)),
                should_clear=page.should_clear,
                reached_end=outcome.reached_end,
                last_position=outcome.position,
            )
        )
        connection.release()

    connection.hold()
    read(request.from_position)

"""The check: records against the segments of the store, and segments that belong to nothing known.

Clients may make segments without the controller, so that such segments are notes.
"""

from collections.abc import Iterator

from gateway.pravega.controller.checking.finding import Finding, Held, is_segment, note
from gateway.pravega.controller.checking.others import (
    flaws_of_group,
    flaws_of_table,
    flaws_of_transaction,
    loose_rows,
    parts_of,
)
from gateway.pravega.controller.checking.records import Records
from gateway.pravega.controller.checking.streams import flaws_of
from gateway.pravega.controller.records.model import StreamRecord
from gateway.pravega.names import marked, place_of, segment_name
from store.api import PART_MARKS, TRANSACTION_MARK


def findings(records: Records, held: Held) -> Iterator[Finding]:
    """Yield all that is found, damage and notes."""
    yield from loose_rows(records)
    for stream in records.known_streams.values():
        yield from flaws_of(stream, held)
    for group in records.groups.values():
        yield from flaws_of_group(group, records, held)
    for table in records.tables.all():
        yield from flaws_of_table(table, held)
    for transaction in records.all_transactions():
        yield from flaws_of_transaction(transaction, records, held)
    yield from leftovers(records, held)


def segments_of_streams(records: Records, held: Held) -> list[str]:
    """Return the names of all segments of streams that are there."""
    return [
        name
        for stream in records.known_streams.values()
        for name in map(stream.segment_name, sorted(stream.history.segments))
        if is_segment(name, held)
    ]


def leftovers(records: Records, held: Held) -> Iterator[Finding]:
    """Yield one finding for each `scope/stream` that has such segments, in a known scope."""
    tables = {name for each in records.tables.all() for name in each.segment_names}
    parts = {name for each in records.all_transactions() for name in parts_of(each)}
    found: dict[str, list[str]] = {}
    for name in sorted(held):
        scope, _, rest = name.partition("/")
        if scope not in records.scopes or name in tables or name in parts:
            continue
        if not _belongs(name, records, held):
            found.setdefault(f"{scope}/{rest.partition('/')[0]}", []).append(name)
    for place, names in found.items():
        what = "a segment belongs" if len(names) == 1 else f"{len(names)} segments belong"
        yield note(f"{what} to nothing that the controller knows", f"place={place}", names[0])


def _belongs(segment: str, records: Records, held: Held) -> bool:
    """Return whether a segment is one of a stream, of its marks, or a transient one beside it."""
    if TRANSACTION_MARK in segment:
        return _is_part_of_unsettled(segment, records)
    place = place_of(_base(segment))
    if place is None:
        return False
    scope, name, identity = place
    of = marked(name)
    if of is not None:
        return (scope, of) in records.known_streams or is_segment(segment_name(scope, of, 0), held)
    stream = records.known_streams.get((scope, name))
    return stream is not None and _has(stream, identity)


def _base(segment: str) -> str:
    for mark in PART_MARKS:
        segment = segment.partition(mark)[0]
    return segment


def _is_part_of_unsettled(segment: str, records: Records) -> bool:
    """Return whether a part of a transaction is deleted with its stream."""
    place = place_of(_base(segment))
    stream = None if place is None else records.known_streams.get((place[0], place[1]))
    return stream is not None and not stream.state.is_settled


def _has(stream: StreamRecord, identity: int) -> bool:
    """Return whether a stream has a segment, or may have it before its change is finished."""
    if not stream.state.is_settled:
        return True
    return identity in stream.history.segments and identity not in stream.given_up

"""The check: records against the segments of the store."""

from collections.abc import Iterator

from gateway.pravega.controller.checking.finding import Finding, Held, is_segment
from gateway.pravega.controller.checking.leftovers import leftovers
from gateway.pravega.controller.checking.others import (
    flaws_of_group,
    flaws_of_table,
    flaws_of_transaction,
    loose_rows,
)
from gateway.pravega.controller.checking.records import Records
from gateway.pravega.controller.checking.streams import flaws_of


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

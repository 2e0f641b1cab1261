"""Checks of groups of readers, tables and transactions, and of rows that belong to no stream."""

from collections.abc import Iterable, Iterator, Sequence

from gateway.pravega.controller.checking.finding import (
    UNDER_WAY,
    Finding,
    Held,
    is_segment,
    note,
)
from gateway.pravega.controller.checking.records import Name, Records
from gateway.pravega.controller.readers.group import ReaderGroup
from gateway.pravega.controller.records.key_value_tables import KeyValueTable, TableState
from gateway.pravega.controller.records.model import TransactionRecord, TransactionState
from gateway.pravega.names import GROUP, segment_name, transaction_segment_name


def flaws_of_group(group: ReaderGroup, records: Records, held: Held) -> Iterator[Finding]:
    """Yield the flaws of a group of readers.

    A stream that it reads may be deleted at any time, so that one that is missing is a note.
    """
    owner = f"group={group.scope}/{group.name}"
    if group.is_ending:
        yield note(UNDER_WAY, owner)
        return
    if (group.scope, GROUP + group.name) not in records.known_streams:
        stream = f"{group.scope}/{GROUP}{group.name}"
        yield Finding(f"the group of readers has lost its stream {stream}", owner)
    for stream in sorted(group.starts.keys() | group.ends.keys()):
        scope, _, name = stream.partition("/")
        if not _is_stream(scope, name, records, held):
            yield note(f"the group of readers reads {stream}, which is not there", owner)


def _is_stream(scope: str, name: str, records: Records, held: Held) -> bool:
    """Return whether there is a stream, which may have been made without the controller."""
    return (scope, name) in records.known_streams or is_segment(segment_name(scope, name, 0), held)


def flaws_of_table(table: KeyValueTable, held: Held) -> Iterator[Finding]:
    """Yield the flaws of a table of keys and values."""
    owner = f"table={table.scope}/{table.name}"
    if table.state is not TableState.ACTIVE:
        yield note(UNDER_WAY, owner)
        return
    for name in table.segment_names:
        if name not in held:
            yield Finding("a partition of the table is missing", owner, name)
        elif not held[name].is_table:
            yield Finding("a partition of the table is no table", owner, name)


def flaws_of_transaction(
    each: TransactionRecord, records: Records, held: Held
) -> Iterator[Finding]:
    """Yield the flaws of a transaction."""
    owner = f"transaction={each.identity:032x} stream={each.scope}/{each.stream}"
    if (each.scope, each.stream) not in records.known_streams:
        what = "the stream of a transaction is missing"
        yield Finding(what, owner, is_damage=not each.state.is_over)
    elif each.state is TransactionState.OPEN:
        yield from _flaws_of_parts(each, owner, held)
    elif not each.state.is_over:
        yield note(UNDER_WAY, owner)


def parts_of(each: TransactionRecord) -> list[str]:
    """Return the names of a transaction's parts, in the order in which they are made."""
    place = (each.scope, each.stream)
    return [transaction_segment_name(*place, part.identity, each.identity) for part in each.shape]


def _flaws_of_parts(each: TransactionRecord, owner: str, held: Held) -> Iterator[Finding]:
    names = parts_of(each)
    missing = [name for name in names if name not in held]
    if missing and _may_be_cut_short(names, missing, held):
        parts = f"{len(missing)} of {len(names)} parts of the open transaction are not there"
        yield note(f"{parts}: its beginning was cut short, or they are lost", owner, missing[0])
        return
    for name in missing:
        yield Finding("a part of the open transaction is missing", owner, name)


def _may_be_cut_short(names: Sequence[str], missing: Sequence[str], held: Held) -> bool:
    """Return whether a transaction may lack parts because the process ended at its beginning.

    They are made one after the other, and written when all are there. A client that has begun one
    so has no answer, and writes nothing; it is aborted when its lease ends.
    """
    made = len(names) - len(missing)
    return list(names[made:]) == list(missing) and not any(
        held[name].length for name in names[:made]
    )


def loose_rows(records: Records) -> Iterator[Finding]:
    """Yield the scopes, places and times that things need or have, and that are not there."""
    for scope in sorted(_scopes(records) - set(records.scopes)):
        yield Finding("the scope has streams or tables, and is not there", f"scope={scope}")
    for what, names in (("places of retention", records.places), ("times", records.times)):
        for scope, name in sorted(_missing(names, records)):
            yield note(f"{what} are kept of a stream that is not there", f"stream={scope}/{name}")


def _scopes(records: Records) -> set[str]:
    of_tables = {each.scope for each in records.tables.all()}
    return of_tables | {scope for scope, _ in records.known_streams}


def _missing(names: Iterable[Name], records: Records) -> set[Name]:
    return {name for name in names if name not in records.known_streams}

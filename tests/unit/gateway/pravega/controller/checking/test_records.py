"""Rows of the controller's table, of which some cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from gateway.pending import start
from gateway.pravega.controller.checking.records import Records
from gateway.pravega.controller.records import table
from gateway.pravega.controller.records.epochs import History, StreamSegment
from gateway.pravega.controller.records.history import evenly
from gateway.pravega.controller.records.key_value_tables import (
    KeyValueTable,
    TableConfig,
    TableState,
)
from gateway.pravega.controller.records.model import (
    Ended,
    StreamPolicy,
    StreamRecord,
    StreamState,
    TransactionRecord,
    TransactionState,
)
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.rounds.places import StreamEnd
from gateway.pravega.controller.rounds.writers import Times
from store.errors import CorruptSegment
from tests.unit.gateway.pravega.controller.readers.test_group import group

STREAM = StreamRecord(
    scope="scope",
    name="stream",
    policy=StreamPolicy(segments=2),
    state=StreamState.ACTIVE,
    history=History((evenly(2, 0, 1),)),
)
TRANSACTION = TransactionRecord(
    scope="scope",
    stream="stream",
    identity=7,
    state=TransactionState.OPEN,
    lease_ms=1,
    began_ms=1,
    shape=(StreamSegment(0.0, 1.0, 0, 0),),
)
PAIRS = TableConfig(partitions=2)
PAIR = KeyValueTable(scope="scope", name="pairs", config=PAIRS, state=TableState.ACTIVE, first=0)
ROWS = {
    b"scope\0scope": b"",
    b"stream\0scope/stream": STREAM.to_bytes(),
    b"transaction\0scope/stream/%032x" % 7: TRANSACTION.to_bytes(),
    b"ended\0scope/old": Ended(scope="scope", name="old", next_number=3).to_bytes(),
    b"group\0scope/group": group().to_bytes(),
    b"place\0scope/stream/%016d" % 5: StreamEnd(5, 9, {0: 9}).to_bytes(),
    b"times\0scope/stream": Times(scope="scope", stream="stream").to_bytes(),
    b"kvtable\0scope/pairs": PAIR.to_bytes(),
}


class Stored:
    """The controller's table, with some rows."""

    def __init__(self, rows: Mapping[bytes, bytes]) -> None:
        self.rows = rows

    async def load(self) -> Mapping[bytes, bytes]:
        return self.rows


def loaded(rows: Mapping[bytes, bytes]) -> Records:
    records = Records(cast(Any, Stored(rows)))
    start(records.load()).result()
    return records


def is_refused(key: bytes, row: bytes) -> bool:
    """Return whether a check refuses a row; a controller has to do the same."""
    rows = {b"scope\0scope": b"", key: row}
    refused = loaded(rows).refused == [key]
    if refused:
        with pytest.raises(CorruptSegment, match=r"cannot be read \(.*\): hutch store check"):
            start(Registry(cast(Any, Stored(rows))).load()).result()
    else:
        start(Registry(cast(Any, Stored(rows))).load()).result()
    return refused


def test_rows_of_each_kind_are_taken_in() -> None:
    records = loaded(ROWS)

    assert records.refused == []
    assert set(records.scopes) == {"scope"}
    assert records.known_streams == {("scope", "stream"): STREAM}
    assert records.all_transactions() == [TRANSACTION]
    assert records.groups == {("scope", "group"): group()}
    assert records.tables.all() == [PAIR]
    assert set(records.places) == set(records.times) == {("scope", "stream")}


def test_each_kind_of_row_that_the_table_has_is_known() -> None:
    kinds = {each for each in vars(table).values() if isinstance(each, bytes)}

    assert {key.partition(b"\0")[0] + b"\0" for key in ROWS} == kinds


def test_a_stream_of_a_scope_that_is_not_there_is_known() -> None:
    records = loaded({b"stream\0scope/stream": STREAM.to_bytes()})

    assert records.refused == []
    assert list(records.known_streams) == [("scope", "stream")]
    assert not records.scopes


@pytest.mark.parametrize("key", [key for key in ROWS if not key.startswith(b"scope")])
@pytest.mark.parametrize("row", [b"", b"{", b"{}", b"[]", b"[1, 2, 3]", b"null", b"\xff"])
def test_a_row_that_is_none_of_its_kind_is_refused(key: bytes, row: bytes) -> None:
    assert not is_refused(key, ROWS[key])
    assert is_refused(key, row)


@pytest.mark.parametrize("key", [key for key in ROWS if not key.startswith(b"scope")])
def test_a_row_under_the_key_of_another_one_is_refused(key: bytes) -> None:
    assert is_refused(key + b"1", ROWS[key])


@pytest.mark.parametrize("key", [b"", b"scope", b"other\0scope", b"scope\0\xff"])
def test_a_key_that_is_none_is_refused(key: bytes) -> None:
    assert is_refused(key, b"")


@pytest.mark.parametrize(
    "stream", [replace(STREAM, history=History(())), replace(STREAM, cut={9: 0})]
)
def test_a_stream_without_epochs_or_with_a_cut_of_no_segment_of_it_is_refused(
    stream: StreamRecord,
) -> None:
    assert is_refused(b"stream\0scope/stream", stream.to_bytes())


def test_bad_rows_do_not_hide_the_others() -> None:
    bad = {b"group\0scope/bad": b"{", b"stream\0scope/bad": b"[]"}

    records = loaded(ROWS | bad)

    assert records.refused == list(bad)
    assert records.groups == {("scope", "group"): group()}
